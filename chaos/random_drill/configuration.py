"""The configuration that a random drill runs under. Pure."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from chaos.witness import job_command
from shared.model.budget import Budget, Per
from shared.model.instant import US_PER_MS, US_PER_S
from shared.model.settings import Binding, Config, RetryPolicy, ScopeConfig, Settings
from shared.model.usage import ATTEMPTS, MINUTES, TURNS
from shared.model.work import WorkKind

SECONDS_VARIABLE, STATUS_VARIABLE = "DRILL_SECONDS", "DRILL_STATUS"
"""Tell a job that runs its binding's command how long it takes and how it ends."""
BREAKING, LINGERING = "breaking", "lingering"
CONFIGURED = (BREAKING, LINGERING)
"""Bindings whose works run what they say; every other job brings its own command, and so says nothing of how its binding does."""
METERED, SHARED = "metered", "shared"
ENOUGH = Decimal(10**9)
"""Of a budget that only counts."""
CAPPED_BYTES = 256 * 1024
FAILURES_MAX = 2
"""So many works in a row that come to nothing quarantine their binding."""
WORKERS_LOST_MAX = 8
"""So many deaths of its holders in a row, each within seconds, quarantine the binding of what runs. The drill kills workers whatever
they hold, so chance alone must not end launches too: those are given up after five, and begun anew as the next attempt's."""

_NOTHING = ("/bin/true",)
_AS_TOLD = f'set -- "$1" "${SECONDS_VARIABLE}" "${STATUS_VARIABLE}" "$4"'
RETRIES = RetryPolicy((US_PER_S, US_PER_S))
CONFIG = Config(
    settings=Settings(
        job_concurrency=8,
        concurrency=6,
        lease_us=2_500 * US_PER_MS,
        quarantine_after=FAILURES_MAX,
        workers_lost_max=WORKERS_LOST_MAX,
    ),
    scopes=(
        ScopeConfig("north", concurrency=4),
        ScopeConfig("north/inner", concurrency=2),
        ScopeConfig("south", concurrency=3),
    ),
    bindings=(
        Binding("agent", _NOTHING, executor="agent", grace_us=300 * US_PER_MS),
        Binding("approved", _NOTHING, approval=True),
        Binding(BREAKING, _NOTHING),
        Binding("capped", _NOTHING, output_max_bytes=CAPPED_BYTES),
        Binding("dropping-agent", _NOTHING, executor="agent", grace_us=300 * US_PER_MS, on_inject_error="drop"),
        Binding("handing", _NOTHING, kind=WorkKind.STANDING, continues=True),
        Binding(
            "handing-agent",
            _NOTHING,
            executor="agent",
            grace_us=300 * US_PER_MS,
            kind=WorkKind.STANDING,
            continues=True,
        ),
        Binding("late", _NOTHING, timeout_us=1_000 * US_PER_MS, grace_us=300 * US_PER_MS),
        Binding(LINGERING, _NOTHING),
        Binding("plain", _NOTHING),
        Binding("retried", _NOTHING, retry=RETRIES),
        Binding("retried-agent", _NOTHING, executor="agent", grace_us=300 * US_PER_MS, retry=RETRIES),
        Binding("standing", _NOTHING, kind=WorkKind.STANDING),
        Binding("standing-agent", _NOTHING, executor="agent", grace_us=300 * US_PER_MS, kind=WorkKind.STANDING),
        Binding("stopped", _NOTHING, grace_us=300 * US_PER_MS),
    ),
    budgets=(
        *(Budget(unit, ENOUGH, Per.ALL) for unit in (TURNS, ATTEMPTS, MINUTES, "tokens", "usd")),
        Budget(TURNS, Decimal(2), Per.WORK, scope=METERED, warn_at=Decimal("0.5")),
        Budget("tokens", Decimal(300), Per.SCOPE, scope=SHARED, warn_at=Decimal("0.8")),
    ),
)
"""What is in force, but for the commands of `CONFIGURED`."""


def configuration(witness: Path) -> Config:
    """What is in force in a drill with that witness."""
    command = job_command(witness, wait=0, status=0, body=_AS_TOLD)
    bindings = (
        replace(binding, command=command) if binding.name in CONFIGURED else binding for binding in CONFIG.bindings
    )
    return replace(CONFIG, bindings=tuple(bindings))

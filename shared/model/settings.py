"""A configuration as values: what `tenure.toml` says once it has been read, checked and resolved.

One configuration is one *generation* in the store, kept as the canonical JSON of `Config.to_json`. Everything here is
standard library only, so that policy, store, coordinator and worker use it without the file's reader.

Rule: design §12 (shape, limits), requirements E01 (defaults), C01 and C02 (pools and scope limits), O09 (delays).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, cast

from shared.errors import UnsupportedError
from shared.ids import is_work_id
from shared.model.budget import Budget
from shared.model.causality import DEPTH_MAX
from shared.model.instant import US_PER_HOUR, US_PER_MINUTE, US_PER_S
from shared.model.work import WorkKind

Executor = Literal["shell", "agent", "claude-code"]
OnInjectError = Literal["queue", "drop"]
Pool = Literal["jobs", "agents"]
Replay = Literal["never", "safe"]
RetryCause = Literal["failure", "timeout"]
OnExhausted = Literal["fail", "hold"]

LIMIT_MAX = 100_000
OUTPUT_MAX_BYTES = 64 * 1024 * 1024
QUARANTINE_AFTER = 5
WORKERS_LOST_MAX = 3
RETRY_DELAYS_US = (5 * US_PER_MINUTE, 10 * US_PER_MINUTE, 15 * US_PER_MINUTE)
"""Of a policy that names none: the first two for three attempts in all, all three for four. Rule: O09."""
ATTEMPTS_MAX = 101
FORMAT = 1  # of the stored JSON; raised when a reader of the old form would misunderstand the new one

_SCOPE_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_BINDING_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")
_SCOPE_LENGTH_MAX = 255
_SCOPE_DEPTH_MAX = 16
_POOLS: dict[str, Pool] = {"shell": "jobs", "agent": "agents", "claude-code": "agents"}
_VERSIONS = {"shell": 1, "agent": 1, "claude-code": 1}
AGENTS = frozenset({"agent", "claude-code"})
"""Executors whose programs are spoken with while they run."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for the whole home.

    Attributes:
        concurrency: Running agent attempts at once, and of everything without a pool; 0 = unbounded.
        job_concurrency: Running job attempts at once; 0 = unbounded.
        lease_us: How long a lease lasts unless renewed.
        timeout_us: Running time of an attempt whose binding names none.
        output_max_bytes: Kept of each output stream of an attempt whose binding names none; 0 = unbounded.
        slots: Attempts one worker takes; only spreads starts over workers, it limits nothing in total.
        quarantine_after: Works of one binding in a row that came to nothing before it is quarantined; 0 = never.
        workers_lost_max: Workers that may die in a row of the launch of one attempt, which then fails, or of holding what runs of one
            binding, which is then quarantined unless nothing ever is; 0 = any number.
        approval: Kinds of Work whose first attempt a person has to approve.
        causal_depth: How many links a chain of events and inputs may have that attempts derive from each other.
    """

    concurrency: int = 4
    job_concurrency: int = 4
    lease_us: int = 60 * US_PER_S
    timeout_us: int = US_PER_HOUR
    output_max_bytes: int = OUTPUT_MAX_BYTES
    slots: int = 64
    quarantine_after: int = QUARANTINE_AFTER
    workers_lost_max: int = WORKERS_LOST_MAX
    approval: tuple[WorkKind, ...] = ()
    causal_depth: int = DEPTH_MAX


@dataclass(frozen=True, slots=True)
class ScopeConfig:
    """A scope that the file names; its ancestors exist by its name.

    Attributes:
        concurrency: Attempts of every pool at once in the scope and below it; 0 = unbounded, None = no word on it.
        binding: What Work in it and below it takes that names no binding of its own; None = as in the scope above.
    """

    name: str
    concurrency: int | None = None
    binding: str | None = None


@dataclass(frozen=True, slots=True)
class Exponential:
    """Waits that double, each drawn between 1 s and its bound (full jitter).

    Attributes:
        base_us: Bound of the first wait; each further one is twice as long, at most `max_us`.
        attempts: In all, the first one included; 2 to 101.
    """

    base_us: int
    max_us: int
    attempts: int


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed attempt is followed by another.

    Attributes:
        delays_us: Wait before attempt 2, 3, …; the last one waited for, the Work is exhausted. At most 100.
        on: What arms a retry. A timeout does only when it is listed.
        exponential: In place of `delays_us`, which is () then; None: the delays count.
        exhausted: What becomes of a run-once Work with nothing left to try: it fails, or it is held for a person.
    """

    delays_us: tuple[int, ...] = RETRY_DELAYS_US[:2]
    on: tuple[RetryCause, ...] = ("failure",)
    exponential: Exponential | None = None
    exhausted: OnExhausted = "fail"

    @property
    def attempts_max(self) -> int:
        """Failures that the policy bears in a row, the last of which exhausts it: attempts in all, when none succeeds."""
        return 1 + len(self.delays_us) if self.exponential is None else self.exponential.attempts


ONE_ATTEMPT = RetryPolicy(delays_us=(), on=())
"""Without a retry policy one attempt settles the Work."""


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """What a command may see and change; everything else is not there for it.

    Attributes:
        read_only, writable: Absolute folders and files, sorted; of two that contain each other the inner one counts.
        network: The host's network; without it there is only a loopback of its own.
        private_tmp: An empty /tmp of its own that ends with the attempt, instead of the host's.
    """

    read_only: tuple[str, ...] = ("/",)
    writable: tuple[str, ...] = ()
    network: bool = False
    private_tmp: bool = True


@dataclass(frozen=True, slots=True)
class Grant:
    """What Work that asks for it by name gets on top of its binding, which sets none of these variables itself.

    Attributes:
        env, secrets: As in `Binding`.
        writable: Added to those of the binding's sandbox, sorted.
    """

    name: str
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    writable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Binding:
    """Which executor runs a Work, with what, and what may be done when it fails.

    Attributes:
        command: The program and its arguments, one text each; no shell reads them.
        env: Added to the job's environment, sorted by name; stored, so never a secret.
        secrets: (variable, reference), sorted: where the worker reads the value at each launch. Values are never stored.
        cwd: Absolute folder the command starts in; None = the caller's for `run`, else the folder of the file.
        timeout_us: Running time allowed; None = the settings' one.
        grace_us: Between the polite signal and the killing one, when it must be stopped.
        retry: None = one attempt settles the Work.
        replay: `safe` when running it twice does no harm, so an unknown outcome may be followed by another attempt.
        sandbox: None = it sees and changes what its user may.
        output_max_bytes: Kept of each output stream; 0 = unbounded, None = the settings' one.
        grants: Sorted by name; none applies unless a Work asks for it.
        kind: Of the Works that `tenure submit` makes of it.
        approval: A person has to approve the first attempt of each Work that takes it.
        idle_us: An agent that says nothing for so long is ended; None: it may be as quiet as it likes.
        on_inject_error: What becomes of an input that could not be handed to its running agent: it waits for the next attempt,
            or is dropped.
        continues: A handoff of its standing Work is followed by the next attempt at once. Rule: O07.
    """

    name: str
    command: tuple[str, ...]
    executor: Executor = "shell"
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    timeout_us: int | None = None
    grace_us: int = 10 * US_PER_S
    retry: RetryPolicy | None = None
    replay: Replay = "never"
    sandbox: SandboxConfig | None = None
    output_max_bytes: int | None = None
    grants: tuple[Grant, ...] = ()
    kind: WorkKind = WorkKind.RUN_ONCE
    approval: bool = False
    idle_us: int | None = None
    on_inject_error: OnInjectError = "queue"
    continues: bool = False

    @property
    def pool(self) -> Pool:
        """The pool its attempts count against."""
        return pool_of(self.executor)

    def grant(self, name: str) -> Grant | None:
        """The grant of that name; None when the binding has none."""
        return next((grant for grant in self.grants if grant.name == name), None)


@dataclass(frozen=True, slots=True)
class Config:
    """One configuration.

    Attributes:
        scopes, bindings: Sorted by name; each name once.
        budgets: In the order of the file; no two count the same on the same ledger.
    """

    settings: Settings = field(default_factory=Settings)
    scopes: tuple[ScopeConfig, ...] = ()
    bindings: tuple[Binding, ...] = ()
    budgets: tuple[Budget, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, hexadecimal: equal for configurations that mean the same."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def binding(self, name: str) -> Binding | None:
        """The binding of that name; None when the configuration has none."""
        return next((binding for binding in self.bindings if binding.name == name), None)

    def pool_limit(self, pool: Pool) -> int:
        """Attempts at once in that pool; 0 = unbounded."""
        return self.settings.job_concurrency if pool == "jobs" else self.settings.concurrency

    def scope_limits(self, scope: str) -> tuple[tuple[str, int], ...]:
        """The limits an attempt in `scope` counts against: (scope, limit), outermost first, only bounded ones."""
        limits = {known.name: known.concurrency for known in self.scopes}
        chain = ((name, limits.get(name)) for name in scope_chain(scope))
        return tuple((name, limit) for name, limit in chain if limit)

    def scope_binding(self, scope: str) -> str | None:
        """The binding that Work in `scope` inherits: the nearest one up the chain; None when no scope of it names one."""
        named = {known.name: known.binding for known in self.scopes}
        return next((named[name] for name in reversed(scope_chain(scope)) if named.get(name) is not None), None)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no spaces; equal values give equal text."""
        budgets = [budget.to_plain() for budget in self.budgets]
        return _canonical({"format": FORMAT, **asdict(self), "budgets": budgets})

    @classmethod
    def from_json(cls, text: str) -> Config:
        """The configuration that `to_json` wrote.

        Raises:
            UnsupportedError: it was written in another format than this version knows.
            ValueError: the text is no such JSON.
        """
        raw = _mapping(json.loads(text))
        if raw.get("format") != FORMAT:
            message = f"a stored configuration has format {raw.get('format')}, this version reads {FORMAT}"
            raise UnsupportedError(message, hint="use the version of tenure that wrote it")
        try:
            return cls(
                settings=_settings(_mapping(raw["settings"])),
                scopes=tuple(ScopeConfig(**_mapping(scope)) for scope in raw["scopes"]),
                bindings=tuple(_binding(_mapping(binding)) for binding in raw["bindings"]),
                budgets=tuple(Budget.from_plain(_mapping(budget)) for budget in raw.get("budgets", [])),
            )
        except (KeyError, TypeError, ArithmeticError) as error:
            raise ValueError(f"not a stored configuration: {error}") from error


DEFAULT = Config()


def pool_of(executor: str) -> Pool:
    """The pool that attempts of this executor count against.

    Raises:
        UnsupportedError: this version has no such executor.
    """
    pool = _POOLS.get(executor)
    if pool is None:
        raise UnsupportedError(f'no executor "{executor}" in this version')
    return pool


def registration_of(executor: str) -> str:
    """The executor with the version that this build has of it: `shell@1`. A version is raised when what it launches changes.

    Raises:
        UnsupportedError: this version has no such executor.
    """
    version = _VERSIONS.get(executor)
    if version is None:
        raise UnsupportedError(f'no executor "{executor}" in this version')
    return f"{executor}@{version}"


def scope_chain(scope: str) -> tuple[str, ...]:
    """A scope and its ancestors, outermost first: `ops/backup` gives `ops`, `ops/backup`; "" gives nothing."""
    if not scope:
        return ()
    parts = scope.split("/")
    return tuple("/".join(parts[: depth + 1]) for depth in range(len(parts)))


def is_scope_name(text: str) -> bool:
    """True when `text` may name a scope: parts of letters, digits, `.`, `_`, `-`, joined by `/`, at most 16 deep."""
    parts = text.split("/")
    return (
        len(text) <= _SCOPE_LENGTH_MAX
        and len(parts) <= _SCOPE_DEPTH_MAX
        and all(_SCOPE_PART.fullmatch(part) is not None for part in parts)
    )


def is_binding_name(text: str) -> bool:
    """True when `text` may name a binding: a letter, then letters, digits, `.`, `_`, `-`; never a Work's id."""
    return _BINDING_NAME.fullmatch(text) is not None and not is_work_id(text)


def _canonical(value: object) -> str:
    # ASCII only: an argument that is no UTF-8 is a lone surrogate in Python, which JSON escapes and SQLite would refuse.
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _mapping(raw: object) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise ValueError(f"expected an object, found {type(raw).__name__}")  # noqa: TRY004 - corrupt data, not a caller's type
    return raw


def _settings(raw: dict[str, Any]) -> Settings:
    return Settings(**{**raw, "approval": tuple(WorkKind(kind) for kind in raw.get("approval", []))})


def _binding(raw: dict[str, Any]) -> Binding:
    try:
        retry, sandbox = raw["retry"], raw.get("sandbox")
        values = {
            **raw,
            "command": tuple(raw["command"]),
            "env": _pairs(raw["env"]),
            "secrets": _pairs(raw.get("secrets", [])),
            "retry": None if retry is None else _retry(_mapping(retry)),
            "sandbox": None if sandbox is None else sandbox_of(_mapping(sandbox)),
            "grants": tuple(_grant(_mapping(grant)) for grant in raw.get("grants", [])),
            "kind": WorkKind(raw.get("kind", WorkKind.RUN_ONCE)),
        }
        return Binding(**values)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a stored binding: {error}") from error


def sandbox_of(raw: dict[str, Any]) -> SandboxConfig:
    """A sandbox from its plain JSON form.

    Raises:
        TypeError, KeyError: it is none.
    """
    return SandboxConfig(**{**raw, "read_only": tuple(raw["read_only"]), "writable": tuple(raw["writable"])})


def _grant(raw: dict[str, Any]) -> Grant:
    values = {"env": _pairs(raw["env"]), "secrets": _pairs(raw["secrets"]), "writable": tuple(raw["writable"])}
    return Grant(**{**raw, **values})


def _pairs(raw: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in raw)


def _retry(raw: dict[str, Any]) -> RetryPolicy:
    exponential = raw.get("exponential")
    return RetryPolicy(
        delays_us=tuple(raw["delays_us"]),
        on=cast("tuple[RetryCause, ...]", tuple(raw["on"])),
        exponential=None if exponential is None else Exponential(**exponential),
        exhausted=raw.get("exhausted", "fail"),
    )

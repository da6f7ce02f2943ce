"""The limits that a configuration sets. Rule: requirements C01, C02."""

from __future__ import annotations

from shared.model.settings import Config
from shared.policy.capacity import POOL_AGENTS, POOL_JOBS, Limits


def limits_of(config: Config) -> Limits:
    """Of its pools and scopes; 0 is unbounded."""
    return Limits(
        pools={POOL_JOBS: config.settings.job_concurrency, POOL_AGENTS: config.settings.concurrency},
        scopes={scope.name: scope.concurrency for scope in config.scopes if scope.concurrency},
    )

"""The shape of `tenure.toml`, strict at every depth; nothing is guessed or converted.

Each model gives the plain value of `shared/model/settings.py` that it stands for. A validator raises `fault(...)`, as the
checks of single values in `shared/config/fields.py` do; `shared/config/loader.py` turns them, and pydantic's own kinds,
into one `ConfigError` with a line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.config.arguments import env_fault, total_fault
from shared.config.fields import (
    AbsolutePath,
    Amount,
    BindingName,
    Cause,
    Command,
    Count,
    Duration,
    Executor,
    Folder,
    Fraction,
    GrantName,
    Kind,
    KnownScope,
    LeaseDuration,
    Limit,
    OnExhausted,
    OnInjectError,
    PerWhom,
    Replay,
    ScopeName,
    Secret,
    Size,
    Slots,
    Switch,
    Text,
    Unit,
    Whole,
    Window,
    fault,
    likely,
)
from shared.model import settings as values
from shared.model.budget import Budget, Per, Period
from shared.model.work import WorkKind

_DELAYS_MAX = 100
_ORDINALS = {0: "first", 1: "second", 2: "third"}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SettingsTable(_Table):
    """`[settings]`."""

    concurrency: Limit = 4
    job_concurrency: Limit = 4
    lease: LeaseDuration = values.DEFAULT.settings.lease_us
    timeout: Duration = values.DEFAULT.settings.timeout_us
    output_max: Size = values.OUTPUT_MAX_BYTES
    slots: Slots = 64
    quarantine_after: Count = values.QUARANTINE_AFTER
    workers_lost_max: Count = values.WORKERS_LOST_MAX
    approval: Annotated[list[Kind], Field(default_factory=list)]
    causal_depth: Whole = values.DEFAULT.settings.causal_depth

    def value(self) -> values.Settings:
        return values.Settings(
            concurrency=self.concurrency,
            job_concurrency=self.job_concurrency,
            lease_us=self.lease,
            timeout_us=self.timeout,
            output_max_bytes=self.output_max,
            slots=self.slots,
            quarantine_after=self.quarantine_after,
            workers_lost_max=self.workers_lost_max,
            approval=tuple(kind for kind in WorkKind if kind in self.approval),
            causal_depth=self.causal_depth,
        )


class ScopeTable(_Table):
    """`[scope."ops/backup"]`."""

    concurrency: Limit | None = None
    binding: Text | None = None

    def value(self, name: str) -> values.ScopeConfig:
        return values.ScopeConfig(name=name, concurrency=self.concurrency, binding=self.binding)


class ExponentialTable(_Table):
    """`exponential = { base = "1s", max = "10m" }`."""

    base: Duration
    max: Duration

    @model_validator(mode="after")
    def _is_a_range(self) -> ExponentialTable:
        if self.max < self.base:
            raise fault("max must not be less than base", key=("max",))
        return self


class RetryTable(_Table):
    """`retry = { delays = ["5m"], on = ["failure"] }`: which waits, or how many attempts, or both of an exponential one."""

    delays: list[Duration] | None = None
    attempts: Whole | None = None
    exponential: ExponentialTable | None = None
    on: Annotated[list[Cause], Field(default_factory=lambda: ["failure"])]
    exhausted: OnExhausted = "fail"

    @model_validator(mode="after")
    def _counts(self) -> RetryTable:
        if self.delays is not None and not 1 <= len(self.delays) <= _DELAYS_MAX:
            counted = f"delays must hold 1 to {_DELAYS_MAX} delays, not {len(self.delays)}"
            raise fault(counted, "leave retry out for no retry", key=("delays",))
        if not self.on:
            raise fault('on must name "failure", "timeout" or both', "leave retry out for no retry", key=("on",))
        return self

    @model_validator(mode="after")
    def _says_it_once(self) -> RetryTable:
        if self.delays is not None and self.exponential is not None:
            raise fault("exponential waits and delays exclude each other", "keep one of them", key=("exponential",))
        if self.attempts is None:
            return self
        if self.delays is not None:
            message = f"{len(self.delays)} delays are {len(self.delays) + 1} attempts in all already"
            raise fault(message, "leave attempts out", key=("attempts",))
        most = values.ATTEMPTS_MAX if self.exponential is not None else 1 + len(values.RETRY_DELAYS_US)
        if not 2 <= self.attempts <= most:
            hint = "leave retry out for one" if self.attempts < 2 else None if most > 4 else "delays says more waits"
            raise fault(f"attempts must be from 2 to {most}, not {self.attempts}", hint, key=("attempts",))
        return self

    def value(self) -> values.RetryPolicy:
        causes: tuple[values.RetryCause, ...] = ("failure", "timeout")
        on = tuple(cause for cause in causes if cause in self.on)
        exhausted = cast("values.OnExhausted", self.exhausted)
        attempts = 1 + len(values.RetryPolicy().delays_us) if self.attempts is None else self.attempts
        if self.exponential is not None:
            waits = values.Exponential(self.exponential.base, self.exponential.max, attempts)
            return values.RetryPolicy((), on, waits, exhausted)
        delays = values.RETRY_DELAYS_US[: attempts - 1] if self.delays is None else tuple(self.delays)
        return values.RetryPolicy(delays, on, None, exhausted)


class SandboxTable(_Table):
    """`sandbox = { write = ["/srv/data"] }`: what the command may see (`read`) and change (`write`)."""

    read: Annotated[list[AbsolutePath], Field(default_factory=lambda: list(values.SandboxConfig().read_only))]
    write: Annotated[list[AbsolutePath], Field(default_factory=list)]
    network: Switch = False
    tmp: Switch = True

    @model_validator(mode="after")
    def _is_usable(self) -> SandboxTable:
        if not self.read:
            raise fault("without anything in read no program can start", 'read = ["/"] shows everything', key=("read",))
        both = sorted({*self.read} & {*self.write})
        if both:
            raise fault(f'"{both[0]}" is in read and in write', "keep one of them", key=("write",))
        return self

    def value(self) -> values.SandboxConfig:
        return values.SandboxConfig(
            read_only=tuple(sorted({*self.read})),
            writable=tuple(sorted({*self.write})),
            network=self.network,
            private_tmp=self.tmp,
        )


class GrantTable(_Table):
    """`[binding.report.grant.publish]`."""

    env: Annotated[dict[str, Text], Field(default_factory=dict)]
    secrets: Annotated[dict[str, Secret], Field(default_factory=dict)]
    write: Annotated[list[AbsolutePath], Field(default_factory=list)]

    def value(self, name: str) -> values.Grant:
        return values.Grant(
            name=name,
            env=tuple(sorted(self.env.items())),
            secrets=tuple(sorted(self.secrets.items())),
            writable=tuple(sorted({*self.write})),
        )


class BindingTable(_Table):
    """`[binding.backup]`."""

    command: Command
    executor: Executor = "shell"
    env: Annotated[dict[str, Text], Field(default_factory=dict)]
    secrets: Annotated[dict[str, Secret], Field(default_factory=dict)]
    cwd: Folder | None = None
    timeout: Duration | None = None
    grace: Duration = values.Binding(name="", command=()).grace_us
    retry: RetryTable | None = None
    replay: Replay = "never"
    kind: Kind = "run_once"
    sandbox: SandboxTable | None = None
    output_max: Size | None = None
    approval: Switch = False
    idle_timeout: Duration | None = None
    on_inject_error: OnInjectError | None = None
    continues: Annotated[Switch, Field(alias="continue")] = False
    grant: Annotated[dict[GrantName, GrantTable], Field(default_factory=dict)]

    @model_validator(mode="after")
    def _variables_are_clear(self) -> BindingTable:
        """Each variable has one meaning, whichever grants a Work takes, in whichever order."""
        own = _variables(self.env, self.secrets, ())
        given: dict[str, tuple[str, str, str]] = {}
        for name, grant in self.grant.items():
            for variable, meaning in _variables(grant.env, grant.secrets, ("grant", name)).items():
                place = ("grant", name, meaning[0], variable)
                if variable in own:
                    raise fault(
                        f"{variable} is in {own[variable][0]} of the binding too", "keep one of them", key=place
                    )
                other = given.setdefault(variable, (name, *meaning))
                if other[1:] != meaning:
                    raise fault(f"{variable} means something else in grant {other[0]}", "rename one", key=place)
            if grant.write and self.sandbox is None:
                message = f"grant {name} opens paths of a sandbox, and the binding has none"
                raise fault(message, "sandbox = {} shuts the rest", key=("grant", name, "write"))
        return self

    @model_validator(mode="after")
    def _fits_its_executor(self) -> BindingTable:
        """What only an agent can be told is refused for every other program, instead of being without effect."""
        for key in ("idle_timeout", "on_inject_error"):
            if getattr(self, key) is not None and self.executor not in values.AGENTS:
                raise fault(f"is for agents, and this binding runs as {self.executor}", key=(key,))
        return self

    @model_validator(mode="after")
    def _fits_its_kind(self) -> BindingTable:
        if self.continues and self.kind != WorkKind.STANDING:
            message = "continue is for standing work: work that runs once is completed by its handoff"
            raise fault(message, 'say kind = "standing" too', key=("continue",))
        return self

    @model_validator(mode="after")
    def _fits_the_kernel(self) -> BindingTable:
        env = [*self.env.items(), *(pair for grant in self.grant.values() for pair in grant.env.items())]
        reason = total_fault(self.command, env)
        if reason is not None:
            raise fault(f"its command cannot be started: {reason}", key=("command",))
        return self

    def value(self, name: str, folder: str) -> values.Binding:
        """Args: folder: Absolute folder of the file; a relative `cwd` is meant from there."""
        return values.Binding(
            name=name,
            command=tuple(self.command),
            executor=cast("values.Executor", self.executor),
            env=tuple(sorted(self.env.items())),
            secrets=tuple(sorted(self.secrets.items())),
            cwd=None if self.cwd is None else str(Path(folder, self.cwd)),
            timeout_us=self.timeout,
            grace_us=self.grace,
            retry=None if self.retry is None else self.retry.value(),
            replay=cast("values.Replay", self.replay),
            sandbox=None if self.sandbox is None else self.sandbox.value(),
            output_max_bytes=self.output_max,
            grants=tuple(grant.value(name) for name, grant in sorted(self.grant.items())),
            kind=WorkKind(self.kind),
            approval=self.approval,
            idle_us=self.idle_timeout,
            on_inject_error=cast("values.OnInjectError", self.on_inject_error or "queue"),
            continues=self.continues,
        )


class BudgetTable(_Table):
    """`[[budget]]`: at most `max` of a unit."""

    unit: Unit
    max: Amount
    per: PerWhom = "scope"
    period: Window = "life"
    scope: KnownScope | None = None
    warn_at: Fraction | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> BudgetTable:
        if self.per == "all" and self.scope is not None:
            message = 'a budget per "all" is shared by every scope'
            raise fault(message, 'leave scope out, or say per = "scope"', key=("scope",))
        return self

    def value(self) -> Budget:
        return Budget(self.unit, self.max, Per(self.per), Period(self.period), self.scope, self.warn_at)


class FileTable(_Table):
    """The whole file."""

    settings: Annotated[SettingsTable, Field(default_factory=SettingsTable)]
    scope: Annotated[dict[ScopeName, ScopeTable], Field(default_factory=dict)]
    binding: Annotated[dict[BindingName, BindingTable], Field(default_factory=dict)]
    budget: Annotated[list[BudgetTable], Field(default_factory=list)]

    @model_validator(mode="after")
    def _budgets_differ(self) -> FileTable:
        seen: dict[tuple[object, ...], int] = {}
        for place, budget in enumerate(self.budget):
            first = seen.setdefault(budget.value().counts, place)
            if first != place:
                message = f"counts the same as the {_ORDINALS.get(first, 'earlier')} budget of this file"
                raise fault(message, "keep the lower one of them", key=("budget", place))
        return self

    @model_validator(mode="after")
    def _scopes_name_what_is_there(self) -> FileTable:
        for name, scope in self.scope.items():
            if scope.binding is not None and scope.binding not in self.binding:
                hint = _hint_of_name(scope.binding, self.binding)
                raise fault(f'no binding "{scope.binding[:60]}" in this file', hint, key=("scope", name, "binding"))
        return self

    def value(self, folder: str) -> values.Config:
        return values.Config(
            settings=self.settings.value(),
            scopes=tuple(table.value(name) for name, table in sorted(self.scope.items())),
            bindings=tuple(table.value(name, folder) for name, table in sorted(self.binding.items())),
            budgets=tuple(budget.value() for budget in self.budget),
        )


def table_keys() -> dict[str, tuple[str, ...]]:
    """The keys each kind of table takes; "" is the top of the file."""
    tables: dict[str, type[BaseModel]] = {
        "": FileTable,
        "settings": SettingsTable,
        "scope": ScopeTable,
        "binding": BindingTable,
        "retry": RetryTable,
        "exponential": ExponentialTable,
        "sandbox": SandboxTable,
        "grant": GrantTable,
        "budget": BudgetTable,
    }
    return {
        name: tuple(field.alias or key for key, field in table.model_fields.items()) for name, table in tables.items()
    }


def _variables(
    env: Mapping[str, str], secrets: Mapping[str, str], place: tuple[str, ...]
) -> dict[str, tuple[str, str]]:
    """Where each variable of one table is set, `env` or `secrets`, and to what.

    Args:
        place: Path of that table below its binding.

    Raises:
        PydanticCustomError: a variable that no environment can hold, that is tenure's own, or that is set twice.
    """
    for name, value in env.items():
        reason = env_fault(name, value)
        if reason is not None:
            raise fault(reason, key=(*place, "env", name))
    for name in secrets:
        reason = env_fault(name, "")
        if reason is not None:
            raise fault(reason, key=(*place, "secrets", name))
        if name in env:
            raise fault(f"{name} is in env and in secrets", "keep one of them", key=(*place, "secrets", name))
    return {name: ("env", value) for name, value in env.items()} | {
        name: ("secrets", reference) for name, reference in secrets.items()
    }


def _hint_of_name(word: str, known: Iterable[str]) -> str | None:
    names = list(known)
    near = likely(word, names)
    if near is not None:
        return f'did you mean "{near}"?'
    return f"there are: {', '.join(names)}" if names else "this file has no bindings"

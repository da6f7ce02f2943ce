"""Resolve what a Work's next attempt pins, from the active configuration. Rule: requirements E02, E08, E11, E18.

A Work takes the binding it names, else the one of the nearest scope up its chain, else, for a bare command, the defaults.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from shared.model.attempt import Snapshot
from shared.model.settings import ONE_ATTEMPT, Binding, Config, Grant, pool_of, registration_of
from shared.model.work import NewWork, Reason, Work, WorkKind

ISOLATED_EXECUTORS = frozenset({"shell", "agent", "claude-code"})
"""Executors that hold everything they launch until its pin."""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Why nothing can be pinned for a Work under a configuration; it starts once one says otherwise.

    Attributes:
        message: One line.
        word: The name that is not known; None when the fault is not about one.
        known: The names that are, in whose place `word` stands.
    """

    message: str
    word: str | None = None
    known: tuple[str, ...] = ()


def resolve(
    work: Work,
    config: Config,
    *,
    generation: int | None,
    folder: str,
    inputs: tuple[int, ...],
    trigger_before: int | None = None,
) -> Snapshot | None:
    """What the attempt would pin; None when `binding_of` says why it could not.

    Args:
        folder: Absolute folder of the configuration file; the working folder of last resort.
        inputs: Numbers of the pending inputs the attempt would consume, in order.
        trigger_before: What had set off the attempt that this one retries; None when it retries none.
    """
    binding = binding_of(work, config)
    if isinstance(binding, Unresolved):
        return None
    settings = config.settings
    retry = binding.retry or ONE_ATTEMPT
    return Snapshot(
        generation=generation,
        binding=binding.name or None,
        scope=work.scope,
        pool=pool_of(binding.executor),
        executor=binding.executor,
        isolated=binding.executor in ISOLATED_EXECUTORS,
        command=binding.command,
        env=binding.env,
        cwd=binding.cwd or work.cwd or folder,
        timeout_us=settings.timeout_us if binding.timeout_us is None else binding.timeout_us,
        grace_us=binding.grace_us,
        retry_delays_us=retry.delays_us,
        replay=binding.replay,
        inputs=inputs,
        registration=registration_of(binding.executor),
        grants=tuple(sorted(set(work.grants))),
        secrets=binding.secrets,
        sandbox=binding.sandbox,
        output_max_bytes=settings.output_max_bytes if binding.output_max_bytes is None else binding.output_max_bytes,
        retry_on=retry.on,
        retry_exponential=retry.exponential,
        retry_exhausted=retry.exhausted,
        kind=work.kind,
        trigger=choose_trigger(inputs, trigger_before),
        idle_us=binding.idle_us,
        on_inject_error=binding.on_inject_error,
        quarantine_after=settings.quarantine_after if work.command is None else 0,
        workers_lost_max=settings.workers_lost_max,
        continues=binding.continues and work.kind is WorkKind.STANDING,
        depth_max=settings.causal_depth,
    )


def set_aside_for(work: Work, config: Config, quarantined: Collection[str]) -> tuple[Reason, str | None] | None:
    """Why no free slot lets a Work start under a configuration, with the binding in quarantine if that is why; None: one may."""
    binding = binding_of(work, config)
    if isinstance(binding, Unresolved):
        return Reason.UNSUPPORTED_GENERATION, None
    if work.command is None and binding.name in quarantined:  # a command of its own is none of its binding's. Rule: F03
        return Reason.QUARANTINED, binding.name
    return None


def choose_trigger(inputs: Sequence[int], before: int | None) -> int | None:
    """Which input of the batch sets an attempt off: that of the failed attempt it retries, else the oldest; None without any.

    What a retry does has the cause that the first try had, whatever came in since. Rule: E12, O09.
    """
    return before if before in inputs else min(inputs, default=None)


def binding_of(work: Work | NewWork, config: Config) -> Binding | Unresolved:
    """The binding that a Work runs under, with its grants applied and what the Work itself replaces, or why there is none.

    The Work's command replaces the binding's, and with it `replay`, which speaks of the binding's command alone. The Work's
    environment is added and wins, but never over a secret.
    """
    binding = _chosen(work, config)
    if isinstance(binding, Unresolved):
        return binding
    known = tuple(grant.name for grant in binding.grants)
    for name in work.grants:
        if name not in known:
            if not binding.name:
                return Unresolved(f"a command without a binding has no grant {name!r}")
            return Unresolved(f"binding {binding.name} has no grant {name!r}", name, known)
    binding = _granted(binding, (grant for grant in binding.grants if grant.name in work.grants))
    hidden = sorted(dict(work.env).keys() & dict(binding.secrets).keys())
    if hidden:
        return Unresolved(f"{hidden[0]} is a secret of binding {binding.name}; the work may not bring its own")
    binding = replace(binding, env=_merged(binding.env, work.env))
    return binding if work.command is None else replace(binding, command=work.command, replay="never")


def _chosen(work: Work | NewWork, config: Config) -> Binding | Unresolved:
    name = config.scope_binding(work.scope) if work.binding is None else work.binding
    if name is not None:
        found = config.binding(name)
        known = tuple(binding.name for binding in config.bindings)
        return Unresolved(f"no binding {name!r}", name, known) if found is None else found
    if work.command is not None:
        return Binding(name="", command=work.command)
    return Unresolved(f"neither a command nor a binding: scope {work.scope!r} and those above it name none")


def _granted(binding: Binding, grants: Iterable[Grant]) -> Binding:
    """The binding with what the grants add; their order does not matter, as a configuration's grants never contradict."""
    for grant in grants:
        sandbox = binding.sandbox
        if sandbox is not None:
            sandbox = replace(sandbox, writable=tuple(sorted({*sandbox.writable, *grant.writable})))
        binding = replace(
            binding,
            env=_merged(binding.env, grant.env),
            secrets=_merged(binding.secrets, grant.secrets),
            sandbox=sandbox,
        )
    return binding


def _merged(under: tuple[tuple[str, str], ...], over: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({**dict(under), **dict(over)}.items()))

"""Resolve what a Work's next attempt pins, from the active configuration. Rule: requirements E02, E08, E11."""

from __future__ import annotations

from shared.model.attempt import Snapshot
from shared.model.settings import Binding, Config, pool_of
from shared.model.work import Work

ISOLATED_EXECUTORS = frozenset({"shell"})
"""Executors that hold everything they launch until its pin."""


def resolve(
    work: Work, config: Config, *, generation: int | None, folder: str, inputs: tuple[int, ...]
) -> Snapshot | None:
    """What the attempt would pin; None when the Work names a binding that the configuration does not have.

    Args:
        folder: Absolute folder of the configuration file; the working folder of last resort.
        inputs: Numbers of the pending inputs the attempt would consume, in order.
    """
    binding = _binding_of(work, config)
    if binding is None:
        return None
    timeout_us = config.settings.timeout_us if binding.timeout_us is None else binding.timeout_us
    return Snapshot(
        generation=generation,
        binding=work.binding,
        scope=work.scope,
        pool=pool_of(binding.executor),
        executor=binding.executor,
        isolated=binding.executor in ISOLATED_EXECUTORS,
        command=work.command or binding.command,
        env=tuple(sorted({**dict(binding.env), **dict(work.env)}.items())),
        cwd=binding.cwd or work.cwd or folder,
        timeout_us=timeout_us,
        grace_us=binding.grace_us,
        retry_delays_us=() if binding.retry is None else binding.retry.delays_us,
        replay=binding.replay,
        inputs=inputs,
    )


def _binding_of(work: Work, config: Config) -> Binding | None:
    if work.binding is not None:
        return config.binding(work.binding)
    return None if work.command is None else Binding(name="", command=work.command)

"""How scenes of transitions are listed; see `tests.support.transitions`."""

from __future__ import annotations

from collections.abc import Callable

from shared.store.contract import Tx
from tests.support.stores import World

Transition = Callable[[Tx], object]
Scene = Callable[[World], Transition]


def into(scenes: dict[str, Scene]) -> Callable[[str], Callable[[Scene], Scene]]:
    """A decorator that lists a scene under the name of the transition that it is for."""

    def scene(name: str) -> Callable[[Scene], Scene]:
        def named(made: Scene) -> Scene:
            scenes[name] = made
            return made

        return named

    return scene

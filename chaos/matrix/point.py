"""A boundary as one role crosses it in one scene, and what must come of each harm: the form of the matrix's data.

Rule: design §7, §9; requirements M01, M02, M03.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chaos.matrix.cell import CameTo, Cell, Harm, Kept, Role, Scene, Who
from shared.boundary import Boundary, Side

CHAIN = 3
BEFORE, AFTER = (Side.BEFORE,), (Side.AFTER,)
BOTH = (Side.BEFORE, Side.AFTER)
NOTHING: frozenset[Kept] = frozenset()

Words = frozenset[CameTo]

UNDISTURBED, RELAUNCHED, ADOPTED, FINISHED, RETRIED, TRIED_AGAIN, KILLED, ASKED, CANCELLED, RESUMED, DONE, REPEATED = (
    frozenset({word}) for word in CameTo
)
TAKEN_UP = ADOPTED | FINISHED
"""It ran, and another holder took it up before or after its end."""
IN_TIME = UNDISTURBED | RELAUNCHED
"""A claim came to a worker that was not there yet, or no more; or none had been made."""


@dataclass(frozen=True, slots=True)
class Comes:
    """What must come of each harm.

    Attributes:
        killed, all_killed: The process alone; everybody.
        frozen: The process alone while others work; a shim, a child and a zygote are not waited for by any lease.
        all_frozen: Everybody, for longer than the leases last.
        holder_killed: The worker while a shim or child stands there, which then goes on; None: not tried.
    """

    killed: Words
    all_killed: Words
    frozen: Words
    all_frozen: Words
    holder_killed: Words | None = None


def alike(
    killed: Words, *, all_killed: Words | None = None, frozen: Words | None = None, all_frozen: Words | None = None
) -> Comes:
    """What is not said is as for the process killed alone; of all frozen, as for it frozen alone."""
    alone = killed if frozen is None else frozen
    return Comes(
        killed, killed if all_killed is None else all_killed, alone, alone if all_frozen is None else all_frozen
    )


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the matrix.

    Attributes:
        incarnations: Killed so many times in a row.
        keeps: What must hold besides, whatever came of it.
    """

    role: Role
    boundary: Boundary
    sides: tuple[Side, ...]
    scene: Scene
    comes: Comes
    incarnations: int = 1
    keeps: frozenset[Kept] = NOTHING

    def cells(self) -> Iterator[Cell]:
        """Its cells: both kinds of harm, to it and to everybody, on each of its sides."""
        comes = self.comes
        for side in self.sides:
            yield self._cell(side, Harm.KILL, Who.SELF, comes.killed, self.incarnations)
            if comes.holder_killed is not None:
                yield self._cell(side, Harm.KILL, Who.HOLDER, comes.holder_killed)
            yield self._cell(side, Harm.STOP, Who.SELF, comes.frozen)
            if self.scene is not Scene.NEW_HOME:  # nobody else is there yet
                yield self._cell(side, Harm.KILL, Who.EVERYONE, comes.all_killed, self.incarnations)
                yield self._cell(side, Harm.STOP, Who.EVERYONE, comes.all_frozen)

    def _cell(self, side: Side, harm: Harm, who: Who, expected: Words, incarnations: int = 1) -> Cell:
        scene = Scene.LONG_JOB if self._must_last(who) else self.scene
        return Cell(self.role, self.boundary, side, harm, who, scene, expected, incarnations, keeps=self.keeps)

    def _must_last(self, who: Who) -> bool:
        """Where a worker goes on for a moment while everybody is hit one by one, no job may end in that moment."""
        return self.scene is Scene.JOB and self.role is Role.COORDINATOR and who is Who.EVERYONE

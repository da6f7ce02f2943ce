"""What one pass has done so far, counted as it is committed, so that a pass that fails half-way still says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """Counts of one pass; None: it has not come to that part.

    Attributes:
        dispatched: Attempts handed to a worker, new and recovered.
        waiting: Ready Works held back by their pool's limit, among those looked at, by pool; None before the start pass.
        cut_short: A bound ended some part.
    """

    claimed: int | None = None
    dispatched: int | None = None
    recovered: int | None = None
    revoked: int | None = None
    waiting: dict[str, int] | None = None
    cut_short: bool = False

    def count_recovery(self, *, revoked: int, recovered: int, dispatched: int, more: bool) -> None:
        """The recovery part was committed, or had nothing to do."""
        self.revoked, self.recovered, self.dispatched = revoked, recovered, dispatched
        self.cut_short = self.cut_short or more

    def begin_starts(self) -> None:
        """The start pass begins."""
        self.claimed, self.waiting = 0, {}

    def count_claims(self, made: int) -> None:
        """So many claims were committed."""
        self.claimed = (self.claimed or 0) + made
        self.dispatched = (self.dispatched or 0) + made

    def count_waits(self, pool: str, held_back: int) -> None:
        """So many ready Works were held back by their pool."""
        assert self.waiting is not None, "the start pass has begun"
        self.waiting[pool] = self.waiting.get(pool, 0) + held_back

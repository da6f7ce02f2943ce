"""Recording what a running program says of itself, whichever door it comes through: its tool belt, or the lines of an agent.

Usage is added up for its attempt at once, so nobody who ends the attempt has to have heard the program; whatever ends it charges
that sum. The rest is kept one by one, as it was said, and applied when the end of the segment is seen. Rule: O15, B03.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shared.errors import DeclarationError
from shared.ids import AttemptId
from shared.model.attempt import Attempt
from shared.model.declaration import DECLARATIONS_MAX, Declaration, DeclarationKind, inputs_declared, usage_declared
from shared.model.stream import RefusalCode
from shared.model.usage import UNITS_KEPT, Usage
from shared.store.sqlite.charging import Charging
from shared.store.sqlite.columns import json_text

INSERT_DECLARATION = """INSERT INTO declaration (attempt_id, key, kind, body, seq, recorded_at_us, epoch, applied_epoch)
  VALUES (:attempt, :key, :kind, :body, :seq, :wall, :epoch, CASE WHEN :kind = 'usage' THEN :epoch END)"""
KNOWN = "SELECT kind, body FROM declaration WHERE attempt_id = ? AND key = ?"
COUNT_KIND = "SELECT count(*) FROM declaration WHERE attempt_id = ? AND applied_epoch IS NULL AND kind = ?"
SET_REPORT = """INSERT INTO report (attempt_id, usage) VALUES (:attempt, :usage)
  ON CONFLICT (attempt_id) DO UPDATE SET usage = :usage"""
CONSUME = "UPDATE input SET consumed_by = :attempt WHERE number = :number AND work_id = :work AND consumed_by IS NULL"
CONSUME_DECLARED = """UPDATE input SET consumed_by = :attempt WHERE work_id = :work AND consumed_by IS NULL AND number IN
  (SELECT each.value FROM declaration AS d, json_each(d.body, '$.inputs') AS each
   WHERE d.attempt_id = :attempt AND d.applied_epoch IS NULL AND d.kind = 'consumed') RETURNING number"""
NOT_HANDED = """SELECT named.value FROM json_each(:numbers) AS named
  WHERE NOT EXISTS (SELECT 1 FROM input AS i WHERE i.number = named.value AND i.work_id = :work
    AND (i.consumed_by = :attempt OR (:waiting AND i.consumed_by IS NULL)))
  AND NOT EXISTS (SELECT 1 FROM intent WHERE input = named.value AND attempt_id = :attempt AND tries > 0)"""

NAMED_MAX = 5
"""Inputs that a refusal names."""
BOUNDED = frozenset({DeclarationKind.TURN, DeclarationKind.WAIT, DeclarationKind.OUTCOME})
"""Kinds of which the last one counts, so that nobody needs many."""


class Reporting(Charging):
    """Pieces of the transitions that record what was said, and of those that end an attempt."""

    def _record(self, attempt: Attempt, one: Declaration) -> None:
        """Record a declaration under the attempt's epoch; one that is known by its key writes nothing.

        Raises DeclarationError: its key belongs to another one, there are too many of its kind, or it names an input that the
        attempt can neither have been handed nor have found waiting; nothing of it is written.
        """
        row = self._db.one(KNOWN, (attempt.id, one.key))
        if row is not None and (row["kind"], row["body"]) != (one.kind, one.body):
            raise DeclarationError(f"the key {one.key!r} belongs to another declaration of {attempt.id}")
        if row is not None:
            return
        if one.kind in BOUNDED and self._db.value(COUNT_KIND, (attempt.id, one.kind)) >= DECLARATIONS_MAX:
            raise DeclarationError(
                f"{attempt.id} declared {DECLARATIONS_MAX} {one.kind}s of this segment already", code="too_many"
            )
        if one.kind is DeclarationKind.USAGE:
            refused = self._add_usage(attempt.id, usage_declared(one), whole=True)
            if refused:
                raise DeclarationError(_units_told(attempt.id, refused), code="too_many")
        if one.kind is DeclarationKind.CONSUMED:
            strange = self._not_handed(attempt, inputs_declared(one), waiting=True)
            if strange:
                raise DeclarationError(
                    f"{_inputs_named(strange)} not {attempt.id}'s, and not waiting for {attempt.work_id}",
                    code=RefusalCode.NOT_HANDED,
                )
        told = {"kind": one.kind, "key": one.key}
        seq = self._event("declaration.recorded", told, attempt=attempt.id, epoch=attempt.epoch)
        params = {"key": one.key, "kind": one.kind, "body": one.body, "seq": seq, "wall": self._now.wall_us}
        self._db.rows(INSERT_DECLARATION, params | {"attempt": attempt.id, "epoch": attempt.epoch})

    def _not_handed(self, attempt: Attempt, numbers: Iterable[int], *, waiting: bool) -> list[int]:
        """Those of the inputs that the attempt was never handed, neither when it began nor while it ran.

        Args:
            waiting: What waits for its Work is no stranger either: a program sees that by its belt.
        """
        named = json_text(sorted(set(numbers)))
        params = {"numbers": named, "work": attempt.work_id, "attempt": attempt.id, "waiting": waiting}
        return sorted(row[0] for row in self._db.rows(NOT_HANDED, params))

    def _add_usage(self, name: AttemptId, usage: Usage, *, whole: bool = False) -> tuple[str, ...]:
        """Add to what the attempt reported; gives the units for which there is no room any more. `whole`: all of it, or nothing."""
        counted = self.reported(name)
        taken, refused = usage.within(counted)
        if taken.amounts and not (whole and refused):
            self._db.rows(SET_REPORT, {"attempt": name, "usage": json_text(counted.plus(taken).to_plain())})
        return refused

    def _consume_declared(self, attempt: Attempt) -> None:
        """The inputs that the program said by its belt that it took, whoever ends the attempt. Rule: O01, T02."""
        rows = self._db.rows(CONSUME_DECLARED, {"attempt": attempt.id, "work": attempt.work_id})
        if rows:
            told = {"consumed": sorted(row["number"] for row in rows)}
            self._event("inputs.taken", told, attempt=attempt.id, epoch=attempt.epoch)


def _inputs_named(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"input {numbers[0]} is"
    shown = ", ".join(map(str, numbers[:NAMED_MAX]))
    return f"inputs {shown}{' and more' if len(numbers) > NAMED_MAX else ''} are"


def _units_told(name: AttemptId, units: tuple[str, ...]) -> str:
    return f"{name} reported in {UNITS_KEPT} units already: no room for {', '.join(units)}"

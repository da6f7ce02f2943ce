"""Reads of what running agents said, and of what they are told. See `agent_contract.AgentReads`."""

from __future__ import annotations

import json
from dataclasses import asdict

from shared.ids import AttemptId, Incarnation, WorkId
from shared.model.instant import Instant
from shared.model.intent import DueIntent, Fate, Intent, IntentKind
from shared.model.stream import Place, Refusal, RefusalCode, Stream
from shared.store.sqlite.connection import Connection, Row
from shared.store.sqlite.fragments import LIVE
from shared.store.values import FaultyStream

STREAM = "SELECT * FROM stream WHERE attempt_id = ?"
FAULTY_STREAMS = """SELECT s.*, a.ended_at_us IS NULL AS is_live FROM stream AS s INDEXED BY stream_faulty
  JOIN attempt AS a ON a.id = s.attempt_id WHERE (s.refused > 0 OR s.unknown <> '{}')
    AND (a.ended_at_us IS NULL OR a.ended_at_us >= :since)
  ORDER BY s.read_at_us DESC LIMIT :limit + 0"""
_GIVEN_TO = "(SELECT n.consumed_by FROM input AS n WHERE n.number = i.input) AS given_to"
INTENT = f"SELECT i.*, {_GIVEN_TO} FROM intent AS i WHERE number = ?"
INTENTS = f"""SELECT i.*, {_GIVEN_TO}
  FROM (SELECT * FROM intent WHERE work_id = ? ORDER BY number DESC LIMIT ? + 0) AS i ORDER BY number"""
DUE_INTENTS = f"""SELECT i.*, n.consumed_by AS given_to, l.epoch AS lease_epoch, n.body AS body FROM intent AS i INDEXED BY intent_due
  JOIN attempt AS a ON a.id = i.attempt_id JOIN lease AS l ON l.attempt_id = a.id JOIN input AS n ON n.number = i.input
  WHERE i.fate IN ('queued', 'dispatched') AND a.state = 'running' AND l.owner = :owner AND l.epoch = a.epoch AND {LIVE}
    AND (i.fate = 'queued' OR i.token_epoch <> l.epoch)
  ORDER BY i.number LIMIT :limit + 0"""


class AgentReads:
    """See `agent_contract.AgentReads`."""

    _db: Connection
    _now: Instant
    _clock: dict[str, object]

    def stream(self, attempt_id: AttemptId) -> Stream | None:
        """See `AgentReads.stream`."""
        row = self._db.one(STREAM, (attempt_id,))
        return None if row is None else _stream_of(row)

    def faulty_streams(self, *, since_at_us: int, limit: int) -> list[FaultyStream]:
        """See `AgentReads.faulty_streams`."""
        rows = self._db.rows(FAULTY_STREAMS, {"since": since_at_us, "limit": limit})
        return [FaultyStream(AttemptId(row["attempt_id"]), _stream_of(row), bool(row["is_live"])) for row in rows]

    def intents(self, work_id: WorkId, *, limit: int = 64) -> list[Intent]:
        """See `AgentReads.intents`."""
        return [intent_of_row(row) for row in self._db.rows(INTENTS, (work_id, limit))]

    def intent(self, number: int) -> Intent | None:
        """The intent of that number."""
        row = self._db.one(INTENT, (number,))
        return None if row is None else intent_of_row(row)

    def due_intents(self, owner: Incarnation, *, limit: int) -> list[DueIntent]:
        """See `AgentReads.due_intents`."""
        found = self._db.rows(DUE_INTENTS, self._clock | {"owner": owner, "limit": limit})
        return [DueIntent(intent_of_row(row), row["lease_epoch"], owner, bytes(row["body"])) for row in found]


def intent_of_row(row: Row) -> Intent:
    """A row of `intent`."""
    return Intent(
        number=row["number"],
        kind=IntentKind(row["kind"]),
        work_id=WorkId(row["work_id"]),
        attempt_id=None if row["attempt_id"] is None else AttemptId(row["attempt_id"]),
        input=row["input"],
        fate=Fate(row["fate"]),
        token=row["token"],
        tries=row["tries"],
        by=row["requested_by"],
        accepted_at_us=row["accepted_at_us"],
        settled_at_us=row["settled_at_us"],
        why=row["why"],
        given_to=None if row["given_to"] is None else AttemptId(row["given_to"]),
    )


def stream_params(stream: Stream) -> dict[str, object]:
    """A stream as parameters of its row."""
    return {
        "pin_epoch": stream.pin_epoch,
        "offset": stream.place.offset,
        "lines": stream.place.lines,
        "skipping": int(stream.place.is_skipping),
        "refused": stream.refused,
        "refusals": json.dumps([asdict(one) for one in stream.refusals]),
        "unknown": json.dumps(dict(stream.unknown)),
    }


def _stream_of(row: Row) -> Stream:
    refusals = tuple(Refusal(one["line"], RefusalCode(one["code"]), one["why"]) for one in json.loads(row["refusals"]))
    place = Place(row["offset_bytes"], row["lines"], bool(row["skipping"]))
    return Stream(row["pin_epoch"], place, row["refused"], refusals, json.loads(row["unknown"]))

"""Tables of what was read of running agents, and of what they are told. Assembled in `schema`."""

from __future__ import annotations

TABLES = (
    """CREATE TABLE stream (
  attempt_id TEXT PRIMARY KEY REFERENCES attempt (id), pin_epoch INTEGER NOT NULL, offset_bytes INTEGER NOT NULL,
  lines INTEGER NOT NULL, skipping INTEGER NOT NULL CHECK (skipping IN (0, 1)), refused INTEGER NOT NULL,
  refusals TEXT NOT NULL, unknown TEXT NOT NULL, read_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE report (
  attempt_id TEXT PRIMARY KEY REFERENCES attempt (id), usage TEXT NOT NULL
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE intent (
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL CHECK (kind IN ('inject', 'interrupt')),
  work_id TEXT NOT NULL REFERENCES work (id), attempt_id TEXT REFERENCES attempt (id), input INTEGER,
  fate TEXT NOT NULL CHECK (fate IN ('queued', 'dispatched', 'accepted', 'consumed', 'not_accepting', 'returned', 'dropped')),
  token INTEGER, token_epoch INTEGER, tries INTEGER NOT NULL, requested_by TEXT NOT NULL, accepted_at_us INTEGER NOT NULL,
  settled_at_us INTEGER, why TEXT,
  CHECK ((kind = 'inject') = (input IS NOT NULL)), CHECK ((token IS NULL) = (token_epoch IS NULL)),
  CHECK (attempt_id IS NOT NULL OR fate IN ('returned', 'consumed')), CHECK (fate <> 'dispatched' OR token IS NOT NULL),
  CHECK ((settled_at_us IS NULL) = (fate IN ('queued', 'dispatched', 'accepted') AND kind = 'inject'))
) STRICT""",
)

INDEXES = (
    "CREATE INDEX stream_faulty ON stream (read_at_us) WHERE refused > 0 OR unknown <> '{}'",
    "CREATE INDEX intent_due ON intent (number) WHERE fate IN ('queued', 'dispatched')",
    "CREATE INDEX intent_work ON intent (work_id, number)",
    "CREATE INDEX intent_attempt ON intent (attempt_id)",
    "CREATE INDEX intent_input ON intent (input)",
)

REFUSALS = (
    (
        "stream_forward",
        "UPDATE ON stream",
        (
            "NEW.pin_epoch < OLD.pin_epoch OR (NEW.pin_epoch = OLD.pin_epoch"
            " AND (NEW.offset_bytes < OLD.offset_bytes OR NEW.lines < OLD.lines))"
        ),
        "an output was read backwards",
    ),
    (
        "intent_settled",
        "UPDATE ON intent",
        (
            "OLD.settled_at_us IS NOT NULL OR NEW.kind <> OLD.kind OR NEW.work_id <> OLD.work_id"
            " OR NEW.attempt_id IS NOT OLD.attempt_id OR NEW.input IS NOT OLD.input OR NEW.token < OLD.token"
        ),
        "an intent was changed that is settled, or whom it is for, or went back to an older token",
    ),
    ("intent_live", "DELETE ON intent", "OLD.settled_at_us IS NULL", "an open intent was deleted"),
)
"""Triggers, as `schema` makes them: name, when, condition, message."""

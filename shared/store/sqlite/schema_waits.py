"""Tables of what programs declare, what is published, and what Works wait for. Assembled in `schema`."""

from __future__ import annotations

TABLES = (
    """CREATE TABLE declaration (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), key TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('turn', 'wait', 'outcome', 'usage', 'consumed')), body TEXT NOT NULL,
  seq INTEGER NOT NULL, recorded_at_us INTEGER NOT NULL, epoch INTEGER NOT NULL, applied_epoch INTEGER,
  PRIMARY KEY (attempt_id, key), CHECK (applied_epoch IS NULL OR applied_epoch >= epoch)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE correlation (
  work_id TEXT NOT NULL REFERENCES work (id), key TEXT NOT NULL, PRIMARY KEY (work_id, key)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE published (
  seq INTEGER PRIMARY KEY, type TEXT NOT NULL, correlate TEXT, work_id TEXT,
  depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0), key TEXT, digest TEXT, CHECK ((key IS NULL) = (digest IS NULL))
) STRICT""",
    """CREATE TABLE waking (
  seq INTEGER PRIMARY KEY, type TEXT NOT NULL
) STRICT""",
    """CREATE TABLE chain_refusal (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL,
  derived TEXT NOT NULL CHECK (derived IN ('turn', 'handoff')), depth INTEGER NOT NULL, depth_max INTEGER NOT NULL,
  refused_at_us INTEGER NOT NULL, PRIMARY KEY (attempt_id, epoch, derived), CHECK (depth > depth_max)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE wait (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, work_id TEXT NOT NULL REFERENCES work (id),
  resume INTEGER NOT NULL CHECK (resume IN (0, 1)), event_type TEXT, correlate TEXT, since_seq INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('registered', 'satisfied', 'acknowledged', 'cancelled')),
  registered_at_us INTEGER NOT NULL, registered_seq INTEGER NOT NULL, wake_seq INTEGER, woken_at_us INTEGER, closed_at_us INTEGER,
  ask TEXT, pool TEXT NOT NULL, due_seq INTEGER,
  PRIMARY KEY (attempt_id, epoch), CHECK (ask IS NULL OR event_type IS NOT NULL),
  CHECK (due_seq IS NULL OR (resume = 1 AND wake_seq IS NOT NULL AND due_seq >= wake_seq)),
  CHECK ((wake_seq IS NULL) = (woken_at_us IS NULL)),
  CHECK (state NOT IN ('satisfied', 'acknowledged') OR (wake_seq IS NOT NULL AND wake_seq > since_seq)),
  CHECK (state <> 'registered' OR wake_seq IS NULL),
  CHECK ((closed_at_us IS NOT NULL) = (state IN ('acknowledged', 'cancelled')))
) STRICT, WITHOUT ROWID""",
)

INDEXES = (
    "CREATE INDEX declaration_unapplied ON declaration (attempt_id, seq) WHERE applied_epoch IS NULL",
    "CREATE INDEX published_type ON published (type, seq)",
    "CREATE INDEX published_correlate ON published (type, correlate, seq) WHERE correlate IS NOT NULL",
    "CREATE UNIQUE INDEX wait_work ON wait (work_id) WHERE state IN ('registered', 'satisfied')",
    "CREATE INDEX wait_of_work ON wait (work_id)",
    "CREATE UNIQUE INDEX published_key ON published (key) WHERE key IS NOT NULL",
    "CREATE INDEX wait_event ON wait (event_type, correlate, since_seq) WHERE state = 'registered' AND event_type IS NOT NULL",
    "CREATE INDEX wait_for_next ON wait (work_id) WHERE state = 'registered' AND resume = 0",
    "CREATE INDEX wait_asked ON wait (registered_seq) WHERE state = 'registered' AND ask IS NOT NULL",
    "CREATE INDEX wait_woken ON wait (pool, due_seq, attempt_id, work_id) WHERE state = 'satisfied' AND due_seq IS NOT NULL",
)

REFUSALS = (
    (
        "declaration_kept",
        "UPDATE ON declaration",
        (
            "OLD.applied_epoch IS NOT NULL OR NEW.attempt_id <> OLD.attempt_id OR NEW.key <> OLD.key OR NEW.kind <> OLD.kind"
            " OR NEW.body <> OLD.body OR NEW.seq <> OLD.seq OR NEW.epoch <> OLD.epoch"
        ),
        "a declaration was changed, or applied twice",
    ),
    ("published_kept", "UPDATE ON published", "1", "a published event is written once"),
    ("waking_kept", "UPDATE ON waking", "1", "an event that still wakes was changed"),
    (
        "waking_done",
        "DELETE ON waking",
        (
            "EXISTS (SELECT 1 FROM published AS p JOIN wait AS w ON w.event_type = p.type WHERE p.seq = OLD.seq"
            " AND w.state = 'registered' AND w.since_seq < p.seq AND w.work_id IS NOT p.work_id"
            " AND (w.correlate IS NULL OR w.correlate = p.correlate))"
        ),
        "an event was done with that still matches a wait",
    ),
    ("chain_refusal_kept", "UPDATE ON chain_refusal", "1", "a refusal of a chain was changed"),
    (
        "wait_closed",
        "UPDATE ON wait",
        (
            "OLD.closed_at_us IS NOT NULL OR (OLD.wake_seq IS NOT NULL AND NEW.wake_seq IS NOT OLD.wake_seq)"
            " OR NEW.attempt_id <> OLD.attempt_id OR NEW.epoch <> OLD.epoch OR NEW.work_id <> OLD.work_id"
            " OR NEW.resume <> OLD.resume OR NEW.event_type IS NOT OLD.event_type OR NEW.correlate IS NOT OLD.correlate"
            " OR (OLD.due_seq IS NOT NULL AND NEW.due_seq IS NOT OLD.due_seq) OR NEW.since_seq <> OLD.since_seq"
            " OR NEW.ask IS NOT OLD.ask OR NEW.pool <> OLD.pool"
        ),
        "a wait was changed that was over, woken twice, or what it is for",
    ),
    ("wait_live", "DELETE ON wait", "OLD.closed_at_us IS NULL", "an open wait was deleted"),
)
"""Triggers, as `schema` makes them: name, when, condition, message."""

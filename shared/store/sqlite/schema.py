"""Tables, indexes and triggers. The triggers are the second defence: they refuse what our own code must never send.

STRICT tables; times end in `_at_us` (UTC) or `_mono_us` (with a boot beside it). Partial indexes cover what is live, so that the
cost of a query never depends on history. Rule: design §4; research "store" §4, §6.
"""

from __future__ import annotations

from shared.model.attempt import SEGMENTS_KEPT
from shared.store.sqlite import schema_agents, schema_waits
from shared.store.sqlite.fragments import QUEUED, RECOVERABLE, SET_ASIDE, SLOT, SUSPECT, UNEXCLUDED
from shared.store.sqlite.schema_budgets import BUDGET_FENCES, BUDGET_INDEXES, BUDGET_TABLES

APPLICATION_ID = 0x746E7572  # "tnur"
SCHEMA_VERSION = 3

_WORK_STATES = "'idle', 'ready', 'held', 'backoff', 'running', 'waiting', 'completed', 'failed', 'cancelled'"
_WORK_FINAL = "'completed', 'failed', 'cancelled'"
_UNFINISHED = "'launching', 'running', 'resuming', 'recovering', 'parked', 'recovery_required'"
_FINISHED = "'succeeded', 'failed', 'timed_out', 'interrupted', 'handed_off', 'cancelled'"

TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID",
    "CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE config (
  number INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL, source_path TEXT NOT NULL,
  activated_at_us INTEGER NOT NULL
) STRICT""",
    f"""CREATE TABLE work (
  id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, scope TEXT NOT NULL, binding TEXT, command TEXT, env TEXT NOT NULL,
  cwd TEXT, pool TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ({_WORK_STATES})), reason TEXT, reason_limit TEXT,
  priority INTEGER NOT NULL, revision INTEGER NOT NULL, ready_seq INTEGER NOT NULL, attempts_used INTEGER NOT NULL,
  admission_failures INTEGER NOT NULL, backoff_since_mono_us INTEGER, backoff_boot_id TEXT, backoff_since_at_us INTEGER,
  backoff_us INTEGER, submitted_by TEXT NOT NULL, submitted_at_us INTEGER NOT NULL, ended_at_us INTEGER, grants TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('run_once', 'standing')), failures_used INTEGER NOT NULL,
  hold_by TEXT, hold_reason TEXT, hold_at_us INTEGER,
  start_hold_by TEXT, start_hold_reason TEXT, start_hold_at_us INTEGER, permits TEXT NOT NULL DEFAULT '',
  CHECK ((start_hold_by IS NULL) = (start_hold_reason IS NULL) AND (start_hold_by IS NULL) = (start_hold_at_us IS NULL)),
  CHECK (start_hold_by IS NULL OR (state = 'held' AND reason IN ('over_budget', 'gate_held'))),
  CHECK ((hold_by IS NULL) = (hold_reason IS NULL) AND (hold_by IS NULL) = (hold_at_us IS NULL)),
  CHECK ((ended_at_us IS NOT NULL) = (state IN ({_WORK_FINAL}))),
  CHECK (CASE WHEN state = 'backoff' THEN backoff_us IS NOT NULL AND backoff_boot_id IS NOT NULL
      AND backoff_since_mono_us IS NOT NULL AND backoff_since_at_us IS NOT NULL
    ELSE coalesce(backoff_us, backoff_boot_id, backoff_since_mono_us, backoff_since_at_us) IS NULL END)
) STRICT""",
    """CREATE TABLE input (
  number INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), body BLOB NOT NULL,
  accepted_at_us INTEGER NOT NULL, consumed_by TEXT REFERENCES attempt (id),
  depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0), cause_seq INTEGER
) STRICT""",
    f"""CREATE TABLE attempt (
  id TEXT PRIMARY KEY, work_id TEXT NOT NULL REFERENCES work (id), number INTEGER NOT NULL CHECK (number >= 1),
  epoch INTEGER NOT NULL CHECK (epoch >= 1), state TEXT NOT NULL CHECK (state IN ({_UNFINISHED}, {_FINISHED})),
  recovered_from TEXT CHECK (recovered_from IN ('launching', 'running', 'resuming')),
  exclusion TEXT NOT NULL CHECK (exclusion IN ('held', 'released')), exclusion_proof TEXT,
  invoke TEXT CHECK (invoke IN ('pending', 'called')), isolated INTEGER NOT NULL CHECK (isolated IN (0, 1)),
  pin_epoch INTEGER, pin_directory TEXT, pin_pid INTEGER, pin_start_ticks INTEGER, pin_boot_id TEXT, pin_pid_ns INTEGER,
  pin_pidfs_ino INTEGER, pin_directory_ino INTEGER, pin_lock_ino INTEGER,
  relaunches INTEGER NOT NULL, pool TEXT NOT NULL, scope TEXT NOT NULL,
  budget_us INTEGER NOT NULL CHECK (budget_us >= 0), budget_since_mono_us INTEGER NOT NULL, budget_boot_id TEXT NOT NULL,
  budget_since_at_us INTEGER NOT NULL, exit_status INTEGER, failure TEXT, error TEXT,
  started_at_us INTEGER NOT NULL, ended_at_us INTEGER, segments_dropped INTEGER NOT NULL DEFAULT 0,
  segments_dropped_us INTEGER NOT NULL DEFAULT 0, usage TEXT NOT NULL DEFAULT '{{}}',
  launch_epoch INTEGER NOT NULL DEFAULT 1, token_sha256 TEXT, depth INTEGER NOT NULL DEFAULT 0 CHECK (depth >= 0),
  workers_lost INTEGER NOT NULL DEFAULT 0 CHECK (workers_lost >= workers_lost_in_row), workers_lost_in_row INTEGER NOT NULL DEFAULT 0,
  UNIQUE (work_id, number), UNIQUE (id, epoch),
  CHECK ((ended_at_us IS NOT NULL) = (state IN ({_FINISHED}))),
  CHECK (exclusion = 'held' OR (ended_at_us IS NOT NULL AND exclusion_proof IS NOT NULL)),
  CHECK ((recovered_from IS NOT NULL) = (state = 'recovering')),
  CHECK (CASE WHEN pin_epoch IS NULL THEN coalesce(pin_directory, pin_pid, pin_start_ticks, pin_boot_id, pin_pid_ns,
      pin_directory_ino, pin_lock_ino, pin_pidfs_ino) IS NULL
    ELSE pin_directory IS NOT NULL AND pin_pid IS NOT NULL AND pin_start_ticks IS NOT NULL AND pin_boot_id IS NOT NULL
      AND pin_pid_ns IS NOT NULL AND pin_directory_ino IS NOT NULL AND pin_lock_ino IS NOT NULL END),
  CHECK (pin_epoch IS NULL OR pin_epoch BETWEEN launch_epoch AND epoch), CHECK (launch_epoch <= epoch)
) STRICT""",
    """CREATE TABLE snapshot (attempt_id TEXT PRIMARY KEY REFERENCES attempt (id), body TEXT NOT NULL) STRICT, WITHOUT ROWID""",
    """CREATE TABLE segment (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, worker TEXT NOT NULL,
  invoke TEXT CHECK (invoke IN ('pending', 'called')), isolated INTEGER NOT NULL CHECK (isolated IN (0, 1)),
  recovered INTEGER NOT NULL CHECK (recovered IN (0, 1)), relaunched INTEGER NOT NULL CHECK (relaunched IN (0, 1)),
  began_at_us INTEGER NOT NULL, ended_at_us INTEGER, active_us INTEGER,
  phases TEXT NOT NULL DEFAULT '[]',
  phases_dropped INTEGER NOT NULL DEFAULT 0, wake_event INTEGER, sandbox_digest TEXT, PRIMARY KEY (attempt_id, epoch),
  CHECK ((ended_at_us IS NULL) = (active_us IS NULL))
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE lease (
  attempt_id TEXT PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL, boot_id TEXT NOT NULL,
  expires_mono_us INTEGER NOT NULL, claimed_mono_us INTEGER NOT NULL, accepted_at_us INTEGER, revoked_at_us INTEGER,
  revoked_reason TEXT, CHECK ((revoked_at_us IS NULL) = (revoked_reason IS NULL)),
  FOREIGN KEY (attempt_id, epoch) REFERENCES attempt (id, epoch) DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE worker (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, number INTEGER NOT NULL, pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL,
  boot_id TEXT NOT NULL, pid_ns INTEGER NOT NULL, pidfs_ino INTEGER, machine_id TEXT, lock_device INTEGER NOT NULL,
  lock_inode INTEGER NOT NULL, slots INTEGER NOT NULL, executors TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('live', 'draining', 'gone')), beat_mono_us INTEGER NOT NULL,
  registered_at_us INTEGER NOT NULL, gone_at_us INTEGER, gone_reason TEXT, UNIQUE (name, number),
  CHECK ((state = 'gone') = (gone_at_us IS NOT NULL AND gone_reason IS NOT NULL))
) STRICT""",
    """CREATE TABLE leader (
  id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL, owner TEXT NOT NULL, pid INTEGER NOT NULL,
  boot_id TEXT NOT NULL, expires_mono_us INTEGER NOT NULL, lock_device INTEGER NOT NULL, lock_inode INTEGER NOT NULL,
  start_ticks INTEGER, pid_ns INTEGER, pidfs_ino INTEGER, CHECK ((start_ticks IS NULL) = (pid_ns IS NULL))
) STRICT""",
    """CREATE TABLE stop_order (
  id INTEGER PRIMARY KEY AUTOINCREMENT, attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL,
  why TEXT NOT NULL, ordered_by TEXT NOT NULL, ordered_at_us INTEGER NOT NULL, owner TEXT, boot_id TEXT NOT NULL,
  expires_mono_us INTEGER NOT NULL, tries INTEGER NOT NULL, finding TEXT, closed_at_us INTEGER, closed_by TEXT,
  CHECK ((closed_at_us IS NULL) = (closed_by IS NULL))
) STRICT""",
    """CREATE TABLE cancellation (
  id INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), attempt_id TEXT REFERENCES attempt (id),
  epoch INTEGER, scope TEXT NOT NULL CHECK (scope IN ('work', 'attempt')), requested_by TEXT NOT NULL, reason TEXT NOT NULL,
  requested_at_us INTEGER NOT NULL, acknowledged_at_us INTEGER, acknowledged_by TEXT, settled_at_us INTEGER, result TEXT,
  CHECK ((attempt_id IS NULL) = (epoch IS NULL)), CHECK (scope = 'work' OR attempt_id IS NOT NULL),
  CHECK ((acknowledged_at_us IS NULL) = (acknowledged_by IS NULL)), CHECK ((settled_at_us IS NULL) = (result IS NULL)),
  CHECK (attempt_id IS NOT NULL OR settled_at_us IS NOT NULL)
) STRICT""",
    """CREATE TABLE pass (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, generation INTEGER NOT NULL, trigger TEXT NOT NULL, due_at_us INTEGER NOT NULL,
  started_at_us INTEGER NOT NULL, duration_us INTEGER NOT NULL, planned INTEGER, claimed INTEGER, dispatched INTEGER,
  recovered INTEGER, revoked INTEGER, waiting_jobs INTEGER, waiting_agents INTEGER,
  cut_short INTEGER NOT NULL CHECK (cut_short IN (0, 1)), clock_jump_us INTEGER, error TEXT
) STRICT""",
    """CREATE TABLE clock (
  id INTEGER PRIMARY KEY CHECK (id = 1), boot_id TEXT NOT NULL, offset_us INTEGER NOT NULL, jumped_at_us INTEGER,
  jumped_by_us INTEGER, CHECK ((jumped_at_us IS NULL) = (jumped_by_us IS NULL))
) STRICT""",
    """CREATE TABLE unreadable (
  table_name TEXT NOT NULL, row_key TEXT NOT NULL, error TEXT NOT NULL, seen_at_us INTEGER NOT NULL,
  PRIMARY KEY (table_name, row_key)
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE timer (
  id INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id),
  kind TEXT NOT NULL CHECK (kind IN ('retry', 'hint', 'admission', 'wait', 'resume')),
  state TEXT NOT NULL CHECK (state IN ('armed', 'fired', 'cancelled')),
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, trigger_input INTEGER,
  since_mono_us INTEGER NOT NULL, boot_id TEXT NOT NULL, since_at_us INTEGER NOT NULL,
  after_us INTEGER NOT NULL CHECK (after_us >= 0), due_at_us INTEGER, armed_seq INTEGER NOT NULL, why TEXT NOT NULL,
  fired_seq INTEGER, closed_at_us INTEGER,
  UNIQUE (attempt_id, epoch, kind),
  CHECK ((fired_seq IS NOT NULL) = (state = 'fired')),
  CHECK (fired_seq IS NULL OR fired_seq > armed_seq),
  CHECK ((closed_at_us IS NULL) = (state = 'armed'))
) STRICT""",
    """CREATE TABLE submission (
  key TEXT PRIMARY KEY, digest TEXT NOT NULL, work_id TEXT NOT NULL REFERENCES work (id), input INTEGER,
  accepted_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE routine (
  binding TEXT PRIMARY KEY, failures INTEGER NOT NULL CHECK (failures >= 0), work_id TEXT, failed_at_us INTEGER,
  quarantined_at_us INTEGER, quarantined_by TEXT, reason TEXT,
  CHECK ((quarantined_at_us IS NULL) = (quarantined_by IS NULL)), CHECK ((quarantined_at_us IS NULL) = (reason IS NULL))
) STRICT, WITHOUT ROWID""",
    """CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at_us INTEGER NOT NULL, kind TEXT NOT NULL, work_id TEXT, attempt_id TEXT,
  epoch INTEGER, data TEXT NOT NULL
) STRICT""",
    *BUDGET_TABLES,
    *schema_waits.TABLES,
    *schema_agents.TABLES,
)

INDEXES = (
    f"CREATE INDEX work_ready ON work (pool, priority DESC, ready_seq, scope, reason) WHERE state = 'ready' AND {QUEUED}",
    f"CREATE INDEX work_scope ON work (pool, scope, priority DESC, ready_seq, reason) WHERE state = 'ready' AND {QUEUED}",
    f"CREATE INDEX work_aside ON work (pool, priority DESC, ready_seq) WHERE state = 'ready' AND {SET_ASIDE}",
    "CREATE INDEX work_waiting ON work (pool, reason, reason_limit, priority DESC, ready_seq) WHERE state = 'ready'",
    "CREATE INDEX work_state ON work (state, number)",
    "CREATE INDEX work_held ON work (reason, number) WHERE state = 'held'",
    "CREATE INDEX work_quarantined ON work (number) WHERE state = 'ready' AND reason = 'quarantined'",
    "CREATE UNIQUE INDEX timer_armed ON timer (work_id) WHERE state = 'armed'",
    "CREATE INDEX timer_due ON timer (boot_id, since_mono_us + after_us) WHERE state = 'armed'",
    "CREATE INDEX timer_due_at ON timer (due_at_us) WHERE state = 'armed' AND due_at_us IS NOT NULL",
    "CREATE INDEX timer_work ON timer (work_id, id)",
    "CREATE INDEX submission_work ON submission (work_id)",
    "CREATE INDEX routine_quarantined ON routine (binding) WHERE quarantined_at_us IS NOT NULL",
    "CREATE INDEX input_work ON input (work_id)",
    "CREATE INDEX input_consumer ON input (consumed_by, work_id)",
    f"CREATE UNIQUE INDEX attempt_one_unexcluded ON attempt (work_id) WHERE {UNEXCLUDED}",
    f"CREATE INDEX attempt_slot ON attempt (pool, scope) WHERE {SLOT}",
    f"CREATE INDEX attempt_recoverable ON attempt (id) WHERE {RECOVERABLE}",
    f"CREATE INDEX attempt_suspect ON attempt (workers_lost_in_row DESC, id) WHERE {SUSPECT.replace('attempt.', '')}",
    "CREATE INDEX attempt_needs_person ON attempt (started_at_us, id) WHERE state = 'recovery_required'",
    "CREATE INDEX lease_expiry ON lease (expires_mono_us) WHERE revoked_at_us IS NULL",
    "CREATE INDEX lease_owner ON lease (owner) WHERE revoked_at_us IS NULL",
    "CREATE INDEX lease_unaccepted ON lease (claimed_mono_us) WHERE accepted_at_us IS NULL AND revoked_at_us IS NULL",
    "CREATE INDEX worker_present ON worker (name, number) WHERE state <> 'gone'",
    "CREATE INDEX stop_order_attempt ON stop_order (attempt_id)",
    "CREATE UNIQUE INDEX stop_order_open ON stop_order (attempt_id) WHERE closed_at_us IS NULL",
    "CREATE INDEX stop_order_queue ON stop_order (id) WHERE closed_at_us IS NULL",
    "CREATE INDEX cancellation_work ON cancellation (work_id, id)",
    "CREATE INDEX cancellation_attempt ON cancellation (attempt_id)",
    "CREATE INDEX event_attempt ON event (attempt_id) WHERE attempt_id IS NOT NULL",
    *BUDGET_INDEXES,
    *schema_waits.INDEXES,
    *schema_agents.INDEXES,
)


def _refuse(name: str, when: str, condition: str, message: str) -> str:
    return f"CREATE TRIGGER {name} BEFORE {when} WHEN {condition} BEGIN SELECT RAISE(ABORT, 'fence: {message}'); END"


_UNRELEASED = "EXISTS (SELECT 1 FROM attempt WHERE id = OLD.attempt_id AND (ended_at_us IS NULL OR exclusion = 'held'))"

TRIGGERS = (
    # OR REPLACE fires the delete triggers because `recursive_triggers` is on.
    _refuse(
        "meta_incarnation",
        "UPDATE ON meta",
        "NEW.key = 'incarnation' AND NEW.value < OLD.value",
        "store incarnation went back",
    ),
    _refuse("counter_forward", "UPDATE ON counter", "NEW.value <= OLD.value", "a counter went back"),
    _refuse("counter_kept", "DELETE ON counter", "1", "a counter was deleted"),
    _refuse("config_kept", "UPDATE ON config", "1", "a configuration is written once"),
    _refuse(
        "work_identity",
        "UPDATE ON work",
        "NEW.id <> OLD.id OR NEW.number <> OLD.number OR NEW.attempts_used < OLD.attempts_used OR NEW.revision <= OLD.revision",
        "identity or revision of a Work went back",
    ),
    _refuse(
        "work_ended",
        "UPDATE ON work",
        "OLD.ended_at_us IS NOT NULL AND NOT (OLD.state = 'failed' AND NEW.state = 'ready')",
        "an ended Work was changed, other than by a retry of a failed one",
    ),
    _refuse("work_live", "DELETE ON work", "OLD.ended_at_us IS NULL", "an open Work was deleted"),
    _refuse(
        "input_content",
        "UPDATE ON input",
        "NEW.number <> OLD.number OR NEW.work_id <> OLD.work_id OR NEW.body <> OLD.body OR NEW.depth < OLD.depth"
        " OR NEW.cause_seq IS NOT OLD.cause_seq",
        "an accepted input was changed, or its chain made shorter",
    ),
    _refuse(
        "attempt_number",
        "INSERT ON attempt",
        "NEW.epoch <> 1 OR NEW.state <> 'launching'"
        " OR NEW.number <= (SELECT coalesce(max(number), 0) FROM attempt WHERE work_id = NEW.work_id)",
        "attempt number did not grow",
    ),
    _refuse(
        "attempt_identity",
        "UPDATE ON attempt",
        "NEW.id <> OLD.id OR NEW.work_id <> OLD.work_id OR NEW.number <> OLD.number OR NEW.pool <> OLD.pool"
        " OR NEW.scope <> OLD.scope OR NEW.epoch < OLD.epoch",
        "identity or epoch of an attempt went back",
    ),
    _refuse(
        "attempt_ended",
        "UPDATE ON attempt",
        "OLD.ended_at_us IS NOT NULL AND (NEW.state <> OLD.state OR NEW.ended_at_us IS NOT OLD.ended_at_us"
        " OR NEW.epoch <> OLD.epoch OR NEW.exit_status IS NOT OLD.exit_status)",
        "an ended attempt was changed",
    ),
    _refuse(
        "attempt_charged",
        "UPDATE ON attempt",
        "OLD.exclusion = 'released' AND NEW.usage <> OLD.usage",
        "the usage of an attempt was changed after its stop was confirmed",
    ),
    _refuse(
        "attempt_released",
        "UPDATE ON attempt",
        "OLD.exclusion = 'released' AND NEW.exclusion <> 'released'",
        "a released exclusion was taken again",
    ),
    _refuse(
        "attempt_pin",
        "UPDATE ON attempt",
        "NEW.pin_epoch < OLD.pin_epoch OR (NEW.pin_epoch = OLD.pin_epoch AND (NEW.pin_pid <> OLD.pin_pid"
        " OR NEW.pin_start_ticks <> OLD.pin_start_ticks OR NEW.pin_directory_ino <> OLD.pin_directory_ino))",
        "a pin was replaced by an older or another one of its epoch",
    ),
    _refuse(
        "attempt_live",
        "DELETE ON attempt",
        "OLD.ended_at_us IS NULL OR OLD.exclusion = 'held'",
        "a live attempt was deleted",
    ),
    _refuse("snapshot_kept", "UPDATE ON snapshot", "1", "a snapshot is written once"),
    _refuse("snapshot_live", "DELETE ON snapshot", _UNRELEASED, "the snapshot of a live attempt was deleted"),
    _refuse(
        "segment_ended",
        "UPDATE ON segment",
        "OLD.ended_at_us IS NOT NULL OR NEW.epoch <> OLD.epoch OR NEW.worker <> OLD.worker",
        "an ended segment was changed",
    ),
    _refuse(
        "segment_live",
        "DELETE ON segment",
        f"OLD.ended_at_us IS NULL OR ({_UNRELEASED}"
        f" AND OLD.epoch > (SELECT epoch FROM attempt WHERE id = OLD.attempt_id) - {SEGMENTS_KEPT})",
        "a segment was deleted that is open, or among the last of a live attempt",
    ),
    _refuse(
        "lease_owner",
        "UPDATE ON lease",
        "NEW.epoch = OLD.epoch AND (NEW.owner <> OLD.owner OR NEW.boot_id <> OLD.boot_id OR NEW.claimed_mono_us <> OLD.claimed_mono_us)",
        "a new owner needs a higher epoch",
    ),
    _refuse(
        "lease_shorter",
        "UPDATE ON lease",
        "NEW.epoch = OLD.epoch AND NEW.expires_mono_us < OLD.expires_mono_us",
        "a renewal shortened a lease",
    ),
    _refuse(
        "lease_once",
        "UPDATE ON lease",
        "NEW.epoch = OLD.epoch AND ((OLD.accepted_at_us IS NOT NULL AND NEW.accepted_at_us IS NOT OLD.accepted_at_us)"
        " OR (OLD.revoked_at_us IS NOT NULL AND (NEW.revoked_at_us IS NOT OLD.revoked_at_us"
        " OR NEW.revoked_reason IS NOT OLD.revoked_reason OR NEW.expires_mono_us <> OLD.expires_mono_us)))",
        "a lease is accepted once and revoked once",
    ),
    _refuse("lease_live", "DELETE ON lease", _UNRELEASED, "the lease of a live attempt was deleted"),
    _refuse("worker_gone", "UPDATE ON worker", "OLD.state = 'gone' OR NEW.id <> OLD.id", "a gone worker came back"),
    _refuse(
        "leader_generation",
        "UPDATE ON leader",
        "NEW.generation < OLD.generation OR (NEW.generation = OLD.generation AND NEW.owner <> OLD.owner)",
        "a new leader needs a higher generation",
    ),
    _refuse("leader_kept", "DELETE ON leader", "1", "the leader row was deleted"),
    _refuse(
        "stop_order_closed", "UPDATE ON stop_order", "OLD.closed_at_us IS NOT NULL", "a closed stop order was changed"
    ),
    _refuse("stop_order_live", "DELETE ON stop_order", "OLD.closed_at_us IS NULL", "an open stop order was deleted"),
    _refuse(
        "cancellation_settled",
        "UPDATE ON cancellation",
        "OLD.settled_at_us IS NOT NULL OR (OLD.acknowledged_at_us IS NOT NULL"
        " AND (NEW.acknowledged_at_us IS NOT OLD.acknowledged_at_us OR NEW.acknowledged_by IS NOT OLD.acknowledged_by))"
        " OR NEW.work_id <> OLD.work_id OR NEW.attempt_id IS NOT OLD.attempt_id OR NEW.epoch IS NOT OLD.epoch"
        " OR NEW.requested_by <> OLD.requested_by OR NEW.reason <> OLD.reason",
        "a cancellation was changed that is settled, or what it says of its request or acknowledgement",
    ),
    _refuse(
        "cancellation_live",
        "DELETE ON cancellation",
        "OLD.settled_at_us IS NULL",
        "a cancellation was deleted that is not settled",
    ),
    _refuse("event_kept", "UPDATE ON event", "1", "an event is written once"),
    _refuse(
        "timer_closed",
        "UPDATE ON timer",
        "OLD.state <> 'armed' OR NEW.work_id <> OLD.work_id OR NEW.attempt_id <> OLD.attempt_id OR NEW.kind <> OLD.kind"
        " OR NEW.epoch <> OLD.epoch OR NEW.armed_seq <> OLD.armed_seq OR NEW.due_at_us IS NOT OLD.due_at_us"
        " OR NEW.after_us > OLD.after_us OR (NEW.boot_id = OLD.boot_id"
        " AND (NEW.since_mono_us <> OLD.since_mono_us OR NEW.after_us <> OLD.after_us))",
        "a timer was changed that had fired or was cancelled, or what it is for, or how long it waits",
    ),
    _refuse("timer_live", "DELETE ON timer", "OLD.state = 'armed'", "an armed timer was deleted"),
    _refuse("submission_kept", "UPDATE ON submission", "1", "an accepted key was changed"),
    *(_refuse(*fence) for fence in BUDGET_FENCES),
    *(_refuse(*refusal) for refusal in schema_waits.REFUSALS),
    *(_refuse(*refusal) for refusal in schema_agents.REFUSALS),
)

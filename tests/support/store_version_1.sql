PRAGMA application_id = 1953396082;
PRAGMA auto_vacuum = INCREMENTAL;
BEGIN TRANSACTION;
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO "_sqlite_migrations" VALUES(1,'tenure','0001_first','2027-01-15 08:00:00.000000+00:00');
CREATE TABLE attempt (
  id TEXT PRIMARY KEY, work_id TEXT NOT NULL REFERENCES work (id), number INTEGER NOT NULL CHECK (number >= 1),
  epoch INTEGER NOT NULL CHECK (epoch >= 1), state TEXT NOT NULL CHECK (state IN ('launching', 'running', 'resuming', 'recovering', 'parked', 'recovery_required', 'succeeded', 'failed', 'timed_out', 'interrupted', 'handed_off', 'cancelled')),
  recovered_from TEXT CHECK (recovered_from IN ('launching', 'running', 'resuming')),
  exclusion TEXT NOT NULL CHECK (exclusion IN ('held', 'released')), exclusion_proof TEXT,
  invoke TEXT CHECK (invoke IN ('pending', 'called')), isolated INTEGER NOT NULL CHECK (isolated IN (0, 1)),
  pin_epoch INTEGER, pin_directory TEXT, pin_pid INTEGER, pin_start_ticks INTEGER, pin_boot_id TEXT, pin_pid_ns INTEGER,
  pin_pidfs_ino INTEGER, pin_directory_ino INTEGER, pin_lock_ino INTEGER,
  relaunches INTEGER NOT NULL, pool TEXT NOT NULL, scope TEXT NOT NULL,
  budget_us INTEGER NOT NULL CHECK (budget_us >= 0), budget_since_mono_us INTEGER NOT NULL, budget_boot_id TEXT NOT NULL,
  budget_since_at_us INTEGER NOT NULL, exit_status INTEGER, failure TEXT, error TEXT,
  started_at_us INTEGER NOT NULL, ended_at_us INTEGER, segments_dropped INTEGER NOT NULL DEFAULT 0,
  segments_dropped_us INTEGER NOT NULL DEFAULT 0,
  UNIQUE (work_id, number), UNIQUE (id, epoch),
  CHECK ((ended_at_us IS NOT NULL) = (state IN ('succeeded', 'failed', 'timed_out', 'interrupted', 'handed_off', 'cancelled'))),
  CHECK (exclusion = 'held' OR (ended_at_us IS NOT NULL AND exclusion_proof IS NOT NULL)),
  CHECK ((recovered_from IS NOT NULL) = (state = 'recovering')),
  CHECK (CASE WHEN pin_epoch IS NULL THEN coalesce(pin_directory, pin_pid, pin_start_ticks, pin_boot_id, pin_pid_ns,
      pin_directory_ino, pin_lock_ino, pin_pidfs_ino) IS NULL
    ELSE pin_directory IS NOT NULL AND pin_pid IS NOT NULL AND pin_start_ticks IS NOT NULL AND pin_boot_id IS NOT NULL
      AND pin_pid_ns IS NOT NULL AND pin_directory_ino IS NOT NULL AND pin_lock_ino IS NOT NULL END),
  CHECK (pin_epoch IS NULL OR pin_epoch <= epoch)
) STRICT;
INSERT INTO "attempt" VALUES('w1.1','w1',1,1,'running',NULL,'held',NULL,'called',1,1,'w1.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,NULL,NULL,1800000000000000,NULL,0,0);
INSERT INTO "attempt" VALUES('w2.1','w2',1,1,'succeeded',NULL,'released','S1','called',1,1,'w2.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,0,NULL,NULL,1800000000000000,1800000000000000,0,0);
INSERT INTO "attempt" VALUES('w3.1','w3',1,1,'failed',NULL,'held',NULL,'called',1,1,'w3.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,7,'known','exit status 7',1800000000000000,1800000000000000,0,0);
INSERT INTO "attempt" VALUES('w5.1','w5',1,1,'failed',NULL,'released','S1','called',1,1,'w5.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,7,'known','exit status 7',1800000000000000,1800000000000000,0,0);
INSERT INTO "attempt" VALUES('w6.1','w6',1,1,'cancelled',NULL,'held',NULL,'called',1,1,'w6.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,'cancelled','cancelled by a person: wrong branch',1800000000000000,1800000000000000,0,0);
INSERT INTO "attempt" VALUES('w7.1','w7',1,2,'recovering','running','held',NULL,'called',1,1,'w7.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,NULL,NULL,1800000000000000,NULL,0,0);
INSERT INTO "attempt" VALUES('w8.1','w8',1,1,'recovery_required',NULL,'held',NULL,'called',1,1,'w8.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,NULL,'nobody knows',1800000000000000,NULL,0,0);
INSERT INTO "attempt" VALUES('w9.1','w9',1,1,'launching',NULL,'held',NULL,'pending',0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,NULL,NULL,1800000000000000,NULL,0,0);
CREATE TABLE cancellation (
  id INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), attempt_id TEXT REFERENCES attempt (id),
  epoch INTEGER, scope TEXT NOT NULL CHECK (scope IN ('work', 'attempt')), requested_by TEXT NOT NULL, reason TEXT NOT NULL,
  requested_at_us INTEGER NOT NULL, acknowledged_at_us INTEGER, acknowledged_by TEXT, settled_at_us INTEGER, result TEXT,
  CHECK ((attempt_id IS NULL) = (epoch IS NULL)), CHECK (scope = 'work' OR attempt_id IS NOT NULL),
  CHECK ((acknowledged_at_us IS NULL) = (acknowledged_by IS NULL)), CHECK ((settled_at_us IS NULL) = (result IS NULL)),
  CHECK (attempt_id IS NOT NULL OR settled_at_us IS NOT NULL)
) STRICT;
INSERT INTO "cancellation" VALUES(1,'w6','w6.1',1,'work','a person','wrong branch',1800000000000000,NULL,NULL,NULL,NULL);
CREATE TABLE config (
  number INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL, source_path TEXT NOT NULL,
  activated_at_us INTEGER NOT NULL
) STRICT;
INSERT INTO "config" VALUES(1,'{"bindings":[],"format":1,"scopes":[],"settings":{"concurrency":4,"job_concurrency":4,"lease_us":60000000,"output_max_bytes":67108864,"slots":64,"timeout_us":3600000000}}','8b555b8a4d68eba011948fa5a8077d81a83b23c16d60e9fa24de1f020fe9c578','/srv/tenure.toml',1800000000000000);
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "counter" VALUES('incarnation:coordinator',1);
INSERT INTO "counter" VALUES('incarnation:worker-1',1);
INSERT INTO "counter" VALUES('incarnation:worker-2',1);
INSERT INTO "counter" VALUES('ready',9);
INSERT INTO "counter" VALUES('work',9);
CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at_us INTEGER NOT NULL, kind TEXT NOT NULL, work_id TEXT, attempt_id TEXT,
  epoch INTEGER, data TEXT NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,1800000000000000,'config.activated',NULL,NULL,NULL,'{"number":1,"digest":"8b555b8a4d68eba011948fa5a8077d81a83b23c16d60e9fa24de1f020fe9c578"}');
INSERT INTO "event" VALUES(2,1800000000000000,'worker.registered',NULL,NULL,NULL,'{"worker":"worker-1.1","pid":100}');
INSERT INTO "event" VALUES(3,1800000000000000,'worker.registered',NULL,NULL,NULL,'{"worker":"worker-2.1","pid":100}');
INSERT INTO "event" VALUES(4,1800000000000000,'work.submitted','w1',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(5,1800000000000000,'leader.taken',NULL,NULL,NULL,'{"owner":"coordinator.1","generation":1}');
INSERT INTO "event" VALUES(6,1800000000000000,'work.running','w1',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null}');
INSERT INTO "event" VALUES(7,1800000000000000,'attempt.claimed','w1','w1.1',1,'{"worker":"worker-1.1","inputs":[1],"to":"launching"}');
INSERT INTO "event" VALUES(8,1800000000000000,'attempt.accepted','w1','w1.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(9,1800000000000000,'attempt.pinned','w1','w1.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(10,1800000000000000,'work.submitted','w2',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(11,1800000000000000,'work.running','w2',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null}');
INSERT INTO "event" VALUES(12,1800000000000000,'attempt.claimed','w2','w2.1',1,'{"worker":"worker-1.1","inputs":[2],"to":"launching"}');
INSERT INTO "event" VALUES(13,1800000000000000,'attempt.accepted','w2','w2.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(14,1800000000000000,'attempt.pinned','w2','w2.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(15,1800000000000000,'lease.revoked','w2','w2.1',1,'{"owner":"worker-1.1","reason":"ended"}');
INSERT INTO "event" VALUES(16,1800000000000000,'attempt.succeeded','w2','w2.1',1,'{"from":"running","to":"succeeded","exit_status":0,"failure":null,"proof":"S1","why":"ended"}');
INSERT INTO "event" VALUES(17,1800000000000000,'work.completed','w2',NULL,NULL,'{"from":"running","to":"completed","by":"completed","reason":null}');
INSERT INTO "event" VALUES(18,1800000000000000,'work.submitted','w3',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(19,1800000000000000,'work.running','w3',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null}');
INSERT INTO "event" VALUES(20,1800000000000000,'attempt.claimed','w3','w3.1',1,'{"worker":"worker-1.1","inputs":[3],"to":"launching"}');
INSERT INTO "event" VALUES(21,1800000000000000,'attempt.accepted','w3','w3.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(22,1800000000000000,'attempt.pinned','w3','w3.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(23,1800000000000000,'lease.revoked','w3','w3.1',1,'{"owner":"worker-1.1","reason":"ended"}');
INSERT INTO "event" VALUES(24,1800000000000000,'attempt.failed','w3','w3.1',1,'{"from":"running","to":"failed","exit_status":7,"failure":"known","proof":null,"why":"its tree may live"}');
INSERT INTO "event" VALUES(25,1800000000000000,'stop.ordered','w3','w3.1',1,'{"order":1,"why":"its tree may live","by":"worker-1.1"}');
INSERT INTO "event" VALUES(26,1800000000000000,'work.failed','w3',NULL,NULL,'{"from":"running","to":"failed","by":"failed","reason":"exhausted"}');
INSERT INTO "event" VALUES(27,1800000000000000,'work.submitted','w4',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(28,1800000000000000,'work.submitted','w5',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(29,1800000000000000,'work.running','w5',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null}');
INSERT INTO "event" VALUES(30,1800000000000000,'attempt.claimed','w5','w5.1',1,'{"worker":"worker-2.1","inputs":[5],"to":"launching"}');
INSERT INTO "event" VALUES(31,1800000000000000,'attempt.accepted','w5','w5.1',1,'{"owner":"worker-2.1","isolated":true}');
INSERT INTO "event" VALUES(32,1800000000000000,'attempt.pinned','w5','w5.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(33,1800000000000000,'lease.revoked','w5','w5.1',1,'{"owner":"worker-2.1","reason":"ended"}');
INSERT INTO "event" VALUES(34,1800000000000000,'attempt.failed','w5','w5.1',1,'{"from":"running","to":"failed","exit_status":7,"failure":"known","proof":"S1","why":"ended"}');
INSERT INTO "event" VALUES(35,1800000000000000,'work.backoff','w5',NULL,NULL,'{"from":"running","to":"backoff","by":"retry_armed","reason":null}');
INSERT INTO "event" VALUES(36,1800000000000000,'work.submitted','w6',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(37,1800000000000000,'work.running','w6',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null}');
INSERT INTO "event" VALUES(38,1800000000000000,'attempt.claimed','w6','w6.1',1,'{"worker":"worker-2.1","inputs":[6],"to":"launching"}');
INSERT INTO "event" VALUES(39,1800000000000000,'attempt.accepted','w6','w6.1',1,'{"owner":"worker-2.1","isolated":true}');
INSERT INTO "event" VALUES(40,1800000000000000,'attempt.pinned','w6','w6.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(41,1800000000000000,'cancel.requested','w6','w6.1',1,'{"cancellation":1,"scope":"work","by":"a person","reason":"wrong branch","result":null}');
INSERT INTO "event" VALUES(42,1800000000000000,'lease.revoked','w6','w6.1',1,'{"owner":"worker-2.1","reason":"cancelled"}');
INSERT INTO "event" VALUES(43,1800000000000000,'attempt.cancelled','w6','w6.1',1,'{"from":"running","to":"cancelled","exit_status":null,"failure":"cancelled","proof":null,"why":"cancelled: wrong branch","by":"a person"}');
INSERT INTO "event" VALUES(44,1800000000000000,'stop.ordered','w6','w6.1',1,'{"order":2,"why":"cancelled: wrong branch","by":"a person"}');
INSERT INTO "event" VALUES(45,1800000000000000,'work.cancelled','w6',NULL,NULL,'{"from":"running","to":"cancelled","by":"cancelled","reason":null}');
INSERT INTO "event" VALUES(46,1800000000000000,'work.submitted','w7',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(47,1800000000000000,'work.running','w7',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null}');
INSERT INTO "event" VALUES(48,1800000000000000,'attempt.claimed','w7','w7.1',1,'{"worker":"worker-2.1","inputs":[7],"to":"launching"}');
INSERT INTO "event" VALUES(49,1800000000000000,'attempt.accepted','w7','w7.1',1,'{"owner":"worker-2.1","isolated":true}');
INSERT INTO "event" VALUES(50,1800000000000000,'attempt.pinned','w7','w7.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(51,1800000000000000,'lease.revoked','w7','w7.1',1,'{"owner":"worker-2.1","reason":"released"}');
INSERT INTO "event" VALUES(52,1800000000000000,'attempt.taken_over','w7','w7.1',2,'{"from":"running","to":"recovering","worker":"worker-2.1"}');
INSERT INTO "event" VALUES(53,1800000000000000,'attempt.accepted','w7','w7.1',2,'{"owner":"worker-2.1","isolated":null}');
INSERT INTO "event" VALUES(54,1800000000000000,'work.submitted','w8',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(55,1800000000000000,'work.running','w8',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null}');
INSERT INTO "event" VALUES(56,1800000000000000,'attempt.claimed','w8','w8.1',1,'{"worker":"worker-1.1","inputs":[8],"to":"launching"}');
INSERT INTO "event" VALUES(57,1800000000000000,'attempt.accepted','w8','w8.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(58,1800000000000000,'attempt.pinned','w8','w8.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(59,1800000000000000,'lease.revoked','w8','w8.1',1,'{"owner":"worker-1.1","reason":"recovery_required"}');
INSERT INTO "event" VALUES(60,1800000000000000,'attempt.recovery_required','w8','w8.1',1,'{"from":"running","to":"recovery_required","why":"nobody knows","proof":null}');
INSERT INTO "event" VALUES(61,1800000000000000,'work.submitted','w9',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs"}');
INSERT INTO "event" VALUES(62,1800000000000000,'work.running','w9',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null}');
INSERT INTO "event" VALUES(63,1800000000000000,'attempt.claimed','w9','w9.1',1,'{"worker":"worker-2.1","inputs":[9],"to":"launching"}');
CREATE TABLE input (
  number INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), body BLOB NOT NULL,
  accepted_at_us INTEGER NOT NULL, consumed_by TEXT REFERENCES attempt (id)
) STRICT;
INSERT INTO "input" VALUES(1,'w1',X'',1800000000000000,'w1.1');
INSERT INTO "input" VALUES(2,'w2',X'',1800000000000000,'w2.1');
INSERT INTO "input" VALUES(3,'w3',X'',1800000000000000,'w3.1');
INSERT INTO "input" VALUES(4,'w4',X'736F6D6520696E707574',1800000000000000,NULL);
INSERT INTO "input" VALUES(5,'w5',X'',1800000000000000,NULL);
INSERT INTO "input" VALUES(6,'w6',X'',1800000000000000,'w6.1');
INSERT INTO "input" VALUES(7,'w7',X'',1800000000000000,'w7.1');
INSERT INTO "input" VALUES(8,'w8',X'',1800000000000000,'w8.1');
INSERT INTO "input" VALUES(9,'w9',X'',1800000000000000,'w9.1');
CREATE TABLE leader (
  id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL, owner TEXT NOT NULL, pid INTEGER NOT NULL,
  boot_id TEXT NOT NULL, expires_mono_us INTEGER NOT NULL, lock_device INTEGER NOT NULL, lock_inode INTEGER NOT NULL
) STRICT;
INSERT INTO "leader" VALUES(1,1,'coordinator.1',1,'boot-1',1015000000,1,1002);
CREATE TABLE lease (
  attempt_id TEXT PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL, boot_id TEXT NOT NULL,
  expires_mono_us INTEGER NOT NULL, claimed_mono_us INTEGER NOT NULL, accepted_at_us INTEGER, revoked_at_us INTEGER,
  revoked_reason TEXT, CHECK ((revoked_at_us IS NULL) = (revoked_reason IS NULL)),
  FOREIGN KEY (attempt_id, epoch) REFERENCES attempt (id, epoch) DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;
INSERT INTO "lease" VALUES('w1.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,NULL,NULL);
INSERT INTO "lease" VALUES('w2.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'ended');
INSERT INTO "lease" VALUES('w3.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'ended');
INSERT INTO "lease" VALUES('w5.1',1,'worker-2.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'ended');
INSERT INTO "lease" VALUES('w6.1',1,'worker-2.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'cancelled');
INSERT INTO "lease" VALUES('w7.1',2,'worker-2.1','boot-1',1060000000,1000000000,1800000000000000,NULL,NULL);
INSERT INTO "lease" VALUES('w8.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'recovery_required');
INSERT INTO "lease" VALUES('w9.1',1,'worker-2.1','boot-1',1060000000,1000000000,NULL,NULL,NULL);
CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('created_at_us',1800000000000000);
INSERT INTO "meta" VALUES('file_inode',1427);
INSERT INTO "meta" VALUES('incarnation',1);
INSERT INTO "meta" VALUES('machine_id','00000000000000000000000000000000');
INSERT INTO "meta" VALUES('schema','index attempt_needs_person: CREATE INDEX attempt_needs_person ON attempt (started_at_us, id) WHERE state = ''recovery_required''
;
index attempt_one_unexcluded: CREATE UNIQUE INDEX attempt_one_unexcluded ON attempt (work_id) WHERE (ended_at_us IS NULL OR exclusion = ''held'')
;
index attempt_recoverable: CREATE INDEX attempt_recoverable ON attempt (id) WHERE (ended_at_us IS NULL AND state NOT IN (''parked'', ''recovery_required''))
;
index attempt_slot: CREATE INDEX attempt_slot ON attempt (pool, scope) WHERE (exclusion = ''held'' AND state <> ''parked'')
;
index cancellation_attempt: CREATE INDEX cancellation_attempt ON cancellation (attempt_id)
;
index cancellation_work: CREATE INDEX cancellation_work ON cancellation (work_id, id)
;
index event_attempt: CREATE INDEX event_attempt ON event (attempt_id) WHERE attempt_id IS NOT NULL
;
index input_consumer: CREATE INDEX input_consumer ON input (consumed_by, work_id)
;
index input_work: CREATE INDEX input_work ON input (work_id)
;
index lease_expiry: CREATE INDEX lease_expiry ON lease (expires_mono_us) WHERE revoked_at_us IS NULL
;
index lease_owner: CREATE INDEX lease_owner ON lease (owner) WHERE revoked_at_us IS NULL
;
index lease_unaccepted: CREATE INDEX lease_unaccepted ON lease (claimed_mono_us) WHERE accepted_at_us IS NULL AND revoked_at_us IS NULL
;
index stop_order_attempt: CREATE INDEX stop_order_attempt ON stop_order (attempt_id)
;
index stop_order_open: CREATE UNIQUE INDEX stop_order_open ON stop_order (attempt_id) WHERE closed_at_us IS NULL
;
index stop_order_queue: CREATE INDEX stop_order_queue ON stop_order (id) WHERE closed_at_us IS NULL
;
index work_backoff: CREATE INDEX work_backoff ON work (backoff_boot_id, backoff_since_mono_us + backoff_us) WHERE state = ''backoff''
;
index work_held: CREATE INDEX work_held ON work (number) WHERE state = ''held''
;
index work_open: CREATE INDEX work_open ON work (number) WHERE ended_at_us IS NULL
;
index work_ready: CREATE INDEX work_ready ON work (pool, priority DESC, ready_seq, scope) WHERE state = ''ready''
;
index worker_present: CREATE INDEX worker_present ON worker (name, number) WHERE state <> ''gone''
;
table attempt: CREATE TABLE attempt (
  id TEXT PRIMARY KEY, work_id TEXT NOT NULL REFERENCES work (id), number INTEGER NOT NULL CHECK (number >= 1),
  epoch INTEGER NOT NULL CHECK (epoch >= 1), state TEXT NOT NULL CHECK (state IN (''launching'', ''running'', ''resuming'', ''recovering'', ''parked'', ''recovery_required'', ''succeeded'', ''failed'', ''timed_out'', ''interrupted'', ''handed_off'', ''cancelled'')),
  recovered_from TEXT CHECK (recovered_from IN (''launching'', ''running'', ''resuming'')),
  exclusion TEXT NOT NULL CHECK (exclusion IN (''held'', ''released'')), exclusion_proof TEXT,
  invoke TEXT CHECK (invoke IN (''pending'', ''called'')), isolated INTEGER NOT NULL CHECK (isolated IN (0, 1)),
  pin_epoch INTEGER, pin_directory TEXT, pin_pid INTEGER, pin_start_ticks INTEGER, pin_boot_id TEXT, pin_pid_ns INTEGER,
  pin_pidfs_ino INTEGER, pin_directory_ino INTEGER, pin_lock_ino INTEGER,
  relaunches INTEGER NOT NULL, pool TEXT NOT NULL, scope TEXT NOT NULL,
  budget_us INTEGER NOT NULL CHECK (budget_us >= 0), budget_since_mono_us INTEGER NOT NULL, budget_boot_id TEXT NOT NULL,
  budget_since_at_us INTEGER NOT NULL, exit_status INTEGER, failure TEXT, error TEXT,
  started_at_us INTEGER NOT NULL, ended_at_us INTEGER, segments_dropped INTEGER NOT NULL DEFAULT 0,
  segments_dropped_us INTEGER NOT NULL DEFAULT 0,
  UNIQUE (work_id, number), UNIQUE (id, epoch),
  CHECK ((ended_at_us IS NOT NULL) = (state IN (''succeeded'', ''failed'', ''timed_out'', ''interrupted'', ''handed_off'', ''cancelled''))),
  CHECK (exclusion = ''held'' OR (ended_at_us IS NOT NULL AND exclusion_proof IS NOT NULL)),
  CHECK ((recovered_from IS NOT NULL) = (state = ''recovering'')),
  CHECK (CASE WHEN pin_epoch IS NULL THEN coalesce(pin_directory, pin_pid, pin_start_ticks, pin_boot_id, pin_pid_ns,
      pin_directory_ino, pin_lock_ino, pin_pidfs_ino) IS NULL
    ELSE pin_directory IS NOT NULL AND pin_pid IS NOT NULL AND pin_start_ticks IS NOT NULL AND pin_boot_id IS NOT NULL
      AND pin_pid_ns IS NOT NULL AND pin_directory_ino IS NOT NULL AND pin_lock_ino IS NOT NULL END),
  CHECK (pin_epoch IS NULL OR pin_epoch <= epoch)
) STRICT
;
table cancellation: CREATE TABLE cancellation (
  id INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), attempt_id TEXT REFERENCES attempt (id),
  epoch INTEGER, scope TEXT NOT NULL CHECK (scope IN (''work'', ''attempt'')), requested_by TEXT NOT NULL, reason TEXT NOT NULL,
  requested_at_us INTEGER NOT NULL, acknowledged_at_us INTEGER, acknowledged_by TEXT, settled_at_us INTEGER, result TEXT,
  CHECK ((attempt_id IS NULL) = (epoch IS NULL)), CHECK (scope = ''work'' OR attempt_id IS NOT NULL),
  CHECK ((acknowledged_at_us IS NULL) = (acknowledged_by IS NULL)), CHECK ((settled_at_us IS NULL) = (result IS NULL)),
  CHECK (attempt_id IS NOT NULL OR settled_at_us IS NOT NULL)
) STRICT
;
table config: CREATE TABLE config (
  number INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL, source_path TEXT NOT NULL,
  activated_at_us INTEGER NOT NULL
) STRICT
;
table counter: CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID
;
table event: CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at_us INTEGER NOT NULL, kind TEXT NOT NULL, work_id TEXT, attempt_id TEXT,
  epoch INTEGER, data TEXT NOT NULL
) STRICT
;
table input: CREATE TABLE input (
  number INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), body BLOB NOT NULL,
  accepted_at_us INTEGER NOT NULL, consumed_by TEXT REFERENCES attempt (id)
) STRICT
;
table leader: CREATE TABLE leader (
  id INTEGER PRIMARY KEY CHECK (id = 1), generation INTEGER NOT NULL, owner TEXT NOT NULL, pid INTEGER NOT NULL,
  boot_id TEXT NOT NULL, expires_mono_us INTEGER NOT NULL, lock_device INTEGER NOT NULL, lock_inode INTEGER NOT NULL
) STRICT
;
table lease: CREATE TABLE lease (
  attempt_id TEXT PRIMARY KEY, epoch INTEGER NOT NULL, owner TEXT NOT NULL, boot_id TEXT NOT NULL,
  expires_mono_us INTEGER NOT NULL, claimed_mono_us INTEGER NOT NULL, accepted_at_us INTEGER, revoked_at_us INTEGER,
  revoked_reason TEXT, CHECK ((revoked_at_us IS NULL) = (revoked_reason IS NULL)),
  FOREIGN KEY (attempt_id, epoch) REFERENCES attempt (id, epoch) DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID
;
table meta: CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID
;
table pass: CREATE TABLE pass (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, generation INTEGER NOT NULL, trigger TEXT NOT NULL, due_at_us INTEGER NOT NULL,
  started_at_us INTEGER NOT NULL, duration_us INTEGER NOT NULL, claimed INTEGER NOT NULL, recovered INTEGER NOT NULL,
  revoked INTEGER NOT NULL, waiting_jobs INTEGER NOT NULL, waiting_agents INTEGER NOT NULL, error TEXT
) STRICT
;
table segment: CREATE TABLE segment (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, worker TEXT NOT NULL,
  invoke TEXT CHECK (invoke IN (''pending'', ''called'')), isolated INTEGER NOT NULL CHECK (isolated IN (0, 1)),
  recovered INTEGER NOT NULL CHECK (recovered IN (0, 1)), relaunched INTEGER NOT NULL CHECK (relaunched IN (0, 1)),
  began_at_us INTEGER NOT NULL, ended_at_us INTEGER, active_us INTEGER,
  phases TEXT NOT NULL DEFAULT ''[]'',
  phases_dropped INTEGER NOT NULL DEFAULT 0, wake_event INTEGER, sandbox_digest TEXT, PRIMARY KEY (attempt_id, epoch),
  CHECK ((ended_at_us IS NULL) = (active_us IS NULL))
) STRICT, WITHOUT ROWID
;
table snapshot: CREATE TABLE snapshot (attempt_id TEXT PRIMARY KEY REFERENCES attempt (id), body TEXT NOT NULL) STRICT, WITHOUT ROWID
;
table stop_order: CREATE TABLE stop_order (
  id INTEGER PRIMARY KEY AUTOINCREMENT, attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL,
  why TEXT NOT NULL, ordered_by TEXT NOT NULL, ordered_at_us INTEGER NOT NULL, owner TEXT, boot_id TEXT NOT NULL,
  expires_mono_us INTEGER NOT NULL, tries INTEGER NOT NULL, finding TEXT, closed_at_us INTEGER, closed_by TEXT,
  CHECK ((closed_at_us IS NULL) = (closed_by IS NULL))
) STRICT
;
table work: CREATE TABLE work (
  id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, scope TEXT NOT NULL, binding TEXT, command TEXT, env TEXT NOT NULL,
  cwd TEXT, pool TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN (''idle'', ''ready'', ''held'', ''backoff'', ''running'', ''waiting'', ''completed'', ''failed'', ''cancelled'')), reason TEXT, reason_limit TEXT,
  priority INTEGER NOT NULL, revision INTEGER NOT NULL, ready_seq INTEGER NOT NULL, attempts_used INTEGER NOT NULL,
  admission_failures INTEGER NOT NULL, backoff_since_mono_us INTEGER, backoff_boot_id TEXT, backoff_since_at_us INTEGER,
  backoff_us INTEGER, submitted_by TEXT NOT NULL, submitted_at_us INTEGER NOT NULL, ended_at_us INTEGER, grants TEXT NOT NULL,
  CHECK ((ended_at_us IS NOT NULL) = (state IN (''completed'', ''failed'', ''cancelled''))),
  CHECK (CASE WHEN state = ''backoff'' THEN backoff_us IS NOT NULL AND backoff_boot_id IS NOT NULL
      AND backoff_since_mono_us IS NOT NULL AND backoff_since_at_us IS NOT NULL
    ELSE coalesce(backoff_us, backoff_boot_id, backoff_since_mono_us, backoff_since_at_us) IS NULL END)
) STRICT
;
table worker: CREATE TABLE worker (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, number INTEGER NOT NULL, pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL,
  boot_id TEXT NOT NULL, pid_ns INTEGER NOT NULL, pidfs_ino INTEGER, machine_id TEXT, lock_device INTEGER NOT NULL,
  lock_inode INTEGER NOT NULL, slots INTEGER NOT NULL, executors TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN (''live'', ''draining'', ''gone'')), beat_mono_us INTEGER NOT NULL,
  registered_at_us INTEGER NOT NULL, gone_at_us INTEGER, gone_reason TEXT, UNIQUE (name, number),
  CHECK ((state = ''gone'') = (gone_at_us IS NOT NULL AND gone_reason IS NOT NULL))
) STRICT
;
trigger attempt_ended: CREATE TRIGGER attempt_ended BEFORE UPDATE ON attempt WHEN OLD.ended_at_us IS NOT NULL AND (NEW.state <> OLD.state OR NEW.ended_at_us IS NOT OLD.ended_at_us OR NEW.epoch <> OLD.epoch OR NEW.exit_status IS NOT OLD.exit_status) BEGIN SELECT RAISE(ABORT, ''fence: an ended attempt was changed''); END
;
trigger attempt_identity: CREATE TRIGGER attempt_identity BEFORE UPDATE ON attempt WHEN NEW.id <> OLD.id OR NEW.work_id <> OLD.work_id OR NEW.number <> OLD.number OR NEW.pool <> OLD.pool OR NEW.scope <> OLD.scope OR NEW.epoch < OLD.epoch BEGIN SELECT RAISE(ABORT, ''fence: identity or epoch of an attempt went back''); END
;
trigger attempt_live: CREATE TRIGGER attempt_live BEFORE DELETE ON attempt WHEN OLD.ended_at_us IS NULL OR OLD.exclusion = ''held'' BEGIN SELECT RAISE(ABORT, ''fence: a live attempt was deleted''); END
;
trigger attempt_number: CREATE TRIGGER attempt_number BEFORE INSERT ON attempt WHEN NEW.epoch <> 1 OR NEW.state <> ''launching'' OR NEW.number <= (SELECT coalesce(max(number), 0) FROM attempt WHERE work_id = NEW.work_id) BEGIN SELECT RAISE(ABORT, ''fence: attempt number did not grow''); END
;
trigger attempt_pin: CREATE TRIGGER attempt_pin BEFORE UPDATE ON attempt WHEN NEW.pin_epoch < OLD.pin_epoch OR (NEW.pin_epoch = OLD.pin_epoch AND (NEW.pin_pid <> OLD.pin_pid OR NEW.pin_start_ticks <> OLD.pin_start_ticks OR NEW.pin_directory_ino <> OLD.pin_directory_ino)) BEGIN SELECT RAISE(ABORT, ''fence: a pin was replaced by an older or another one of its epoch''); END
;
trigger attempt_released: CREATE TRIGGER attempt_released BEFORE UPDATE ON attempt WHEN OLD.exclusion = ''released'' AND NEW.exclusion <> ''released'' BEGIN SELECT RAISE(ABORT, ''fence: a released exclusion was taken again''); END
;
trigger cancellation_live: CREATE TRIGGER cancellation_live BEFORE DELETE ON cancellation WHEN OLD.settled_at_us IS NULL BEGIN SELECT RAISE(ABORT, ''fence: a cancellation was deleted that is not settled''); END
;
trigger cancellation_settled: CREATE TRIGGER cancellation_settled BEFORE UPDATE ON cancellation WHEN OLD.settled_at_us IS NOT NULL OR (OLD.acknowledged_at_us IS NOT NULL AND (NEW.acknowledged_at_us IS NOT OLD.acknowledged_at_us OR NEW.acknowledged_by IS NOT OLD.acknowledged_by)) OR NEW.work_id <> OLD.work_id OR NEW.attempt_id IS NOT OLD.attempt_id OR NEW.epoch IS NOT OLD.epoch OR NEW.requested_by <> OLD.requested_by OR NEW.reason <> OLD.reason BEGIN SELECT RAISE(ABORT, ''fence: a cancellation was changed that is settled, or what it says of its request or acknowledgement''); END
;
trigger config_kept: CREATE TRIGGER config_kept BEFORE UPDATE ON config WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: a configuration is written once''); END
;
trigger counter_forward: CREATE TRIGGER counter_forward BEFORE UPDATE ON counter WHEN NEW.value <= OLD.value BEGIN SELECT RAISE(ABORT, ''fence: a counter went back''); END
;
trigger counter_kept: CREATE TRIGGER counter_kept BEFORE DELETE ON counter WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: a counter was deleted''); END
;
trigger event_kept: CREATE TRIGGER event_kept BEFORE UPDATE ON event WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: an event is written once''); END
;
trigger input_content: CREATE TRIGGER input_content BEFORE UPDATE ON input WHEN NEW.number <> OLD.number OR NEW.work_id <> OLD.work_id OR NEW.body <> OLD.body BEGIN SELECT RAISE(ABORT, ''fence: an accepted input was changed''); END
;
trigger leader_generation: CREATE TRIGGER leader_generation BEFORE UPDATE ON leader WHEN NEW.generation < OLD.generation OR (NEW.generation = OLD.generation AND NEW.owner <> OLD.owner) BEGIN SELECT RAISE(ABORT, ''fence: a new leader needs a higher generation''); END
;
trigger leader_kept: CREATE TRIGGER leader_kept BEFORE DELETE ON leader WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: the leader row was deleted''); END
;
trigger lease_live: CREATE TRIGGER lease_live BEFORE DELETE ON lease WHEN EXISTS (SELECT 1 FROM attempt WHERE id = OLD.attempt_id AND (ended_at_us IS NULL OR exclusion = ''held'')) BEGIN SELECT RAISE(ABORT, ''fence: the lease of a live attempt was deleted''); END
;
trigger lease_once: CREATE TRIGGER lease_once BEFORE UPDATE ON lease WHEN NEW.epoch = OLD.epoch AND ((OLD.accepted_at_us IS NOT NULL AND NEW.accepted_at_us IS NOT OLD.accepted_at_us) OR (OLD.revoked_at_us IS NOT NULL AND (NEW.revoked_at_us IS NOT OLD.revoked_at_us OR NEW.revoked_reason IS NOT OLD.revoked_reason OR NEW.expires_mono_us <> OLD.expires_mono_us))) BEGIN SELECT RAISE(ABORT, ''fence: a lease is accepted once and revoked once''); END
;
trigger lease_owner: CREATE TRIGGER lease_owner BEFORE UPDATE ON lease WHEN NEW.epoch = OLD.epoch AND (NEW.owner <> OLD.owner OR NEW.boot_id <> OLD.boot_id OR NEW.claimed_mono_us <> OLD.claimed_mono_us) BEGIN SELECT RAISE(ABORT, ''fence: a new owner needs a higher epoch''); END
;
trigger lease_shorter: CREATE TRIGGER lease_shorter BEFORE UPDATE ON lease WHEN NEW.epoch = OLD.epoch AND NEW.expires_mono_us < OLD.expires_mono_us BEGIN SELECT RAISE(ABORT, ''fence: a renewal shortened a lease''); END
;
trigger meta_incarnation: CREATE TRIGGER meta_incarnation BEFORE UPDATE ON meta WHEN NEW.key = ''incarnation'' AND NEW.value < OLD.value BEGIN SELECT RAISE(ABORT, ''fence: store incarnation went back''); END
;
trigger segment_ended: CREATE TRIGGER segment_ended BEFORE UPDATE ON segment WHEN OLD.ended_at_us IS NOT NULL OR NEW.epoch <> OLD.epoch OR NEW.worker <> OLD.worker BEGIN SELECT RAISE(ABORT, ''fence: an ended segment was changed''); END
;
trigger segment_live: CREATE TRIGGER segment_live BEFORE DELETE ON segment WHEN OLD.ended_at_us IS NULL OR (EXISTS (SELECT 1 FROM attempt WHERE id = OLD.attempt_id AND (ended_at_us IS NULL OR exclusion = ''held'')) AND OLD.epoch > (SELECT epoch FROM attempt WHERE id = OLD.attempt_id) - 50) BEGIN SELECT RAISE(ABORT, ''fence: a segment was deleted that is open, or among the last of a live attempt''); END
;
trigger snapshot_kept: CREATE TRIGGER snapshot_kept BEFORE UPDATE ON snapshot WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: a snapshot is written once''); END
;
trigger snapshot_live: CREATE TRIGGER snapshot_live BEFORE DELETE ON snapshot WHEN EXISTS (SELECT 1 FROM attempt WHERE id = OLD.attempt_id AND (ended_at_us IS NULL OR exclusion = ''held'')) BEGIN SELECT RAISE(ABORT, ''fence: the snapshot of a live attempt was deleted''); END
;
trigger stop_order_closed: CREATE TRIGGER stop_order_closed BEFORE UPDATE ON stop_order WHEN OLD.closed_at_us IS NOT NULL BEGIN SELECT RAISE(ABORT, ''fence: a closed stop order was changed''); END
;
trigger stop_order_live: CREATE TRIGGER stop_order_live BEFORE DELETE ON stop_order WHEN OLD.closed_at_us IS NULL BEGIN SELECT RAISE(ABORT, ''fence: an open stop order was deleted''); END
;
trigger work_ended: CREATE TRIGGER work_ended BEFORE UPDATE ON work WHEN OLD.ended_at_us IS NOT NULL BEGIN SELECT RAISE(ABORT, ''fence: an ended Work was changed''); END
;
trigger work_identity: CREATE TRIGGER work_identity BEFORE UPDATE ON work WHEN NEW.id <> OLD.id OR NEW.number <> OLD.number OR NEW.attempts_used < OLD.attempts_used OR NEW.revision <= OLD.revision BEGIN SELECT RAISE(ABORT, ''fence: identity or revision of a Work went back''); END
;
trigger work_live: CREATE TRIGGER work_live BEFORE DELETE ON work WHEN OLD.ended_at_us IS NULL BEGIN SELECT RAISE(ABORT, ''fence: an open Work was deleted''); END
;
trigger worker_gone: CREATE TRIGGER worker_gone BEFORE UPDATE ON worker WHEN OLD.state = ''gone'' OR NEW.id <> OLD.id BEGIN SELECT RAISE(ABORT, ''fence: a gone worker came back''); END');
INSERT INTO "meta" VALUES('time_namespace','boot-1:4026531834');
CREATE TABLE pass (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, generation INTEGER NOT NULL, trigger TEXT NOT NULL, due_at_us INTEGER NOT NULL,
  started_at_us INTEGER NOT NULL, duration_us INTEGER NOT NULL, claimed INTEGER NOT NULL, recovered INTEGER NOT NULL,
  revoked INTEGER NOT NULL, waiting_jobs INTEGER NOT NULL, waiting_agents INTEGER NOT NULL, error TEXT
) STRICT;
INSERT INTO "pass" VALUES(1,1,'wake',1800000000000000,1800000000000100,300,0,1,2,3,4,NULL);
INSERT INTO "pass" VALUES(2,1,'wake',1800000000000001,1800000000000101,301,1,1,2,3,4,NULL);
INSERT INTO "pass" VALUES(3,1,'wake',1800000000000002,1800000000000102,302,2,1,2,3,4,NULL);
CREATE TABLE segment (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, worker TEXT NOT NULL,
  invoke TEXT CHECK (invoke IN ('pending', 'called')), isolated INTEGER NOT NULL CHECK (isolated IN (0, 1)),
  recovered INTEGER NOT NULL CHECK (recovered IN (0, 1)), relaunched INTEGER NOT NULL CHECK (relaunched IN (0, 1)),
  began_at_us INTEGER NOT NULL, ended_at_us INTEGER, active_us INTEGER,
  phases TEXT NOT NULL DEFAULT '[]',
  phases_dropped INTEGER NOT NULL DEFAULT 0, wake_event INTEGER, sandbox_digest TEXT, PRIMARY KEY (attempt_id, epoch),
  CHECK ((ended_at_us IS NULL) = (active_us IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO "segment" VALUES('w1.1',1,'worker-1.1','called',1,0,0,1800000000000000,NULL,NULL,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w2.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w3.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w5.1',1,'worker-2.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w6.1',1,'worker-2.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w7.1',1,'worker-2.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w7.1',2,'worker-2.1',NULL,0,1,0,1800000000000000,NULL,NULL,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w8.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w9.1',1,'worker-2.1','pending',0,0,0,1800000000000000,NULL,NULL,'[]',0,NULL,NULL);
CREATE TABLE snapshot (attempt_id TEXT PRIMARY KEY REFERENCES attempt (id), body TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "snapshot" VALUES('w1.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[1],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[]}');
INSERT INTO "snapshot" VALUES('w2.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[2],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[]}');
INSERT INTO "snapshot" VALUES('w3.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[3],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[]}');
INSERT INTO "snapshot" VALUES('w5.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[5],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[]}');
INSERT INTO "snapshot" VALUES('w6.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[6],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[]}');
INSERT INTO "snapshot" VALUES('w7.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[7],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[]}');
INSERT INTO "snapshot" VALUES('w8.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[8],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[]}');
INSERT INTO "snapshot" VALUES('w9.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[9],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[]}');
CREATE TABLE stop_order (
  id INTEGER PRIMARY KEY AUTOINCREMENT, attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL,
  why TEXT NOT NULL, ordered_by TEXT NOT NULL, ordered_at_us INTEGER NOT NULL, owner TEXT, boot_id TEXT NOT NULL,
  expires_mono_us INTEGER NOT NULL, tries INTEGER NOT NULL, finding TEXT, closed_at_us INTEGER, closed_by TEXT,
  CHECK ((closed_at_us IS NULL) = (closed_by IS NULL))
) STRICT;
INSERT INTO "stop_order" VALUES(1,'w3.1',1,'its tree may live','worker-1.1',1800000000000000,NULL,'boot-1',0,0,NULL,NULL,NULL);
INSERT INTO "stop_order" VALUES(2,'w6.1',1,'cancelled: wrong branch','a person',1800000000000000,NULL,'boot-1',0,0,NULL,NULL,NULL);
CREATE TABLE work (
  id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, scope TEXT NOT NULL, binding TEXT, command TEXT, env TEXT NOT NULL,
  cwd TEXT, pool TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('idle', 'ready', 'held', 'backoff', 'running', 'waiting', 'completed', 'failed', 'cancelled')), reason TEXT, reason_limit TEXT,
  priority INTEGER NOT NULL, revision INTEGER NOT NULL, ready_seq INTEGER NOT NULL, attempts_used INTEGER NOT NULL,
  admission_failures INTEGER NOT NULL, backoff_since_mono_us INTEGER, backoff_boot_id TEXT, backoff_since_at_us INTEGER,
  backoff_us INTEGER, submitted_by TEXT NOT NULL, submitted_at_us INTEGER NOT NULL, ended_at_us INTEGER, grants TEXT NOT NULL,
  CHECK ((ended_at_us IS NOT NULL) = (state IN ('completed', 'failed', 'cancelled'))),
  CHECK (CASE WHEN state = 'backoff' THEN backoff_us IS NOT NULL AND backoff_boot_id IS NOT NULL
      AND backoff_since_mono_us IS NOT NULL AND backoff_since_at_us IS NOT NULL
    ELSE coalesce(backoff_us, backoff_boot_id, backoff_since_mono_us, backoff_since_at_us) IS NULL END)
) STRICT;
INSERT INTO "work" VALUES('w1',1,'',NULL,'["true"]','[]','/','jobs','running',NULL,NULL,0,2,1,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]');
INSERT INTO "work" VALUES('w2',2,'',NULL,'["true"]','[]','/','jobs','completed',NULL,NULL,0,3,2,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,1800000000000000,'[]');
INSERT INTO "work" VALUES('w3',3,'',NULL,'["true"]','[]','/','jobs','failed','exhausted',NULL,0,3,3,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,1800000000000000,'[]');
INSERT INTO "work" VALUES('w4',4,'',NULL,'["true"]','[]','/','jobs','ready','capacity_scope','ops',0,2,4,0,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]');
INSERT INTO "work" VALUES('w5',5,'',NULL,'["true"]','[]','/','jobs','backoff',NULL,NULL,0,3,5,1,1,1000000000,'boot-1',1800000000000000,1000000,'test',1800000000000000,NULL,'[]');
INSERT INTO "work" VALUES('w6',6,'',NULL,'["true"]','[]','/','jobs','cancelled',NULL,NULL,0,3,6,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,1800000000000000,'[]');
INSERT INTO "work" VALUES('w7',7,'',NULL,'["true"]','[]','/','jobs','running',NULL,NULL,0,2,7,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]');
INSERT INTO "work" VALUES('w8',8,'',NULL,'["true"]','[]','/','jobs','running',NULL,NULL,0,2,8,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]');
INSERT INTO "work" VALUES('w9',9,'',NULL,'["true"]','[]','/','jobs','running',NULL,NULL,0,2,9,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]');
CREATE TABLE worker (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, number INTEGER NOT NULL, pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL,
  boot_id TEXT NOT NULL, pid_ns INTEGER NOT NULL, pidfs_ino INTEGER, machine_id TEXT, lock_device INTEGER NOT NULL,
  lock_inode INTEGER NOT NULL, slots INTEGER NOT NULL, executors TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('live', 'draining', 'gone')), beat_mono_us INTEGER NOT NULL,
  registered_at_us INTEGER NOT NULL, gone_at_us INTEGER, gone_reason TEXT, UNIQUE (name, number),
  CHECK ((state = 'gone') = (gone_at_us IS NOT NULL AND gone_reason IS NOT NULL))
) STRICT;
INSERT INTO "worker" VALUES('worker-1.1','worker-1',1,100,1000,'boot-1',4026531836,NULL,'machine',1,1000,64,'["shell@1"]','live',1000000000,1800000000000000,NULL,NULL);
INSERT INTO "worker" VALUES('worker-2.1','worker-2',1,100,1000,'boot-1',4026531836,NULL,'machine',1,1001,64,'["shell@1"]','live',1000000000,1800000000000000,NULL,NULL);
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX work_ready ON work (pool, priority DESC, ready_seq, scope) WHERE state = 'ready';
CREATE INDEX work_open ON work (number) WHERE ended_at_us IS NULL;
CREATE INDEX work_held ON work (number) WHERE state = 'held';
CREATE INDEX work_backoff ON work (backoff_boot_id, backoff_since_mono_us + backoff_us) WHERE state = 'backoff';
CREATE INDEX input_work ON input (work_id);
CREATE INDEX input_consumer ON input (consumed_by, work_id);
CREATE UNIQUE INDEX attempt_one_unexcluded ON attempt (work_id) WHERE (ended_at_us IS NULL OR exclusion = 'held');
CREATE INDEX attempt_slot ON attempt (pool, scope) WHERE (exclusion = 'held' AND state <> 'parked');
CREATE INDEX attempt_recoverable ON attempt (id) WHERE (ended_at_us IS NULL AND state NOT IN ('parked', 'recovery_required'));
CREATE INDEX attempt_needs_person ON attempt (started_at_us, id) WHERE state = 'recovery_required';
CREATE INDEX lease_expiry ON lease (expires_mono_us) WHERE revoked_at_us IS NULL;
CREATE INDEX lease_owner ON lease (owner) WHERE revoked_at_us IS NULL;
CREATE INDEX lease_unaccepted ON lease (claimed_mono_us) WHERE accepted_at_us IS NULL AND revoked_at_us IS NULL;
CREATE INDEX worker_present ON worker (name, number) WHERE state <> 'gone';
CREATE INDEX stop_order_attempt ON stop_order (attempt_id);
CREATE UNIQUE INDEX stop_order_open ON stop_order (attempt_id) WHERE closed_at_us IS NULL;
CREATE INDEX stop_order_queue ON stop_order (id) WHERE closed_at_us IS NULL;
CREATE INDEX cancellation_work ON cancellation (work_id, id);
CREATE INDEX cancellation_attempt ON cancellation (attempt_id);
CREATE INDEX event_attempt ON event (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE TRIGGER meta_incarnation BEFORE UPDATE ON meta WHEN NEW.key = 'incarnation' AND NEW.value < OLD.value BEGIN SELECT RAISE(ABORT, 'fence: store incarnation went back'); END;
CREATE TRIGGER counter_forward BEFORE UPDATE ON counter WHEN NEW.value <= OLD.value BEGIN SELECT RAISE(ABORT, 'fence: a counter went back'); END;
CREATE TRIGGER counter_kept BEFORE DELETE ON counter WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: a counter was deleted'); END;
CREATE TRIGGER config_kept BEFORE UPDATE ON config WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: a configuration is written once'); END;
CREATE TRIGGER work_identity BEFORE UPDATE ON work WHEN NEW.id <> OLD.id OR NEW.number <> OLD.number OR NEW.attempts_used < OLD.attempts_used OR NEW.revision <= OLD.revision BEGIN SELECT RAISE(ABORT, 'fence: identity or revision of a Work went back'); END;
CREATE TRIGGER work_ended BEFORE UPDATE ON work WHEN OLD.ended_at_us IS NOT NULL BEGIN SELECT RAISE(ABORT, 'fence: an ended Work was changed'); END;
CREATE TRIGGER work_live BEFORE DELETE ON work WHEN OLD.ended_at_us IS NULL BEGIN SELECT RAISE(ABORT, 'fence: an open Work was deleted'); END;
CREATE TRIGGER input_content BEFORE UPDATE ON input WHEN NEW.number <> OLD.number OR NEW.work_id <> OLD.work_id OR NEW.body <> OLD.body BEGIN SELECT RAISE(ABORT, 'fence: an accepted input was changed'); END;
CREATE TRIGGER attempt_number BEFORE INSERT ON attempt WHEN NEW.epoch <> 1 OR NEW.state <> 'launching' OR NEW.number <= (SELECT coalesce(max(number), 0) FROM attempt WHERE work_id = NEW.work_id) BEGIN SELECT RAISE(ABORT, 'fence: attempt number did not grow'); END;
CREATE TRIGGER attempt_identity BEFORE UPDATE ON attempt WHEN NEW.id <> OLD.id OR NEW.work_id <> OLD.work_id OR NEW.number <> OLD.number OR NEW.pool <> OLD.pool OR NEW.scope <> OLD.scope OR NEW.epoch < OLD.epoch BEGIN SELECT RAISE(ABORT, 'fence: identity or epoch of an attempt went back'); END;
CREATE TRIGGER attempt_ended BEFORE UPDATE ON attempt WHEN OLD.ended_at_us IS NOT NULL AND (NEW.state <> OLD.state OR NEW.ended_at_us IS NOT OLD.ended_at_us OR NEW.epoch <> OLD.epoch OR NEW.exit_status IS NOT OLD.exit_status) BEGIN SELECT RAISE(ABORT, 'fence: an ended attempt was changed'); END;
CREATE TRIGGER attempt_released BEFORE UPDATE ON attempt WHEN OLD.exclusion = 'released' AND NEW.exclusion <> 'released' BEGIN SELECT RAISE(ABORT, 'fence: a released exclusion was taken again'); END;
CREATE TRIGGER attempt_pin BEFORE UPDATE ON attempt WHEN NEW.pin_epoch < OLD.pin_epoch OR (NEW.pin_epoch = OLD.pin_epoch AND (NEW.pin_pid <> OLD.pin_pid OR NEW.pin_start_ticks <> OLD.pin_start_ticks OR NEW.pin_directory_ino <> OLD.pin_directory_ino)) BEGIN SELECT RAISE(ABORT, 'fence: a pin was replaced by an older or another one of its epoch'); END;
CREATE TRIGGER attempt_live BEFORE DELETE ON attempt WHEN OLD.ended_at_us IS NULL OR OLD.exclusion = 'held' BEGIN SELECT RAISE(ABORT, 'fence: a live attempt was deleted'); END;
CREATE TRIGGER snapshot_kept BEFORE UPDATE ON snapshot WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: a snapshot is written once'); END;
CREATE TRIGGER snapshot_live BEFORE DELETE ON snapshot WHEN EXISTS (SELECT 1 FROM attempt WHERE id = OLD.attempt_id AND (ended_at_us IS NULL OR exclusion = 'held')) BEGIN SELECT RAISE(ABORT, 'fence: the snapshot of a live attempt was deleted'); END;
CREATE TRIGGER segment_ended BEFORE UPDATE ON segment WHEN OLD.ended_at_us IS NOT NULL OR NEW.epoch <> OLD.epoch OR NEW.worker <> OLD.worker BEGIN SELECT RAISE(ABORT, 'fence: an ended segment was changed'); END;
CREATE TRIGGER segment_live BEFORE DELETE ON segment WHEN OLD.ended_at_us IS NULL OR (EXISTS (SELECT 1 FROM attempt WHERE id = OLD.attempt_id AND (ended_at_us IS NULL OR exclusion = 'held')) AND OLD.epoch > (SELECT epoch FROM attempt WHERE id = OLD.attempt_id) - 50) BEGIN SELECT RAISE(ABORT, 'fence: a segment was deleted that is open, or among the last of a live attempt'); END;
CREATE TRIGGER lease_owner BEFORE UPDATE ON lease WHEN NEW.epoch = OLD.epoch AND (NEW.owner <> OLD.owner OR NEW.boot_id <> OLD.boot_id OR NEW.claimed_mono_us <> OLD.claimed_mono_us) BEGIN SELECT RAISE(ABORT, 'fence: a new owner needs a higher epoch'); END;
CREATE TRIGGER lease_shorter BEFORE UPDATE ON lease WHEN NEW.epoch = OLD.epoch AND NEW.expires_mono_us < OLD.expires_mono_us BEGIN SELECT RAISE(ABORT, 'fence: a renewal shortened a lease'); END;
CREATE TRIGGER lease_once BEFORE UPDATE ON lease WHEN NEW.epoch = OLD.epoch AND ((OLD.accepted_at_us IS NOT NULL AND NEW.accepted_at_us IS NOT OLD.accepted_at_us) OR (OLD.revoked_at_us IS NOT NULL AND (NEW.revoked_at_us IS NOT OLD.revoked_at_us OR NEW.revoked_reason IS NOT OLD.revoked_reason OR NEW.expires_mono_us <> OLD.expires_mono_us))) BEGIN SELECT RAISE(ABORT, 'fence: a lease is accepted once and revoked once'); END;
CREATE TRIGGER lease_live BEFORE DELETE ON lease WHEN EXISTS (SELECT 1 FROM attempt WHERE id = OLD.attempt_id AND (ended_at_us IS NULL OR exclusion = 'held')) BEGIN SELECT RAISE(ABORT, 'fence: the lease of a live attempt was deleted'); END;
CREATE TRIGGER worker_gone BEFORE UPDATE ON worker WHEN OLD.state = 'gone' OR NEW.id <> OLD.id BEGIN SELECT RAISE(ABORT, 'fence: a gone worker came back'); END;
CREATE TRIGGER leader_generation BEFORE UPDATE ON leader WHEN NEW.generation < OLD.generation OR (NEW.generation = OLD.generation AND NEW.owner <> OLD.owner) BEGIN SELECT RAISE(ABORT, 'fence: a new leader needs a higher generation'); END;
CREATE TRIGGER leader_kept BEFORE DELETE ON leader WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: the leader row was deleted'); END;
CREATE TRIGGER stop_order_closed BEFORE UPDATE ON stop_order WHEN OLD.closed_at_us IS NOT NULL BEGIN SELECT RAISE(ABORT, 'fence: a closed stop order was changed'); END;
CREATE TRIGGER stop_order_live BEFORE DELETE ON stop_order WHEN OLD.closed_at_us IS NULL BEGIN SELECT RAISE(ABORT, 'fence: an open stop order was deleted'); END;
CREATE TRIGGER cancellation_settled BEFORE UPDATE ON cancellation WHEN OLD.settled_at_us IS NOT NULL OR (OLD.acknowledged_at_us IS NOT NULL AND (NEW.acknowledged_at_us IS NOT OLD.acknowledged_at_us OR NEW.acknowledged_by IS NOT OLD.acknowledged_by)) OR NEW.work_id <> OLD.work_id OR NEW.attempt_id IS NOT OLD.attempt_id OR NEW.epoch IS NOT OLD.epoch OR NEW.requested_by <> OLD.requested_by OR NEW.reason <> OLD.reason BEGIN SELECT RAISE(ABORT, 'fence: a cancellation was changed that is settled, or what it says of its request or acknowledgement'); END;
CREATE TRIGGER cancellation_live BEFORE DELETE ON cancellation WHEN OLD.settled_at_us IS NULL BEGIN SELECT RAISE(ABORT, 'fence: a cancellation was deleted that is not settled'); END;
CREATE TRIGGER event_kept BEFORE UPDATE ON event WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: an event is written once'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('event',63);
INSERT INTO "sqlite_sequence" VALUES('input',9);
INSERT INTO "sqlite_sequence" VALUES('stop_order',2);
INSERT INTO "sqlite_sequence" VALUES('cancellation',1);
INSERT INTO "sqlite_sequence" VALUES('pass',3);
COMMIT;
PRAGMA user_version = 1;

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
INSERT INTO "_sqlite_migrations" VALUES(2,'tenure','0002_hardening','2027-01-15 08:00:00.000000+00:00');
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
  segments_dropped_us INTEGER NOT NULL DEFAULT 0, usage TEXT NOT NULL DEFAULT '{}',
  launch_epoch INTEGER NOT NULL DEFAULT 1, token_sha256 TEXT, stream_offset INTEGER CHECK (stream_offset >= 0),
  UNIQUE (work_id, number), UNIQUE (id, epoch),
  CHECK ((ended_at_us IS NOT NULL) = (state IN ('succeeded', 'failed', 'timed_out', 'interrupted', 'handed_off', 'cancelled'))),
  CHECK (exclusion = 'held' OR (ended_at_us IS NOT NULL AND exclusion_proof IS NOT NULL)),
  CHECK ((recovered_from IS NOT NULL) = (state = 'recovering')),
  CHECK (CASE WHEN pin_epoch IS NULL THEN coalesce(pin_directory, pin_pid, pin_start_ticks, pin_boot_id, pin_pid_ns,
      pin_directory_ino, pin_lock_ino, pin_pidfs_ino) IS NULL
    ELSE pin_directory IS NOT NULL AND pin_pid IS NOT NULL AND pin_start_ticks IS NOT NULL AND pin_boot_id IS NOT NULL
      AND pin_pid_ns IS NOT NULL AND pin_directory_ino IS NOT NULL AND pin_lock_ino IS NOT NULL END),
  CHECK (pin_epoch IS NULL OR pin_epoch BETWEEN launch_epoch AND epoch), CHECK (launch_epoch <= epoch)
) STRICT;
INSERT INTO "attempt" VALUES('w1.1','w1',1,2,'running',NULL,'held',NULL,'called',1,2,'w1.1.2',500,5000,'boot-1',4026531836,NULL,11,12,1,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,NULL,NULL,1800000000000000,NULL,0,0,'{}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w2.1','w2',1,1,'failed',NULL,'released','S1','called',1,1,'w2.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,7,'known','exit status 7',1800000000000000,1800000000000000,0,0,'{}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w3.1','w3',1,1,'failed',NULL,'held',NULL,'called',1,1,'w3.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,7,'known','exit status 7',1800000000000000,1800000000000000,0,0,'{}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w6.1','w6',1,1,'failed',NULL,'released','S1','called',1,1,'w6.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,7,'known','exit status 7',1800000000000000,1800000000000000,0,0,'{}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w7.1','w7',1,1,'cancelled',NULL,'held',NULL,'called',1,1,'w7.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,'cancelled','cancelled by t: t',1800000000000000,1800000000000000,0,0,'{}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w8.1','w8',1,1,'failed',NULL,'released','S1','called',1,1,'w8.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,7,'known','exit status 7',1800000000000000,1800000000000000,0,0,'{}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w10.1','w10',1,2,'running',NULL,'held',NULL,'called',1,2,'w10.1.2',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,NULL,NULL,1800000000000000,NULL,0,0,'{}',2,NULL,NULL);
INSERT INTO "attempt" VALUES('w11.1','w11',1,1,'parked',NULL,'held','S1',NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,NULL,NULL,1800000000000000,NULL,0,0,'{}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w12.1','w12',1,1,'running',NULL,'held',NULL,'called',1,1,'w12.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1000000000,'boot-1',1800000000000000,NULL,NULL,NULL,1800000000000000,NULL,0,0,'{}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w13.1','w13',1,1,'succeeded',NULL,'released','S1','called',1,1,'w13.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3599000000,1002000000,'boot-1',1800000002000000,0,NULL,NULL,1800000001000000,1800000002000000,0,0,'{"minutes":"0.016666666667"}',1,NULL,NULL);
INSERT INTO "attempt" VALUES('w16.1','w16',1,1,'running',NULL,'held',NULL,'called',1,1,'w16.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1002000000,'boot-1',1800000002000000,NULL,NULL,NULL,1800000002000000,NULL,0,0,'{}',1,NULL,77);
INSERT INTO "attempt" VALUES('w17.1','w17',1,1,'handed_off',NULL,'released','S1','called',1,1,'w17.1.1',500,5000,'boot-1',4026531836,NULL,11,12,0,'jobs','',3600000000,1002000000,'boot-1',1800000002000000,0,NULL,NULL,1800000002000000,1800000002000000,0,0,'{}',1,NULL,NULL);
CREATE TABLE budget (
  unit TEXT NOT NULL, per TEXT NOT NULL, period TEXT NOT NULL, scope TEXT NOT NULL, since_staged INTEGER NOT NULL, since_at_us INTEGER NOT NULL, PRIMARY KEY (unit, per, period, scope)
) STRICT, WITHOUT ROWID;
INSERT INTO "budget" VALUES('minutes','scope','life','',0,1800000001000000);
INSERT INTO "budget" VALUES('turns','scope','life','',0,1800000001000000);
CREATE TABLE budget_notice (
  unit TEXT NOT NULL, per TEXT NOT NULL, period TEXT NOT NULL, scope TEXT NOT NULL, subject TEXT NOT NULL, window_at_us INTEGER NOT NULL, kind TEXT NOT NULL, limit_amount TEXT NOT NULL,
  told_in TEXT NOT NULL, told_at_us INTEGER NOT NULL,
  PRIMARY KEY (unit, per, period, scope, subject, window_at_us, kind, limit_amount, told_in)
) STRICT, WITHOUT ROWID;
CREATE TABLE cancellation (
  id INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), attempt_id TEXT REFERENCES attempt (id),
  epoch INTEGER, scope TEXT NOT NULL CHECK (scope IN ('work', 'attempt')), requested_by TEXT NOT NULL, reason TEXT NOT NULL,
  requested_at_us INTEGER NOT NULL, acknowledged_at_us INTEGER, acknowledged_by TEXT, settled_at_us INTEGER, result TEXT,
  CHECK ((attempt_id IS NULL) = (epoch IS NULL)), CHECK (scope = 'work' OR attempt_id IS NOT NULL),
  CHECK ((acknowledged_at_us IS NULL) = (acknowledged_by IS NULL)), CHECK ((settled_at_us IS NULL) = (result IS NULL)),
  CHECK (attempt_id IS NOT NULL OR settled_at_us IS NOT NULL)
) STRICT;
INSERT INTO "cancellation" VALUES(1,'w5',NULL,NULL,'work','t','t',1800000000000000,NULL,NULL,1800000000000000,'nothing to stop');
INSERT INTO "cancellation" VALUES(2,'w7','w7.1',1,'attempt','t','t',1800000000000000,1800000000000000,'worker-1.1',NULL,NULL);
CREATE TABLE clock (
  id INTEGER PRIMARY KEY CHECK (id = 1), boot_id TEXT NOT NULL, offset_us INTEGER NOT NULL, jumped_at_us INTEGER,
  jumped_by_us INTEGER, CHECK ((jumped_at_us IS NULL) = (jumped_by_us IS NULL))
) STRICT;
CREATE TABLE config (
  number INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL, source_path TEXT NOT NULL,
  activated_at_us INTEGER NOT NULL
) STRICT;
INSERT INTO "config" VALUES(1,'{}','d','/t',1800000000000000);
INSERT INTO "config" VALUES(2,'{"bindings":[],"budgets":[{"limit":"9","per":"scope","period":"life","scope":null,"unit":"turns","warn_at":null},{"limit":"9","per":"scope","period":"life","scope":null,"unit":"minutes","warn_at":null}],"format":1,"scopes":[],"settings":{"approval":[],"concurrency":4,"job_concurrency":4,"lease_us":60000000,"output_max_bytes":67108864,"quarantine_after":5,"slots":64,"timeout_us":3600000000}}','92b8f6d8d76cba2980ed9053a5b643db26d2bf0b4eae63d60222dc02751c2aad','/tenure.toml',1800000001000000);
CREATE TABLE correlation (
  work_id TEXT NOT NULL REFERENCES work (id), key TEXT NOT NULL, PRIMARY KEY (work_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "counter" VALUES('dispatch',1);
INSERT INTO "counter" VALUES('incarnation:coordinator',1);
INSERT INTO "counter" VALUES('incarnation:worker-1',1);
INSERT INTO "counter" VALUES('incarnation:worker-2',1);
INSERT INTO "counter" VALUES('ready',22);
INSERT INTO "counter" VALUES('work',18);
CREATE TABLE declaration (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), key TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('turn', 'wait', 'outcome', 'usage', 'consumed')), body TEXT NOT NULL,
  seq INTEGER NOT NULL, recorded_at_us INTEGER NOT NULL, epoch INTEGER NOT NULL, applied_epoch INTEGER,
  PRIMARY KEY (attempt_id, key), CHECK (applied_epoch IS NULL OR applied_epoch >= epoch)
) STRICT, WITHOUT ROWID;
INSERT INTO "declaration" VALUES('w10.1','wait-1','wait','{"after_us":60000000,"correlate":null,"event_type":"tick","resume":true,"until_at_us":null}',79,1800000000000000,1,1);
INSERT INTO "declaration" VALUES('w11.1','wait-1','wait','{"after_us":60000000,"correlate":null,"event_type":"tick","resume":true,"until_at_us":null}',98,1800000000000000,1,1);
INSERT INTO "declaration" VALUES('w12.1','turn-1','turn','{"comment":"said","status":"done"}',110,1800000000000000,1,NULL);
INSERT INTO "declaration" VALUES('w16.1','turn-1','turn','{"comment":"said","status":"done"}',135,1800000002000000,1,NULL);
INSERT INTO "declaration" VALUES('w17.1','wait-1','wait','{"after_us":60000000,"correlate":null,"event_type":"tick","resume":false,"until_at_us":null}',141,1800000002000000,1,1);
CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at_us INTEGER NOT NULL, kind TEXT NOT NULL, work_id TEXT, attempt_id TEXT,
  epoch INTEGER, data TEXT NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,1800000000000000,'worker.registered',NULL,NULL,NULL,'{"worker":"worker-1.1","pid":100}');
INSERT INTO "event" VALUES(2,1800000000000000,'worker.registered',NULL,NULL,NULL,'{"worker":"worker-2.1","pid":100}');
INSERT INTO "event" VALUES(3,1800000000000000,'config.activated',NULL,NULL,NULL,'{"number":1,"digest":"d"}');
INSERT INTO "event" VALUES(4,1800000000000000,'worker.gone',NULL,NULL,NULL,'{"worker":"worker-2.1","reason":"released"}');
INSERT INTO "event" VALUES(5,1800000000000000,'work.submitted','w1',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(6,1800000000000000,'leader.taken',NULL,NULL,NULL,'{"owner":"coordinator.1","generation":1}');
INSERT INTO "event" VALUES(7,1800000000000000,'work.running','w1',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(8,1800000000000000,'attempt.claimed','w1','w1.1',1,'{"worker":"worker-1.1","inputs":[1],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(9,1800000000000000,'attempt.accepted','w1','w1.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(10,1800000000000000,'lease.revoked','w1','w1.1',1,'{"owner":"worker-1.1","reason":"released"}');
INSERT INTO "event" VALUES(11,1800000000000000,'attempt.taken_over','w1','w1.1',2,'{"from":"launching","to":"recovering","worker":"worker-1.1","generation":1}');
INSERT INTO "event" VALUES(12,1800000000000000,'attempt.accepted','w1','w1.1',2,'{"owner":"worker-1.1","isolated":null}');
INSERT INTO "event" VALUES(13,1800000000000000,'attempt.relaunched','w1','w1.1',2,'{"from":"recovering","to":"launching","by":"relaunched","why":"nothing ran"}');
INSERT INTO "event" VALUES(14,1800000000000000,'attempt.pinned','w1','w1.1',2,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(15,1800000000000000,'input.accepted','w1',NULL,NULL,'{"input":2,"bytes":4,"by":"t","key":null}');
INSERT INTO "event" VALUES(16,1800000000000000,'intent.recorded','w1','w1.1',NULL,'{"intent":"i1","kind":"inject","input":2,"fate":"queued","by":"t","why":null}');
INSERT INTO "event" VALUES(17,1800000000000000,'intent.dispatched','w1','w1.1',NULL,'{"intent":"i1","why":null}');
INSERT INTO "event" VALUES(18,1800000000000000,'work.submitted','w2',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(19,1800000000000000,'work.running','w2',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(20,1800000000000000,'attempt.claimed','w2','w2.1',1,'{"worker":"worker-1.1","inputs":[3],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(21,1800000000000000,'attempt.accepted','w2','w2.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(22,1800000000000000,'attempt.pinned','w2','w2.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(23,1800000000000000,'lease.revoked','w2','w2.1',1,'{"owner":"worker-1.1","reason":"ended"}');
INSERT INTO "event" VALUES(24,1800000000000000,'attempt.failed','w2','w2.1',1,'{"from":"running","to":"failed","exit_status":7,"failure":"known","proof":"S1","why":"ended"}');
INSERT INTO "event" VALUES(25,1800000000000000,'work.backoff','w2',NULL,NULL,'{"from":"running","to":"backoff","by":"retry_armed","reason":null}');
INSERT INTO "event" VALUES(26,1800000000000000,'timer.armed','w2',NULL,NULL,'{"timer":1,"kind":"admission","attempt":"w2.1","after_us":1000000,"why":""}');
INSERT INTO "event" VALUES(27,1800000000000000,'work.submitted','w3',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(28,1800000000000000,'work.running','w3',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(29,1800000000000000,'attempt.claimed','w3','w3.1',1,'{"worker":"worker-1.1","inputs":[4],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(30,1800000000000000,'attempt.accepted','w3','w3.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(31,1800000000000000,'attempt.pinned','w3','w3.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(32,1800000000000000,'lease.revoked','w3','w3.1',1,'{"owner":"worker-1.1","reason":"ended"}');
INSERT INTO "event" VALUES(33,1800000000000000,'attempt.failed','w3','w3.1',1,'{"from":"running","to":"failed","exit_status":7,"failure":"known","proof":null,"why":"its tree may live"}');
INSERT INTO "event" VALUES(34,1800000000000000,'stop.ordered','w3','w3.1',1,'{"order":1,"why":"its tree may live","by":"worker-1.1"}');
INSERT INTO "event" VALUES(35,1800000000000000,'work.backoff','w3',NULL,NULL,'{"from":"running","to":"backoff","by":"retry_armed","reason":null}');
INSERT INTO "event" VALUES(36,1800000000000000,'timer.armed','w3',NULL,NULL,'{"timer":2,"kind":"admission","attempt":"w3.1","after_us":1000000,"why":""}');
INSERT INTO "event" VALUES(37,1800000000000000,'work.submitted','w4',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(38,1800000000000000,'work.submitted','w5',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(39,1800000000000000,'cancel.requested','w5',NULL,NULL,'{"cancellation":1,"scope":"work","by":"t","reason":"t","result":"nothing to stop"}');
INSERT INTO "event" VALUES(40,1800000000000000,'work.cancelled','w5',NULL,NULL,'{"from":"ready","to":"cancelled","by":"cancelled","reason":null}');
INSERT INTO "event" VALUES(41,1800000000000000,'work.submitted','w6',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(42,1800000000000000,'work.running','w6',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(43,1800000000000000,'attempt.claimed','w6','w6.1',1,'{"worker":"worker-1.1","inputs":[7],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(44,1800000000000000,'attempt.accepted','w6','w6.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(45,1800000000000000,'attempt.pinned','w6','w6.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(46,1800000000000000,'lease.revoked','w6','w6.1',1,'{"owner":"worker-1.1","reason":"ended"}');
INSERT INTO "event" VALUES(47,1800000000000000,'attempt.failed','w6','w6.1',1,'{"from":"running","to":"failed","exit_status":7,"failure":"known","proof":null,"why":"its tree may live"}');
INSERT INTO "event" VALUES(48,1800000000000000,'stop.ordered','w6','w6.1',1,'{"order":2,"why":"its tree may live","by":"worker-1.1"}');
INSERT INTO "event" VALUES(49,1800000000000000,'work.backoff','w6',NULL,NULL,'{"from":"running","to":"backoff","by":"retry_armed","reason":null}');
INSERT INTO "event" VALUES(50,1800000000000000,'timer.armed','w6',NULL,NULL,'{"timer":3,"kind":"admission","attempt":"w6.1","after_us":1000000,"why":""}');
INSERT INTO "event" VALUES(51,1800000000000000,'attempt.stop_confirmed','w6','w6.1',1,'{"proof":"S1","by":"test","reason":null}');
INSERT INTO "event" VALUES(52,1800000000000000,'work.submitted','w7',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(53,1800000000000000,'work.running','w7',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(54,1800000000000000,'attempt.claimed','w7','w7.1',1,'{"worker":"worker-1.1","inputs":[8],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(55,1800000000000000,'attempt.accepted','w7','w7.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(56,1800000000000000,'attempt.pinned','w7','w7.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(57,1800000000000000,'cancel.requested','w7','w7.1',1,'{"cancellation":2,"scope":"attempt","by":"t","reason":"t","result":null}');
INSERT INTO "event" VALUES(58,1800000000000000,'lease.revoked','w7','w7.1',1,'{"owner":"worker-1.1","reason":"cancelled"}');
INSERT INTO "event" VALUES(59,1800000000000000,'attempt.cancelled','w7','w7.1',1,'{"from":"running","to":"cancelled","exit_status":null,"failure":"cancelled","proof":null,"why":"cancelled: t","by":"t"}');
INSERT INTO "event" VALUES(60,1800000000000000,'stop.ordered','w7','w7.1',1,'{"order":3,"why":"cancelled: t","by":"t"}');
INSERT INTO "event" VALUES(61,1800000000000000,'work.ready','w7',NULL,NULL,'{"from":"running","to":"ready","by":"returned","reason":null}');
INSERT INTO "event" VALUES(62,1800000000000000,'cancel.acknowledged','w7','w7.1',1,'{"cancellation":2,"by":"worker-1.1"}');
INSERT INTO "event" VALUES(63,1800000000000000,'work.submitted','w8',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(64,1800000000000000,'work.running','w8',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(65,1800000000000000,'attempt.claimed','w8','w8.1',1,'{"worker":"worker-1.1","inputs":[9],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(66,1800000000000000,'attempt.accepted','w8','w8.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(67,1800000000000000,'attempt.pinned','w8','w8.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(68,1800000000000000,'lease.revoked','w8','w8.1',1,'{"owner":"worker-1.1","reason":"ended"}');
INSERT INTO "event" VALUES(69,1800000000000000,'attempt.failed','w8','w8.1',1,'{"from":"running","to":"failed","exit_status":7,"failure":"known","proof":"S1","why":"ended"}');
INSERT INTO "event" VALUES(70,1800000000000000,'work.failed','w8',NULL,NULL,'{"from":"running","to":"failed","by":"failed","reason":"exhausted"}');
INSERT INTO "event" VALUES(71,1800000000000000,'work.submitted','w9',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":"k"}');
INSERT INTO "event" VALUES(72,1800000000000000,'input.accepted','w9',NULL,NULL,'{"input":11,"bytes":4,"by":"t","key":null}');
INSERT INTO "event" VALUES(73,1800000000000000,'intent.recorded','w9',NULL,NULL,'{"intent":"i2","kind":"inject","input":11,"fate":"returned","by":"t","why":"nothing ran"}');
INSERT INTO "event" VALUES(74,1800000000000000,'work.submitted','w10',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(75,1800000000000000,'work.running','w10',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(76,1800000000000000,'attempt.claimed','w10','w10.1',1,'{"worker":"worker-1.1","inputs":[12],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(77,1800000000000000,'attempt.accepted','w10','w10.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(78,1800000000000000,'attempt.pinned','w10','w10.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(79,1800000000000000,'declaration.recorded','w10','w10.1',1,'{"kind":"wait","key":"wait-1"}');
INSERT INTO "event" VALUES(80,1800000000000000,'lease.revoked','w10','w10.1',1,'{"owner":"worker-1.1","reason":"parked"}');
INSERT INTO "event" VALUES(81,1800000000000000,'attempt.parked','w10','w10.1',1,'{"from":"running","to":"parked","proof":"S1"}');
INSERT INTO "event" VALUES(82,1800000000000000,'work.waiting','w10',NULL,NULL,'{"from":"running","to":"waiting","by":"attempt_parked","reason":null}');
INSERT INTO "event" VALUES(83,1800000000000000,'outcome.applied','w10','w10.1',1,'{"kind":"waiting","summary":"","artifacts":[],"usage":{}}');
INSERT INTO "event" VALUES(84,1800000000000000,'wait.registered','w10','w10.1',1,'{"type":"tick","correlate":null,"resume":true}');
INSERT INTO "event" VALUES(85,1800000000000000,'timer.armed','w10',NULL,NULL,'{"timer":4,"kind":"wait","attempt":"w10.1","after_us":60000000,"why":"it waits for tick no longer than that"}');
INSERT INTO "event" VALUES(86,1800000000000000,'event.published',NULL,NULL,NULL,'{"type":"tick","correlate":null,"data":"1","by":"test"}');
INSERT INTO "event" VALUES(87,1800000000000000,'timer.cancelled','w10',NULL,NULL,'{"timer":4,"why":"what it waited for has come"}');
INSERT INTO "event" VALUES(88,1800000000000000,'wait.satisfied','w10','w10.1',1,'{"by_seq":86}');
INSERT INTO "event" VALUES(89,1800000000000000,'attempt.woken','w10','w10.1',2,'{"from":"parked","to":"resuming","worker":"worker-1.1","wake_event":86,"generation":1}');
INSERT INTO "event" VALUES(90,1800000000000000,'work.running','w10',NULL,NULL,'{"from":"waiting","to":"running","by":"attempt_woken","reason":null,"generation":1}');
INSERT INTO "event" VALUES(91,1800000000000000,'attempt.accepted','w10','w10.1',2,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(92,1800000000000000,'attempt.pinned','w10','w10.1',2,'{"from":"resuming","to":"running","pid":500}');
INSERT INTO "event" VALUES(93,1800000000000000,'work.submitted','w11',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(94,1800000000000000,'work.running','w11',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(95,1800000000000000,'attempt.claimed','w11','w11.1',1,'{"worker":"worker-1.1","inputs":[13],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(96,1800000000000000,'attempt.accepted','w11','w11.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(97,1800000000000000,'attempt.pinned','w11','w11.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(98,1800000000000000,'declaration.recorded','w11','w11.1',1,'{"kind":"wait","key":"wait-1"}');
INSERT INTO "event" VALUES(99,1800000000000000,'lease.revoked','w11','w11.1',1,'{"owner":"worker-1.1","reason":"parked"}');
INSERT INTO "event" VALUES(100,1800000000000000,'attempt.parked','w11','w11.1',1,'{"from":"running","to":"parked","proof":"S1"}');
INSERT INTO "event" VALUES(101,1800000000000000,'work.waiting','w11',NULL,NULL,'{"from":"running","to":"waiting","by":"attempt_parked","reason":null}');
INSERT INTO "event" VALUES(102,1800000000000000,'outcome.applied','w11','w11.1',1,'{"kind":"waiting","summary":"","artifacts":[],"usage":{}}');
INSERT INTO "event" VALUES(103,1800000000000000,'wait.registered','w11','w11.1',1,'{"type":"tick","correlate":null,"resume":true}');
INSERT INTO "event" VALUES(104,1800000000000000,'timer.armed','w11',NULL,NULL,'{"timer":5,"kind":"wait","attempt":"w11.1","after_us":60000000,"why":"it waits for tick no longer than that"}');
INSERT INTO "event" VALUES(105,1800000000000000,'work.submitted','w12',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(106,1800000000000000,'work.running','w12',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(107,1800000000000000,'attempt.claimed','w12','w12.1',1,'{"worker":"worker-1.1","inputs":[14],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(108,1800000000000000,'attempt.accepted','w12','w12.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(109,1800000000000000,'attempt.pinned','w12','w12.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(110,1800000000000000,'declaration.recorded','w12','w12.1',1,'{"kind":"turn","key":"turn-1"}');
INSERT INTO "event" VALUES(111,1800000001000000,'retry.requested','w6',NULL,NULL,'{"timer":3,"attempt":"w6.1","trigger_input":null,"by":"timer","generation":1}');
INSERT INTO "event" VALUES(112,1800000001000000,'work.ready','w6',NULL,NULL,'{"from":"backoff","to":"ready","by":"retry_due","reason":null,"generation":1}');
INSERT INTO "event" VALUES(113,1800000001000000,'config.activated',NULL,NULL,NULL,'{"number":2,"digest":"92b8f6d8d76cba2980ed9053a5b643db26d2bf0b4eae63d60222dc02751c2aad"}');
INSERT INTO "event" VALUES(114,1800000001000000,'work.submitted','w13',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(115,1800000001000000,'work.running','w13',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(116,1800000001000000,'attempt.claimed','w13','w13.1',1,'{"worker":"worker-1.1","inputs":[15],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(117,1800000001000000,'attempt.accepted','w13','w13.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(118,1800000001000000,'attempt.pinned','w13','w13.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(119,1800000002000000,'lease.revoked','w13','w13.1',1,'{"owner":"worker-1.1","reason":"ended"}');
INSERT INTO "event" VALUES(120,1800000002000000,'attempt.succeeded','w13','w13.1',1,'{"from":"running","to":"succeeded","exit_status":0,"failure":null,"proof":"S1","why":"ended"}');
INSERT INTO "event" VALUES(121,1800000002000000,'work.completed','w13',NULL,NULL,'{"from":"running","to":"completed","by":"completed","reason":null}');
INSERT INTO "event" VALUES(122,1800000002000000,'work.submitted','w14',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(123,1800000002000000,'gate.held','w14',NULL,NULL,'{"gate":"approval","why":"ask","generation":1}');
INSERT INTO "event" VALUES(124,1800000002000000,'work.held','w14',NULL,NULL,'{"from":"ready","to":"held","by":"held","reason":"gate_held","generation":1}');
INSERT INTO "event" VALUES(125,1800000002000000,'gate.released','w14',NULL,NULL,'{"gate":"approval","by":"t","reason":"t","key":"g"}');
INSERT INTO "event" VALUES(126,1800000002000000,'work.ready','w14',NULL,NULL,'{"from":"held","to":"ready","by":"lifted","reason":null}');
INSERT INTO "event" VALUES(127,1800000002000000,'work.submitted','w15',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(128,1800000002000000,'gate.held','w15',NULL,NULL,'{"gate":"approval","why":"ask","generation":1}');
INSERT INTO "event" VALUES(129,1800000002000000,'work.held','w15',NULL,NULL,'{"from":"ready","to":"held","by":"held","reason":"gate_held","generation":1}');
INSERT INTO "event" VALUES(130,1800000002000000,'work.submitted','w16',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(131,1800000002000000,'work.running','w16',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(132,1800000002000000,'attempt.claimed','w16','w16.1',1,'{"worker":"worker-1.1","inputs":[18],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(133,1800000002000000,'attempt.accepted','w16','w16.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(134,1800000002000000,'attempt.pinned','w16','w16.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(135,1800000002000000,'declaration.recorded','w16','w16.1',1,'{"kind":"turn","key":"turn-1"}');
INSERT INTO "event" VALUES(136,1800000002000000,'work.submitted','w17',NULL,NULL,'{"to":"ready","scope":"","binding":null,"pool":"jobs","kind":"run_once","key":null}');
INSERT INTO "event" VALUES(137,1800000002000000,'work.running','w17',NULL,NULL,'{"from":"ready","to":"running","by":"claimed","reason":null,"generation":1}');
INSERT INTO "event" VALUES(138,1800000002000000,'attempt.claimed','w17','w17.1',1,'{"worker":"worker-1.1","inputs":[19],"to":"launching","generation":1}');
INSERT INTO "event" VALUES(139,1800000002000000,'attempt.accepted','w17','w17.1',1,'{"owner":"worker-1.1","isolated":true}');
INSERT INTO "event" VALUES(140,1800000002000000,'attempt.pinned','w17','w17.1',1,'{"from":"launching","to":"running","pid":500}');
INSERT INTO "event" VALUES(141,1800000002000000,'declaration.recorded','w17','w17.1',1,'{"kind":"wait","key":"wait-1"}');
INSERT INTO "event" VALUES(142,1800000002000000,'outcome.applied','w17','w17.1',1,'{"kind":"waiting","summary":"","artifacts":[],"usage":{}}');
INSERT INTO "event" VALUES(143,1800000002000000,'lease.revoked','w17','w17.1',1,'{"owner":"worker-1.1","reason":"ended"}');
INSERT INTO "event" VALUES(144,1800000002000000,'attempt.handed_off','w17','w17.1',1,'{"from":"running","to":"handed_off","exit_status":0,"failure":null,"proof":"S1","why":"handed off"}');
INSERT INTO "event" VALUES(145,1800000002000000,'work.waiting','w17',NULL,NULL,'{"from":"running","to":"waiting","by":"waits","reason":null}');
INSERT INTO "event" VALUES(146,1800000002000000,'wait.registered','w17','w17.1',1,'{"type":"tick","correlate":null,"resume":false}');
INSERT INTO "event" VALUES(147,1800000002000000,'timer.armed','w17',NULL,NULL,'{"timer":6,"kind":"wait","attempt":"w17.1","after_us":60000000,"why":"it waits for tick no longer than that"}');
INSERT INTO "event" VALUES(148,1800000002000000,'work.submitted','w18',NULL,NULL,'{"to":"idle","scope":"","binding":null,"pool":"jobs","kind":"standing","key":null}');
INSERT INTO "event" VALUES(149,1800000002000000,'input.accepted','w18',NULL,NULL,'{"input":20,"bytes":4,"by":"test","key":"more-1"}');
INSERT INTO "event" VALUES(150,1800000002000000,'work.ready','w18',NULL,NULL,'{"from":"idle","to":"ready","by":"input","reason":null}');
INSERT INTO "event" VALUES(151,1800000002000000,'event.published',NULL,NULL,NULL,'{"type":"order.placed","correlate":"o1","data":"1","by":"test"}');
CREATE TABLE gate_settlement (
  key TEXT PRIMARY KEY, work_id TEXT NOT NULL REFERENCES work (id), holder TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('admitted', 'refused')), settled_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "gate_settlement" VALUES('g','w14','approval','admitted',1800000002000000);
CREATE TABLE input (
  number INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), body BLOB NOT NULL,
  accepted_at_us INTEGER NOT NULL, consumed_by TEXT REFERENCES attempt (id)
) STRICT;
INSERT INTO "input" VALUES(1,'w1',X'',1800000000000000,'w1.1');
INSERT INTO "input" VALUES(2,'w1',X'6D6F7265',1800000000000000,NULL);
INSERT INTO "input" VALUES(3,'w2',X'',1800000000000000,NULL);
INSERT INTO "input" VALUES(4,'w3',X'',1800000000000000,NULL);
INSERT INTO "input" VALUES(5,'w4',X'',1800000000000000,NULL);
INSERT INTO "input" VALUES(6,'w5',X'',1800000000000000,NULL);
INSERT INTO "input" VALUES(7,'w6',X'',1800000000000000,NULL);
INSERT INTO "input" VALUES(8,'w7',X'',1800000000000000,NULL);
INSERT INTO "input" VALUES(9,'w8',X'',1800000000000000,'w8.1');
INSERT INTO "input" VALUES(10,'w9',X'',1800000000000000,NULL);
INSERT INTO "input" VALUES(11,'w9',X'6D6F7265',1800000000000000,NULL);
INSERT INTO "input" VALUES(12,'w10',X'',1800000000000000,'w10.1');
INSERT INTO "input" VALUES(13,'w11',X'',1800000000000000,'w11.1');
INSERT INTO "input" VALUES(14,'w12',X'',1800000000000000,'w12.1');
INSERT INTO "input" VALUES(15,'w13',X'',1800000001000000,'w13.1');
INSERT INTO "input" VALUES(16,'w14',X'',1800000002000000,NULL);
INSERT INTO "input" VALUES(17,'w15',X'',1800000002000000,NULL);
INSERT INTO "input" VALUES(18,'w16',X'',1800000002000000,'w16.1');
INSERT INTO "input" VALUES(19,'w17',X'',1800000002000000,'w17.1');
INSERT INTO "input" VALUES(20,'w18',X'6D6F7265',1800000002000000,NULL);
CREATE TABLE intent (
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL CHECK (kind IN ('inject', 'interrupt')),
  work_id TEXT NOT NULL REFERENCES work (id), attempt_id TEXT REFERENCES attempt (id), input INTEGER,
  fate TEXT NOT NULL CHECK (fate IN ('queued', 'dispatched', 'accepted', 'consumed', 'not_accepting', 'returned', 'dropped')),
  token INTEGER, token_epoch INTEGER, tries INTEGER NOT NULL, requested_by TEXT NOT NULL, accepted_at_us INTEGER NOT NULL,
  settled_at_us INTEGER, why TEXT,
  CHECK ((kind = 'inject') = (input IS NOT NULL)), CHECK ((token IS NULL) = (token_epoch IS NULL)),
  CHECK (attempt_id IS NOT NULL OR fate IN ('returned', 'consumed')), CHECK (fate <> 'dispatched' OR token IS NOT NULL),
  CHECK ((settled_at_us IS NULL) = (fate IN ('queued', 'dispatched', 'accepted') AND kind = 'inject'))
) STRICT;
INSERT INTO "intent" VALUES(1,'inject','w1','w1.1',2,'dispatched',1,2,1,'t',1800000000000000,NULL,NULL);
INSERT INTO "intent" VALUES(2,'inject','w9',NULL,11,'returned',NULL,NULL,0,'t',1800000000000000,1800000000000000,'nothing ran');
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
INSERT INTO "lease" VALUES('w1.1',2,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,NULL,NULL);
INSERT INTO "lease" VALUES('w10.1',2,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,NULL,NULL);
INSERT INTO "lease" VALUES('w11.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'parked');
INSERT INTO "lease" VALUES('w12.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,NULL,NULL);
INSERT INTO "lease" VALUES('w13.1',1,'worker-1.1','boot-1',1061000000,1001000000,1800000001000000,1800000002000000,'ended');
INSERT INTO "lease" VALUES('w16.1',1,'worker-1.1','boot-1',1062000000,1002000000,1800000002000000,NULL,NULL);
INSERT INTO "lease" VALUES('w17.1',1,'worker-1.1','boot-1',1062000000,1002000000,1800000002000000,1800000002000000,'ended');
INSERT INTO "lease" VALUES('w2.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'ended');
INSERT INTO "lease" VALUES('w3.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'ended');
INSERT INTO "lease" VALUES('w6.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'ended');
INSERT INTO "lease" VALUES('w7.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'cancelled');
INSERT INTO "lease" VALUES('w8.1',1,'worker-1.1','boot-1',1060000000,1000000000,1800000000000000,1800000000000000,'ended');
CREATE TABLE ledger (
  unit TEXT NOT NULL, per TEXT NOT NULL, period TEXT NOT NULL, scope TEXT NOT NULL, subject TEXT NOT NULL, window_at_us INTEGER NOT NULL, used TEXT NOT NULL,
  PRIMARY KEY (unit, per, period, scope, window_at_us, subject)
) STRICT, WITHOUT ROWID;
INSERT INTO "ledger" VALUES('minutes','scope','life','','',0,'0.016666666667');
INSERT INTO "ledger" VALUES('turns','scope','life','','',0,'3');
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
index declaration_unapplied: CREATE INDEX declaration_unapplied ON declaration (attempt_id, seq) WHERE applied_epoch IS NULL
;
index event_attempt: CREATE INDEX event_attempt ON event (attempt_id) WHERE attempt_id IS NOT NULL
;
index gate_settlement_work: CREATE INDEX gate_settlement_work ON gate_settlement (work_id)
;
index input_consumer: CREATE INDEX input_consumer ON input (consumed_by, work_id)
;
index input_work: CREATE INDEX input_work ON input (work_id)
;
index intent_attempt: CREATE INDEX intent_attempt ON intent (attempt_id)
;
index intent_due: CREATE INDEX intent_due ON intent (number) WHERE fate IN (''queued'', ''dispatched'')
;
index intent_input: CREATE INDEX intent_input ON intent (input)
;
index intent_work: CREATE INDEX intent_work ON intent (work_id, number)
;
index lease_expiry: CREATE INDEX lease_expiry ON lease (expires_mono_us) WHERE revoked_at_us IS NULL
;
index lease_owner: CREATE INDEX lease_owner ON lease (owner) WHERE revoked_at_us IS NULL
;
index lease_unaccepted: CREATE INDEX lease_unaccepted ON lease (claimed_mono_us) WHERE accepted_at_us IS NULL AND revoked_at_us IS NULL
;
index published_correlate: CREATE INDEX published_correlate ON published (type, correlate, seq) WHERE correlate IS NOT NULL
;
index published_type: CREATE INDEX published_type ON published (type, seq)
;
index routine_quarantined: CREATE INDEX routine_quarantined ON routine (binding) WHERE quarantined_at_us IS NOT NULL
;
index stop_order_attempt: CREATE INDEX stop_order_attempt ON stop_order (attempt_id)
;
index stop_order_open: CREATE UNIQUE INDEX stop_order_open ON stop_order (attempt_id) WHERE closed_at_us IS NULL
;
index stop_order_queue: CREATE INDEX stop_order_queue ON stop_order (id) WHERE closed_at_us IS NULL
;
index submission_work: CREATE INDEX submission_work ON submission (work_id)
;
index timer_armed: CREATE UNIQUE INDEX timer_armed ON timer (work_id) WHERE state = ''armed''
;
index timer_due: CREATE INDEX timer_due ON timer (boot_id, since_mono_us + after_us) WHERE state = ''armed''
;
index timer_due_at: CREATE INDEX timer_due_at ON timer (due_at_us) WHERE state = ''armed'' AND due_at_us IS NOT NULL
;
index timer_work: CREATE INDEX timer_work ON timer (work_id, id)
;
index wait_event: CREATE INDEX wait_event ON wait (event_type, correlate) WHERE state = ''registered'' AND event_type IS NOT NULL
;
index wait_of_work: CREATE INDEX wait_of_work ON wait (work_id)
;
index wait_woken: CREATE INDEX wait_woken ON wait (wake_seq) WHERE state = ''satisfied''
;
index wait_work: CREATE UNIQUE INDEX wait_work ON wait (work_id) WHERE state IN (''registered'', ''satisfied'')
;
index work_held: CREATE INDEX work_held ON work (number) WHERE state = ''held''
;
index work_open: CREATE INDEX work_open ON work (number) WHERE ended_at_us IS NULL
;
index work_quarantined: CREATE INDEX work_quarantined ON work (number) WHERE state = ''ready'' AND reason = ''quarantined''
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
  segments_dropped_us INTEGER NOT NULL DEFAULT 0, usage TEXT NOT NULL DEFAULT ''{}'',
  launch_epoch INTEGER NOT NULL DEFAULT 1, token_sha256 TEXT, stream_offset INTEGER CHECK (stream_offset >= 0),
  UNIQUE (work_id, number), UNIQUE (id, epoch),
  CHECK ((ended_at_us IS NOT NULL) = (state IN (''succeeded'', ''failed'', ''timed_out'', ''interrupted'', ''handed_off'', ''cancelled''))),
  CHECK (exclusion = ''held'' OR (ended_at_us IS NOT NULL AND exclusion_proof IS NOT NULL)),
  CHECK ((recovered_from IS NOT NULL) = (state = ''recovering'')),
  CHECK (CASE WHEN pin_epoch IS NULL THEN coalesce(pin_directory, pin_pid, pin_start_ticks, pin_boot_id, pin_pid_ns,
      pin_directory_ino, pin_lock_ino, pin_pidfs_ino) IS NULL
    ELSE pin_directory IS NOT NULL AND pin_pid IS NOT NULL AND pin_start_ticks IS NOT NULL AND pin_boot_id IS NOT NULL
      AND pin_pid_ns IS NOT NULL AND pin_directory_ino IS NOT NULL AND pin_lock_ino IS NOT NULL END),
  CHECK (pin_epoch IS NULL OR pin_epoch BETWEEN launch_epoch AND epoch), CHECK (launch_epoch <= epoch)
) STRICT
;
table budget: CREATE TABLE budget (
  unit TEXT NOT NULL, per TEXT NOT NULL, period TEXT NOT NULL, scope TEXT NOT NULL, since_staged INTEGER NOT NULL, since_at_us INTEGER NOT NULL, PRIMARY KEY (unit, per, period, scope)
) STRICT, WITHOUT ROWID
;
table budget_notice: CREATE TABLE budget_notice (
  unit TEXT NOT NULL, per TEXT NOT NULL, period TEXT NOT NULL, scope TEXT NOT NULL, subject TEXT NOT NULL, window_at_us INTEGER NOT NULL, kind TEXT NOT NULL, limit_amount TEXT NOT NULL,
  told_in TEXT NOT NULL, told_at_us INTEGER NOT NULL,
  PRIMARY KEY (unit, per, period, scope, subject, window_at_us, kind, limit_amount, told_in)
) STRICT, WITHOUT ROWID
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
table clock: CREATE TABLE clock (
  id INTEGER PRIMARY KEY CHECK (id = 1), boot_id TEXT NOT NULL, offset_us INTEGER NOT NULL, jumped_at_us INTEGER,
  jumped_by_us INTEGER, CHECK ((jumped_at_us IS NULL) = (jumped_by_us IS NULL))
) STRICT
;
table config: CREATE TABLE config (
  number INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL, source_path TEXT NOT NULL,
  activated_at_us INTEGER NOT NULL
) STRICT
;
table correlation: CREATE TABLE correlation (
  work_id TEXT NOT NULL REFERENCES work (id), key TEXT NOT NULL, PRIMARY KEY (work_id, key)
) STRICT, WITHOUT ROWID
;
table counter: CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID
;
table declaration: CREATE TABLE declaration (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), key TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN (''turn'', ''wait'', ''outcome'', ''usage'', ''consumed'')), body TEXT NOT NULL,
  seq INTEGER NOT NULL, recorded_at_us INTEGER NOT NULL, epoch INTEGER NOT NULL, applied_epoch INTEGER,
  PRIMARY KEY (attempt_id, key), CHECK (applied_epoch IS NULL OR applied_epoch >= epoch)
) STRICT, WITHOUT ROWID
;
table event: CREATE TABLE event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, at_us INTEGER NOT NULL, kind TEXT NOT NULL, work_id TEXT, attempt_id TEXT,
  epoch INTEGER, data TEXT NOT NULL
) STRICT
;
table gate_settlement: CREATE TABLE gate_settlement (
  key TEXT PRIMARY KEY, work_id TEXT NOT NULL REFERENCES work (id), holder TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN (''admitted'', ''refused'')), settled_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID
;
table input: CREATE TABLE input (
  number INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id), body BLOB NOT NULL,
  accepted_at_us INTEGER NOT NULL, consumed_by TEXT REFERENCES attempt (id)
) STRICT
;
table intent: CREATE TABLE intent (
  number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL CHECK (kind IN (''inject'', ''interrupt'')),
  work_id TEXT NOT NULL REFERENCES work (id), attempt_id TEXT REFERENCES attempt (id), input INTEGER,
  fate TEXT NOT NULL CHECK (fate IN (''queued'', ''dispatched'', ''accepted'', ''consumed'', ''not_accepting'', ''returned'', ''dropped'')),
  token INTEGER, token_epoch INTEGER, tries INTEGER NOT NULL, requested_by TEXT NOT NULL, accepted_at_us INTEGER NOT NULL,
  settled_at_us INTEGER, why TEXT,
  CHECK ((kind = ''inject'') = (input IS NOT NULL)), CHECK ((token IS NULL) = (token_epoch IS NULL)),
  CHECK (attempt_id IS NOT NULL OR fate IN (''returned'', ''consumed'')), CHECK (fate <> ''dispatched'' OR token IS NOT NULL),
  CHECK ((settled_at_us IS NULL) = (fate IN (''queued'', ''dispatched'', ''accepted'') AND kind = ''inject''))
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
table ledger: CREATE TABLE ledger (
  unit TEXT NOT NULL, per TEXT NOT NULL, period TEXT NOT NULL, scope TEXT NOT NULL, subject TEXT NOT NULL, window_at_us INTEGER NOT NULL, used TEXT NOT NULL,
  PRIMARY KEY (unit, per, period, scope, window_at_us, subject)
) STRICT, WITHOUT ROWID
;
table meta: CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID
;
table pass: CREATE TABLE pass (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, generation INTEGER NOT NULL, trigger TEXT NOT NULL, due_at_us INTEGER NOT NULL,
  started_at_us INTEGER NOT NULL, duration_us INTEGER NOT NULL, planned INTEGER, claimed INTEGER, dispatched INTEGER,
  recovered INTEGER, revoked INTEGER, waiting_jobs INTEGER, waiting_agents INTEGER,
  cut_short INTEGER NOT NULL CHECK (cut_short IN (0, 1)), clock_jump_us INTEGER, error TEXT
) STRICT
;
table published: CREATE TABLE published (
  seq INTEGER PRIMARY KEY, type TEXT NOT NULL, correlate TEXT, work_id TEXT
) STRICT
;
table routine: CREATE TABLE routine (
  binding TEXT PRIMARY KEY, failures INTEGER NOT NULL CHECK (failures >= 0), work_id TEXT, failed_at_us INTEGER,
  quarantined_at_us INTEGER, quarantined_by TEXT, reason TEXT,
  CHECK ((quarantined_at_us IS NULL) = (quarantined_by IS NULL)), CHECK ((quarantined_at_us IS NULL) = (reason IS NULL))
) STRICT, WITHOUT ROWID
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
table stream: CREATE TABLE stream (
  attempt_id TEXT PRIMARY KEY REFERENCES attempt (id), pin_epoch INTEGER NOT NULL, offset_bytes INTEGER NOT NULL,
  lines INTEGER NOT NULL, skipping INTEGER NOT NULL CHECK (skipping IN (0, 1)), refused INTEGER NOT NULL,
  refusals TEXT NOT NULL, unknown TEXT NOT NULL, read_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID
;
table submission: CREATE TABLE submission (
  key TEXT PRIMARY KEY, digest TEXT NOT NULL, work_id TEXT NOT NULL REFERENCES work (id), input INTEGER,
  accepted_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID
;
table timer: CREATE TABLE timer (
  id INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id),
  kind TEXT NOT NULL CHECK (kind IN (''retry'', ''hint'', ''admission'', ''wait'')),
  state TEXT NOT NULL CHECK (state IN (''armed'', ''fired'', ''cancelled'')),
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, trigger_input INTEGER,
  since_mono_us INTEGER NOT NULL, boot_id TEXT NOT NULL, since_at_us INTEGER NOT NULL,
  after_us INTEGER NOT NULL CHECK (after_us >= 0), due_at_us INTEGER, armed_seq INTEGER NOT NULL, why TEXT NOT NULL,
  fired_seq INTEGER, closed_at_us INTEGER,
  UNIQUE (attempt_id, epoch, kind),
  CHECK ((fired_seq IS NOT NULL) = (state = ''fired'')),
  CHECK (fired_seq IS NULL OR fired_seq > armed_seq),
  CHECK ((closed_at_us IS NULL) = (state = ''armed''))
) STRICT
;
table unreadable: CREATE TABLE unreadable (
  table_name TEXT NOT NULL, row_key TEXT NOT NULL, error TEXT NOT NULL, seen_at_us INTEGER NOT NULL,
  PRIMARY KEY (table_name, row_key)
) STRICT, WITHOUT ROWID
;
table usage_pending: CREATE TABLE usage_pending (
  id INTEGER PRIMARY KEY AUTOINCREMENT, attempt_id TEXT NOT NULL, work_id TEXT NOT NULL, scope TEXT NOT NULL,
  usage TEXT NOT NULL, staged_at_us INTEGER NOT NULL
) STRICT
;
table wait: CREATE TABLE wait (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, work_id TEXT NOT NULL REFERENCES work (id),
  resume INTEGER NOT NULL CHECK (resume IN (0, 1)), event_type TEXT, correlate TEXT, since_seq INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN (''registered'', ''satisfied'', ''acknowledged'', ''cancelled'')),
  registered_at_us INTEGER NOT NULL, registered_seq INTEGER NOT NULL, wake_seq INTEGER, woken_at_us INTEGER, closed_at_us INTEGER,
  PRIMARY KEY (attempt_id, epoch),
  CHECK ((wake_seq IS NULL) = (woken_at_us IS NULL)),
  CHECK (state NOT IN (''satisfied'', ''acknowledged'') OR (wake_seq IS NOT NULL AND wake_seq > since_seq)),
  CHECK (state <> ''registered'' OR wake_seq IS NULL),
  CHECK ((closed_at_us IS NOT NULL) = (state IN (''acknowledged'', ''cancelled'')))
) STRICT, WITHOUT ROWID
;
table work: CREATE TABLE work (
  id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, scope TEXT NOT NULL, binding TEXT, command TEXT, env TEXT NOT NULL,
  cwd TEXT, pool TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN (''idle'', ''ready'', ''held'', ''backoff'', ''running'', ''waiting'', ''completed'', ''failed'', ''cancelled'')), reason TEXT, reason_limit TEXT,
  priority INTEGER NOT NULL, revision INTEGER NOT NULL, ready_seq INTEGER NOT NULL, attempts_used INTEGER NOT NULL,
  admission_failures INTEGER NOT NULL, backoff_since_mono_us INTEGER, backoff_boot_id TEXT, backoff_since_at_us INTEGER,
  backoff_us INTEGER, submitted_by TEXT NOT NULL, submitted_at_us INTEGER NOT NULL, ended_at_us INTEGER, grants TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN (''run_once'', ''standing'')), failures_used INTEGER NOT NULL,
  hold_by TEXT, hold_reason TEXT, hold_at_us INTEGER,
  start_hold_by TEXT, start_hold_reason TEXT, start_hold_at_us INTEGER, permits TEXT NOT NULL DEFAULT '''',
  CHECK ((start_hold_by IS NULL) = (start_hold_reason IS NULL) AND (start_hold_by IS NULL) = (start_hold_at_us IS NULL)),
  CHECK (start_hold_by IS NULL OR (state = ''held'' AND reason IN (''over_budget'', ''gate_held''))),
  CHECK ((hold_by IS NULL) = (hold_reason IS NULL) AND (hold_by IS NULL) = (hold_at_us IS NULL)),
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
trigger attempt_ended: CREATE TRIGGER attempt_ended BEFORE UPDATE ON attempt WHEN OLD.ended_at_us IS NOT NULL AND (NEW.state <> OLD.state OR NEW.ended_at_us IS NOT OLD.ended_at_us OR NEW.epoch <> OLD.epoch OR NEW.exit_status IS NOT OLD.exit_status OR NEW.usage <> OLD.usage) BEGIN SELECT RAISE(ABORT, ''fence: an ended attempt was changed''); END
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
trigger budget_since: CREATE TRIGGER budget_since BEFORE UPDATE ON budget WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: a budget was configured for the first time once''); END
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
trigger declaration_kept: CREATE TRIGGER declaration_kept BEFORE UPDATE ON declaration WHEN OLD.applied_epoch IS NOT NULL OR NEW.attempt_id <> OLD.attempt_id OR NEW.key <> OLD.key OR NEW.kind <> OLD.kind OR NEW.body <> OLD.body OR NEW.seq <> OLD.seq OR NEW.epoch <> OLD.epoch BEGIN SELECT RAISE(ABORT, ''fence: a declaration was changed, or applied twice''); END
;
trigger event_kept: CREATE TRIGGER event_kept BEFORE UPDATE ON event WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: an event is written once''); END
;
trigger gate_settlement_kept: CREATE TRIGGER gate_settlement_kept BEFORE UPDATE ON gate_settlement WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: a settlement of a gate was changed''); END
;
trigger input_content: CREATE TRIGGER input_content BEFORE UPDATE ON input WHEN NEW.number <> OLD.number OR NEW.work_id <> OLD.work_id OR NEW.body <> OLD.body BEGIN SELECT RAISE(ABORT, ''fence: an accepted input was changed''); END
;
trigger intent_live: CREATE TRIGGER intent_live BEFORE DELETE ON intent WHEN OLD.settled_at_us IS NULL BEGIN SELECT RAISE(ABORT, ''fence: an open intent was deleted''); END
;
trigger intent_settled: CREATE TRIGGER intent_settled BEFORE UPDATE ON intent WHEN OLD.settled_at_us IS NOT NULL OR NEW.kind <> OLD.kind OR NEW.work_id <> OLD.work_id OR NEW.attempt_id IS NOT OLD.attempt_id OR NEW.input IS NOT OLD.input OR NEW.token < OLD.token BEGIN SELECT RAISE(ABORT, ''fence: an intent was changed that is settled, or whom it is for, or went back to an older token''); END
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
trigger ledger_forward: CREATE TRIGGER ledger_forward BEFORE UPDATE ON ledger WHEN CAST(NEW.used AS REAL) < CAST(OLD.used AS REAL) OR NEW.subject <> OLD.subject BEGIN SELECT RAISE(ABORT, ''fence: a ledger went back''); END
;
trigger ledger_kept: CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger WHEN OLD.window_at_us = 0 BEGIN SELECT RAISE(ABORT, ''fence: a ledger for life was deleted''); END
;
trigger meta_incarnation: CREATE TRIGGER meta_incarnation BEFORE UPDATE ON meta WHEN NEW.key = ''incarnation'' AND NEW.value < OLD.value BEGIN SELECT RAISE(ABORT, ''fence: store incarnation went back''); END
;
trigger published_kept: CREATE TRIGGER published_kept BEFORE UPDATE ON published WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: a published event is written once''); END
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
trigger stream_forward: CREATE TRIGGER stream_forward BEFORE UPDATE ON stream WHEN NEW.pin_epoch < OLD.pin_epoch OR (NEW.pin_epoch = OLD.pin_epoch AND (NEW.offset_bytes < OLD.offset_bytes OR NEW.lines < OLD.lines)) BEGIN SELECT RAISE(ABORT, ''fence: an output was read backwards''); END
;
trigger submission_kept: CREATE TRIGGER submission_kept BEFORE UPDATE ON submission WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: an accepted key was changed''); END
;
trigger timer_closed: CREATE TRIGGER timer_closed BEFORE UPDATE ON timer WHEN OLD.state <> ''armed'' OR NEW.work_id <> OLD.work_id OR NEW.attempt_id <> OLD.attempt_id OR NEW.kind <> OLD.kind OR NEW.epoch <> OLD.epoch OR NEW.armed_seq <> OLD.armed_seq OR NEW.due_at_us IS NOT OLD.due_at_us OR NEW.after_us > OLD.after_us OR (NEW.boot_id = OLD.boot_id AND (NEW.since_mono_us <> OLD.since_mono_us OR NEW.after_us <> OLD.after_us)) BEGIN SELECT RAISE(ABORT, ''fence: a timer was changed that had fired or was cancelled, or what it is for, or how long it waits''); END
;
trigger timer_live: CREATE TRIGGER timer_live BEFORE DELETE ON timer WHEN OLD.state = ''armed'' BEGIN SELECT RAISE(ABORT, ''fence: an armed timer was deleted''); END
;
trigger usage_staged: CREATE TRIGGER usage_staged BEFORE UPDATE ON usage_pending WHEN 1 BEGIN SELECT RAISE(ABORT, ''fence: staged usage was changed''); END
;
trigger wait_closed: CREATE TRIGGER wait_closed BEFORE UPDATE ON wait WHEN OLD.closed_at_us IS NOT NULL OR (OLD.wake_seq IS NOT NULL AND NEW.wake_seq IS NOT OLD.wake_seq) OR NEW.attempt_id <> OLD.attempt_id OR NEW.epoch <> OLD.epoch OR NEW.work_id <> OLD.work_id OR NEW.resume <> OLD.resume OR NEW.event_type IS NOT OLD.event_type OR NEW.correlate IS NOT OLD.correlate OR NEW.since_seq <> OLD.since_seq BEGIN SELECT RAISE(ABORT, ''fence: a wait was changed that was over, woken twice, or what it is for''); END
;
trigger wait_live: CREATE TRIGGER wait_live BEFORE DELETE ON wait WHEN OLD.closed_at_us IS NULL BEGIN SELECT RAISE(ABORT, ''fence: an open wait was deleted''); END
;
trigger work_ended: CREATE TRIGGER work_ended BEFORE UPDATE ON work WHEN OLD.ended_at_us IS NOT NULL AND NOT (OLD.state = ''failed'' AND NEW.state = ''ready'') BEGIN SELECT RAISE(ABORT, ''fence: an ended Work was changed, other than by a retry of a failed one''); END
;
trigger work_identity: CREATE TRIGGER work_identity BEFORE UPDATE ON work WHEN NEW.id <> OLD.id OR NEW.number <> OLD.number OR NEW.attempts_used < OLD.attempts_used OR NEW.revision <= OLD.revision BEGIN SELECT RAISE(ABORT, ''fence: identity or revision of a Work went back''); END
;
trigger work_live: CREATE TRIGGER work_live BEFORE DELETE ON work WHEN OLD.ended_at_us IS NULL BEGIN SELECT RAISE(ABORT, ''fence: an open Work was deleted''); END
;
trigger worker_gone: CREATE TRIGGER worker_gone BEFORE UPDATE ON worker WHEN OLD.state = ''gone'' OR NEW.id <> OLD.id BEGIN SELECT RAISE(ABORT, ''fence: a gone worker came back''); END');
INSERT INTO "meta" VALUES('time_namespace','boot-1:4026531834');
CREATE TABLE pass (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, generation INTEGER NOT NULL, trigger TEXT NOT NULL, due_at_us INTEGER NOT NULL,
  started_at_us INTEGER NOT NULL, duration_us INTEGER NOT NULL, planned INTEGER, claimed INTEGER, dispatched INTEGER,
  recovered INTEGER, revoked INTEGER, waiting_jobs INTEGER, waiting_agents INTEGER,
  cut_short INTEGER NOT NULL CHECK (cut_short IN (0, 1)), clock_jump_us INTEGER, error TEXT
) STRICT;
INSERT INTO "pass" VALUES(1,1,'wake',1800000000000002,1800000000000102,302,NULL,2,NULL,1,2,3,4,0,NULL,NULL);
CREATE TABLE published (
  seq INTEGER PRIMARY KEY, type TEXT NOT NULL, correlate TEXT, work_id TEXT
) STRICT;
INSERT INTO "published" VALUES(86,'tick',NULL,NULL);
INSERT INTO "published" VALUES(151,'order.placed','o1',NULL);
CREATE TABLE routine (
  binding TEXT PRIMARY KEY, failures INTEGER NOT NULL CHECK (failures >= 0), work_id TEXT, failed_at_us INTEGER,
  quarantined_at_us INTEGER, quarantined_by TEXT, reason TEXT,
  CHECK ((quarantined_at_us IS NULL) = (quarantined_by IS NULL)), CHECK ((quarantined_at_us IS NULL) = (reason IS NULL))
) STRICT, WITHOUT ROWID;
CREATE TABLE segment (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, worker TEXT NOT NULL,
  invoke TEXT CHECK (invoke IN ('pending', 'called')), isolated INTEGER NOT NULL CHECK (isolated IN (0, 1)),
  recovered INTEGER NOT NULL CHECK (recovered IN (0, 1)), relaunched INTEGER NOT NULL CHECK (relaunched IN (0, 1)),
  began_at_us INTEGER NOT NULL, ended_at_us INTEGER, active_us INTEGER,
  phases TEXT NOT NULL DEFAULT '[]',
  phases_dropped INTEGER NOT NULL DEFAULT 0, wake_event INTEGER, sandbox_digest TEXT, PRIMARY KEY (attempt_id, epoch),
  CHECK ((ended_at_us IS NULL) = (active_us IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO "segment" VALUES('w1.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w1.1',2,'worker-1.1','called',1,1,1,1800000000000000,NULL,NULL,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w10.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w10.1',2,'worker-1.1','called',1,0,0,1800000000000000,NULL,NULL,'[]',0,86,NULL);
INSERT INTO "segment" VALUES('w11.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w12.1',1,'worker-1.1','called',1,0,0,1800000000000000,NULL,NULL,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w13.1',1,'worker-1.1','called',1,0,0,1800000001000000,1800000002000000,1000000,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w16.1',1,'worker-1.1','called',1,0,0,1800000002000000,NULL,NULL,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w17.1',1,'worker-1.1','called',1,0,0,1800000002000000,1800000002000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w2.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w3.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w6.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w7.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
INSERT INTO "segment" VALUES('w8.1',1,'worker-1.1','called',1,0,0,1800000000000000,1800000000000000,0,'[]',0,NULL,NULL);
CREATE TABLE snapshot (attempt_id TEXT PRIMARY KEY REFERENCES attempt (id), body TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO "snapshot" VALUES('w1.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[1],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w10.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[12],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w11.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[13],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w12.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[14],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w13.1','{"generation":2,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[15],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w16.1','{"generation":2,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[18],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w17.1','{"generation":2,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[19],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w2.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[3],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w3.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[4],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w6.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[7],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w7.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[8],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
INSERT INTO "snapshot" VALUES('w8.1','{"generation":1,"binding":null,"scope":"","pool":"jobs","executor":"shell","isolated":true,"command":["true"],"env":[],"cwd":"/","timeout_us":3600000000,"grace_us":10000000,"retry_delays_us":[],"replay":"never","inputs":[9],"registration":"shell@1","grants":[],"secrets":[],"sandbox":null,"output_max_bytes":67108864,"retry_on":[],"retry_exponential":null,"retry_exhausted":"fail","kind":"run_once","trigger":null,"quarantine_after":0,"idle_us":null,"on_inject_error":"queue"}');
CREATE TABLE stop_order (
  id INTEGER PRIMARY KEY AUTOINCREMENT, attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL,
  why TEXT NOT NULL, ordered_by TEXT NOT NULL, ordered_at_us INTEGER NOT NULL, owner TEXT, boot_id TEXT NOT NULL,
  expires_mono_us INTEGER NOT NULL, tries INTEGER NOT NULL, finding TEXT, closed_at_us INTEGER, closed_by TEXT,
  CHECK ((closed_at_us IS NULL) = (closed_by IS NULL))
) STRICT;
INSERT INTO "stop_order" VALUES(1,'w3.1',1,'its tree may live','worker-1.1',1800000000000000,NULL,'boot-1',0,0,NULL,NULL,NULL);
INSERT INTO "stop_order" VALUES(2,'w6.1',1,'its tree may live','worker-1.1',1800000000000000,NULL,'boot-1',0,0,NULL,1800000000000000,'test');
INSERT INTO "stop_order" VALUES(3,'w7.1',1,'cancelled: t','t',1800000000000000,'worker-1.1','boot-1',1001000000,0,NULL,NULL,NULL);
CREATE TABLE stream (
  attempt_id TEXT PRIMARY KEY REFERENCES attempt (id), pin_epoch INTEGER NOT NULL, offset_bytes INTEGER NOT NULL,
  lines INTEGER NOT NULL, skipping INTEGER NOT NULL CHECK (skipping IN (0, 1)), refused INTEGER NOT NULL,
  refusals TEXT NOT NULL, unknown TEXT NOT NULL, read_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "stream" VALUES('w1.1',2,10,1,0,0,'[]','{}',1800000000000000);
CREATE TABLE submission (
  key TEXT PRIMARY KEY, digest TEXT NOT NULL, work_id TEXT NOT NULL REFERENCES work (id), input INTEGER,
  accepted_at_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "submission" VALUES('k','6b4def63171e543837be2c8ade6be124a15484a8d78745932a570d241ffcbabc','w9',NULL,1800000000000000);
INSERT INTO "submission" VALUES('more-1','c154d1ad0458eccb3d59a7b5440a6578f7b4dc40ede145877507e3582ba81e61','w18',20,1800000002000000);
CREATE TABLE timer (
  id INTEGER PRIMARY KEY AUTOINCREMENT, work_id TEXT NOT NULL REFERENCES work (id),
  kind TEXT NOT NULL CHECK (kind IN ('retry', 'hint', 'admission', 'wait')),
  state TEXT NOT NULL CHECK (state IN ('armed', 'fired', 'cancelled')),
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, trigger_input INTEGER,
  since_mono_us INTEGER NOT NULL, boot_id TEXT NOT NULL, since_at_us INTEGER NOT NULL,
  after_us INTEGER NOT NULL CHECK (after_us >= 0), due_at_us INTEGER, armed_seq INTEGER NOT NULL, why TEXT NOT NULL,
  fired_seq INTEGER, closed_at_us INTEGER,
  UNIQUE (attempt_id, epoch, kind),
  CHECK ((fired_seq IS NOT NULL) = (state = 'fired')),
  CHECK (fired_seq IS NULL OR fired_seq > armed_seq),
  CHECK ((closed_at_us IS NULL) = (state = 'armed'))
) STRICT;
INSERT INTO "timer" VALUES(1,'w2','admission','armed','w2.1',1,NULL,1000000000,'boot-1',1800000000000000,1000000,NULL,24,'',NULL,NULL);
INSERT INTO "timer" VALUES(2,'w3','admission','armed','w3.1',1,NULL,1000000000,'boot-1',1800000000000000,1000000,NULL,33,'',NULL,NULL);
INSERT INTO "timer" VALUES(3,'w6','admission','fired','w6.1',1,NULL,1000000000,'boot-1',1800000000000000,1000000,NULL,47,'',111,1800000001000000);
INSERT INTO "timer" VALUES(4,'w10','wait','cancelled','w10.1',1,NULL,1000000000,'boot-1',1800000000000000,60000000,NULL,81,'it waits for tick no longer than that',NULL,1800000000000000);
INSERT INTO "timer" VALUES(5,'w11','wait','armed','w11.1',1,NULL,1000000000,'boot-1',1800000000000000,60000000,NULL,100,'it waits for tick no longer than that',NULL,NULL);
INSERT INTO "timer" VALUES(6,'w17','wait','armed','w17.1',1,NULL,1002000000,'boot-1',1800000002000000,60000000,NULL,145,'it waits for tick no longer than that',NULL,NULL);
CREATE TABLE unreadable (
  table_name TEXT NOT NULL, row_key TEXT NOT NULL, error TEXT NOT NULL, seen_at_us INTEGER NOT NULL,
  PRIMARY KEY (table_name, row_key)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_pending (
  id INTEGER PRIMARY KEY AUTOINCREMENT, attempt_id TEXT NOT NULL, work_id TEXT NOT NULL, scope TEXT NOT NULL,
  usage TEXT NOT NULL, staged_at_us INTEGER NOT NULL
) STRICT;
CREATE TABLE wait (
  attempt_id TEXT NOT NULL REFERENCES attempt (id), epoch INTEGER NOT NULL, work_id TEXT NOT NULL REFERENCES work (id),
  resume INTEGER NOT NULL CHECK (resume IN (0, 1)), event_type TEXT, correlate TEXT, since_seq INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('registered', 'satisfied', 'acknowledged', 'cancelled')),
  registered_at_us INTEGER NOT NULL, registered_seq INTEGER NOT NULL, wake_seq INTEGER, woken_at_us INTEGER, closed_at_us INTEGER,
  PRIMARY KEY (attempt_id, epoch),
  CHECK ((wake_seq IS NULL) = (woken_at_us IS NULL)),
  CHECK (state NOT IN ('satisfied', 'acknowledged') OR (wake_seq IS NOT NULL AND wake_seq > since_seq)),
  CHECK (state <> 'registered' OR wake_seq IS NULL),
  CHECK ((closed_at_us IS NOT NULL) = (state IN ('acknowledged', 'cancelled')))
) STRICT, WITHOUT ROWID;
INSERT INTO "wait" VALUES('w10.1',1,'w10',1,'tick',NULL,79,'acknowledged',1800000000000000,81,86,1800000000000000,1800000000000000);
INSERT INTO "wait" VALUES('w11.1',1,'w11',1,'tick',NULL,98,'registered',1800000000000000,100,NULL,NULL,NULL);
INSERT INTO "wait" VALUES('w17.1',1,'w17',0,'tick',NULL,141,'registered',1800000002000000,145,NULL,NULL,NULL);
CREATE TABLE work (
  id TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, scope TEXT NOT NULL, binding TEXT, command TEXT, env TEXT NOT NULL,
  cwd TEXT, pool TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('idle', 'ready', 'held', 'backoff', 'running', 'waiting', 'completed', 'failed', 'cancelled')), reason TEXT, reason_limit TEXT,
  priority INTEGER NOT NULL, revision INTEGER NOT NULL, ready_seq INTEGER NOT NULL, attempts_used INTEGER NOT NULL,
  admission_failures INTEGER NOT NULL, backoff_since_mono_us INTEGER, backoff_boot_id TEXT, backoff_since_at_us INTEGER,
  backoff_us INTEGER, submitted_by TEXT NOT NULL, submitted_at_us INTEGER NOT NULL, ended_at_us INTEGER, grants TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('run_once', 'standing')), failures_used INTEGER NOT NULL,
  hold_by TEXT, hold_reason TEXT, hold_at_us INTEGER,
  start_hold_by TEXT, start_hold_reason TEXT, start_hold_at_us INTEGER, permits TEXT NOT NULL DEFAULT '',
  CHECK ((start_hold_by IS NULL) = (start_hold_reason IS NULL) AND (start_hold_by IS NULL) = (start_hold_at_us IS NULL)),
  CHECK (start_hold_by IS NULL OR (state = 'held' AND reason IN ('over_budget', 'gate_held'))),
  CHECK ((hold_by IS NULL) = (hold_reason IS NULL) AND (hold_by IS NULL) = (hold_at_us IS NULL)),
  CHECK ((ended_at_us IS NOT NULL) = (state IN ('completed', 'failed', 'cancelled'))),
  CHECK (CASE WHEN state = 'backoff' THEN backoff_us IS NOT NULL AND backoff_boot_id IS NOT NULL
      AND backoff_since_mono_us IS NOT NULL AND backoff_since_at_us IS NOT NULL
    ELSE coalesce(backoff_us, backoff_boot_id, backoff_since_mono_us, backoff_since_at_us) IS NULL END)
) STRICT;
INSERT INTO "work" VALUES('w1',1,'',NULL,'["true"]','[]','/','jobs','running',NULL,NULL,0,2,1,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w2',2,'',NULL,'["true"]','[]','/','jobs','backoff',NULL,NULL,0,3,2,1,1,1000000000,'boot-1',1800000000000000,1000000,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w3',3,'',NULL,'["true"]','[]','/','jobs','backoff',NULL,NULL,0,3,3,1,1,1000000000,'boot-1',1800000000000000,1000000,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w4',4,'',NULL,'["true"]','[]','/','jobs','ready',NULL,NULL,0,1,4,0,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w5',5,'',NULL,'["true"]','[]','/','jobs','cancelled',NULL,NULL,0,2,5,0,0,NULL,NULL,NULL,NULL,'test',1800000000000000,1800000000000000,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w6',6,'',NULL,'["true"]','[]','/','jobs','ready',NULL,NULL,0,4,14,1,1,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w7',7,'',NULL,'["true"]','[]','/','jobs','ready',NULL,NULL,0,3,8,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w8',8,'',NULL,'["true"]','[]','/','jobs','failed','exhausted',NULL,0,3,9,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,1800000000000000,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w9',9,'',NULL,'["true"]','[]','/','jobs','ready',NULL,NULL,0,1,10,0,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w10',10,'',NULL,'["true"]','[]','/','jobs','running',NULL,NULL,0,4,11,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w11',11,'',NULL,'["true"]','[]','/','jobs','waiting',NULL,NULL,0,3,12,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w12',12,'',NULL,'["true"]','[]','/','jobs','running',NULL,NULL,0,2,13,1,0,NULL,NULL,NULL,NULL,'test',1800000000000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w13',13,'',NULL,'["true"]','[]','/','jobs','completed',NULL,NULL,0,3,15,1,0,NULL,NULL,NULL,NULL,'test',1800000001000000,1800000002000000,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w14',14,'',NULL,'["true"]','[]','/','jobs','ready',NULL,NULL,0,5,17,0,0,NULL,NULL,NULL,NULL,'test',1800000002000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'gate');
INSERT INTO "work" VALUES('w15',15,'',NULL,'["true"]','[]','/','jobs','held','gate_held',NULL,0,3,18,0,0,NULL,NULL,NULL,NULL,'test',1800000002000000,NULL,'[]','run_once',0,NULL,NULL,NULL,'approval','ask',1800000002000000,'');
INSERT INTO "work" VALUES('w16',16,'',NULL,'["true"]','[]','/','jobs','running',NULL,NULL,0,2,19,1,0,NULL,NULL,NULL,NULL,'test',1800000002000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w17',17,'',NULL,'["true"]','[]','/','jobs','waiting',NULL,NULL,0,3,20,1,0,NULL,NULL,NULL,NULL,'test',1800000002000000,NULL,'[]','run_once',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
INSERT INTO "work" VALUES('w18',18,'',NULL,'["true"]','[]','/','jobs','ready',NULL,NULL,0,2,22,0,0,NULL,NULL,NULL,NULL,'test',1800000002000000,NULL,'[]','standing',0,NULL,NULL,NULL,NULL,NULL,NULL,'');
CREATE TABLE worker (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, number INTEGER NOT NULL, pid INTEGER NOT NULL, start_ticks INTEGER NOT NULL,
  boot_id TEXT NOT NULL, pid_ns INTEGER NOT NULL, pidfs_ino INTEGER, machine_id TEXT, lock_device INTEGER NOT NULL,
  lock_inode INTEGER NOT NULL, slots INTEGER NOT NULL, executors TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('live', 'draining', 'gone')), beat_mono_us INTEGER NOT NULL,
  registered_at_us INTEGER NOT NULL, gone_at_us INTEGER, gone_reason TEXT, UNIQUE (name, number),
  CHECK ((state = 'gone') = (gone_at_us IS NOT NULL AND gone_reason IS NOT NULL))
) STRICT;
INSERT INTO "worker" VALUES('worker-1.1','worker-1',1,100,1000,'boot-1',4026531836,NULL,'machine',1,1000,64,'["shell@1"]','live',1000000000,1800000000000000,NULL,NULL);
INSERT INTO "worker" VALUES('worker-2.1','worker-2',1,100,1000,'boot-1',4026531836,NULL,'machine',1,1001,64,'["shell@1"]','gone',1000000000,1800000000000000,1800000000000000,'released');
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE INDEX work_ready ON work (pool, priority DESC, ready_seq, scope) WHERE state = 'ready';
CREATE INDEX work_open ON work (number) WHERE ended_at_us IS NULL;
CREATE INDEX work_held ON work (number) WHERE state = 'held';
CREATE INDEX work_quarantined ON work (number) WHERE state = 'ready' AND reason = 'quarantined';
CREATE UNIQUE INDEX timer_armed ON timer (work_id) WHERE state = 'armed';
CREATE INDEX timer_due ON timer (boot_id, since_mono_us + after_us) WHERE state = 'armed';
CREATE INDEX timer_due_at ON timer (due_at_us) WHERE state = 'armed' AND due_at_us IS NOT NULL;
CREATE INDEX timer_work ON timer (work_id, id);
CREATE INDEX submission_work ON submission (work_id);
CREATE INDEX routine_quarantined ON routine (binding) WHERE quarantined_at_us IS NOT NULL;
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
CREATE INDEX gate_settlement_work ON gate_settlement (work_id);
CREATE INDEX declaration_unapplied ON declaration (attempt_id, seq) WHERE applied_epoch IS NULL;
CREATE INDEX published_type ON published (type, seq);
CREATE INDEX published_correlate ON published (type, correlate, seq) WHERE correlate IS NOT NULL;
CREATE UNIQUE INDEX wait_work ON wait (work_id) WHERE state IN ('registered', 'satisfied');
CREATE INDEX wait_of_work ON wait (work_id);
CREATE INDEX wait_event ON wait (event_type, correlate) WHERE state = 'registered' AND event_type IS NOT NULL;
CREATE INDEX wait_woken ON wait (wake_seq) WHERE state = 'satisfied';
CREATE INDEX intent_due ON intent (number) WHERE fate IN ('queued', 'dispatched');
CREATE INDEX intent_work ON intent (work_id, number);
CREATE INDEX intent_attempt ON intent (attempt_id);
CREATE INDEX intent_input ON intent (input);
CREATE TRIGGER meta_incarnation BEFORE UPDATE ON meta WHEN NEW.key = 'incarnation' AND NEW.value < OLD.value BEGIN SELECT RAISE(ABORT, 'fence: store incarnation went back'); END;
CREATE TRIGGER counter_forward BEFORE UPDATE ON counter WHEN NEW.value <= OLD.value BEGIN SELECT RAISE(ABORT, 'fence: a counter went back'); END;
CREATE TRIGGER counter_kept BEFORE DELETE ON counter WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: a counter was deleted'); END;
CREATE TRIGGER config_kept BEFORE UPDATE ON config WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: a configuration is written once'); END;
CREATE TRIGGER work_identity BEFORE UPDATE ON work WHEN NEW.id <> OLD.id OR NEW.number <> OLD.number OR NEW.attempts_used < OLD.attempts_used OR NEW.revision <= OLD.revision BEGIN SELECT RAISE(ABORT, 'fence: identity or revision of a Work went back'); END;
CREATE TRIGGER work_ended BEFORE UPDATE ON work WHEN OLD.ended_at_us IS NOT NULL AND NOT (OLD.state = 'failed' AND NEW.state = 'ready') BEGIN SELECT RAISE(ABORT, 'fence: an ended Work was changed, other than by a retry of a failed one'); END;
CREATE TRIGGER work_live BEFORE DELETE ON work WHEN OLD.ended_at_us IS NULL BEGIN SELECT RAISE(ABORT, 'fence: an open Work was deleted'); END;
CREATE TRIGGER input_content BEFORE UPDATE ON input WHEN NEW.number <> OLD.number OR NEW.work_id <> OLD.work_id OR NEW.body <> OLD.body BEGIN SELECT RAISE(ABORT, 'fence: an accepted input was changed'); END;
CREATE TRIGGER attempt_number BEFORE INSERT ON attempt WHEN NEW.epoch <> 1 OR NEW.state <> 'launching' OR NEW.number <= (SELECT coalesce(max(number), 0) FROM attempt WHERE work_id = NEW.work_id) BEGIN SELECT RAISE(ABORT, 'fence: attempt number did not grow'); END;
CREATE TRIGGER attempt_identity BEFORE UPDATE ON attempt WHEN NEW.id <> OLD.id OR NEW.work_id <> OLD.work_id OR NEW.number <> OLD.number OR NEW.pool <> OLD.pool OR NEW.scope <> OLD.scope OR NEW.epoch < OLD.epoch BEGIN SELECT RAISE(ABORT, 'fence: identity or epoch of an attempt went back'); END;
CREATE TRIGGER attempt_ended BEFORE UPDATE ON attempt WHEN OLD.ended_at_us IS NOT NULL AND (NEW.state <> OLD.state OR NEW.ended_at_us IS NOT OLD.ended_at_us OR NEW.epoch <> OLD.epoch OR NEW.exit_status IS NOT OLD.exit_status OR NEW.usage <> OLD.usage) BEGIN SELECT RAISE(ABORT, 'fence: an ended attempt was changed'); END;
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
CREATE TRIGGER timer_closed BEFORE UPDATE ON timer WHEN OLD.state <> 'armed' OR NEW.work_id <> OLD.work_id OR NEW.attempt_id <> OLD.attempt_id OR NEW.kind <> OLD.kind OR NEW.epoch <> OLD.epoch OR NEW.armed_seq <> OLD.armed_seq OR NEW.due_at_us IS NOT OLD.due_at_us OR NEW.after_us > OLD.after_us OR (NEW.boot_id = OLD.boot_id AND (NEW.since_mono_us <> OLD.since_mono_us OR NEW.after_us <> OLD.after_us)) BEGIN SELECT RAISE(ABORT, 'fence: a timer was changed that had fired or was cancelled, or what it is for, or how long it waits'); END;
CREATE TRIGGER timer_live BEFORE DELETE ON timer WHEN OLD.state = 'armed' BEGIN SELECT RAISE(ABORT, 'fence: an armed timer was deleted'); END;
CREATE TRIGGER submission_kept BEFORE UPDATE ON submission WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: an accepted key was changed'); END;
CREATE TRIGGER budget_since BEFORE UPDATE ON budget WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: a budget was configured for the first time once'); END;
CREATE TRIGGER ledger_forward BEFORE UPDATE ON ledger WHEN CAST(NEW.used AS REAL) < CAST(OLD.used AS REAL) OR NEW.subject <> OLD.subject BEGIN SELECT RAISE(ABORT, 'fence: a ledger went back'); END;
CREATE TRIGGER ledger_kept BEFORE DELETE ON ledger WHEN OLD.window_at_us = 0 BEGIN SELECT RAISE(ABORT, 'fence: a ledger for life was deleted'); END;
CREATE TRIGGER usage_staged BEFORE UPDATE ON usage_pending WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: staged usage was changed'); END;
CREATE TRIGGER gate_settlement_kept BEFORE UPDATE ON gate_settlement WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: a settlement of a gate was changed'); END;
CREATE TRIGGER declaration_kept BEFORE UPDATE ON declaration WHEN OLD.applied_epoch IS NOT NULL OR NEW.attempt_id <> OLD.attempt_id OR NEW.key <> OLD.key OR NEW.kind <> OLD.kind OR NEW.body <> OLD.body OR NEW.seq <> OLD.seq OR NEW.epoch <> OLD.epoch BEGIN SELECT RAISE(ABORT, 'fence: a declaration was changed, or applied twice'); END;
CREATE TRIGGER published_kept BEFORE UPDATE ON published WHEN 1 BEGIN SELECT RAISE(ABORT, 'fence: a published event is written once'); END;
CREATE TRIGGER wait_closed BEFORE UPDATE ON wait WHEN OLD.closed_at_us IS NOT NULL OR (OLD.wake_seq IS NOT NULL AND NEW.wake_seq IS NOT OLD.wake_seq) OR NEW.attempt_id <> OLD.attempt_id OR NEW.epoch <> OLD.epoch OR NEW.work_id <> OLD.work_id OR NEW.resume <> OLD.resume OR NEW.event_type IS NOT OLD.event_type OR NEW.correlate IS NOT OLD.correlate OR NEW.since_seq <> OLD.since_seq BEGIN SELECT RAISE(ABORT, 'fence: a wait was changed that was over, woken twice, or what it is for'); END;
CREATE TRIGGER wait_live BEFORE DELETE ON wait WHEN OLD.closed_at_us IS NULL BEGIN SELECT RAISE(ABORT, 'fence: an open wait was deleted'); END;
CREATE TRIGGER stream_forward BEFORE UPDATE ON stream WHEN NEW.pin_epoch < OLD.pin_epoch OR (NEW.pin_epoch = OLD.pin_epoch AND (NEW.offset_bytes < OLD.offset_bytes OR NEW.lines < OLD.lines)) BEGIN SELECT RAISE(ABORT, 'fence: an output was read backwards'); END;
CREATE TRIGGER intent_settled BEFORE UPDATE ON intent WHEN OLD.settled_at_us IS NOT NULL OR NEW.kind <> OLD.kind OR NEW.work_id <> OLD.work_id OR NEW.attempt_id IS NOT OLD.attempt_id OR NEW.input IS NOT OLD.input OR NEW.token < OLD.token BEGIN SELECT RAISE(ABORT, 'fence: an intent was changed that is settled, or whom it is for, or went back to an older token'); END;
CREATE TRIGGER intent_live BEFORE DELETE ON intent WHEN OLD.settled_at_us IS NULL BEGIN SELECT RAISE(ABORT, 'fence: an open intent was deleted'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('timer',6);
INSERT INTO "sqlite_sequence" VALUES('event',151);
INSERT INTO "sqlite_sequence" VALUES('input',20);
INSERT INTO "sqlite_sequence" VALUES('intent',2);
INSERT INTO "sqlite_sequence" VALUES('stop_order',3);
INSERT INTO "sqlite_sequence" VALUES('cancellation',2);
INSERT INTO "sqlite_sequence" VALUES('usage_pending',1);
INSERT INTO "sqlite_sequence" VALUES('pass',1);
COMMIT;
PRAGMA user_version = 2;

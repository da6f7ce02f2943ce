"""The second defence: what the schema itself refuses, by any path, each with its control."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import pytest

from shared.boundary import Boundary
from shared.errors import FenceViolationError
from shared.ids import WorkId
from shared.model.budget import Budget
from shared.model.instant import US_PER_S
from shared.store.sqlite.connection import Connection
from shared.store.sqlite.schema import TRIGGERS
from shared.store.values import GateHold
from tests.support.agent_scenes import FIRST, dispatched
from tests.support.declarations import TICK, TURN
from tests.support.stores import (
    BACKED_OFF,
    COMPLETED,
    EXHAUSTED,
    FAILED,
    RETURNED,
    SQLITE,
    SUCCEEDED,
    UNPROVEN,
    World,
    new_work,
    ram_folder,
)


def _insert_attempt(attempt_id: str, work_id: str, number: int, *, epoch: int = 1, verb: str = "INSERT") -> str:
    return (
        f"{verb} INTO attempt (id, work_id, number, epoch, state, exclusion, isolated, relaunches, pool, scope, budget_us,"
        " budget_since_mono_us, budget_boot_id, budget_since_at_us, started_at_us)"
        f" VALUES ('{attempt_id}', '{work_id}', {number}, {epoch}, 'launching', 'held', 0, 0, 'jobs', '', 1, 1, 'boot-1', 1, 1)"
    )


# w1.1 runs under a lease, epoch 2 (released once); w2.1 ended, released; w3.1 ended, unproven; w4 is ready; w5 is cancelled; w7.1 is to be stopped for a cancel;
# what w1.1 said is read, and an intent for it is dispatched; w8 failed; w9 was handed in under the key k; the timer of w2 is armed, that of w6 has fired; w10.1 was parked and resumed, w11.1 is
# parked, w12.1 has declared something.
REFUSED = {
    "one unexcluded attempt of a Work": (_insert_attempt("w1.2", "w1", 2),),
    "no attempt beside an unproven one": (_insert_attempt("w3.2", "w3", 2),),
    "attempt numbers grow": (_insert_attempt("w2.0", "w2", 1),),
    "an attempt begins at its first epoch": (_insert_attempt("w2.2", "w2", 2, epoch=4),),
    "an unproven attempt is not replaced": (_insert_attempt("w3.1", "w3", 7, verb="INSERT OR REPLACE"),),
    "an epoch never goes back": ("UPDATE attempt SET epoch = 1 WHERE id = 'w1.1'",),
    "an epoch is not lost by replacing": (_insert_attempt("w1.1", "w1", 7, verb="INSERT OR REPLACE"),),
    "attempt and lease epoch go together": ("UPDATE attempt SET epoch = 3 WHERE id = 'w1.1'",),
    "lease epoch is the attempt's": (
        "UPDATE lease SET epoch = 3, owner = 'x.1', claimed_mono_us = 1 WHERE attempt_id = 'w1.1'",
    ),
    "a lease epoch never goes back": ("UPDATE lease SET epoch = 1 WHERE attempt_id = 'w1.1'",),
    "a lease is not replaced at its epoch": (
        "INSERT OR REPLACE INTO lease VALUES ('w1.1', 2, 'x.1', 'boot-1', 99999999999, 1, NULL, NULL, NULL)",
    ),
    "a lease is not replaced at a lower epoch": (
        "INSERT OR REPLACE INTO lease VALUES ('w1.1', 1, 'x.1', 'boot-1', 99999999999, 1, NULL, NULL, NULL)",
    ),
    "a lease of the live is not deleted": ("DELETE FROM lease WHERE attempt_id = 'w1.1'",),
    "a lease of the unproven is not deleted": ("DELETE FROM lease WHERE attempt_id = 'w3.1'",),
    "a new owner needs a higher epoch": ("UPDATE lease SET owner = 'x.1' WHERE attempt_id = 'w1.1'",),
    "another boot needs a higher epoch": ("UPDATE lease SET boot_id = 'boot-9' WHERE attempt_id = 'w1.1'",),
    "a renewal never shortens": ("UPDATE lease SET expires_mono_us = expires_mono_us - 1 WHERE attempt_id = 'w1.1'",),
    "accepted once": ("UPDATE lease SET accepted_at_us = accepted_at_us + 1 WHERE attempt_id = 'w1.1'",),
    "a revoked lease is not given back": (
        "UPDATE lease SET revoked_at_us = NULL, revoked_reason = NULL WHERE attempt_id = 'w2.1'",
    ),
    "a revoked lease is not extended": (
        "UPDATE lease SET expires_mono_us = expires_mono_us + 1 WHERE attempt_id = 'w2.1'",
    ),
    "a revocation has a reason": ("UPDATE lease SET revoked_at_us = 1 WHERE attempt_id = 'w1.1'",),
    "the live is not deleted": ("DELETE FROM attempt WHERE id = 'w1.1'",),
    "the unproven is not deleted": ("DELETE FROM attempt WHERE id = 'w3.1'",),
    "ended never reopens": ("UPDATE attempt SET state = 'running', ended_at_us = NULL WHERE id = 'w3.1'",),
    "an outcome is not changed": ("UPDATE attempt SET exit_status = 0 WHERE id = 'w2.1'",),
    "ended means ended": ("UPDATE attempt SET state = 'succeeded' WHERE id = 'w1.1'",),
    "the unfinished is not ended": ("UPDATE attempt SET ended_at_us = 1 WHERE id = 'w1.1'",),
    "the unfinished is not released": (
        "UPDATE attempt SET exclusion = 'released', exclusion_proof = 'S1' WHERE id = 'w1.1'",
    ),
    "no release without a proof": ("UPDATE attempt SET exclusion = 'released' WHERE id = 'w3.1'",),
    "released is not taken again": ("UPDATE attempt SET exclusion = 'held' WHERE id = 'w2.1'",),
    "a pin is not replaced at its epoch": ("UPDATE attempt SET pin_pid = pin_pid + 1 WHERE id = 'w1.1'",),
    "a pin never goes back": ("UPDATE attempt SET pin_epoch = 1 WHERE id = 'w1.1'",),
    "a pin is whole": ("UPDATE attempt SET pin_pid = NULL WHERE id = 'w1.1'",),
    "a state is one we know": ("UPDATE attempt SET state = 'sleeping' WHERE id = 'w1.1'",),
    "recovering remembers what it was": ("UPDATE attempt SET state = 'recovering' WHERE id = 'w1.1'",),
    "an attempt stays its Work's": ("UPDATE attempt SET work_id = 'w4' WHERE id = 'w1.1'",),
    "a number is a number": ("UPDATE attempt SET epoch = 'three' WHERE id = 'w1.1'",),
    "a snapshot is written once": ("UPDATE snapshot SET body = '{}' WHERE attempt_id = 'w2.1'",),
    "a snapshot of the live is kept": ("DELETE FROM snapshot WHERE attempt_id = 'w1.1'",),
    "an ended segment is not changed": (
        "UPDATE segment SET ended_at_us = NULL, active_us = NULL WHERE attempt_id = 'w1.1' AND epoch = 1",
    ),
    "a segment ends with what it used": ("UPDATE segment SET ended_at_us = 1 WHERE attempt_id = 'w1.1' AND epoch = 2",),
    "an open segment is not deleted": ("DELETE FROM segment WHERE attempt_id = 'w1.1' AND epoch = 2",),
    "a segment of the live is kept": ("DELETE FROM segment WHERE attempt_id = 'w1.1'",),
    "an ended Work is not changed": (
        "UPDATE work SET state = 'ready', ended_at_us = NULL, revision = 99 WHERE id = 'w5'",
    ),
    "a Work's row tells its changes": ("UPDATE work SET reason = 'no_worker' WHERE id = 'w4'",),
    "an open Work is not deleted": ("DELETE FROM input WHERE work_id = 'w4'", "DELETE FROM work WHERE id = 'w4'"),
    "a Work in backoff knows until when": ("UPDATE work SET state = 'backoff', revision = 99 WHERE id = 'w4'",),
    "an accepted input is not changed": ("UPDATE input SET body = x'00' WHERE number = 1",),
    "a generation never goes back": ("UPDATE leader SET generation = generation - 1",),
    "a new leader needs a higher generation": ("UPDATE leader SET owner = 'x.1'",),
    "the leader row is kept": ("DELETE FROM leader",),
    "a gone worker stays gone": (
        "UPDATE worker SET state = 'live', gone_at_us = NULL, gone_reason = NULL WHERE id = 'worker-2.1'",
    ),
    "a closed stop order is not changed": (
        "UPDATE stop_order SET closed_at_us = NULL, closed_by = NULL WHERE attempt_id = 'w6.1'",
    ),
    "an open stop order is not deleted": ("DELETE FROM stop_order WHERE attempt_id = 'w3.1'",),
    "one open stop order of an attempt": (
        (
            "INSERT INTO stop_order SELECT NULL, attempt_id, epoch, why, ordered_by, ordered_at_us, NULL, boot_id, 0, 0, NULL, NULL, NULL"
            " FROM stop_order WHERE attempt_id = 'w3.1'"
        ),
    ),
    "a settled cancellation is not changed": ("UPDATE cancellation SET result = 'stopped S9' WHERE work_id = 'w5'",),
    "a cancellation is acknowledged once": ("UPDATE cancellation SET acknowledged_by = 'x.1' WHERE work_id = 'w7'",),
    "a cancellation keeps what it names": ("UPDATE cancellation SET epoch = 2 WHERE work_id = 'w7'",),
    "a cancellation keeps who asked and why": ("UPDATE cancellation SET reason = 'other' WHERE work_id = 'w7'",),
    "a cancellation is settled with a result": ("UPDATE cancellation SET settled_at_us = 1 WHERE work_id = 'w7'",),
    "an open cancellation is not deleted": ("DELETE FROM cancellation WHERE work_id = 'w7'",),
    "an event is written once": ("UPDATE event SET data = '{}' WHERE seq = 1",),
    "a counter never goes back": ("UPDATE counter SET value = 1 WHERE name = 'work'",),
    "a counter is not replaced": ("INSERT OR REPLACE INTO counter VALUES ('work', 1)",),
    "a counter is not deleted": ("DELETE FROM counter WHERE name = 'work'",),
    "an incarnation of the store never goes back": ("UPDATE meta SET value = 0 WHERE key = 'incarnation'",),
    "a failed Work comes back ready or not at all": (
        "UPDATE work SET state = 'idle', ended_at_us = NULL, revision = 99 WHERE id = 'w8'",
    ),
    "a kind is one we know": ("UPDATE work SET kind = 'twice', revision = 99 WHERE id = 'w4'",),
    "a fired timer is not armed again": (
        "UPDATE timer SET state = 'armed', fired_seq = NULL, closed_at_us = NULL WHERE work_id = 'w6'",
    ),
    "a timer keeps what it is for": ("UPDATE timer SET after_us = 1 WHERE work_id = 'w2'",),
    "a timer fires by an event behind its failure": (
        "UPDATE timer SET state = 'fired', closed_at_us = 1, fired_seq = armed_seq WHERE work_id = 'w2'",
    ),
    "a timer fires by an event": ("UPDATE timer SET state = 'fired', closed_at_us = 1 WHERE work_id = 'w2'",),
    "an armed timer is not deleted": ("DELETE FROM timer WHERE work_id = 'w2'",),
    "one armed timer of a Work": (
        (
            "INSERT INTO timer SELECT NULL, work_id, 'hint', state, attempt_id, epoch, NULL, since_mono_us, boot_id, since_at_us,"
            " after_us, NULL, armed_seq, why, NULL, NULL FROM timer WHERE work_id = 'w2'"
        ),
    ),
    "one timer of an end": (
        (
            "INSERT INTO timer SELECT NULL, work_id, kind, 'armed', attempt_id, epoch, NULL, since_mono_us, boot_id, since_at_us,"
            " after_us, NULL, armed_seq, why, NULL, NULL FROM timer WHERE work_id = 'w6'"
        ),
    ),
    "an accepted key is not changed": ("UPDATE submission SET digest = 'other' WHERE key = 'k'",),
    "a quarantine says by whom": ("INSERT INTO routine (binding, failures, quarantined_at_us) VALUES ('b', 1, 1)",),
    "a budget is configured for the first time once": ("UPDATE budget SET since_at_us = 1",),
    "a ledger never goes back": ("UPDATE ledger SET used = '0.5' WHERE unit = 'turns'",),
    "a ledger stays whose it is": ("UPDATE ledger SET subject = 'ops' WHERE unit = 'turns'",),
    "a ledger for life is kept": ("DELETE FROM ledger WHERE unit = 'turns'",),
    "staged usage is not changed": ("UPDATE usage_pending SET usage = '{}'",),
    "usage of the ended is not changed": ("UPDATE attempt SET usage = '{\"usd\":\"1\"}' WHERE id = 'w2.1'",),
    "a settlement of a gate is not changed": ("UPDATE gate_settlement SET verdict = 'refused' WHERE key = 'g'",),
    "a hold at the start is of held Work": (
        "UPDATE work SET state = 'ready', revision = 99 WHERE reason = 'gate_held'",
    ),
    "a hold at the start says by whom": (
        "UPDATE work SET start_hold_by = NULL, revision = 99 WHERE reason = 'gate_held'",
    ),
    "a pin is of this launch": ("UPDATE attempt SET pin_epoch = 1 WHERE id = 'w10.1'",),
    "a launch begins at an epoch there was": ("UPDATE attempt SET launch_epoch = 9 WHERE id = 'w1.1'",),
    "a declaration is applied once": (
        "UPDATE declaration SET applied_epoch = 2 WHERE attempt_id = 'w10.1' AND applied_epoch = 1",
    ),
    "a declaration is not changed": ("UPDATE declaration SET body = '{}' WHERE attempt_id = 'w12.1'",),
    "a published event is written once": ("UPDATE published SET type = 'other'",),
    "an event that still wakes is kept": ("UPDATE waking SET type = 'other'",),
    "an event that still wakes is not done with": ("DELETE FROM waking",),
    "a refused chain stays refused": ("UPDATE chain_refusal SET depth = 200",),
    "the chain of an input is not made shorter": (
        "UPDATE input SET depth = 2 WHERE number = 1",
        "UPDATE input SET depth = 1 WHERE number = 1",
    ),
    "an input keeps what caused it": ("UPDATE input SET cause_seq = 1 WHERE number = 1",),
    "a wait that is over is not opened": (
        "UPDATE wait SET state = 'registered', wake_seq = NULL, woken_at_us = NULL, closed_at_us = NULL WHERE work_id = 'w10'",
    ),
    "a wait keeps what it is for": ("UPDATE wait SET event_type = 'other' WHERE work_id = 'w11'",),
    "a wait is ended by an event": ("UPDATE wait SET state = 'satisfied' WHERE work_id = 'w11'",),
    "a wait is ended by a later event": (
        "UPDATE wait SET state = 'satisfied', wake_seq = since_seq, woken_at_us = 1 WHERE work_id = 'w11'",
    ),
    "an open wait is not deleted": ("DELETE FROM wait WHERE work_id = 'w11'",),
    "one open wait of a Work": (
        (
            "INSERT INTO wait SELECT attempt_id, 9, work_id, resume, event_type, correlate, since_seq, state, registered_at_us,"
            " registered_seq, NULL, NULL, NULL, NULL, pool, NULL FROM wait WHERE work_id = 'w11'"
        ),
    ),
    "what may be resumed has been woken": ("UPDATE wait SET due_seq = 99999 WHERE work_id = 'w11'",),
    "what may be resumed stays so": (
        "UPDATE wait SET state = 'satisfied', wake_seq = since_seq + 1, woken_at_us = 1, due_seq = since_seq + 1 WHERE work_id = 'w11'",
        "UPDATE wait SET due_seq = NULL WHERE work_id = 'w11'",
    ),
    "an output is not read backwards": ("UPDATE stream SET offset_bytes = 1 WHERE attempt_id = 'w1.1'",),
    "an older launch is not read": ("UPDATE stream SET pin_epoch = 1 WHERE attempt_id = 'w1.1'",),
    "an intent is settled once": ("UPDATE intent SET fate = 'dropped' WHERE fate = 'returned'",),
    "an intent stays for whom it is": ("UPDATE intent SET attempt_id = 'w2.1' WHERE fate = 'dispatched'",),
    "an older token does not come back": ("UPDATE intent SET token = token - 1 WHERE fate = 'dispatched'",),
    "an open intent is not deleted": ("DELETE FROM intent WHERE fate = 'dispatched'",),
    "what is handed over has a token": (
        "UPDATE intent SET token = NULL, token_epoch = NULL WHERE fate = 'dispatched'",
    ),
    "a configuration is written once": ("UPDATE config SET body = '{\"a\":1}' WHERE number = 1",),
}

ACCEPTED = {
    "a next attempt": (_insert_attempt("w2.2", "w2", 2),),
    "a takeover": (
        "UPDATE attempt SET epoch = 3 WHERE id = 'w1.1'",
        "UPDATE lease SET epoch = 3, owner = 'x.1', claimed_mono_us = 1, expires_mono_us = 1 WHERE attempt_id = 'w1.1'",
    ),
    "a renewal": ("UPDATE lease SET expires_mono_us = expires_mono_us + 1 WHERE attempt_id = 'w1.1'",),
    "a revocation": ("UPDATE lease SET revoked_at_us = 1, revoked_reason = 'released' WHERE attempt_id = 'w1.1'",),
    "a confirmation": (
        "UPDATE attempt SET exclusion = 'released', exclusion_proof = 'S1' WHERE id = 'w3.1'",
        "UPDATE stop_order SET closed_at_us = 1, closed_by = 'x' WHERE attempt_id = 'w3.1'",
    ),
    "a cleared pin": (
        (
            "UPDATE attempt SET pin_epoch = NULL, pin_directory = NULL, pin_pid = NULL, pin_start_ticks = NULL, pin_boot_id = NULL,"
            " pin_pid_ns = NULL, pin_directory_ino = NULL, pin_lock_ino = NULL WHERE id = 'w1.1'"
        ),
    ),
    "retention of the released": (
        "UPDATE timer SET state = 'cancelled', closed_at_us = 1 WHERE work_id = 'w2'",
        "DELETE FROM timer WHERE work_id = 'w2'",
        "DELETE FROM lease WHERE attempt_id = 'w2.1'",
        "DELETE FROM segment WHERE attempt_id = 'w2.1'",
        "DELETE FROM snapshot WHERE attempt_id = 'w2.1'",
        "UPDATE input SET consumed_by = NULL WHERE consumed_by = 'w2.1'",
        "DELETE FROM attempt WHERE id = 'w2.1'",
    ),
    "a settled cancellation": (
        "UPDATE cancellation SET settled_at_us = 1, result = 'stopped S1' WHERE work_id = 'w7'",
        "DELETE FROM cancellation WHERE work_id = 'w7'",
    ),
    "a retry of a failed Work": (
        "UPDATE work SET state = 'ready', reason = NULL, ended_at_us = NULL, revision = 99 WHERE id = 'w8'",
    ),
    "a timer that fires": (
        "UPDATE timer SET state = 'fired', closed_at_us = 1, fired_seq = armed_seq + 1 WHERE work_id = 'w2'",
        "DELETE FROM timer WHERE work_id = 'w2'",
    ),
    "a wait that is ended": (
        "UPDATE wait SET state = 'satisfied', wake_seq = since_seq + 1, woken_at_us = 1 WHERE work_id = 'w11'",
        "UPDATE wait SET state = 'acknowledged', closed_at_us = 1 WHERE work_id = 'w11'",
        "DELETE FROM wait WHERE work_id = 'w11'",
    ),
    "an event that wakes nobody more": (
        "UPDATE wait SET state = 'satisfied', wake_seq = since_seq + 1, woken_at_us = 1 WHERE work_id = 'w11'",
        "DELETE FROM waking",
    ),
    "an input whose chain is longer": ("UPDATE input SET depth = 2 WHERE number = 1",),
    "a declaration that is applied": ("UPDATE declaration SET applied_epoch = 1 WHERE applied_epoch IS NULL",),
    "a cancelled timer": ("UPDATE timer SET state = 'cancelled', closed_at_us = 1 WHERE work_id = 'w2'",),
    "a charge": ("UPDATE ledger SET used = '2.5' WHERE unit = 'turns'",),
    "a ledger of a day that is over": ("UPDATE ledger SET window_at_us = 5", "DELETE FROM ledger"),
    "settled usage": ("DELETE FROM usage_pending",),
    "an output that is read on": ("UPDATE stream SET offset_bytes = 99, lines = 9 WHERE attempt_id = 'w1.1'",),
    "another launch that is read": (
        "UPDATE stream SET pin_epoch = 9, offset_bytes = 0, lines = 0 WHERE attempt_id = 'w1.1'",
    ),
    "an intent that is settled": (
        "UPDATE intent SET fate = 'consumed', settled_at_us = 1 WHERE fate = 'dispatched'",
        "DELETE FROM intent",
    ),
    "a new leader": ("UPDATE leader SET generation = generation + 1, owner = 'x.1'",),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with ram_folder() as folder:
        world = World(SQLITE, folder)
        _fill(world)
        world.close()
        opened = Connection(world.home / "store.db", wait_s=1)
        opened.set_pragmas()
        yield opened
        opened.close()


def _fill(world: World) -> None:
    owner, gone = world.worker(), world.worker("worker-2")
    world.store.write(lambda tx: tx.activate_config("{}", "d", "/t"))
    world.store.write(lambda tx: tx.retire_worker(gone, reason="released"))
    running = world.recovering(owner, pinned=False)
    world.store.write(lambda tx: tx.relaunch(running, clear_pin=False, why="nothing ran"))
    world.store.write(lambda tx: tx.pin(running, world.pin(running)))
    world.store.write(lambda tx: tx.follow(running, 2, FIRST))
    dispatched(world, running)
    world.ended(owner, FAILED, BACKED_OFF)
    world.ended(owner, UNPROVEN, BACKED_OFF)
    world.submit()
    cancelled = world.submit()
    world.store.write(lambda tx: tx.cancel_work(cancelled, by="t", reason="t"))
    world.confirm(world.ended(owner, UNPROVEN, BACKED_OFF))
    stopping = world.running(owner)
    world.store.write(lambda tx: tx.cancel_attempt(stopping.attempt_id, by="t", reason="t", change=RETURNED))
    order = next(one for one in world.store.read(lambda tx: tx.stop_orders()) if one.attempt_id == stopping.attempt_id)
    world.store.write(lambda tx: tx.take_stop_order(order.id, owner, lease_us=US_PER_S))
    world.ended(owner, FAILED, EXHAUSTED)
    keyed = world.store.write(lambda tx: tx.submit(new_work(), "jobs", key="k"))
    world.store.write(lambda tx: tx.inject(keyed, b"more", by="t"))
    resumed = world.parked(owner)
    world.store.write(lambda tx: tx.publish(TICK))
    resumed = world.resumed(resumed, owner)
    world.store.write(lambda tx: tx.accept(resumed, invoke_isolated=True))
    world.store.write(lambda tx: tx.pin(resumed, world.pin(resumed)))
    waiting = world.parked(owner)
    assert (resumed.attempt_id, waiting.attempt_id) == ("w10.1", "w11.1")
    world.declared(owner, [TURN])
    world.clock.advance(US_PER_S)
    world.fire(WorkId("w6"))
    world.configure(Budget("turns", Decimal(9)), Budget("minutes", Decimal(9)))
    charged = world.running(owner)
    world.clock.advance(US_PER_S)
    world.store.write(lambda tx: tx.finish(charged, SUCCEEDED, COMPLETED))
    asked = world.submit()
    world.try_claim(asked, owner, gate_hold=GateHold("approval", "ask"))
    world.store.write(
        lambda tx: tx.settle_gate(asked, holder="approval", verdict="admitted", by="t", reason="t", key="g")
    )
    world.try_claim(world.submit(), owner, gate_hold=GateHold("approval", "ask"))
    with world.outsider() as store:
        store.execute("INSERT INTO published (seq, type) VALUES (9999, 'tick')")  # w11 waits for that
        store.execute("INSERT INTO waking (seq, type) VALUES (9999, 'tick')")
        store.execute("INSERT INTO chain_refusal VALUES ('w8.1', 1, 'turn', 101, 100, 1)")


def _run(connection: Connection, statements: tuple[str, ...]) -> None:
    connection.begin(writing=True)
    try:
        for statement in statements:
            connection.rows(statement)
        assert connection.value("SELECT count(*) FROM pragma_foreign_key_check") == 0
    finally:
        connection.rollback()


@pytest.mark.req("E07", "R07", "L01", "V05")
@pytest.mark.parametrize("rule", REFUSED)
def test_the_schema_refuses_what_no_transition_sends(connection: Connection, rule: str) -> None:
    with pytest.raises((FenceViolationError, AssertionError)):
        _run(connection, REFUSED[rule])


@pytest.mark.req("E07", "V05")
@pytest.mark.parametrize("rule", ACCEPTED)
def test_the_schema_accepts_what_transitions_send(connection: Connection, rule: str) -> None:
    _run(connection, ACCEPTED[rule])


def test_each_statement_of_the_defence_is_meant_for_a_row_that_exists(connection: Connection) -> None:
    """A refusal of nothing would pass for the wrong reason: without triggers and constraints, each changes a row."""
    for rule, (statement, *_) in REFUSED.items():
        if statement.startswith("INSERT"):
            continue
        verb, table = statement.split()[0], statement.split()[2 if statement.startswith("DELETE") else 1]
        where = statement.partition(" WHERE ")[2] or "1"
        found = connection.value(f"SELECT count(*) FROM {table} WHERE {where}")
        assert found >= 1, f"{rule}: {verb} finds no row"


def test_a_deferred_violation_is_refused_at_the_commit_and_nothing_kept(connection: Connection) -> None:
    connection.begin(writing=True)
    connection.rows("UPDATE attempt SET epoch = 3 WHERE id = 'w1.1'")

    with pytest.raises(FenceViolationError, match="FOREIGN KEY"):
        connection.commit([Boundary.RECOVERY_COMMIT])
    connection.rollback()

    assert connection.value("SELECT epoch FROM attempt WHERE id = 'w1.1'") == 2
    assert connection.failure is None


def test_every_trigger_is_needed(connection: Connection) -> None:
    """Drop one trigger, and a statement of the table above is no longer refused."""
    idle = []
    for trigger in TRIGGERS:
        name = trigger.split()[2]
        refused_before = {rule for rule in REFUSED if _refuses(connection, REFUSED[rule], None)}
        if refused_before == {rule for rule in REFUSED if _refuses(connection, REFUSED[rule], name)}:
            idle.append(name)
    assert idle == []


def _refuses(connection: Connection, statements: tuple[str, ...], without: str | None) -> bool:
    connection.begin(writing=True)
    try:
        if without is not None:
            connection.rows(f"DROP TRIGGER {without}")
        for statement in statements:
            connection.rows(statement)
        return bool(connection.value("SELECT count(*) FROM pragma_foreign_key_check"))
    except FenceViolationError:
        return True
    finally:
        connection.rollback()

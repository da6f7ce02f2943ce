"""The plan of each hot query: by an index that holds only what is live, so that its cost never grows with history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from shared.store.sqlite import (
    agent_reads,
    agents,
    budget_reads,
    chains,
    controls,
    coordination,
    declares,
    ends,
    holding,
    losses,
    reads,
    ready_reads,
    registration,
    reporting,
    stops,
    wait_reads,
    wakes,
    work_reads,
    writing,
)
from shared.store.sqlite.connection import Connection
from tests.support.stores import SQLITE, World, ram_folder

PLANS: dict[str, tuple[str, set[str]]] = {
    "intents that are due": (
        agent_reads.DUE_INTENTS,
        {
            "SCAN i USING INDEX intent_due",
            "SEARCH a USING INDEX sqlite_autoindex_attempt_3 (id=? AND epoch=?)",
            "SEARCH l USING PRIMARY KEY (attempt_id=?)",
            "SEARCH n USING INTEGER PRIMARY KEY (rowid=?)",
        },
    ),
    "intents of a Work": (
        agent_reads.INTENTS,
        {
            "CO-ROUTINE i",
            "SEARCH intent USING INDEX intent_work (work_id=?)",
            "SCAN i",
            "SEARCH n USING INTEGER PRIMARY KEY (rowid=?)",
            "USE TEMP B-TREE FOR ORDER BY",
        },
    ),
    "questions to a person": (wait_reads.ASKED, {"SCAN wait USING INDEX wait_asked"}),
    "outputs with faults": (
        agent_reads.FAULTY_STREAMS,
        {"SCAN s USING INDEX stream_faulty", "SEARCH a USING INDEX sqlite_autoindex_attempt_1 (id=?)"},
    ),
    "inputs taken by the belt": (
        reporting.CONSUME_DECLARED,
        {
            "LIST SUBQUERY 1",
            "SCAN each VIRTUAL TABLE INDEX 3:",
            "SEARCH d USING PRIMARY KEY (attempt_id=?)",
            "SEARCH input USING INDEX input_consumer (consumed_by=? AND work_id=? AND rowid=?)",
        },
    ),
    "an input taken late": (
        agents.TAKEN_LATE,
        {
            "SCALAR SUBQUERY 1",
            "SCALAR SUBQUERY 2",
            "SEARCH input USING INTEGER PRIMARY KEY (rowid=?)",
            "SEARCH intent USING INDEX intent_input (input=?)",
            "SEARCH spent USING INDEX input_consumer (consumed_by=?)",
        },
    ),
    "output of an attempt": (agent_reads.STREAM, {"SEARCH stream USING PRIMARY KEY (attempt_id=?)"}),
    "intents of an attempt that has ended": (
        ends.RETURN_INTENTS,
        {
            "SEARCH intent USING INDEX intent_attempt (attempt_id=?)",
            "CORRELATED SCALAR SUBQUERY 1",
            "CORRELATED SCALAR SUBQUERY 2",
            "SEARCH i USING INTEGER PRIMARY KEY (rowid=?)",
        },
    ),
    "intents of an attempt that is launched": (
        holding.TELL_AGAIN,
        {"SEARCH intent USING INDEX intent_attempt (attempt_id=?)"},
    ),
    "the intent of an input": (agents.OF_INPUT, {"SEARCH intent USING INDEX intent_input (input=?)"}),
    "what a program took": (
        agents.TAKEN,
        {
            "SEARCH input USING INTEGER PRIMARY KEY (rowid=?)",
            "SCALAR SUBQUERY 1",
            "SEARCH intent USING INDEX intent_input (input=?)",
        },
    ),
    "the intent of what a program took": (agents.SETTLE_TAKEN, {"SEARCH intent USING INDEX intent_input (input=?)"}),
    "waits that an event matches": (
        wakes.MATCHED_ANY,
        {"SEARCH wait USING INDEX wait_event (event_type=? AND correlate=? AND since_seq<?)"},
    ),
    "waits that an event matches by its key": (
        wakes.MATCHED_KEY,
        {"SEARCH wait USING INDEX wait_event (event_type=? AND correlate=? AND since_seq<?)"},
    ),
    "events that have not woken all yet": (
        wakes.WAKING,
        {"LIST SUBQUERY 1", "SCAN waking", "SEARCH published USING INTEGER PRIMARY KEY (rowid=?)"},
    ),
    "an event by its key": (chains.KEYED, {"SEARCH published USING INDEX published_key (key=?)"}),
    "the first event that a wait waits for": (
        wakes.PUBLISHED_SINCE,
        {"SEARCH published USING INDEX published_type (type=? AND seq>?)"},
    ),
    "what may be resumed": (
        wait_reads.WOKEN,
        {
            "SEARCH k USING INDEX sqlite_autoindex_work_1 (id=?)",
            "SEARCH w USING INDEX wait_woken (pool=? AND (due_seq,attempt_id)>(?,?))",
        },
    ),
    "the wait of a resume that is put off": (
        declares.PUT_OFF_WAIT,
        {"SEARCH wait USING PRIMARY KEY (attempt_id=? AND epoch=?)"},
    ),
    "a resume that is due": (controls.RESUME_DUE, {"SEARCH wait USING PRIMARY KEY (attempt_id=? AND epoch=?)"}),
    "how deep an attempt's inputs are": (
        declares.DEPTH_OF_INPUTS,
        {"SEARCH input USING INDEX input_consumer (consumed_by=?)"},
    ),
    "what the chain of an attempt did not get": (
        wait_reads.CHAIN_REFUSALS,
        {"SEARCH a USING INDEX sqlite_autoindex_attempt_1 (id=?)", "SEARCH r USING PRIMARY KEY (attempt_id=?)"},
    ),
    "ready, first page": (ready_reads.READY_FIRST.format(skip=""), {"SEARCH work USING INDEX work_ready (pool=?)"}),
    "ready, same priority": (
        ready_reads.READY_SAME_PRIORITY.format(skip=""),
        {"SEARCH work USING INDEX work_ready (pool=? AND priority=? AND ready_seq>?)"},
    ),
    "ready, lower priority": (
        ready_reads.READY_LOWER.format(skip=""),
        {"SEARCH work USING INDEX work_ready (pool=? AND priority<?)"},
    ),
    "ready, skipping a scope": (
        ready_reads.READY_FIRST.format(skip="AND NOT (scope = :a OR substr(scope, 1, :b) = :c)"),
        {"SEARCH work USING INDEX work_ready (pool=?)"},
    ),
    "ready places, first": (ready_reads.READY_PLACES_FIRST, {"SEARCH work USING COVERING INDEX work_ready (pool=?)"}),
    "ready places, same priority": (
        ready_reads.READY_PLACES_SAME,
        {"SEARCH work USING COVERING INDEX work_ready (pool=? AND priority=? AND ready_seq>?)"},
    ),
    "ready places, lower priority": (
        ready_reads.READY_PLACES_LOWER,
        {"SEARCH work USING COVERING INDEX work_ready (pool=? AND priority<?)"},
    ),
    "ready Work at its place": (
        ready_reads.READY_AT,
        {"SEARCH work USING INDEX work_ready (pool=? AND priority=? AND ready_seq=?)"},
    ),
    "set aside, first": (ready_reads.ASIDE_FIRST, {"SEARCH work USING INDEX work_aside (pool=?)"}),
    "set aside, same priority": (
        ready_reads.ASIDE_SAME,
        {"SEARCH work USING INDEX work_aside (pool=? AND priority=? AND ready_seq>?)"},
    ),
    "set aside, lower priority": (
        ready_reads.ASIDE_LOWER,
        {"SEARCH work USING INDEX work_aside (pool=? AND priority<?)"},
    ),
    "set aside for the quarantine of one binding": (
        ready_reads.OF_LIMIT,
        {"SEARCH work USING INDEX work_waiting (pool=? AND reason=? AND reason_limit=?)"},
    ),
    "what is left for a person": (
        reads.IDLE_NEEDS_PERSON,
        {
            "COMPOUND QUERY",
            "LEFT-MOST SUBQUERY",
            "SCAN attempt USING INDEX attempt_needs_person",
            "UNION ALL",
            "SCAN work USING INDEX work_held",
            "SCAN work USING INDEX work_quarantined",
            "SCAN w USING INDEX wait_asked",
            "SEARCH t USING INDEX timer_armed (work_id=?)",
            "SEARCH routine USING PRIMARY KEY (binding=?)",
            "SEARCH unreadable USING PRIMARY KEY (table_name=?)",
            "SEARCH attempt USING INDEX sqlite_autoindex_attempt_1 (id=?)",
            "SEARCH work USING INDEX sqlite_autoindex_work_1 (id=?)",
        },
    ),
    "the scope behind a scope": (
        ready_reads.SCOPE_BEHIND,
        {"SEARCH work USING COVERING INDEX work_scope (pool=? AND scope>?)"},
    ),
    "the scope behind all below a scope": (
        ready_reads.SCOPE_FROM,
        {"SEARCH work USING COVERING INDEX work_scope (pool=? AND scope>?)"},
    ),
    "ready in a scope, same priority": (
        ready_reads.SCOPE_SAME,
        {"SEARCH work USING COVERING INDEX work_scope (pool=? AND scope=? AND priority=? AND ready_seq>?)"},
    ),
    "ready in a scope, lower priority": (
        ready_reads.SCOPE_LOWER,
        {"SEARCH work USING COVERING INDEX work_scope (pool=? AND scope=? AND priority<?)"},
    ),
    "next reason for which ready Works wait": (
        ready_reads.NEXT_REASON,
        {"SEARCH work USING COVERING INDEX work_waiting (pool=? AND reason>?)"},
    ),
    "next limit for which ready Works wait": (
        ready_reads.NEXT_LIMIT,
        {"SEARCH work USING COVERING INDEX work_waiting (pool=? AND reason=? AND reason_limit>?)"},
    ),
    "Works of a state": (
        reads.WORKS_OF_STATE.format(like=""),
        {"SEARCH work USING INDEX work_state (state=? AND number>?)"},
    ),
    "Works like one, in a range": (
        reads.WORKS.format(like="AND number <= :to AND reason IN (:a, :b) AND binding = :c"),
        {"SEARCH work USING INDEX sqlite_autoindex_work_2 (number>? AND number<?)"},
    ),
    "Works of a state like one, in a range": (
        reads.WORKS_OF_STATE.format(like="AND number <= :to AND reason IN (:a, :b) AND binding = :c"),
        {"SEARCH work USING INDEX work_state (state=? AND number>? AND number<?)"},
    ),
    "count of a state": (
        reads.COUNT_WORKS,
        {"CO-ROUTINE (subquery-1)", "SEARCH work USING COVERING INDEX work_state (state=?)", "SCAN (subquery-1)"},
    ),
    "held for a reason": (budget_reads.HELD_FOR, {"SEARCH work USING INDEX work_held (reason=?)"}),
    "parked, and held for a reason": (
        budget_reads.PARKED_FOR,
        {
            "SCAN wait USING INDEX wait_woken",
            "SEARCH work USING INDEX sqlite_autoindex_work_1 (id=?)",
            "USE TEMP B-TREE FOR ORDER BY",
        },
    ),
    "next attempts of a Work": (
        reads.NEXT_ATTEMPTS,
        {"SEARCH attempt USING INDEX sqlite_autoindex_attempt_2 (work_id=? AND number>?)"},
    ),
    "last attempts of a Work": (
        reads.LAST_ATTEMPTS,
        {"SEARCH attempt USING INDEX sqlite_autoindex_attempt_2 (work_id=? AND number<?)"},
    ),
    "open stop order of an attempt": (
        reads.OPEN_STOP_ORDER,
        {"SEARCH stop_order USING INDEX stop_order_open (attempt_id=?)"},
    ),
    "holders of slots": (
        reads.HOLDERS,
        {"SCAN attempt USING INDEX attempt_slot", "USE TEMP B-TREE FOR ORDER BY"},
    ),
    "next pool with ready Work": (
        ready_reads.READY_NEXT_POOL,
        {"SEARCH work USING COVERING INDEX work_waiting (pool>?)"},
    ),
    "pending inputs": (
        reads.PENDING_INPUTS,
        {"SEARCH input USING COVERING INDEX input_consumer (consumed_by=? AND work_id=?)"},
    ),
    "unexcluded attempt of a Work": (
        reads.UNEXCLUDED_ATTEMPT,
        {"SEARCH attempt USING INDEX attempt_one_unexcluded (work_id=?)"},
    ),
    "slots in use": (reads.USAGE, {"SCAN attempt USING INDEX attempt_slot"}),
    "assignments of a worker": (
        reads.ASSIGNMENTS,
        {
            "SEARCH l USING INDEX lease_owner (owner=?)",
            "SEARCH a USING INDEX sqlite_autoindex_attempt_1 (id=?)",
            "SEARCH s USING PRIMARY KEY (attempt_id=?)",
            "USE TEMP B-TREE FOR ORDER BY",
        },
    ),
    "held leases of a worker": (
        reads.HELD,
        {"SEARCH l USING INDEX lease_owner (owner=?)"},
    ),
    "recoverable attempts": (
        reads.RECOVERABLE_ATTEMPTS,
        {
            "SEARCH attempt USING INDEX attempt_recoverable (id>?)",
            "SEARCH l USING PRIMARY KEY (attempt_id=?)",
            "SEARCH s USING PRIMARY KEY (attempt_id=?)",
        },
    ),
    "backoff that is over": (
        work_reads.TIMERS_DUE,
        {"SEARCH timer USING INDEX timer_due (boot_id=? AND <expr><?)"},
    ),
    "timers of an earlier boot": (
        coordination.FOREIGN_TIMERS.format("<"),
        {"SEARCH timer USING INDEX timer_due (boot_id<?)"},
    ),
    "timers of a later boot": (
        coordination.FOREIGN_TIMERS.format(">"),
        {"SEARCH timer USING INDEX timer_due (boot_id>?)"},
    ),
    "next lapse": (reads.NEXT_LAPSE, {"SEARCH lease USING INDEX lease_expiry (expires_mono_us>?)"}),
    "next overdue claim": (reads.NEXT_OVERDUE, {"SEARCH l USING INDEX lease_unaccepted"}),
    "timers of the wall clock": (
        work_reads.TIMERS_DUE_AT,
        {"SEARCH timer USING INDEX timer_due_at (due_at_us>? AND due_at_us<?)"},
    ),
    "next timer": (work_reads.NEXT_TIMER, {"SEARCH timer USING INDEX timer_due (boot_id=?)"}),
    "timer of a Work": (work_reads.TIMER, {"SEARCH timer USING INDEX timer_armed (work_id=?)"}),
    "last timer of a Work": (work_reads.LAST_TIMER, {"SEARCH timer USING INDEX timer_work (work_id=?)"}),
    "quarantined bindings": (work_reads.QUARANTINED, {"SCAN routine USING COVERING INDEX routine_quarantined"}),
    "attempts whose holders died": (
        work_reads.SUSPECTS,
        {"SEARCH attempt USING INDEX attempt_suspect (workers_lost_in_row>?)"},
    ),
    "who launches one of them": (
        work_reads.SUSPECTS_LAUNCHING,
        {
            "SEARCH attempt USING INDEX attempt_suspect (workers_lost_in_row>?)",
            "CORRELATED SCALAR SUBQUERY 1",
            "SEARCH l USING PRIMARY KEY (attempt_id=?)",
        },
    ),
    "what a dead worker held": (
        losses.HELD_BY_DEAD,
        {
            "SEARCH l USING INDEX lease_owner (owner=?)",
            "SEARCH a USING INDEX sqlite_autoindex_attempt_1 (id=?)",
        },
    ),
    "workers present": (
        reads.WORKERS_PRESENT,
        {
            "SCAN w USING INDEX worker_present",
            "CORRELATED SCALAR SUBQUERY 1",
            "CORRELATED SCALAR SUBQUERY 2",
            "SEARCH l USING INDEX lease_owner (owner=?)",
        },
    ),
    "open stop orders": (reads.STOP_ORDERS.format(which=""), {"SCAN stop_order USING INDEX stop_order_queue"}),
    "attempts for a person": (reads.NEEDS_PERSON, {"SCAN attempt USING INDEX attempt_needs_person"}),
    "cancellations of a Work": (
        reads.CANCELLATIONS,
        {"SEARCH cancellation USING INDEX cancellation_work (work_id=?)"},
    ),
    "acknowledging a cancellation": (
        stops.ACKNOWLEDGE_CANCEL,
        {"SEARCH cancellation USING INDEX cancellation_attempt (attempt_id=?)"},
    ),
    "settling a cancellation": (
        stops.SETTLE_CANCEL,
        {"SEARCH cancellation USING INDEX cancellation_attempt (attempt_id=?)"},
    ),
    "what is out of time and unheld": (
        reads.NEXT_OUT_OF_TIME,
        {
            "SEARCH attempt USING INDEX attempt_recoverable",
            "SEARCH l USING PRIMARY KEY (attempt_id=?)",
        },
    ),
    "events of one attempt": (
        reads.ATTEMPT_EVENTS,
        {"SEARCH event USING INDEX event_attempt (attempt_id=?)"},
    ),
    "the fence": (
        writing.HELD_ATTEMPT,
        {
            "SEARCH attempt USING INDEX sqlite_autoindex_attempt_3 (id=? AND epoch=?)",
            "SEARCH l EXISTS USING INDEX lease_owner (owner=? AND attempt_id=?)",
        },
    ),
    "renewal": (holding.RENEW, {"SEARCH l USING INDEX lease_owner (owner=?)"}),
    "leases of other boots": (coordination.FOREIGN_LEASES, {"SCAN lease USING INDEX lease_expiry"}),
    "unaccepted claims": (
        coordination.UNACCEPTED_LEASES,
        {"SEARCH lease USING INDEX lease_unaccepted (claimed_mono_us<?)"},
    ),
    "leases of a retired worker": (
        registration.OWNED_LEASES,
        {"SEARCH lease USING INDEX lease_owner (owner=?)"},
    ),
    "taking a stop order": (stops.TAKE_ORDER, {"SEARCH stop_order USING INTEGER PRIMARY KEY (rowid=?)"}),
    "closing a stop order": (stops.CLOSE_ORDER, {"SEARCH stop_order USING INDEX stop_order_open (attempt_id=?)"}),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with ram_folder() as folder:
        world = World(SQLITE, folder)
        world.close()
        opened = Connection(world.home / "store.db", wait_s=1)
        yield opened
        opened.close()


def plan(connection: Connection, sql: str) -> list[str]:
    names = {word.strip("(),") for word in sql.replace("(", " ").split()}
    params: dict[str, object] | list[object]
    if "?" in sql:
        params = [""] * sql.count("?")
    else:
        params = dict.fromkeys((name[1:].rstrip(")") for name in names if name.startswith(":")), 0)
    return [row["detail"] for row in connection.rows(f"EXPLAIN QUERY PLAN {sql}", params)]


def _plainly(found: Iterable[str]) -> set[str]:
    """A plan without what differs between versions of the library: how a subquery is named, and what an index alone can answer."""
    words = (step.replace("COVERING INDEX", "INDEX").replace(" EXISTS USING ", " USING ") for step in found)
    by_key = (
        step.replace("INDEX lease_owner (owner=? AND attempt_id=?)", "PRIMARY KEY (attempt_id=?)") for step in words
    )
    return {step for step in by_key if not step.startswith("CORRELATED")}


@pytest.mark.req("S02", "C03")
@pytest.mark.parametrize("name", PLANS)
def test_hot_queries_go_by_an_index_of_what_is_live(connection: Connection, name: str) -> None:
    sql, expected = PLANS[name]

    found = plan(connection, sql)

    assert _plainly(found) == _plainly(expected)


def test_a_lost_index_is_seen(connection: Connection) -> None:
    """The control: without its index the same check finds another plan."""
    sql, expected = PLANS["slots in use"]
    connection.begin(writing=True)
    connection.rows("DROP INDEX attempt_slot")

    found = plan(connection, f"{sql} -- prepared anew")

    connection.rollback()
    assert _plainly(found) != _plainly(expected)


def test_every_child_key_has_a_plain_index(connection: Connection) -> None:
    """Deleting a parent looks its children up; a partial index cannot answer that."""
    missing = []
    for table in [row[0] for row in connection.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]:
        for key in connection.rows(f"SELECT \"from\" AS child FROM pragma_foreign_key_list('{table}') WHERE seq = 0"):
            leading = [
                connection.value(f"SELECT name FROM pragma_index_info('{index['name']}') WHERE seqno = 0")
                for index in connection.rows(f"SELECT name FROM pragma_index_list('{table}') WHERE partial = 0")
            ]
            if key["child"] not in leading:
                missing.append(f"{table}.{key['child']}")
    assert missing == []

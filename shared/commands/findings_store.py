"""Checks that look into the store: who is up, what they do, what waits, and what only a person can settle."""

from __future__ import annotations

from collections.abc import Callable

from shared.commands import capacity
from shared.commands.attendance import attendance, read_rows
from shared.commands.findings import NAMED_MAX, NOTHING, Finding, Severity
from shared.commands.findings_agents import AGENT_CHECKS
from shared.commands.findings_held import HELD_CHECKS
from shared.commands.findings_rows import check_rows
from shared.commands.findings_service import check_service
from shared.commands.findings_work import WORK_CHECKS
from shared.commands.open_home import OpenHome
from shared.commands.render import counted, duration, escaped, signed_duration
from shared.commands.status import OPEN_STATES
from shared.commands.work_text import counted_tries
from shared.model.attempt import Lease
from shared.model.evidence import LockState
from shared.model.host import Worker
from shared.model.instant import US_PER_S, Instant
from shared.model.settings import Config
from shared.model.work import Reason
from shared.process.filelock import probe
from shared.process.identity import is_stopped, pid_namespace
from shared.store.active import active_config
from shared.store.contract import ReadTx, Recoverable
from shared.store.regress import check_regressed, names_in
from shared.store.sqlite.inspect import check as inspect_store
from shared.wake import COORDINATOR

PASS_CADENCE_US = 60 * US_PER_S
"""A leader makes a pass at least this often."""
STALE_CADENCES = 2
RECOVERY_BOUND_US = 10 * US_PER_S
"""Recovery takes up what lapsed within a second; longer than this, nobody can."""
CLOCK_SLACK_US = 5 * US_PER_S
JUMP_TOLD_US = 24 * 3600 * US_PER_S
"""So long a jump of the wall clock is of interest."""
TIME_STEP = "see to the host's time: timedatectl"
PASSING_ERRORS = ("store_busy", "indeterminate")
"""What a pass may fail of now and then; the next one follows at once."""
HOLDERS_NAMED = 5
CHECKED_BYTES_MAX = 64 << 20
"""So large a store is looked at within a second or two; a larger one by `store check` alone."""
LAUNCHES_LOOKED_AT = 1_000
READY_LOOKED_AT = 1_000


def check_integrity(door: OpenHome) -> list[Finding]:
    """Every page, reference and rule of the store, unless it is too large for that."""
    size = door.place.store.stat().st_size
    if size > CHECKED_BYTES_MAX:
        message = f"the store has {size >> 20} MiB: its pages, references and rules were not looked at"
        step = f"to look at all of it: {door.command('store check')}; a coordinator looks at every page when it starts"
        return [Finding("store.large", Severity.INFO, message, step)]
    problems = inspect_store(door.place.path)
    if not problems:
        return []
    message = f"the store has {counted(len(problems), 'problem')}; the first: {escaped(problems[0])}"
    return [
        Finding(
            "store.damaged", Severity.ERROR, message, f"keep it as it is and see all: {door.command('store check')}"
        )
    ]


def check_evidence(door: OpenHome) -> list[Finding]:
    """The store is not older than what lies beside it."""
    unknown = check_regressed(door.store, names_in(door.place.attempts), most=LAUNCHES_LOOKED_AT)
    if not unknown:
        return []
    message = f"the store has gone back in time, to an old copy: {escaped(unknown[0])}"
    more = f", and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    step = "put the newest copy of the store back; with an old one, what ran since would run again"
    return [Finding("store.regressed", Severity.ERROR, message + more, step)]


# --- who is up -------------------------------------------------------------------------------------------------------


def check_leadership(door: OpenHome) -> list[Finding]:
    """Somebody leads."""
    there = attendance(door.store, door.place.run)
    found = []
    if there.leader is None:
        severity, tail = _open_works(door)
        found.append(
            Finding("leader.none", severity, f"no coordinator leads: nothing starts{tail}", door.command("up"))
        )
    for name in _standbys(door, None if there.leader is None else there.leader.owner):
        message = f"{name} stands by; it takes over when the leader dies"
        found.append(Finding("leader.standby", Severity.INFO, message, NOTHING))
    return found


def check_workers(door: OpenHome) -> list[Finding]:
    """Workers are there, give signs of life, and can be seen from here."""
    rows = door.store.read(read_rows)
    there = attendance(door.store, door.place.run)
    if not there.workers:
        severity, tail = _open_works(door)
        message = f"no worker is up: nothing runs or is adopted{tail}"
        return [Finding("workers.none", severity, message, door.command("up"))]
    silence_us = _config(door).settings.lease_us // 3
    found = []
    for worker in there.workers:
        silent_us = rows.now.mono_us - worker.beat_mono_us
        if silent_us >= silence_us:
            pid = worker.identity.pid
            message = f"{worker.id} (pid {pid}) lives but was not heard of for {duration(silent_us)}: stopped, or stuck"
            step = f"kill -CONT {pid}; if that does not help, kill -9 {pid}: its jobs run on and are adopted"
            found.append(Finding("workers.silent", Severity.WARNING, message, step))
    return found + _namespaces(there.workers)


def _namespaces(workers: tuple[Worker, ...]) -> list[Finding]:
    mine = pid_namespace()
    elsewhere = [worker.id for worker in workers if worker.identity.pid_ns != mine]
    if not elsewhere:
        return []
    message = f"{', '.join(elsewhere)} run in another pid namespace: each adopts only what was launched in its own"
    step = "run all of tenure in one container, or none of it; look at processes from inside theirs"
    return [Finding("workers.pid_namespace", Severity.WARNING, message, step)]


def check_passes(door: OpenHome) -> list[Finding]:
    """The leader makes its passes."""
    last, now = door.store.read(lambda tx: (tx.last_pass(), tx.now))
    if attendance(door.store, door.place.run).leader is None or last is None:
        return []
    found = []
    age_us = now.wall_us - last.started_at_us
    if age_us > STALE_CADENCES * PASS_CADENCE_US:
        message = f"the last pass of the coordinator was {duration(age_us)} ago, it should be one a minute"
        found.append(Finding("passes.stale", Severity.WARNING, message, "look at the coordinator's log"))
    if last.error is not None:
        severity = Severity.WARNING if last.error in PASSING_ERRORS else Severity.ERROR
        message = f"the last pass of the coordinator failed: {escaped(last.error)}"
        found.append(Finding("passes.failing", severity, message, "look at the coordinator's log"))
    return found


def check_clock(door: OpenHome) -> list[Finding]:
    """The wall clock has not been set back behind what is recorded, and has not jumped lately."""
    last, mark, now = door.store.read(lambda tx: (tx.last_pass(), tx.clock_mark(), tx.now))
    if last is not None and last.started_at_us - now.wall_us > CLOCK_SLACK_US:
        behind = duration(last.started_at_us - now.wall_us)
        message = (
            f"the wall clock is {behind} behind the last pass: it was set back; leases and time-outs do not go by it"
        )
        return [Finding("clock.set_back", Severity.WARNING, message, TIME_STEP)]
    if mark is None or mark.jumped_at_us is None or mark.jumped_by_us is None:
        return []
    ago_us = now.wall_us - mark.jumped_at_us
    if not 0 <= ago_us <= JUMP_TOLD_US:
        return []
    by, ago = signed_duration(mark.jumped_by_us), duration(ago_us)
    message = (
        f"the wall clock jumped {by} {ago} ago: it was set, or the host was suspended; what is due was looked at anew"
    )
    return [Finding("clock.jumped", Severity.INFO, message, TIME_STEP)]


# --- attempts --------------------------------------------------------------------------------------------------------


def check_leases(door: OpenHome) -> list[Finding]:
    """What has lost its holder is taken up again."""
    lost = door.store.read(_long_lost)
    if not lost:
        return []
    there = attendance(door.store, door.place.run)
    names = ", ".join(each.attempt.id for each, _ in lost[:HOLDERS_NAMED])
    since = duration(max(since_us for _, since_us in lost))
    more = f" and {len(lost) - HOLDERS_NAMED} more" if len(lost) > HOLDERS_NAMED else ""
    message = f"nobody holds {names}{more}, for up to {since}: what runs of it runs on, unwatched"
    if there.leader is None or not there.workers:
        step = f"it is adopted once they are up: {door.command('up')}"
    else:
        show = door.command(f"attempt show {lost[0][0].attempt.id}")
        step = f"start a worker where it was launched, with its executor: {show}"
    return [Finding("leases.lapsed", Severity.WARNING, message, step)]


def _long_lost(tx: ReadTx) -> list[tuple[Recoverable, int]]:
    found = []
    for each in tx.recoverable(after=None, limit=NAMED_MAX):
        lease = tx.lease(each.attempt.id)
        lost_us = 0 if lease is None else _lost_us(lease, tx.now)
        if lost_us > RECOVERY_BOUND_US:
            found.append((each, lost_us))
    return found


def _lost_us(lease: Lease, now: Instant) -> int:
    """For how long a lease that is not live has been lost; of another boot without a word on it: since before this one."""
    if lease.revoked_at_us is not None:
        return max(0, now.wall_us - lease.revoked_at_us)
    return now.mono_us if lease.boot_id != now.boot_id else max(0, now.mono_us - lease.expires_mono_us)


def check_recovery(door: OpenHome) -> list[Finding]:
    """No attempt waits for a person."""
    waiting = door.store.read(lambda tx: tx.needs_person(limit=NAMED_MAX))
    return [
        Finding(
            "attempts.recovery_required",
            Severity.ERROR,
            f"what became of {attempt.id} is unknown, its slot stays held: {escaped(attempt.error or 'no more is known')}",
            f"see the evidence, then settle it: {door.command(f'attempt reconcile {attempt.id}')}",
        )
        for attempt in waiting
    ]


def check_shims(door: OpenHome) -> list[Finding]:
    """No shim of an attempt that holds a slot is stopped: it would see neither the end of its job nor record it."""
    found = []
    for attempt in door.store.read(lambda tx: tx.holders(limit=NAMED_MAX)):
        if attempt.pin is not None and is_stopped(attempt.pin.shim):
            pid = attempt.pin.shim.pid
            message = f"the shim of {attempt.id} (pid {pid}) is stopped: the end of its job is not noticed"
            step = f"let it run on: kill -CONT {pid}"
            found.append(Finding("attempts.shim_stopped", Severity.WARNING, message, step))
    return found


def check_stops(door: OpenHome) -> list[Finding]:
    """Every stop that was tried is proven."""
    found = []
    for order in door.store.read(lambda tx: tx.stop_orders(limit=NAMED_MAX)):
        if not order.tries:
            continue
        count = counted(capacity.suspect_count(order), "suspect")
        message = f"the stop of {order.attempt_id} is unproven after {counted_tries(order.tries)}, {count}; its slot stays held"
        show = door.command(f"attempt show {order.attempt_id}")
        step = f"end the suspects if they are its own: {show}; the proof then follows by itself"
        found.append(Finding("stops.unproven", Severity.WARNING, message, step))
    return found


# --- what waits ------------------------------------------------------------------------------------------------------


def check_capacity(door: OpenHome) -> list[Finding]:
    """No limit is used up by what does not run, and full ones are named with their holders."""
    found = door.store.read(capacity.read)
    return [
        _full(f"{kind} {line.name}", _holders(found, kind, line), line, door)
        for kind, lines in (("pool", found.pools), ("scope", found.scopes))
        for line in lines
        if line.is_full and line.waiting
    ]


def _full(name: str, holders: list[capacity.Holder], line: capacity.Line, door: OpenHome) -> Finding:
    stuck = [holder for holder in holders if not holder.runs]
    waits = f"{counted(line.waiting, 'work')} wait{'s' if line.waiting == 1 else ''}"
    if stuck:
        names = ", ".join(f"{each.attempt.id} ({capacity.why_held(each)})" for each in stuck[:HOLDERS_NAMED])
        message = f"{name} is full ({line.in_use} of {line.limit}) and {waits}; slots of what no longer runs: {names}"
        step = f"settle it: {door.command(f'attempt show {stuck[0].attempt.id}')}"
        return Finding("capacity.stuck", Severity.WARNING, message, step)
    names = ", ".join(each.attempt.id for each in holders[:HOLDERS_NAMED])
    message = f"{name} is full ({line.in_use} of {line.limit}) and {waits}; held by {names}"
    return Finding(
        "capacity.full", Severity.INFO, message, f"nothing, or a higher limit; all holders: {door.command('capacity')}"
    )


def _holders(found: capacity.Capacity, kind: str, line: capacity.Line) -> list[capacity.Holder]:
    return [holder for holder in found.holders if capacity.counts_against(holder, kind, line.name)]


WAITS = {
    Reason.UNSUPPORTED_GENERATION: (
        "works.no_binding",
        "for a binding that the active configuration does not have, or while it cannot be read",
        "apply a configuration that has it, or cancel them",
    ),
    Reason.NO_WORKER: ("works.no_worker", "for a worker that can take it", "start one that offers its executor"),
    Reason.STOP_UNPROVEN: (
        "works.stop_unproven",
        "for the proof that an earlier attempt is stopped",
        "see what keeps it",
    ),
    Reason.DISK_FULL: ("works.disk_full", "for space on the disk", "free some"),
}
"""Reasons of ready work that do not pass by themselves: code, what is waited for, what to do."""


def check_works(door: OpenHome) -> list[Finding]:
    """No ready work waits for something that will not come by itself."""
    counts = door.store.read(lambda tx: tx.ready_counts(cap=capacity.COUNTED_MAX))
    found = []
    for reason, (code, what, step) in WAITS.items():
        count = sum(number for (_, told), number in counts.items() if told == reason)
        if count:
            message = f"{counted(count, 'work')} wait{'s' if count == 1 else ''} {what}"
            listed = door.command(f"work list --state ready --reason {reason}")
            found.append(Finding(code, Severity.WARNING, message, f"{step}: {listed}"))
    return found


STORE_CHECKS: dict[str, Callable[[OpenHome], list[Finding]]] = {
    "store": check_integrity,
    "rows": check_rows,
    "evidence": check_evidence,
    "leader": check_leadership,
    "workers": check_workers,
    "passes": check_passes,
    "clock": check_clock,
    "leases": check_leases,
    "attempts": check_recovery,
    "shims": check_shims,
    "stops": check_stops,
    "capacity": check_capacity,
    "works": check_works,
    **WORK_CHECKS,
    **HELD_CHECKS,
    **AGENT_CHECKS,
    "service": check_service,
}


def _open_works(door: OpenHome) -> tuple[Severity, str]:
    """How bad it is that nobody is there, and how that goes on."""
    if door.store.read(lambda tx: tx.works(states=OPEN_STATES, after=0, limit=1)):
        return Severity.ERROR, ", and works are open"
    return Severity.WARNING, ""


def _config(door: OpenHome) -> Config:
    return door.store.read(active_config).config


def _standbys(door: OpenHome, leader: str | None) -> list[str]:
    names = []
    for path in sorted(door.place.run.glob(f"{COORDINATOR}.*.lock")):
        found = path.stat()
        if path.stem != leader and probe(path, found.st_dev, found.st_ino) is LockState.HELD:
            names.append(path.stem)
    return names

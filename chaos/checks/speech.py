"""What programs say counts once, whoever hears it, and only once their end was seen. Rule: requirements O02, O06, O07, O15, B02."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

from chaos.checks.slots import ENDINGS
from chaos.checks.wakes import PARKED
from chaos.history import History
from chaos.speech import END, GARBAGE, KEPT, NOISE, Said
from chaos.witness import Line, Mark
from shared.ids import AttemptId, work_of
from shared.model.attempt import AttemptState, FailureClass
from shared.model.declaration import Declaration
from shared.policy.steps import is_final_attempt
from shared.store.contract import PERSON, Event

TURN, TOKENS, REFUSED = "execution.turn", "tokens", "causality.refused"
Launch = tuple[AttemptId, int]


def launch_ends(history: History) -> dict[Launch, Event]:
    """The event that tells how each launch ended whose end was seen by its holder: of a park, or of an end with a status."""
    ends: dict[Launch, Event] = {}
    pinned: dict[AttemptId, int] = {}
    for event in history.events:
        name = event.attempt_id
        if name is None or event.epoch is None:
            continue
        if event.kind == "attempt.pinned":
            pinned[name] = event.epoch
        elif name in pinned and (event.kind == PARKED or _is_seen_end(event)):
            ends[name, pinned.pop(name)] = event
    return ends


def _is_seen_end(event: Event) -> bool:
    is_others = "by" in event.data  # a person's word, a cancel, an interrupt, the leader's: nobody read what it said
    return event.kind in ENDINGS and event.data.get("exit_status") is not None and not is_others


def overheard_works(history: History) -> set[str | None]:
    """Works of which every word is known; of the others `spoken` knows what their programs noted."""
    return {job.work_id for job in history.jobs if job.is_overheard}


def every_line_is_heard_once(history: History) -> list[str]:
    """What agents write is read line by line, each once, across every change of hands; all of it once an end was seen."""
    found = []
    ends, lines = launch_ends(history), _lines(history)
    for launch, said in lines.items():
        attempt_id, epoch = launch
        heard = {
            int(one.declaration.key.rpartition(".")[2]): one.declaration
            for one in history.declarations.get(attempt_id, ())
            if one.declaration.key.startswith(f"out.{epoch}.")
        }
        found += [f"line {line} of {attempt_id}.{epoch} was never said" for line in heard if line not in said]
        upto = len(said) if launch in ends else max(heard, default=0)
        for line, one in said.items():
            if line in heard and not _says(heard[line], one):
                found.append(f"line {line} of {attempt_id}.{epoch} was {one.kind} {one.body}, heard was {heard[line]}")
            elif line <= upto and one.kind in KEPT and line not in heard:
                found.append(f"line {line} of {attempt_id}.{epoch}, {one.kind}, was not heard")
        stream = history.streams.get(attempt_id)
        if stream is not None and stream.pin_epoch == epoch:
            read = stream.place.lines
            if read > len(said) or (launch in ends and read < len(said)):
                found.append(f"{read} lines of {attempt_id}.{epoch} were read, it wrote {len(said)}")
    return found + list(_miscounted(history, ends, lines))


def _miscounted(history: History, ends: dict[Launch, Event], lines: dict[Launch, dict[int, Said]]) -> Iterator[str]:
    """Lines that mean nothing are only counted: more than there were, or fewer though all were read. That an input is named which a
    store that went back in time no longer knows as handed over is refused as well.
    """
    overheard, forgotten = overheard_works(history), _forgotten_inputs(history)
    for attempt_id, stream in history.streams.items():
        if work_of(attempt_id) not in overheard:
            continue
        launches = [launch for launch in lines if launch[0] == attempt_id]
        kinds = Counter(one.kind for launch in launches for one in lines[launch].values())
        is_all = all(launch in ends for launch in launches)
        strange = sum(
            any((attempt_id, number) in forgotten for number in _taken(one))
            for launch in launches
            for one in lines[launch].values()
        )
        torn = sum(
            any(one.is_cut for one in lines[launch].values()) for launch in launches
        )  # what is left of a cut line
        more_refused = strange + torn
        for what, counted, more in ((NOISE, sum(stream.unknown.values()), 0), (GARBAGE, stream.refused, more_refused)):
            if counted > kinds[what] + more or (is_all and counted < kinds[what]):
                yield f"{attempt_id} wrote {kinds[what]} lines of {what}, {counted} were counted"


def _forgotten_inputs(history: History) -> set[tuple[AttemptId, int]]:
    """Inputs that programs were told while they ran, and whose handing over the store has forgotten."""
    lost = {event.data["intent"] for event in history.lost if event.kind == "intent.dispatched"}
    return {(one.attempt_id, number) for one in history.told if f"i{one.intent}" in lost for number in one.inputs}


def _taken(said: Said) -> tuple[int, ...]:
    """The inputs that a line says were taken."""
    return tuple(said.fields["inputs"]) if said.kind == "consumed" else ()  # type: ignore[arg-type]


def _lines(history: History) -> dict[Launch, dict[int, Said]]:
    lines: dict[Launch, dict[int, Said]] = {}
    for one in history.said:
        if one.line is not None:
            lines.setdefault(one.launch, {})[one.line] = one
    return lines


def _says(heard: Declaration, said: Said) -> bool:
    """Whether a declaration is what was said; its body is checked where it counts."""
    return heard.kind == ("outcome" if said.kind == "result" else said.kind)


def the_belt_keeps_its_word(history: History) -> list[str]:
    """What a job was told is recorded is recorded, once; nothing is that none said under the attempt's token."""
    found = []
    asked = {(one.attempt_id, one.key): one for one in history.said if one.key}
    by_key = {(name, one.declaration.key): one for name, every in history.declarations.items() for one in every}
    overheard = overheard_works(history)
    for (name, key), recorded in by_key.items():
        said = asked.get((name, key))
        if key.startswith("out.") or work_of(name) not in overheard:
            continue
        if said is None or not _says(recorded.declaration, said):
            found.append(f"{name} never said {recorded.declaration}")
    for (name, key), said in asked.items():
        if said.is_answered and (name, key) not in by_key and not history.lost:
            found.append(f"{name} was told that {said.kind} {key} is recorded, and it is not")
    return found


def ends_are_as_declared(history: History) -> list[str]:
    """The end of a launch that was seen is what its program said last of it, or else what its status says; the status is its own."""
    found = []
    words = _words(history)
    killed = {job.work_id for job in history.jobs if job.may_be_killed or job.may_time_out}
    for launch, event in launch_ends(history).items():
        if launch not in words:
            continue
        attempt_id, epoch = launch
        meant, last = words[launch]
        status = 0 if event.kind == PARKED else int(str(event.data["exit_status"]))
        if meant != status and not (status < 0 and work_of(attempt_id) in killed):
            found.append(f"{attempt_id}.{epoch} meant to end with {meant}, recorded is {status}")
        told = (str(event.data["to"]), event.data.get("failure"))
        expected = _expected(status, last)
        if told != expected:
            found.append(f"{attempt_id}.{epoch} is {told} with status {status}, by its last word {expected}")
    return found


def _words(history: History) -> dict[Launch, tuple[int | None, Said | None]]:
    """Of each launch of a program that speaks: the status that it meant to end with, and the last that it said of its end."""
    recorded = {(name, one.declaration.key) for name, every in history.declarations.items() for one in every}
    words: dict[Launch, tuple[int | None, Said | None]] = {
        (one.attempt_id, one.epoch): (None, None) for one in history.told if one.kind == "start"
    }
    for one in history.said:
        meant, last = words[one.launch]
        if one.kind == END:
            words[one.launch] = int(one.body), last
        elif one.kind in ("wait", "result") and _counts(history, recorded, one):
            words[one.launch] = meant, one
    return words


def _counts(history: History, recorded: set[tuple[AttemptId, str]], one: Said) -> bool:
    """Whether what was said is to count: a line that is written, and by the belt what was answered for, or is recorded all the same;
    of what was answered for a store that went back in time has perhaps lost some.
    """
    if one.line is not None or (one.attempt_id, one.key) in recorded:
        return True
    return one.is_answered and not history.lost


def last_words(history: History) -> dict[Launch, Said]:
    """The last that each launch said of its end."""
    return {launch: last for launch, (_, last) in _words(history).items() if last is not None}


def _expected(status: int, last: Said | None) -> tuple[str, object]:
    fields = {} if last is None else last.fields
    by_status = (AttemptState.SUCCEEDED, None) if status == 0 else (AttemptState.FAILED, FailureClass.KNOWN)
    if last is None:
        return by_status
    if last.kind == "wait":
        waits = (AttemptState.PARKED if fields["resume"] else AttemptState.HANDED_OFF, None)
        return waits if status == 0 else by_status
    match fields["outcome"]:
        case "completed":
            return AttemptState.SUCCEEDED, None
        case "handoff":
            return AttemptState.HANDED_OFF, None
        case _:
            return AttemptState.FAILED, FailureClass.PERMANENT if fields.get("permanent") else FailureClass.KNOWN


def turns_are_told_of_what_ended(history: History) -> list[str]:
    """A launch whose end was seen tells the last turn that it said, once under each key, after its process has ended; no other does."""
    found = []
    ends = launch_ends(history)
    launch_of = {(event.attempt_id, event.epoch): launch for launch, event in ends.items()}
    recorded = {(name, one.declaration.key) for name, every in history.declarations.items() for one in every}
    said = {
        one.launch: one.fields["status"]
        for one in history.said
        if one.kind == "turn" and _counts(history, recorded, one)
    }
    gone = {(one.attempt_id, one.epoch, one.pid): one.seq for one in history.lines if one.mark is Mark.GONE}
    main = {(one.attempt_id, one.epoch): gone.get((one.attempt_id, one.epoch, one.pid)) for one in _starts(history)}
    told: Counter[tuple[object, object, object]] = Counter()
    overheard = overheard_works(history)
    for event in history.events:
        if event.kind != TURN or event.work_id not in overheard:
            continue
        launch = launch_of.get((event.attempt_id, event.epoch))
        told[event.attempt_id, event.epoch, event.data["correlate"]] += 1
        name = f"the turn of {event.attempt_id} epoch {event.epoch} (event {event.seq})"
        if launch is None:
            found.append(f"{name} was told, and nobody had seen the end of that launch")
            continue
        ended_seq = main.get(launch)
        if launch in main and (ended_seq is None or ended_seq >= event.seq):
            found.append(f"{name} was told while its process lived")
        if said.get(launch) != event.data["status"]:
            found.append(f"{name} is {event.data['status']}, its program said {said.get(launch)}")
    found += [
        f"a turn of {name} epoch {epoch} was told {count} times"
        for (name, epoch, _), count in told.items()
        if count > 1
    ]
    epochs = {(name, epoch) for name, epoch, _ in told} | {
        (event.attempt_id, event.epoch)
        for event in history.events
        if event.kind == REFUSED and event.data["derived"] == "turn"
    }
    return found + [
        f"{launch[0]}.{launch[1]} said a turn, and it was not told"
        for launch in said
        if launch in ends and (launch[0], ends[launch].epoch) not in epochs
    ]


def _starts(history: History) -> list[Line]:
    return [line for line in history.lines if line.mark is Mark.START]


def usage_is_all_that_was_reported(history: History) -> list[str]:
    """Once an attempt is over, what it used is the sum of what its program reported: of every launch whose end was seen, and of the
    one that was stopped, once that is proven, but for what a power cut took before it was read; never more. Rule: B02, B03.
    """
    found = []
    overheard, ends = overheard_works(history), launch_ends(history)
    stopped = _stopped_by_workers(history)
    recorded = {(name, one.declaration.key) for name, every in history.declarations.items() for one in every}
    said: dict[Launch, Decimal] = {}
    cut: dict[Launch, Decimal] = {}
    for one in history.said:
        if one.kind == "usage" and (one.line is not None or (one.attempt_id, one.key) in recorded):
            used = Decimal(one.fields["units"][TOKENS])  # type: ignore[index]
            said[one.launch] = said.get(one.launch, Decimal(0)) + used
            if one.is_cut and one.launch not in ends:
                cut[one.launch] = cut.get(one.launch, Decimal(0)) + used
    for attempt in history.attempts.values():
        if attempt.work_id not in overheard or not is_final_attempt(attempt.state):
            continue
        launches = {launch: used for launch, used in said.items() if launch[0] == attempt.id}
        last = None if attempt.pin is None or attempt.id not in stopped else (attempt.id, attempt.pin.epoch)
        sure = {launch: used - cut.get(launch, Decimal(0)) for launch, used in launches.items()}
        least = sum((used for launch, used in sure.items() if launch in ends or launch == last), Decimal(0))
        most, used = sum(launches.values(), Decimal(0)), attempt.usage.amount(TOKENS)
        if not least <= used <= most:
            found.append(f"{attempt.id} is charged with {used} {TOKENS}, it reported {least} to {most}")
    return found


def _stopped_by_workers(history: History) -> set[AttemptId]:
    """Attempts whose stop a worker has proven, which reads before what was left unread."""
    return {
        event.attempt_id
        for event in history.events
        if event.kind == "attempt.stop_confirmed" and event.attempt_id and event.data.get("proof") != PERSON
    }

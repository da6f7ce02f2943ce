"""A recorded history without a fault of Works that speak: w1 parks and goes on, w2 is spoken to while it runs and held over budget, w3
is interrupted, w4 is refused at a gate, w5 fails for good and is tried again, w6 takes no input while it runs, w7 can be handed none.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from chaos.checks.spoken import CHANNEL_GONE
from chaos.history import History
from chaos.job import Job
from chaos.notes import Ends, Note, Word
from chaos.recording import Known, record
from chaos.seen import Accepted, Seen
from chaos.witness import Line, Mark
from shared.ids import Incarnation, WorkId, work_of
from shared.model.attempt import Ending, LeaseKey
from shared.model.budget import Budget, Per
from shared.model.declaration import Declaration, declaration_of
from shared.model.instant import US_PER_S
from shared.model.intent import Delivered, Intent
from shared.model.settings import Config, Settings
from shared.model.stream import Place, Refusal, RefusalCode, Stretch, Took
from shared.policy.outcome import End, Park, end_of
from shared.policy.settle import ending_of_status
from shared.store.settling import change_after
from shared.store.values import Claimed, ClaimHeld, GateHold
from tests.support.declarations import TICK
from tests.support.stores import LEASE_US, SQLITE, World, ram_folder

A_LIMIT = Budget("tokens", Decimal(10), Per.WORK)
BUDGETS = (Budget("tokens", Decimal(1_000), Per.ALL), A_LIMIT, Budget("turns", Decimal(1_000), Per.ALL))
CONFIG = Config(Settings(lease_us=LEASE_US), budgets=BUDGETS)


@dataclass
class Talk:
    """A store, and what the programs on it noted."""

    world: World
    worker: Incarnation
    lines: list[Line] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    said: int = 0

    def submit(self, **expected: Any) -> WorkId:
        work_id = self.world.submit(pool="agents", input_=b"first")
        self.jobs.append(Job(work_id, 0, may_run_again=True, may_be_retried=True, speaks=True, output=None, **expected))
        return work_id

    def note(self, word: Word, key: LeaseKey, **facts: Any) -> None:
        self.notes.append(Note(word, key.attempt_id, key.epoch, 500, **facts))

    def mark(self, mark: Mark, key: LeaseKey) -> None:
        seq = self.world.store.read(lambda tx: len(tx.events(after=0, limit=10_000)))
        self.lines.append(Line(mark, work_of(key.attempt_id), key.attempt_id, key.epoch, 500, seq))

    def begin(self, key: LeaseKey) -> LeaseKey:
        """Launch what was claimed or resumed; its program reads what it is given."""
        world = self.world
        world.store.write(lambda tx: tx.accept(key, invoke_isolated=True))
        world.store.write(lambda tx: tx.pin(key, world.pin(key)))
        self.mark(Mark.START, key)
        attempt = world.attempt(key.attempt_id)
        wake = world.store.read(lambda tx: tx.wake(attempt))
        told = None if wake is None else {"seq": wake.seq, "type": wake.type, "correlate": wake.correlate}
        self.note(Word.BEGAN, key, wake=told)
        snapshot = world.store.read(lambda tx: tx.snapshot(key.attempt_id))
        assert snapshot is not None
        for number in snapshot.inputs:
            self.see(key, number)
        return key

    def run(self, work_id: WorkId) -> LeaseKey:
        answer = self.world.try_claim(work_id, self.worker)
        assert isinstance(answer, Claimed), answer
        return self.begin(LeaseKey(answer.attempt_id, 1, self.worker))

    def see(self, key: LeaseKey, number: int, intent: str | None = None) -> None:
        (found,) = self.world.store.read(lambda tx: tx.inputs([number]))
        self.note(Word.SAW, key, input=number, intent=intent, sha256=hashlib.sha256(found.body).hexdigest())

    def say(self, key: LeaseKey, kind: str, body: dict[str, object]) -> None:
        self.said += 1
        declaration: Declaration = declaration_of(f"d{self.said}", kind, body)
        self.world.store.write(lambda tx: tx.declare(key, [declaration]))

    def use(self, key: LeaseKey, tokens: int) -> None:
        self.note(Word.USED, key, units={"tokens": Decimal(tokens)})
        self.say(key, "usage", {"units": {"tokens": tokens}})

    def turn(self, key: LeaseKey, status: str) -> None:
        self.note(Word.TURN, key, status=status)
        self.say(key, "turn", {"status": status})

    def run_dropping(self, work_id: WorkId) -> LeaseKey:
        """Of a binding that gives up what cannot be handed over."""
        pinned = replace(self.world.request(work_id, self.worker).snapshot, on_inject_error="drop")
        answer = self.world.try_claim(work_id, self.worker, snapshot=pinned)
        assert isinstance(answer, Claimed), answer
        return self.begin(LeaseKey(answer.attempt_id, 1, self.worker))

    def fail_to_hand_over(self, key: LeaseKey, body: bytes) -> None:
        """An input that cannot be handed over, as its program took its channel away."""
        write = self.world.store.write
        intent = write(lambda tx: tx.inject(work_of(key.attempt_id), body, by="t"))
        token = write(lambda tx: tx.dispatch(key, intent.number))
        assert token is not None
        why = CHANNEL_GONE
        assert write(lambda tx: tx.acknowledge(key, intent.number, token=token, result=Delivered.FAILED, why=why))

    def hand_over(self, key: LeaseKey, body: bytes) -> Intent:
        """An input that the program reads while it runs."""
        write = self.world.store.write
        name = f"k{len(self.accepted)}"
        intent = write(lambda tx: tx.inject(work_of(key.attempt_id), body, by="t", key=name))
        token = write(lambda tx: tx.dispatch(key, intent.number))
        assert token is not None
        assert write(lambda tx: tx.acknowledge(key, intent.number, token=token, result=Delivered.ACCEPTED))
        assert intent.input is not None
        digest = hashlib.sha256(body).hexdigest()
        self.accepted.append(Accepted(intent.work_id, intent.input, name, digest, intent.id))
        self.see(key, intent.input, intent.id)
        return intent

    def follow(self, key: LeaseKey, *, took: tuple[int, ...] = (), declined: tuple[str, ...] = ()) -> None:
        refused = (Refusal(1, RefusalCode.NOT_JSON, "it is no JSON"),)
        stretch = Stretch(Place(), Place(10, 1), (Took(1, took),), declined, (("later", 1),), refused)
        self.world.store.write(lambda tx: tx.follow(key, key.epoch, stretch))

    def end(self, key: LeaseKey, ends: Ends, **body: Any) -> None:
        """It says how it ends, ends, and is seen to."""
        awaits = ("tick", None) if ends is Ends.PARKS else (None, None)
        self.note(Word.ENDS, key, ends=ends, exit_status=0, awaits=awaits)
        if ends is Ends.PARKS:
            self.say(key, "wait", {"event": {"type": "tick"}, "resume": True})
        elif ends is not Ends.SILENT:
            self.say(key, "outcome", body)
        self.mark(Mark.END, key)
        self.mark(Mark.GONE, key)
        outcome = self.world.outcome(key)
        end: End = end_of(ending_of_status(0, "S1"), outcome)
        if isinstance(end, Park):
            self.world.store.write(lambda tx: tx.park(key, outcome, proof="S1"))
            return
        assert isinstance(end, Ending)
        self.world.store.write(
            lambda tx: tx.finish(key, end, change_after(tx, key.attempt_id, end, None, outcome), outcome=outcome)
        )

    def stop(self, key: LeaseKey) -> None:
        order = self.world.store.read(lambda tx: tx.stop_orders()[0])
        self.world.store.write(lambda tx: tx.take_stop_order(order.id, self.worker, lease_us=US_PER_S))
        self.world.confirm(key, epoch=order.epoch, proof="S5")


def spoken_history() -> History:
    """See above."""
    with ram_folder() as folder:
        world = World(SQLITE, folder)
        body, digest = CONFIG.to_json(), CONFIG.digest
        world.store.write(lambda tx: tx.activate_config(body, digest, "/tenure.toml"))
        talk = Talk(world, world.worker())
        _parks(talk)
        _listens(talk)
        _is_interrupted(talk)
        _is_refused(talk)
        _fails_for_good(talk)
        _declines(talk)
        _shuts(talk)
        world.as_leader(lambda tx: tx.settle_usage(BUDGETS, generation=1, limit=100))
        seen = Seen(notes=tuple(talk.notes), accepted=tuple(talk.accepted))
        history = record(world.store, lambda _: "", Known(talk.jobs, talk.lines, CONFIG, seen))
        world.close()
    return history


def _parks(talk: Talk) -> None:
    key = talk.run(talk.submit())
    talk.use(key, 4)
    talk.turn(key, "half")
    talk.end(key, Ends.PARKS)
    talk.world.store.write(lambda tx: tx.publish(TICK))
    attempt = talk.world.attempt(key.attempt_id)
    resume = replace(talk.world.resume_request(attempt.id, talk.worker), budgets=BUDGETS)
    assert isinstance(talk.world.as_leader(lambda tx: tx.claim_resume(resume)), Claimed)
    key = talk.begin(LeaseKey(key.attempt_id, 2, talk.worker))
    talk.use(key, 3)
    talk.turn(key, "done")
    talk.end(key, Ends.COMPLETED, kind="completed")


def _listens(talk: Talk) -> None:
    work_id = talk.submit()
    key = talk.run(work_id)
    taken = talk.hand_over(key, b"second")
    assert taken.input is not None
    talk.note(Word.TOOK, key, input=taken.input, intent=taken.id)
    talk.follow(key, took=(taken.input,))
    talk.hand_over(key, b"third")
    talk.use(key, 10)
    talk.end(key, Ends.COMPLETED, kind="completed")
    assert isinstance(talk.world.try_claim(work_id, talk.worker), ClaimHeld)
    talk.world.store.write(lambda tx: tx.release_work(work_id, by="t", reason="t"))
    talk.end(talk.run(work_id), Ends.SILENT)


def _is_interrupted(talk: Talk) -> None:
    work_id = talk.submit(interrupted=True)
    key = talk.run(work_id)
    talk.world.store.write(lambda tx: tx.interrupt(work_id, by="t", reason="t"))
    talk.mark(Mark.GONE, key)
    talk.stop(key)
    talk.end(talk.run(work_id), Ends.SILENT)


def _is_refused(talk: Talk) -> None:
    work_id = talk.submit(cancelled=True)
    held = talk.world.try_claim(work_id, talk.worker, gate_hold=GateHold("approval", "somebody has to look"))
    assert isinstance(held, ClaimHeld)
    talk.world.store.write(lambda tx: tx.settle_gate(work_id, holder="approval", verdict="refused", by="t", reason="t"))


def _fails_for_good(talk: Talk) -> None:
    work_id = talk.submit()
    talk.end(talk.run(work_id), Ends.PERMANENT, kind="failed", permanent=True)
    talk.world.store.write(lambda tx: tx.retry_work(work_id, by="t", reason="t"))
    talk.end(talk.run(work_id), Ends.COMPLETED, kind="completed")


def _declines(talk: Talk) -> None:
    work_id = talk.submit()
    key = talk.run(work_id)
    intent = talk.hand_over(key, b"no thanks")
    talk.note(Word.DECLINED, key, input=intent.input, intent=intent.id)
    talk.follow(key, declined=(intent.id,))
    talk.end(key, Ends.COMPLETED, kind="completed")
    talk.end(talk.run(work_id), Ends.SILENT)


def _shuts(talk: Talk) -> None:
    work_id = talk.submit()
    key = talk.run_dropping(work_id)
    talk.note(Word.SHUT, key)
    talk.fail_to_hand_over(key, b"in vain")
    talk.end(key, Ends.COMPLETED, kind="completed")

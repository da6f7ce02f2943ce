"""Cells of commands: what a person typed is killed or frozen at its commit, and called again.

Whether it was done is read from the store, never from what the command said. Rule: requirements M01, M05, V05.
"""

from __future__ import annotations

import itertools
import signal
import time

from chaos.harness import COORDINATOR, DRILL_ID, Running
from chaos.matrix.cell import CameTo, Cell, Harm, Scene, Who
from chaos.matrix.errands import Errand, errand_of
from chaos.matrix.outcome import Came, came
from chaos.matrix.scene import STATUS
from chaos.matrix.stage import WORKER, Stage, is_stopped, send
from shared.home import Home, create_home
from shared.store.sqlite.store import open_store

FROZEN_S = 0.8
RUN_AGAIN = "run it again"  # of two at once, one may be told so
KILLED = -9
_numbers = itertools.count(1)


def play(stage: Stage, cell: Cell) -> Came:
    """Hit a command at its boundary; call again when nothing had been done.

    Raises:
        AssertionError: it was not hit there, or what it left is neither done nor not done.
    """
    stage.ensure(COORDINATOR)
    stage.ensure(WORKER)
    errand = errand_of(stage, cell)
    order = cell.order(Harm.KILL if cell.who is Who.SELF and cell.harm is Harm.KILL else Harm.STOP)
    since = len(stage.harness.reached())
    command = stage.command(*errand.words, order=order)
    hit(stage, cell, command, order, since)
    return come_to_rest(errand, cell)


def come_to_rest(errand: Errand, cell: Cell) -> Came:
    """Call again where nothing was done, or where its key makes it the same call; see everything to its end."""
    stage = errand.stage
    stage.ensure(COORDINATOR)
    stage.ensure(WORKER)
    word = CameTo.DONE if errand.is_done() else CameTo.REPEATED
    if word is CameTo.REPEATED:
        _call(errand)
        assert errand.is_done(), f"`tenure {errand.words[0]}` ended well and did nothing"
    if errand.has_key:
        first, second = _call(errand), _call(errand)
        assert first == second, f"asked twice under one key, `tenure {errand.words[0]}` said {first!r} and {second!r}"
    errand.settle()
    with stage.valve_open():
        stage.wait_quiet(status=STATUS)
    return came(stage, cell, word)


def _call(errand: Errand) -> str:
    """Call for it once more; what it says."""
    again = errand.stage.command(*errand.words)
    code, said = errand.stage.end_of(again), again.log.read_text()
    assert code == 0, said
    return said


def hit(stage: Stage, cell: Cell, command: Running, order: str, since: int) -> None:
    """Do the harm of the cell to a command that is under way."""
    if cell.harm is Harm.KILL and cell.who is Who.SELF:
        noted = stage.await_reached(order, since)
        assert (noted.pid, stage.end_of(command)) == (command.pid, KILLED), command.log.read_text()
        return
    stopped = stage.await_stopped(order, since)
    assert stopped.pid == command.pid, f"{order} was reached by {stopped.pid}, not by {command.pid}"
    if cell.harm is Harm.KILL:
        stage.kill_everyone([command.pid])
        assert stage.end_of(command) == KILLED
        return
    frozen = stage.everyone([command.pid]) if cell.who is Who.EVERYONE else [command.pid]
    for pid in frozen:
        send(pid, signal.SIGSTOP)
    time.sleep(FROZEN_S)
    assert is_stopped(command.pid), f"the command at {order} did not stand still"
    stage.let_go(*frozen)
    assert stage.end_of(command) == 0, command.log.read_text()


def make_home(stage: Stage, cell: Cell) -> Came:
    """`tenure init`, hit while it makes the store of a home that was begun; then called again.

    Raises:
        AssertionError: as `play`; or the home is not whole afterwards.
    """
    assert cell.scene is Scene.NEW_HOME
    path = stage.folder / f"new-{next(_numbers)}"
    home = create_home(path)[0]
    (path / "drill").write_text(DRILL_ID, encoding="ascii")
    order = cell.order(cell.harm)
    command = stage.command("init", order=order, home=path)
    stage.harness.wait(lambda: _noted(home, order, command.pid) or command.process.poll() is not None, f"{order}", 20)
    assert _noted(home, order, command.pid), f"{order} was not reached: {command.log.read_text()}"
    if cell.harm is Harm.KILL:
        assert stage.end_of(command) == KILLED
        came_to = CameTo.DONE if _active(home, stage) else CameTo.REPEATED
        again = stage.command("init", home=path)
        assert stage.end_of(again) == 0, again.log.read_text()
    else:
        stage.harness.wait(lambda: is_stopped(command.pid), "the command stands still")
        other = stage.command("init", home=path)  # meanwhile somebody else tries
        time.sleep(FROZEN_S)
        send(command.pid, signal.SIGCONT)
        told = {each.log.read_text() for each in (command, other) if stage.end_of(each) != 0}
        assert len(told) <= 1, told
        assert all(RUN_AGAIN in text for text in told), told
        came_to = CameTo.DONE
    checked = stage.command("store", "check", home=path)
    assert stage.end_of(checked) == 0, checked.log.read_text()
    assert _active(home, stage), "the home has no configuration"
    return Came(came_to)


def _noted(home: Home, order: str, pid: int) -> bool:
    try:
        return (home.path / "drill.log").read_text(encoding="ascii").startswith(f"{order} {pid} ")
    except FileNotFoundError:
        return False


def _active(home: Home, stage: Stage) -> bool:
    if not home.store.exists():
        return False
    store = open_store(home.path, stage.harness.clock)
    try:
        return store.read(lambda tx: tx.config()) is not None
    finally:
        store.close()

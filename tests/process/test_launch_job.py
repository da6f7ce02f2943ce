"""What a job gets: its words, its streams, its environment, and nothing of ours."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from shared.model.evidence import ExitRecord, LockState
from shared.process.identity import is_alive
from shared.process.limits import inherited_file_limit, raise_file_limit
from tests.process.launch_host import ENV, Host


def test_a_job_runs_once_and_its_end_is_recorded(host: Host) -> None:
    pin = host.run(["sh", "-c", "echo out; echo err >&2; exit 7"])

    evidence = host.evidence(pin)
    assert host.out(pin) == "out\n"
    assert host.err(pin) == "err\n"
    assert evidence.exit == ExitRecord(status=7, ran=True, error=None, stop=None, tree_empty=True)
    assert evidence.same_boot
    assert evidence.same_pid_ns
    assert evidence.directory_proven
    assert evidence.lock is LockState.FREE
    assert evidence.child is not None
    assert evidence.child_alive is False
    assert is_alive(pin.shim) is False


def test_nothing_runs_before_go(host: Host, tmp_path: Path) -> None:
    held = host.hold(host.spec(["touch", str(tmp_path / "ran")]))

    evidence = host.evidence(held.pin)
    assert evidence.lock is LockState.HELD
    assert (evidence.child, evidence.exit) == (None, None)
    assert not (tmp_path / "ran").exists()

    held.go()
    host.await_end(held.pin)
    assert (tmp_path / "ran").exists()


def test_a_death_by_signal_is_recorded_as_its_negative_number(host: Host) -> None:
    pin = host.run(["sh", "-c", "kill -TERM $$"])

    assert host.await_end(pin).status == -15


@pytest.mark.parametrize(("stdin", "expected"), [(None, ""), (b"", ""), (b"one\ntwo\n", "one\ntwo\n")])
def test_standard_input_is_the_given_bytes_or_nothing(host: Host, stdin: bytes | None, expected: str) -> None:
    pin = host.run(["cat"], stdin=stdin)

    assert host.out(pin) == expected
    assert host.await_end(pin).status == 0


def test_the_environment_is_exactly_what_was_given_and_two_words_of_ours(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKED", "from the worker")
    monkeypatch.setenv("TENURE_ARM", "claim_commit:before:KILL")
    given = {"PATH": "/usr/bin:/bin", "NAME": "é=\n'", "EMPTY": ""}

    pin = host.run(["env", "-0"], attempt_id="w5.2", epoch=3, env=given)

    words = host.out(pin).rstrip("\0").split("\0")
    assert dict(word.split("=", 1) for word in words) == {**given, "TENURE_ATTEMPT": "w5.2", "TENURE_EPOCH": "3"}


def test_words_of_any_bytes_arrive_unchanged(host: Host) -> None:
    words = ["é", "a b", "", "'\"$x", os.fsdecode(b"\xff\x80"), "new\nline"]

    pin = host.run(["printf", "%s|", *words])

    assert (host.folder(pin) / "out").read_bytes() == b"".join(os.fsencode(word) + b"|" for word in words)


def test_a_large_command_line_passes_the_gate(host: Host) -> None:
    words = ["x" * 100_000] * 15

    pin = host.run(["sh", "-c", 'echo $#; for w in "$@"; do echo ${#w}; done', "sh", *words])

    assert host.out(pin).split() == ["15"] + ["100000"] * 15


def test_the_working_directory_is_the_given_one(host: Host, tmp_path: Path) -> None:
    assert host.out(host.run(["pwd"], cwd=str(tmp_path))) == f"{tmp_path}\n"


def test_a_job_inherits_no_descriptor_but_its_streams_and_the_tree_lock(host: Host) -> None:
    pin = host.run(["sh", "-c", "for fd in /proc/$$/fd/*; do readlink $fd; done"])

    folder = host.folder(pin)
    assert sorted(host.out(pin).split("\n")[:-1]) == sorted(
        ["/dev/null", f"{folder}/out", f"{folder}/err", f"{folder}/tree.lock"]
    )


def test_a_shim_keeps_nothing_open_but_its_evidence(host: Host) -> None:
    pin = host.start(["sleep", "60"])

    folder = f"/proc/{pin.shim.pid}/fd"
    kinds = sorted(os.readlink(f"{folder}/{fd}").partition(":[")[0] for fd in os.listdir(folder))
    # Its three streams, the directory, the lock, and the pipe on which the child would have told of a failed exec.
    assert kinds == sorted(["/dev/null"] * 3 + [str(host.folder(pin)), f"{host.folder(pin)}/lock", "pipe"])
    assert Path(f"/proc/{pin.shim.pid}/comm").read_text() == "tenure-shim\n"


def test_a_job_has_default_signals_and_none_blocked(host: Host) -> None:
    pin = host.run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])

    masks = dict(line.split(":") for line in host.out(pin).splitlines())
    assert {name: int(mask, 16) for name, mask in masks.items()} == {"SigBlk": 0, "SigIgn": 0}


def test_a_job_leads_its_own_session_and_group(host: Host) -> None:
    pin = host.run(["sh", "-c", "cut -d' ' -f1,5,6 /proc/$$/stat"])

    pid, group, session = host.out(pin).split()
    assert pid == group == session
    assert int(pid) == host.child_record(pin)["child"]["pid"] != pin.shim.pid


def test_a_job_makes_private_files_and_is_no_better_protected_from_the_oom_killer(host: Host) -> None:
    pin = host.run(["sh", "-c", "umask; cat /proc/self/oom_score_adj"])

    mask, score = host.out(pin).split()
    assert mask == "0077"
    assert int(score) >= 100 + int(Path("/proc/self/oom_score_adj").read_text())
    assert os.stat(host.folder(pin)).st_mode & 0o777 == 0o700
    assert {os.stat(path).st_mode & 0o077 for path in host.folder(pin).iterdir()} == {0}


def test_a_job_gets_the_file_limit_that_the_worker_was_started_with(host: Host) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert raise_file_limit() == hard
        host.launcher.close()
        host.launcher = type(host.launcher)(host.attempts, host.home)

        pin = host.run(["sh", "-c", "ulimit -Sn"])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert host.out(pin).strip() == str(inherited_file_limit())


def test_no_secret_of_the_environment_touches_the_disk(host: Host) -> None:
    pin = host.run(["true"], env={**ENV, "TOKEN": "hunter2-hunter2"})

    for path in host.folder(pin).iterdir():
        assert b"hunter2" not in path.read_bytes(), path


class TestCannotExec:
    """An exec that failed ran nothing, and its name says whether a retry could help."""

    def test_a_missing_command(self, host: Host) -> None:
        record = host.await_end(host.run(["no-such-command"]))

        assert (record.status, record.ran, record.tree_empty) == (None, False, True)
        assert record.error is not None
        assert record.error.startswith("exec: ENOENT: No such file")

    def test_a_missing_working_directory(self, host: Host, tmp_path: Path) -> None:
        record = host.await_end(host.run(["true"], cwd=str(tmp_path / "gone")))

        assert record.ran is False
        assert record.error is not None
        assert record.error.startswith("exec: ENOENT: working directory")

    def test_a_file_that_is_not_executable(self, host: Host, tmp_path: Path) -> None:
        (tmp_path / "script").write_text("#!/bin/sh\n")

        record = host.await_end(host.run([str(tmp_path / "script")]))

        assert record.error is not None
        assert record.error.startswith("exec: EACCES:")

    def test_a_file_of_no_known_format(self, host: Host, tmp_path: Path) -> None:
        path = tmp_path / "script"
        path.write_text("no interpreter line\n")
        path.chmod(0o755)

        record = host.await_end(host.run([str(path)]))

        assert record.error is not None
        assert record.error.startswith("exec: ENOEXEC:")

    def test_an_argument_over_the_kernels_limit(self, host: Host) -> None:
        record = host.await_end(host.run(["true", "x" * 200_000]))

        assert record.error is not None
        assert record.error.startswith("exec: E2BIG:")

    def test_the_command_is_looked_up_on_the_jobs_own_path(self, host: Host, tmp_path: Path) -> None:
        tool = tmp_path / "tool"
        tool.write_text("#!/bin/sh\necho found\n")
        tool.chmod(0o755)

        found = host.run(["tool"], env={"PATH": f"{tmp_path}:/bin"})
        missed = host.run(["tool"], env={"PATH": "/bin"})

        assert host.out(found) == "found\n"
        assert host.await_end(missed).ran is False

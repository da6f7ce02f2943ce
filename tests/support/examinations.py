"""Examining a home with `tenure doctor` in a test: what it finds, on a host about which there is nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from shared.commands import findings_place
from shared.process import cgroup
from shared.process.identity import identify
from tests.support.command_homes import Ask

Found = Callable[[], dict[str, str]]
"""Codes of what doctor finds, with their severity."""


def finding(ask: Ask) -> Found:
    """Ask doctor, and hold its answer to what holds for every one."""

    def found() -> dict[str, str]:
        said = ask("doctor", "--json")
        told = {each["code"]: each["severity"] for each in said.json["findings"]}
        assert said.code == (1 if {"error", "unknown"} & set(told.values()) else 0)
        assert said.json["ok"] == (said.code == 0)
        assert all(each["next_step"] for each in said.json["findings"])
        return told

    return found


def quiet_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is true of the host that runs the tests is not what they are about."""
    monkeypatch.setattr(findings_place, "library_version", lambda: (3, 51, 3))
    monkeypatch.setattr(findings_place, "EXIT_STATUS_KERNEL", (0, 0))
    monkeypatch.setattr(findings_place, "VOLATILE_FILESYSTEMS", {})
    monkeypatch.setattr(findings_place, "FULL_BYTES", 0)
    monkeypatch.setattr(findings_place, "FREE_BYTES_LEAST", 0)
    monkeypatch.setattr(findings_place, "FREE_FILES_LEAST", 0)
    monkeypatch.setattr(findings_place, "blindness", lambda: None)
    monkeypatch.setattr(cgroup, "own_directory", lambda: "/tmp")
    monkeypatch.setattr(findings_place, "CGROUP_KILL_KERNEL", (0, 0))
    monkeypatch.setattr(findings_place, "identify", lambda pid: replace(identify(pid), pidfs_ino=1))

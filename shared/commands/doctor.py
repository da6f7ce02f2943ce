"""`tenure doctor`: what is wrong, and what to do about it. Changes nothing.

Rule: requirement V04; exit code 1 when something is wrong, or when a check could not look.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from shared.commands.arguments import Parser, add_json
from shared.commands.findings import Finding, Patient, Severity
from shared.commands.findings_place import PLACE_CHECKS
from shared.commands.findings_store import STORE_CHECKS
from shared.commands.json_views import Json
from shared.commands.open_home import OpenHome, opened, place_of_home
from shared.commands.render import Ink, escaped, print_json
from shared.errors import TenureError

T = TypeVar("T")

OK = "ok"
_ORDER = (Severity.ERROR, Severity.UNKNOWN, Severity.WARNING, Severity.INFO)
_BAD = {Severity.ERROR, Severity.UNKNOWN}


@dataclass(frozen=True, slots=True)
class Checked:
    """One check and what it found; nothing found: all is well there."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> str:
        """The worst severity found, or `ok`."""
        found = {finding.severity for finding in self.findings}
        return next((severity.value for severity in _ORDER if severity in found), OK)


def main(argv: list[str], *, home: str | None) -> int:
    """Examine the home; 1 when there is an error or a check could not look, else 0.

    Raises:
        UsageError: there is no home. StoreUnavailableError: it is none of ours.
    """
    parser = Parser(
        "tenure doctor",
        "What is wrong with this home, and one safe next step for each; changes nothing.",
        "exit code: 0 nothing is wrong (there may be warnings), 1 something is, or could not be looked at",
    )
    add_json(parser)
    given = parser.parse(argv)
    checks = examine(Patient(place_of_home(home), home))
    bad = any(finding.severity in _BAD for check in checks for finding in check.findings)
    if given.json:
        print_json(view(checks, ok=not bad))
    else:
        print("\n".join(lines(checks, Ink.of(os.environ))))
    return 1 if bad else 0


def examine(patient: Patient) -> list[Checked]:
    """Make every check; those that need the store are `unknown` when it cannot be opened."""
    checks = [_checked(name, check, patient) for name, check in PLACE_CHECKS.items()]
    try:
        with opened(patient.named) as door:
            return checks + examine_store(door)
    except TenureError as error:
        unusable = Finding(f"store.{error.code}", Severity.ERROR, str(error), error.hint or "see `tenure store check`")
        first, *rest = STORE_CHECKS
        checks.append(Checked(first, (unusable,)))
        blind = f"the store cannot be used, see {unusable.code}"
        return checks + [Checked(name, (_unknown(name, blind),)) for name in rest]


def examine_store(door: OpenHome) -> list[Checked]:
    """Make every check of an open store."""
    return [_checked(name, check, door) for name, check in STORE_CHECKS.items()]


def view(checks: Sequence[Checked], *, ok: bool) -> Json:
    """For programs."""
    return {
        "ok": ok,
        "checks": [{"name": check.name, "status": check.status} for check in checks],
        "findings": [
            {
                "check": check.name,
                "code": finding.code,
                "severity": finding.severity,
                "message": finding.message,
                "next_step": finding.next_step,
            }
            for check in checks
            for finding in check.findings
        ],
    }


def lines(checks: Sequence[Checked], ink: Ink) -> list[str]:
    """For people: the worst first, then what is well."""
    findings = [finding for check in checks for finding in check.findings]
    text = []
    for finding in sorted(findings, key=lambda finding: _ORDER.index(finding.severity)):
        text.append(f"{ink.state(finding.severity)}  {ink.strong(finding.code)}  {escaped(finding.message)}")
        text.append(f"    next: {escaped(finding.next_step)}")
    well = [check.name for check in checks if not check.findings]
    if well:
        text.append(f"{ink.state(OK)}  {', '.join(well)}")
    return text


def _checked(name: str, check: Callable[[T], list[Finding]], subject: T) -> Checked:
    try:
        return Checked(name, tuple(check(subject)))
    except (OSError, TenureError, ValueError) as error:
        return Checked(name, (_unknown(name, str(error)),))


def _unknown(name: str, why: str) -> Finding:
    return Finding(f"{name}.unknown", Severity.UNKNOWN, f"could not look: {why}", "see to that, then ask again")

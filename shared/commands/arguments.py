"""Command lines of `tenure`'s own commands: argparse with one look, one wording of mistakes, exit code 2.

Argparse and not typer, because the hot commands are read with it too and people should not see two kinds of help.

Rule: design §12 (exit codes, `--json` on every read).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import NoReturn

from shared.errors import UsageError
from shared.ids import AttemptId, WorkId, is_attempt_id, is_work_id

REASON_CHARS_MAX = 1_000
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NO_CHOICE = re.compile(
    r"argument (?P<what>[^:]+): invalid choice: (?P<word>.*) \(choose from (?P<known>.*)\)", re.DOTALL
)
_NO_NUMBER = re.compile(r"argument (?P<option>-[^:]+): invalid int value: (?P<word>.*)", re.DOTALL)
_MISSING = "the following arguments are required: "


class Parser(argparse.ArgumentParser):
    """Argparse whose complaints are one line of ours, with the likely option, and which never guesses an abbreviation.

    Positionals are declared with `nargs="?"` and checked by the command, so that a mistyped option is named first.
    """

    def __init__(self, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.register("action", None, _Once)  # what `add_argument` takes unless told otherwise

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Take a command line apart.

        Raises:
            UsageError: it is wrong.
            SystemExit: `--help` was asked for and answered.
        """
        given, extra = self.parse_known_args(list(words))
        if extra:
            self.refuse(extra)
        return given

    def error(self, message: str) -> NoReturn:
        """See argparse; raises instead of printing."""
        raise UsageError(f"{self.prog}: {_reworded(message)}", hint=self._help_hint())

    def refuse(self, extra: list[str]) -> NoReturn:
        option = next((word for word in extra if word.startswith("-") and word != "-"), None)
        if option is None:
            raise UsageError(f"{self.prog}: what is {extra[0]!r} for?", hint=self._help_hint())
        name = option.partition("=")[0]
        known = [text for action in self._actions for text in action.option_strings]
        guess = likely(name, known)
        raise UsageError(f"{self.prog} has no option {name}{guess}", hint=self._help_hint())

    def _help_hint(self) -> str:
        return f"`{self.prog} --help` shows what it takes"


def _reworded(message: str) -> str:
    """A complaint of argparse in our words, where its own speak of arguments and choices."""
    found = _NO_CHOICE.fullmatch(message)
    if found is not None:
        known = found["known"].replace("'", "").split(", ")
        option = f"{found['what']}: " if found["what"].startswith("-") else ""
        return f"{option}{found['word']} is none of {', '.join(known)}{likely(found['word'].strip(chr(39)), known)}"
    number = _NO_NUMBER.fullmatch(message)
    if number is not None:
        return f"{number['option']}: {number['word']} is no whole number"
    if message.startswith(_MISSING):
        return f"{message.removeprefix(_MISSING)} is missing"
    return message


class _Once(argparse.Action):
    """Stores a value, and refuses a second one rather than forgetting the first."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        seen = vars(namespace).setdefault("_seen", set())
        if option_string is not None and self.dest in seen:
            parser.error(f"{option_string} is given twice")
        seen.add(self.dest)
        setattr(namespace, self.dest, values)


def add_json(parser: Parser) -> None:
    """Every read has it, and every command that hands something in or decides something."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def split_command(words: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What stands before `--`, and the command behind it; None when there is no `--`."""
    if "--" not in words:
        return list(words), None
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :])


def work_named(text: str | None, prog: str) -> WorkId:
    """A Work's id from the command line.

    Raises:
        UsageError: there is none, or it is of another shape.
    """
    if text is None:
        raise UsageError(f"{prog}: which work? Its id is missing", hint="`tenure work list` shows them")
    if not is_work_id(text):
        raise UsageError(f"{prog}: {text!r} is no work's id", hint="one looks like w41; `tenure work list` shows them")
    return WorkId(text)


def attempt_named(text: str | None, prog: str) -> AttemptId:
    """An attempt's id from the command line.

    Raises:
        UsageError: there is none, or it is of another shape.
    """
    if text is None:
        raise UsageError(f"{prog}: which attempt? Its id is missing", hint="`tenure work show w41` names them")
    if not is_attempt_id(text):
        hint = f"`tenure work show {text}` names its attempts" if is_work_id(text) else "one looks like w41.2"
        raise UsageError(f"{prog}: {text!r} is no attempt's id", hint=hint)
    return AttemptId(text)


def reason_given(text: str | None, prog: str) -> str:
    """What `--reason` says, for a decision that is recorded as a person's.

    Raises:
        UsageError: it was not given, says nothing, is too long, or is no text.
    """
    if text is None or not text.strip():
        hint = "it is kept as the word of whoever decides"
        raise UsageError(f'{prog}: why? Say it with --reason "…"', hint=hint)
    return _checked_reason(text.strip())


def reason_or(text: str, default: str) -> str:
    """What `--reason` says, or `default` when that is nothing.

    Raises:
        UsageError: it is too long, or is no text.
    """
    return _checked_reason(text.strip()) or default


def _checked_reason(text: str) -> str:
    if len(text) > REASON_CHARS_MAX:
        raise UsageError(f"--reason is {len(text)} characters long, {REASON_CHARS_MAX} are allowed")
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise UsageError("--reason holds a NUL or bytes that are no UTF-8: it is kept as text")
    return text


def whole_number(text: str, option: str, *, least: int, most: int) -> int:
    """A number within bounds.

    Raises:
        UsageError: it is no whole number, or out of bounds.
    """
    number = int(text) if _WHOLE_NUMBER.fullmatch(text) else None
    if number is None or not least <= number <= most:
        raise UsageError(f"{option} must be a whole number from {least} to {most}, not {text!r}")
    return number


def likely(name: str, known: Sequence[str]) -> str:
    """`; did you mean …?` for a mistyped name, or nothing."""
    from difflib import get_close_matches  # only a typing mistake pays for it

    near = get_close_matches(name, known, n=1)
    return f"; did you mean `{near[0]}`?" if near else ""

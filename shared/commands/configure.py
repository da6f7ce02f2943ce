"""`tenure init` and `tenure apply`: make a home, and make a configuration the active one.

Both check everything they are given before they create or change anything.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from shared import boundary
from shared.clock import SystemClock
from shared.commands.json_views import Json
from shared.commands.open_home import command_for, opened, place_of_home, working_folder
from shared.commands.render import print_json
from shared.config.loader import load, parse
from shared.config.starter import starter_text
from shared.errors import ConfigError, RefusedError, StoreUnavailableError, UsageError
from shared.home import Home, create_home, home_to_create, remove_empty_home
from shared.model.budget import Budget, Per
from shared.model.settings import Config
from shared.store.contract import ConfigGeneration
from shared.store.sqlite import store as sqlite

LISTED_MAX = 20

# Typer carries a click of its own from some version on and the public one before; this is the parent class in either.
_BAD_USAGE = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])


def init(argv: list[str], *, home: str | None) -> int:
    """`tenure init`: write a first `tenure.toml` and the home, and activate it."""
    app = _application()

    @app.command(help="Write a first tenure.toml and the home. What is there already is kept.")
    def command() -> None:
        _init(home_to_create(home, os.environ, working_folder()), home)

    return _call(app, argv, "tenure init")


@dataclass(frozen=True, slots=True)
class Differences:
    """Names of what a configuration adds to another one, says otherwise, and leaves out."""

    added: list[str]
    changed: list[str]
    gone: list[str]


@dataclass(frozen=True, slots=True)
class Judged:
    """A configuration that is valid.

    Attributes:
        source: As it is told: the file given, or the one last applied.
        before: What was active; None: nothing, or there is no home to ask.
        generation: What is active now; None: nothing.
        is_check: Nothing was to be changed. `has_home`: it was compared with what is active.
    """

    source: Path
    config: Config
    before: ConfigGeneration | None
    generation: int | None
    is_check: bool
    has_home: bool = True

    @property
    def is_same(self) -> bool:
        """It says what is active already."""
        if not self.is_check:
            return self.before is not None and self.generation == self.before.number
        return self.before is not None and self.before.digest == self.config.digest and self.before.is_readable


def apply(argv: list[str], *, home: str | None) -> int:
    """`tenure apply [FILE] [--check]`: check a configuration and make it the active one."""
    app = _application()

    @app.command(help="Check a configuration and make it the active one. Running attempts keep what they started with.")
    def command(
        file: Annotated[Path | None, typer.Argument(help="The configuration; else the file last applied.")] = None,
        check: Annotated[bool, typer.Option("--check", help="Only check; change nothing.")] = False,  # noqa: FBT002
        as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,  # noqa: FBT002
    ) -> None:
        judged = _check(file, home) if check else _apply(file, home)
        if as_json:
            print_json(_view(judged))
        else:
            print("\n".join(_told(judged)))

    return _call(app, argv, "tenure apply")


def _init(path: Path, named: str | None) -> None:
    target = Home(path).config_path
    text: str | None = None
    if os.path.lexists(target):
        config = load(target)
    else:
        text = starter_text(_running_command(), str(path))
        config = parse(text, source=str(target), folder=target.parent)
    _make(path)
    with opened(str(path)) as home:
        active = home.store.read(lambda tx: tx.config())
        if active is not None:
            print(f"{path} is a home already; generation {active.number} of {active.source_path} is active")
            return
        if text is not None:
            _write_new(target, text)
        body, digest = config.to_json(), config.digest
        generation = home.store.write(lambda tx: tx.activate_config(body, digest, str(target)))
    kept = "kept as it was" if text is None else "written; it explains itself"
    print(f"{target}  {kept}")
    print(f"{path}  made; generation {generation} is active: {_summary(config)}")
    print(f"next: `{command_for(named, 'up')}` in one terminal, `{command_for(named, 'run -- echo hello')}` in another")


def _make(path: Path) -> None:
    """Make the home and its store where they are not there yet; a home that can have no store is not left behind."""
    home, created = create_home(path)
    if home.store.exists():
        return
    if any(home.attempts.iterdir()):
        message = f"{path} holds attempts, but the store that knows them is gone"
        raise StoreUnavailableError("store_regressed", message, hint=f"put a backup back as {home.store}")
    boundary.arm(path)
    try:
        sqlite.create(home.path, SystemClock())
    except RefusedError:
        pass  # another `tenure init` made it in this moment
    except StoreUnavailableError:
        if created:
            remove_empty_home(home)
        raise


def _apply(file: Path | None, named: str | None) -> Judged:
    with opened(named) as home:
        before = home.store.read(lambda tx: tx.config())
        source = _source(file, before, home.place)
        config = _load_over(source, before)
        body, digest = config.to_json(), config.digest
        generation = home.store.write(lambda tx: tx.activate_config(body, digest, str(source)))
    return Judged(source, config, before, generation, is_check=False)


def _check(file: Path | None, named: str | None) -> Judged:
    """Judge a file; compares it with the active configuration where there is a home."""
    given = None if file is None else load(file)
    try:
        place = place_of_home(named)
    except UsageError:
        if file is None or given is None:
            raise
        return Judged(file, given, None, None, is_check=True, has_home=False)
    with opened(str(place.path)) as home:
        before = home.store.read(lambda tx: tx.config())
    source = _source(file, before, place)
    config = load(source) if given is None else given
    return Judged(source, config, before, None if before is None else before.number, is_check=True)


def _told(judged: Judged) -> list[str]:
    source, number = judged.source, judged.generation
    if not judged.has_home:
        return [f"{source}: valid: {_summary(judged.config)}"]
    if judged.is_check and judged.is_same:
        return [f"{source}: valid; the same as generation {number}, which is active"]
    if judged.is_check:
        return [f"{source}: valid; nothing was changed. To activate: {_changes(judged.before, judged.config)}"]
    if judged.is_same:
        return [f"{source}: unchanged; generation {number} stays active"]
    return [f"{source}: generation {number} is active", f"  {_changes(judged.before, judged.config)}"]


def _view(judged: Judged) -> Json:
    """For programs. What differs is null where there is nothing to compare with."""
    differs = _differences(judged.before, judged.config)
    return {
        "source": str(judged.source),
        "valid": True,
        "generation": judged.generation,
        "activated": not judged.is_check and not judged.is_same,
        "same": judged.is_same,
        "new": None if differs is None else differs.added,
        "changed": None if differs is None else differs.changed,
        "gone": None if differs is None else differs.gone,
    }


def _load_over(source: Path, active: ConfigGeneration | None) -> Config:
    """The configuration of a file; a fault in it says what stays active.

    Raises:
        ConfigError: it cannot be read or is wrong.
    """
    try:
        return load(source)
    except ConfigError as error:
        if active is not None:
            error.message += f"; generation {active.number} stays active"
        raise


def _source(file: Path | None, active: ConfigGeneration | None, home: Home) -> Path:
    """The file to read: the one given, else the one last applied, else where `init` puts it."""
    if file is not None:
        return file.absolute()
    return home.config_path if active is None else Path(active.source_path)


def _running_command() -> list[str]:
    """This very command by absolute path: a job's PATH does not lead to tenure's own environment."""
    called = shutil.which(sys.argv[0]) if Path(sys.argv[0]).name == "tenure" else None
    if called is not None:
        return [str(Path(called).absolute())]
    return [sys.executable, "-P", "-m", "shared.cli"]


def _write_new(target: Path, text: str) -> None:
    """Write a file that is not there yet, whole or not at all; one that appeared meanwhile is kept and refused."""
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        target.hardlink_to(draft)  # unlike a rename, it never takes the place of another file
    except FileExistsError as error:
        raise ConfigError("appeared while `tenure init` ran", source=str(target), hint="run it again") from error
    except OSError as error:
        message = f"{target} cannot be written: {error.strerror}"
        raise StoreUnavailableError("io_error", message) from error
    finally:
        draft.unlink(missing_ok=True)


def _summary(config: Config) -> str:
    names = [binding.name for binding in config.bindings]
    bindings = f"bindings {_listed(names)}" if names else "no bindings"
    return f"{bindings}; {len(config.scopes)} scope{'' if len(config.scopes) == 1 else 's'}"


def _changes(before: ConfigGeneration | None, config: Config) -> str:
    """What differs from the active configuration, in one line."""
    if before is None:
        return _summary(config)
    differs = _differences(before, config)
    if differs is None:
        return f"{_summary(config)}; generation {before.number} cannot be read, so there is nothing to compare"
    listed = {"new": differs.added, "changed": differs.changed, "gone": differs.gone}
    words = [f"{what}: {_listed(names)}" for what, names in listed.items() if names]
    if words:
        return "; ".join(words)
    is_same = before.config() == config
    return "the same content, from another file" if is_same else "the budgets in another order"


def _differences(before: ConfigGeneration | None, config: Config) -> Differences | None:
    if before is None or not before.is_readable:
        return None
    old, new = _parts(before.config()), _parts(config)
    added = [name for name in new if name not in old]
    gone = [name for name in old if name not in new]
    return Differences(added, [name for name in new if name in old and old[name] != new[name]], gone)


def _parts(config: Config) -> dict[str, Any]:
    """The pieces a person would name, with their values."""
    settings = {
        f"settings.{name.removesuffix('_us').removesuffix('_bytes')}": value
        for name, value in asdict(config.settings).items()
    }
    scopes = {f"scope {scope.name}": scope for scope in config.scopes}
    bindings = {f"binding {binding.name}": binding for binding in config.bindings}
    return settings | scopes | bindings | {_budget_name(budget): budget for budget in config.budgets}


def _budget_name(budget: Budget) -> str:
    """What no two budgets of a file have in common: `budget usd per scope in ops (day)`."""
    whose = "of all" if budget.per is Per.ALL else f"per {budget.per}"
    within = "" if budget.scope is None else f" in {budget.scope}"
    return f"budget {budget.unit} {whose}{within} ({budget.period})"


def _listed(names: Sequence[str]) -> str:
    """The names, or the first of very many and how many more there are."""
    more = len(names) - LISTED_MAX
    return ", ".join(names[:LISTED_MAX]) + (f" and {more} more" if more > 0 else "")


def _application() -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode=None)


def _call(app: typer.Typer, argv: list[str], name: str) -> int:
    try:
        code = app(args=argv, prog_name=name, standalone_mode=False)
    except _BAD_USAGE as error:
        raise UsageError(error.format_message(), hint=f"`{name} --help` shows what it takes") from error
    return int(code or 0)

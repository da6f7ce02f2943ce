"""Results of drills: the file gives back the value, and a file that is none is refused with the place named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos import host, results
from chaos.results import Figure, Result
from chaos.written import require_writable, write_private
from shared.errors import ConfigError, UsageError
from tests.support.drill_results import HOSTILE, a_result


def test_a_file_gives_back_what_was_written(tmp_path: Path) -> None:
    written = a_result(hostile=True)

    written.write(tmp_path / "result.json")

    assert results.read(tmp_path / "result.json") == written
    assert HOSTILE in written.cells[0].came_to
    assert (tmp_path / "result.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_one_that_was_there_is_replaced_and_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("old", "ascii")
    path.chmod(0o644)

    a_result().write(path)

    assert results.read(path) == a_result()
    assert path.stat().st_mode & 0o777 == 0o600


def without(name: str) -> Callable[[dict[str, Any]], None]:
    return lambda facts: facts.pop(name)


def with_cell(**changed: object) -> Callable[[dict[str, Any]], None]:
    return lambda facts: facts["cells"][1].update(changed)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (without("seed"), "seed is missing"),
        (without("format"), "is no result of a drill"),
        (lambda facts: facts.update(format=2), "format is not 1"),
        (lambda facts: facts.update(colour="red"), "'colour' is not known here"),
        (lambda facts: facts.update(seed="5"), "seed must be a whole number"),
        (lambda facts: facts.update(passed=1), "passed must be true or false"),
        (lambda facts: facts.update(cells={}), "cells must be a list"),
        (lambda facts: facts.update(totals=[]), "totals must be an object"),
        (lambda facts: facts["totals"].update(kills=True), "totals.kills must be a number"),
        (lambda facts: facts["host"].pop("kernel"), "host.kernel is missing"),
        (with_cell(took_ms=1.5), "cells[1].took_ms must be a whole number"),
        (with_cell(findings=["a", 3]), "cells[1].findings[1] must be text"),
        (with_cell(name=None), "cells[1].name must be text"),
        (lambda facts: facts["guards"].append(7), "must be an object"),
    ],
)
def test_a_spoilt_result_is_refused_and_the_place_named(
    tmp_path: Path, spoil: Callable[[dict[str, Any]], None], told: str
) -> None:
    facts = json.loads(a_result().to_json())
    spoil(facts)
    path = tmp_path / "spoilt.json"
    path.write_text(json.dumps(facts), "utf-8")

    with pytest.raises(ConfigError) as caught:
        results.read(path)

    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "line 1 is no JSON"),
        (b"{\n  nonsense", "line 2 is no JSON"),
        (b"[]", "is no result of a drill"),
        (b"\xff\xfe", "byte 0 is no UTF-8"),
        (b'{"format": 1, "format": 1}', "a key stands twice"),
        (b'{"format": 1, "seed": NaN}', "NaN is no number"),
        (b"[" * 100_000, "is no JSON of ours"),
    ],
)
def test_what_is_no_result_at_all_is_refused(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(data)

    with pytest.raises(ConfigError, match=told):
        results.read(path)


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        results.read(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        results.read(tmp_path)


def test_a_file_goes_only_where_one_can_be(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("", "ascii")

    require_writable(tmp_path / "new", "--result")
    require_writable(tmp_path / "there", "--result")
    with pytest.raises(UsageError, match="is no file"):
        require_writable(tmp_path, "--result")
    with pytest.raises(UsageError, match="is no file"):
        require_writable(Path("/dev/null"), "--result")
    with pytest.raises(UsageError, match="no file can be written in"):
        require_writable(tmp_path / "none" / "new", "--result")


def test_text_that_is_no_unicode_is_written_all_the_same(tmp_path: Path) -> None:
    write_private(tmp_path / "odd", "a\udcffb")

    assert (tmp_path / "odd").read_bytes() == b"a\\udcffb"


def test_the_host_is_probed_and_fits_into_a_result() -> None:
    here = host.probe()

    assert here.cpus >= 1
    assert here.sqlite.count(".") == 2
    assert Result.from_json(a_result(host=here).to_json()).host == here


@pytest.mark.parametrize(
    ("values", "p50", "p99", "most"),
    [([5.0], 5.0, 5.0, 5.0), ([3, 1, 2], 2, 3, 3), ([4, 3, 2, 1], 2, 4, 4), (list(range(1, 201)), 100, 198, 200)],
)
def test_a_figure_names_values_of_its_series(values: list[float], p50: float, p99: float, most: float) -> None:
    assert Figure.of("recovery", "ms", values) == Figure("recovery", "ms", p50, p99, most, len(values))

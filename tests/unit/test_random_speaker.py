"""Programs of the random drill that speak: what one launch of them plays."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.random_drill.speaker import Speaker

SCENES = [{"ends": "gives up"}, {"ends": "does well"}]


@pytest.mark.parametrize(
    ("begun", "scene"),
    [
        (["w7.1"], "gives up"),
        (["w7.2"], "gives up"),  # the launch of its first attempt came to nothing
        (["w7.1", "w7.1"], "does well"),  # it waited meanwhile
        (["w7.1", "w7.2"], "does well"),
        (["w7.1", "w7.2", "w7.3"], "does well"),
        (["w71.1", "w7.1"], "gives up"),
    ],
)
def test_each_launch_of_a_work_that_began_plays_the_next_scene(
    begun: list[str], scene: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "witness"
    lines = [f"{mark} {name.partition('.')[0]} {name} 1 500\n" for name in begun for mark in ("start", "end")][:-1]
    witness.write_text("".join(lines), encoding="ascii")
    for name, value in (("WORK", "w7"), ("ATTEMPT", begun[-1]), ("EPOCH", "1")):
        monkeypatch.setenv(f"TENURE_{name}", value)

    assert Speaker({"witness": str(witness), "scenes": SCENES}).scene()["ends"] == scene

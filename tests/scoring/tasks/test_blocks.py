"""Groups from coordinates."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.tasks import blocks, load_tasks
from worker.cli import guarded

PLACES = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


def kilometers(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance on a sphere."""
    (a, b), (c, d) = np.radians(one), np.radians(other)
    chord = np.sin((c - a) / 2) ** 2 + np.cos(a) * np.cos(c) * np.sin((d - b) / 2) ** 2
    return float(12742 * np.arcsin(np.sqrt(min(1.0, chord))))


@given(st.lists(PLACES, min_size=2, max_size=20), st.sampled_from([1.0, 50.0, 500.0]))
def test_places_of_a_block_are_near(places: list[tuple[float, float]], km: float) -> None:
    """No two places of a block are further apart than its diagonal, with a margin for the width that changes within its band."""
    names = blocks(*zip(*places, strict=True), km)
    for (one, first), (other, second) in combinations(zip(places, names, strict=True), 2):
        assert first != second or kilometers(one, other) <= 2.5 * km


def test_a_block_is_a_rectangle() -> None:
    """A whole band is cut at the same longitudes, so places one above the other are not parted far from where the cutting begins."""
    east = np.linspace(-180, 179.9, 50)
    assert blocks([45.02] * 50, east, 50) == blocks([45.2] * 50, east, 50)


def test_a_grid_becomes_blocks_and_both_notations_of_longitude_agree() -> None:
    """At the equator, a degree is 111 km."""
    assert len(set(blocks([0.1, 0.1, 0.3, 5.0], [10.01, 10.02, 10.03, 10.0], 50))) == 2
    assert blocks([45.2], [-30.5], 20) == blocks([45.2], [329.5], 20)


def test_a_task_is_made_with_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The package has the groups and no coordinates; a place that is missing or none on Earth is named by its line."""
    rows = [f"p{row},{row % 7},{40 + row / 10},{row / 10}" for row in range(60)]
    source = tmp_path / "canopy__regr.csv"
    source.write_text("\n".join(["id,label,lat,lon", *rows]))
    command = ["task", "new", str(tmp_path / "tasks" / "canopy"), "--labels", str(source), "--blocks", "100"]
    (tmp_path / "tasks").mkdir()
    assert guarded(command) == 0
    assert "groups of 60 samples" in capsys.readouterr().out
    [task] = load_tasks(tmp_path / "tasks", [f"p{row}" for row in range(60)])
    assert 5 <= len(set(task.groups)) < 30
    assert (tmp_path / "tasks" / "canopy" / "labels.csv").read_text().startswith("id,label,group\n")
    command[2] = str(tmp_path / "tasks" / "other")
    for place in (",5", "inf,5", "5200000.5,400000", "40,-181", "40,361"):
        source.write_text("\n".join(["id,label,lat,lon", *rows[:3], f"p3,1,{place}"]))
        assert guarded(command) == 2
        assert "not a number of degrees, first on line 5" in capsys.readouterr().err
    source.write_text("\n".join(["id,label,lat,lon", *(f"p{row},{row % 7},40,7" for row in range(60))]))
    assert guarded(command) == 2
    assert "has 1 group, but at least" in capsys.readouterr().err
    source.write_text("\n".join(["id,label,lat,lon,group", *(f"{row},a" for row in rows)]))
    assert guarded(command) == 2
    assert "a column group already" in capsys.readouterr().err

"""The package's public names, and the example on its page, which must print what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import leaderboard
import scoring

PAGE = (Path(scoring.__file__).parent / "README.md").read_text("utf-8").partition("## From Python")[2]
EXAMPLE, PRINTED = re.findall(r"```(?:python|text)\n(.*?)```", PAGE, re.DOTALL)[:2]
ROWS, DIM = 400, 8


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the example reads: two submissions and two tasks."""
    random = np.random.RandomState(0)
    latent = random.standard_normal((ROWS, DIM))
    ids = [f"image_{number:03}" for number in range(ROWS)]
    (tmp_path / "ids.txt").write_text("\n".join(ids) + "\n")
    (tmp_path / "labels").mkdir()
    tables = {
        "ours.csv": latent + 0.1 * random.standard_normal((ROWS, DIM)),
        "theirs.csv": latent + random.standard_normal((ROWS, DIM)),
        "labels/height__regr.csv": latent[:, :1],
        "labels/wood__cls.csv": latent[:, 1:2] > 0,
    }
    for name, table in tables.items():
        header = ",".join(map(str, range(DIM))) if table.shape[1] == DIM else "label"
        rows = (
            ",".join([one, *(f"{value:.4f}" for value in row)]) for one, row in zip(ids, table, strict=True)
        )
        (tmp_path / name).write_text("\n".join([f"id,{header}", *rows]) + "\n")
    return tmp_path


def test_the_example_prints_what_its_page_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader who copies the example gets the output on the page."""
    monkeypatch.chdir(folder)
    exec(compile(EXAMPLE, "README.md", "exec"), {})  # the page is ours
    assert capsys.readouterr().out == PRINTED


def test_every_public_name_exists_and_is_described() -> None:
    """Each name in ``__all__`` can be imported and is on the page; another name cannot be imported."""
    assert scoring.__all__ == sorted(scoring.__all__) == dir(scoring)
    for name in scoring.__all__:
        assert callable(getattr(scoring, name))
        assert f"{name}" in PAGE, name
    assert callable(leaderboard.rank)
    for package in (scoring, leaderboard):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            package.nothing  # noqa: B018


def test_importing_them_loads_nothing() -> None:
    """Reading tables does not import the code that trains probes, and scoring does not import the code that ranks."""
    code = "import sys, scoring, leaderboard; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert not {"numba", "torch", "scoring.evaluate", "leaderboard.ranking.dynamic_rank"} & set(loaded)

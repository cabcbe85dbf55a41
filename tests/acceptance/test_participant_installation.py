"""Participants can install only the check and the template, without the software that runs a challenge."""

from __future__ import annotations

import json
import shutil
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.acceptance.installation import DECLARED, ROOT, Installation, copy_checkout
from worker import __version__
from worker.cli import guarded

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("installation")]
PARTICIPANT = tomllib.loads((ROOT / "config/participant/pyproject.toml").read_text())["project"]
IDS = [f"image {number}" for number in range(150)]
DIM = 256


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The small distribution, built from a clone as pip builds it, and the libraries that it declares."""
    folder = tmp_path_factory.mktemp("light")
    clone = copy_checkout(folder / "clone")
    installation = Installation(folder / "environment", PARTICIPANT["dependencies"])
    installation.run("pip", "install", "--quiet", "--no-deps", str(clone / "config/participant"), cwd=folder)
    return installation


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with an id list and a file that a full installation reads with compiled code; the file's columns are numbered from 2."""
    matrix = np.random.default_rng(0).standard_normal((len(IDS), DIM)).astype(np.float32)
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n")
    rows = [",".join([name, *row.astype(str).tolist()]) for name, row in zip(IDS, matrix, strict=True)]
    header = ",".join(["id", *map(str, range(2, DIM + 2))])
    (tmp_path / "one.csv").write_text("\n".join([header, *rows]) + "\n")
    assert (tmp_path / "one.csv").stat().st_size > 256 << 10
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        "docs/participants.md",
        "config/participant/README.md",
        "config/bundle/pages/submission_guidelines.html.j2",
    ],
)
def test_a_page_names_the_oldest_python(page: str) -> None:
    """With an older one, pip only complains about a library."""
    oldest = PARTICIPANT["requires-python"].removeprefix(">=")
    assert f" Python {oldest} or newer" in (ROOT / page).read_text()


def test_the_installation_is_small(light: Installation, tmp_path: Path) -> None:
    """The installation has no library for training, serving or compiling, and neither boards nor the scoring kernel."""
    assert {name.partition(">")[0] for name in PARTICIPANT["dependencies"]} == {"gitpython", "numpy", "typer"}
    assert set(PARTICIPANT["dependencies"]) <= set(DECLARED)  # the nightly run tries the oldest of these
    heavy = (
        "torch",
        "numba",
        "flask",
        "sqlalchemy",
        "pandas",
        "pyarrow",
        "leaderboard.ranking",
        "scoring.kernel",
    )
    code = f"import importlib.util as u; print([n for n in {heavy} if u.find_spec(n)])"
    assert light.run("python", "-c", code, cwd=tmp_path) == "[]\n"
    assert PARTICIPANT["version"] == __version__


def test_the_verdict_equals_that_of_the_full_installation(
    light: Installation, work: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both installations print the same text for a refused file and for a valid file."""
    monkeypatch.chdir(work)
    common = ["--ids", "ids.txt", "--dim", str(DIM)]
    refused = light.run("neuco-check", "validate", "one.csv", *common, cwd=work, expect=1)
    assert guarded(["validate", "one.csv", *common]) == 1
    assert refused.partition(":")[2] == capsys.readouterr().err.partition(":")[2]
    _, rows = (work / "one.csv").read_text().split("\n", 1)
    (work / "valid.csv").write_text(",".join(["id", *map(str, range(DIM))]) + "\n" + rows)
    valid = light.run("neuco-check", "validate", "valid.csv", *common, cwd=work)
    assert guarded(["validate", "valid.csv", *common]) == 0
    assert valid == capsys.readouterr().out
    assert valid.startswith("The file is valid: 150 embeddings with 256 values each.")


def test_template_usage_and_what_pyarrow_reads(light: Installation, work: Path) -> None:
    """The template works, wrong usage and a missing library are reported, with another exit status than that of an invalid file."""
    message = light.run("neuco-check", "template", "t.csv", "--ids", "ids.txt", "--dim", "2", cwd=work)
    assert message.startswith("Wrote t.csv: 150 rows")
    (work / "a.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    for words, part in (
        (["run"], "No such command"),
        (["validate", "one.csv"], "--challenge URL"),
        (["validate", "a.parquet", "--ids", "ids.txt", "--dim", "2"], "pip install pyarrow"),
    ):
        assert part in light.run("neuco-check", *words, cwd=work, expect=2)


def test_it_needs_nothing_that_windows_lacks(light: Installation, work: Path) -> None:
    """Signals, modules and programs that only POSIX has may be missing."""
    (work / "programs").mkdir()
    (work / "programs/git").symlink_to(str(shutil.which("git")))
    (work / "commitment.json").write_text(json.dumps([{"phases": {}}]))
    for words in (
        ["init", "--quiet"],
        ["add", "commitment.json"],
        ["commit", "--quiet", "--message", "First"],
    ):
        light.run("git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words, cwd=work)
    code = (
        "import os, signal, sys\n"
        "for name in ('SIGHUP', 'SIGCHLD', 'SIGKILL'): delattr(signal, name)\n"
        "for name in ('fcntl', 'grp', 'pwd', 'resource', 'termios'): sys.modules[name] = None\n"
        "os.environ['PATH'] = os.path.abspath('programs')\n"
        "from worker.participant.commands import main\n"
        "main()\n"
    )
    for options, status, part in (
        (["--ids", "ids.txt", "--dim", str(DIM)], 1, "beyond the last dimension"),
        (["--challenge", work.as_uri()], 2, "There is no phase in commitment.json."),
    ):
        assert part in light.run(
            "python", "-c", code, "validate", "one.csv", *options, cwd=work, expect=status
        )


def test_its_modules_are_those_of_the_full_wheel(light: Installation, wheel: Path) -> None:
    """Every module in it is in the wheel of neuco-worker too, byte for byte."""
    with zipfile.ZipFile(wheel) as archive:
        for package in ("worker", "leaderboard", "scoring"):
            for path in (light.libraries / package).rglob("*.py"):
                assert archive.read(path.relative_to(light.libraries).as_posix()) == path.read_bytes()

"""What is installed from a wheel works without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    subprocess.run(
        [*command, "--no-build-isolation", "--wheel-dir", str(target), str(ROOT)], check=True, timeout=100
    )
    (built,) = target.glob("neuco_worker-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel alone is installed; its dependencies are those of this environment."""
    target = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def run(installed: Path, code: str, cwd: Path, *arguments: str) -> str:
    """Run Python far from the checkout, with the installed packages before everything else."""
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    ).stdout


def test_wheel_holds_everything_and_nothing_else(wheel: Path) -> None:
    """Three packages, the shipped files, the licence; no tests, no caches, no secrets."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {
        "worker",
        "scoring",
        "leaderboard",
    }
    for needed in (
        "worker/config/challenge.yaml",
        "worker/config/demo/digits.npz",
        "worker/config/bundle/logo.png",
    ):
        assert needed in names
    assert any(name.endswith("LICENSE") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".secret", ".db"))]


def test_packages_come_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """Guard for the tests below: the checkout is not what they see."""
    code = (
        "import worker, scoring, leaderboard; print(worker.__file__, scoring.__file__, leaderboard.__file__)"
    )
    assert all(path.startswith(str(installed)) for path in run(installed, code, tmp_path).split())


def test_shipped_files_are_found(installed: Path, tmp_path: Path) -> None:
    """Configuration, templates and demo data are inside the installed package."""
    code = """
from worker.demo import data
from worker.resources import shipped
from worker.configuration import load
for name in ("config/challenge.yaml", "config/bundle/challenge_config.yaml.j2", "config/demo", "deploy"):
    print(shipped(name))
print(sorted(load(shipped("config/challenge.yaml")).phases), [len(phase.ids) for phase in data.load()])
"""
    *paths, last = run(installed, code, tmp_path).splitlines()
    assert all(path.startswith(str(installed / "worker")) for path in paths)
    assert last == "['dev', 'eval'] [697, 1100]"


def test_init_works_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    """A new challenge can be made where there is no checkout."""
    run(installed, "from worker.cli import main; main()", tmp_path, "init", "c", "--yes", "--dim", "64")
    assert (tmp_path / "c" / "bundle.zip").is_file()
    assert oct((tmp_path / "c" / "challenge.secret").stat().st_mode & 0o777) == "0o600"


def test_page_templates_are_in_the_wheel(wheel: Path) -> None:
    """Everything that is not Python but lies in a package travels with it."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    for package in ("worker", "scoring", "leaderboard"):
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc":
                assert path.relative_to(ROOT).as_posix() in names

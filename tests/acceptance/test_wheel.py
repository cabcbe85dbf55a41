"""What is installed from a wheel works without the checkout."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.acceptance.installation import ROOT, Installation

pytestmark = pytest.mark.xdist_group("installation")


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


def test_packages_come_from_the_wheel(installation: Installation, tmp_path: Path) -> None:
    """Guard for the tests below: the checkout is not what they see."""
    code = "import worker, scoring, leaderboard as l; print(worker.__file__, scoring.__file__, l.__file__)"
    told = installation.run("python", "-c", code, cwd=tmp_path)
    assert all(path.startswith(str(installation.libraries)) for path in told.split())


def test_shipped_files_are_found(installation: Installation, tmp_path: Path) -> None:
    """Configuration, templates and demo data are inside the installed package."""
    code = """
from worker.demo import data
from worker.resources import shipped
from worker.configuration import load
for name in ("config/challenge.yaml", "config/bundle/challenge_config.yaml.j2", "config/demo", "deploy"):
    print(shipped(name))
print(sorted(load(shipped("config/challenge.yaml")).phases), [len(phase.ids) for phase in data.load()])
"""
    *paths, last = installation.run("python", "-c", code, cwd=tmp_path).splitlines()
    assert all(path.startswith(str(installation.libraries / "worker")) for path in paths)
    assert last == "['dev', 'eval'] [697, 1100]"


def test_init_works_from_the_wheel(installation: Installation, tmp_path: Path) -> None:
    """A new challenge can be made where there is no checkout."""
    installation.run("neuco-worker", "init", "c", "--yes", "--dim", "64", cwd=tmp_path)
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

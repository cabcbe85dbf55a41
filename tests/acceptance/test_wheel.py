"""What is installed from a wheel works without the checkout."""

from __future__ import annotations

import email
import re
import zipfile
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.acceptance.installation import DECLARED, ROOT, Installation, copy_checkout

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


def readme_lines() -> list[str]:
    """List the commands of README's section on installing."""
    section = (ROOT / "README.md").read_text().partition("\n## Installing\n")[2].partition("\n## ")[0]
    return re.findall(r"^\$ (.*)$", section, re.MULTILINE)


def test_readme_gives_the_cpu_build_first() -> None:
    """The one line that needs PyTorch's index comes before all that would take torch from elsewhere."""
    first, *others = readme_lines()
    assert first.endswith("--index-url https://download.pytorch.org/whl/cpu torch")
    assert len(others) == 3


@pytest.mark.parametrize("line", readme_lines()[1:])
def test_readmes_ways_to_install_work(line: str, wheel: Path, tmp_path: Path) -> None:
    """From a clone, as a wheel, from an address: each gives the same files and a command, with the pinned versions and no index."""
    clone = copy_checkout(tmp_path / "clone")
    address = "https://github.com/ORGANIZER/neuco-worker.git"
    installation = Installation(tmp_path / "environment")
    installation.run("bash", "-ec", line.replace(address, f"file://{clone}"), cwd=clone)
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert not [name for name in names if not (installation.libraries / name).is_file()]
    assert "Commands:" in installation.run("neuco-worker", "--help", cwd=tmp_path)


def test_versions_are_pinned_in_one_place() -> None:
    """Other people's environments are asked for ranges; torch's tested version is written in constraints.txt alone."""
    assert not [requirement for requirement in DECLARED if "==" in requirement]
    assert "\ntorch==" in (ROOT / "constraints.txt").read_text()
    for name in ("Makefile", "Dockerfile", "README.md", "config/kin/geobench-check.yml"):
        assert not re.search(r"torch==\d", (ROOT / name).read_text()), name


def test_a_package_page_has_no_broken_link(wheel: Path) -> None:
    """The long description names no other file of the repository, but everything else is there."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_string(archive.read(name).decode())
    page = metadata.get_payload()
    assert isinstance(page, str)
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(page)
    links = re.findall(r"(?:href|src)=\"([^\"]*)\"", html)
    assert links
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    headings = re.findall(r"^## .*$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [heading for heading in headings if heading not in page] == []
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in metadata.get_all("Classifier", [])
    assert metadata["Keywords"]
    assert metadata["Author"]

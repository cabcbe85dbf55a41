"""An installation from the wheel works without the checkout."""

from __future__ import annotations

import email
import re
import zipfile
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.acceptance.installation import DECLARED, ROOT, Installation, copy_checkout

pytestmark = pytest.mark.xdist_group("installation")


@pytest.mark.processes
def test_wheel_holds_everything_and_nothing_else(wheel: Path) -> None:
    """The wheel contains the three packages, the shipped files and the license, and no tests, caches or secrets."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {
        "worker",
        "scoring",
        "leaderboard",
    }
    needed = [
        path.relative_to(ROOT).as_posix()
        for package in ("worker", "scoring", "leaderboard")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    ]
    needed += [
        f"worker/config/{name}"
        for name in ("challenge.yaml", "demo/digits.npz", "researcher/embeddings.csv", "bundle/logo.png")
    ]
    assert [name for name in needed if name not in names] == []
    assert any(name.endswith("LICENSE") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".secret", ".db"))]


@pytest.mark.processes
def test_shipped_files_are_found(installation: Installation, tmp_path: Path) -> None:
    """Packages, configuration, templates and demo data come from the installation, not from the checkout."""
    code = """
import leaderboard, scoring, worker
from worker.organizer import demo_data
from worker.organizer import shipped
from worker.challenge.configuration import load
for name in ("config/challenge.yaml", "config/bundle/challenge_config.yaml.j2", "config/demo", "deploy"):
    print(shipped(name))
for package in (worker, scoring, leaderboard):
    print(package.__file__)
print(sorted(load(shipped("config/challenge.yaml")).phases), [len(phase.ids) for phase in demo_data.load()])
"""
    *paths, last = installation.run("python", "-c", code, cwd=tmp_path).splitlines()
    assert all(path.startswith(str(installation.libraries)) for path in paths)
    assert last == "['dev', 'eval'] [697, 1100]"


def readme_commands() -> tuple[list[str], list[str]]:
    """Return the commands in README's section on installing: those for a clone, and those in the last block, which need no clone."""
    section = (ROOT / "README.md").read_text().partition("\n## Installing\n")[2].partition("\n## ")[0]
    *inside, without = (
        re.findall(r"^\$ (.*)$", block, re.MULTILINE) for block in section.split("```console\n")[1:]
    )
    return [line for block in inside for line in block], without


PINNING = ("Makefile", "Dockerfile", "README.md", "constraints.txt")
IN_A_CLONE, WITHOUT_A_CLONE = readme_commands()


@pytest.mark.processes
@pytest.mark.parametrize("line", [*IN_A_CLONE, *WITHOUT_A_CLONE])
def test_readmes_ways_to_install_work(line: str, wheel: Path, tmp_path: Path) -> None:
    """Each way to install, from a clone or an address, gives the wheel's files and a working command, without a package index."""
    clone = copy_checkout(tmp_path / "clone")
    address = "https://github.com/ORGANIZER/neuco-worker.git"
    installation = Installation(tmp_path / "environment")
    place = clone if line in IN_A_CLONE else tmp_path
    installation.run("bash", "-ec", line.replace(address, f"file://{clone}"), cwd=place)
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert not [name for name in names if not (installation.libraries / name).is_file()]
    assert "For organizers: run it" in installation.run("neuco-worker", "--help", cwd=tmp_path)


def test_versions_are_pinned_in_one_place() -> None:
    """The package declares version ranges, and the tested version of torch is pinned only in constraints.txt."""
    assert not [requirement for requirement in DECLARED if "==" in requirement]
    pinned = [name for name in PINNING if re.search(r"torch==\d", (ROOT / name).read_text())]
    assert pinned == ["constraints.txt"]


@pytest.mark.processes
def test_a_package_page_has_no_broken_link(wheel: Path) -> None:
    """The long description has no relative link, and the metadata is complete."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_string(archive.read(name).decode())
    page = metadata.get_payload()
    assert isinstance(page, str)
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(page)
    links = re.findall(r"(?:href|src)=\"([^\"]*)\"", html)
    assert links
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    for version in ("3.11", "3.12", "3.13"):
        assert f"Programming Language :: Python :: {version}" in metadata.get_all("Classifier", [])
    assert metadata["Keywords"]
    assert metadata["Author"]
    assert metadata.get_all("Project-URL")

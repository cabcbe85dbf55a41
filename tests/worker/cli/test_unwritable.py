"""A place that cannot be written to ends a command with its path and the reason, and nothing is left half-way."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path, PosixPath
from typing import Any, NamedTuple

import pytest

from scoring.files import write_files
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.full_disk import file_size_limit
from tests.worker.harness.harness import ROOT, Harness
from worker.challenge.secrets import make
from worker.cli import guarded
from worker.organizer.rehearsal import removed_if_refused
from worker.runtime.storage import fault


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory, fork_server: ForkServer) -> Iterator[Path]:
    """A challenge without submissions; it is not changed."""
    with Harness(tmp_path_factory.mktemp("challenge"), fork_server=fork_server) as harness:
        assert harness.once().returncode == 0
        yield harness.path


class Ended(NamedTuple):
    """The exit status of a command, and what it printed."""

    status: int
    stdout: str
    stderr: str


Limited = Callable[[str, Path, int], Ended]

COMMANDS = [
    "init {place}/c --yes",
    "demo --dir {place}/c --folds 1",
    "task new {place}/canopy --labels {labels}",
    "challenge backup {place}/c.zip --config {config}",
    "board publish --preview {place}/c --config {config}",
    "board report --phase dev --out {place}/c --config {config}",
    "rehearse --keep {place}/c --folds 1 --config {config}",
    "sandbox --run {place}/c --config {config}",
]
"""Commands that write to a folder of the user's."""
TEMPLATE = "template {place} --ids {config.parent}/ids.txt --dim 4"


def words(command: str, place: Path, challenge: Path) -> list[str]:
    """The words of a command."""
    labels = next(challenge.parent.glob("tasks/dev/*__regr.csv"))
    public = ROOT / "config" / "researcher"
    return command.format(place=place, labels=labels, config=challenge, public=public).split()


@pytest.fixture
def limited(challenge: Path, monkeypatch: pytest.MonkeyPatch) -> Limited:
    """Runs a command while no file can become larger than `room` bytes; its output goes through pipes, which hold it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python would keep half of a module's bytecode
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(tempfile, "tempdir", None)  # as in a new process
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)

    def run(command: str, place: Path, room: int) -> Ended:
        arguments = words(command, place, challenge)
        printed, stdout = os.pipe()
        errors, stderr = os.pipe()
        with (
            os.fdopen(stdout, "w") as out,
            os.fdopen(stderr, "w") as err,
            redirect_stdout(out),
            redirect_stderr(err),
            file_size_limit(room),
        ):
            status = guarded(arguments)
        with os.fdopen(printed) as said, os.fdopen(errors) as complained:
            return Ended(status, said.read(), complained.read())

    return run


@pytest.mark.processes
@pytest.mark.parametrize("command", COMMANDS)
def test_a_place_that_cannot_be_used_is_named(
    tmp_path: Path, challenge: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here a file is where a folder should be; a folder of somebody else's is the same to the code, but not to root."""
    (tmp_path / "file").write_text("mine")
    assert guarded(words(command, tmp_path / "file", challenge)) in (1, 2)
    said = capsys.readouterr().err
    assert f"{tmp_path / 'file'}" in said
    assert "Not a directory" in said
    assert "bug" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.processes
@pytest.mark.parametrize("room", [100, 3_000, 30_000])
@pytest.mark.parametrize("command", [COMMANDS[0], *COMMANDS[2:6], TEMPLATE])
def test_a_full_disk_leaves_nothing(tmp_path: Path, limited: Limited, command: str, room: int) -> None:
    """A limit of the size of a file stands for the disk: the secret, which is small, would fit."""
    done = limited(command, tmp_path / "new", room)
    assert done.status or room > 100
    if done.status:
        assert "File too large" in done.stderr
        assert "bug" not in done.stderr
        assert done.stdout == ""  # nothing is said to be done that is not
        assert list(tmp_path.iterdir()) == []


def test_a_secret_that_does_not_fit_is_named(tmp_path: Path, limited: Limited) -> None:
    """It is no output of the command."""
    done = limited(COMMANDS[0], tmp_path, 0)
    assert done.status == 2
    assert f"{tmp_path}/c/challenge.secret cannot be written: File too large." in done.stderr


def test_a_state_of_another_user_is_not_the_workers_fault() -> None:
    """A command that may not write there says so of itself; the worker may be well."""
    problem = fault(Path("/proc"))
    assert problem is not None
    assert problem.message.startswith("Nothing can be written to the state directory /proc (")
    assert "Run commands as its owner" in problem.message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "room"),
    [(COMMANDS[1], 100), (COMMANDS[1], 30_000), (COMMANDS[6], 100), (COMMANDS[6], 100_000)],
)
def test_a_disk_that_fills_during_a_rehearsal_leaves_nothing_unsaid(
    tmp_path: Path, limited: Limited, command: str, room: int
) -> None:
    """What is left, to find the cause in it or to delete it, is named."""
    done = limited(command, tmp_path / "new", room)
    said = done.stdout + done.stderr
    assert done.status in {1, 2}
    assert "bug" not in said
    assert list(tmp_path.iterdir()) == [] or str(tmp_path / "new" / "c") in said


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "room", "said"),
    [
        (
            "import {public}/new_submission --normalizer {public}/normalizer.json --output {place}",
            100,
            "File too large.",
        ),
        ("verify {place}", 0, "No usable temporary directory found in ['"),
    ],
)
def test_a_full_disk_is_no_verdict(
    tmp_path: Path, limited: Limited, command: str, room: int, said: str
) -> None:
    """The status is not that of a submission that is not valid, or of a challenge that is contradicted."""
    done = limited(command, tmp_path / "new", room)
    assert done.status == 2
    assert said in done.stderr
    assert "Free space" in done.stderr
    assert "current folder" not in done.stderr


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(os.devnull)])
def test_files_that_are_there_stay_as_they_were(tmp_path: Path, make: Callable[[Path], object]) -> None:
    """The first file could be written, the second cannot: /dev/stdout would not be written to, but replaced."""
    (tmp_path / "a").write_text("before")
    make(tmp_path / "b")
    with pytest.raises(OSError, match="a folder, a link or a device") as refused:
        write_files(tmp_path, {"new/c": b"after", "a": b"after", "b": b"after"})
    assert refused.value.filename == str(tmp_path / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "before"


def test_two_processes_can_write_the_same_files(tmp_path: Path) -> None:
    """Neither removes or completes what the other one has only begun to write."""

    class Interrupted(dict[str, bytes]):
        def items(self) -> Any:
            yield "a", self["a"]
            write_files(tmp_path, {"a": b"other", "b": b"other"})
            yield "b", self["b"]

    write_files(tmp_path, Interrupted(a=b"this", b=b"this"))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"this", "b": b"this"}


def test_two_processes_can_write_into_the_same_new_folder(tmp_path: Path) -> None:
    """Both find that it is not there; the second one to make it goes on."""

    class Missing(PosixPath):
        def exists(self, **options: Any) -> bool:
            found = super().exists(**options)
            if not found:
                write_files(Path(self), {"b": b"other"})
            return found

    write_files(Missing(tmp_path / "new"), {"a": b"this"})
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"a", "b"}


def test_a_folder_in_which_another_rehearsal_has_begun_is_not_removed(tmp_path: Path) -> None:
    """Both found it new; the second one meets the first one's key."""
    place = tmp_path / "new"

    def begin() -> None:
        with removed_if_refused(place):
            place.mkdir()
            make(place / "signing.key")
            make(place / "signing.key")

    with pytest.raises(FileExistsError):
        begin()
    assert (place / "signing.key").is_file()


def test_private_files_are_private(tmp_path: Path) -> None:
    """And so are the folders that are made for them, even in place of a file that others could read."""
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "secret").touch(mode=0o644)
    write_files(
        tmp_path / "f", {"secret": b"s", "tasks/dev/a": b"a", "open/b": b"b"}, private=("secret", "tasks/")
    )
    private = ["secret", "tasks", "tasks/dev", "tasks/dev/a"]
    assert [oct((tmp_path / "f" / name).stat().st_mode & 0o077) for name in private] == ["0o0"] * 4
    assert (tmp_path / "f" / "open" / "b").stat().st_mode & 0o044
    write_files(tmp_path / "g", {"a": b"a"}, private=("",))
    assert (tmp_path / "g").stat().st_mode & 0o077 == 0

"""What all commands have in common: help, names, version, progress, and how the configuration is found."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import typer

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from tests.worker.harness.terminal import shown
from worker.cli import guarded, program
from worker.cli.application import SECTIONS


def paths(group: typer.core.TyperGroup, *above: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command."""
    for name, command in group.commands.items():
        yield (*above, name)
        if isinstance(command, typer.core.TyperGroup):
            yield from paths(command, *above, name)


COMMANDS = sorted(paths(program))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_of_every_command(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is at most 80 columns wide, and has an example and a text for each option; nothing but backticks is taken for markup."""
    assert guarded([*words, "-h"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 80
    example = f"Example: neuco-worker {' '.join(words)}"
    assert "COMMAND [ARGS]" in page or example in " ".join(page.split()) or "Example: NUMBA" in page
    command: Any = program
    for word in words:
        command = command.commands[word]
    options = [parameter for parameter in command.params if not parameter.hidden]
    assert [parameter.name for parameter in options if not parameter.help] == []
    monkeypatch.setenv("COLUMNS", "2000")
    assert guarded([*words, "--help"]) == 0
    page = capsys.readouterr().out
    texts = [" ".join(text.split()) for text in (command.help or "").split("\n\n")]
    texts += [parameter.help for parameter in options]
    assert [text for text in texts if text.replace("`", "") not in page] == []


PROGRAMS = {"neuco-worker": "worker.cli", "neuco-check": "worker.participant.commands"}
SMALL = "model,a,b\ngrün ✓,1,2\nrot,2,1\n"


def ended(
    name: str, *words: str, cwd: Path, stdout: int | IO[str], **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, with additional variables."""
    code = f"import sys; from {PROGRAMS[name]} import main; sys.argv[0] = {name!r}; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=cwd,
        env=os.environ | {"NO_COLOR": "1"} | more,
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="latin-1",
        check=False,
        timeout=120,
    )


@pytest.mark.processes
@pytest.mark.parametrize(("encoding", "shown"), [("latin-1", "grün ?"), ("ascii", "gr?n ?")])
def test_a_terminal_shows_a_question_mark_for_what_it_lacks(
    tmp_path: Path, encoding: str, shown: str
) -> None:
    """A terminal that is not in UTF-8 does not stop a command."""
    (tmp_path / "table.csv").write_text(SMALL, encoding="utf-8")
    command = ended(
        "neuco-worker", "rank", "table.csv", cwd=tmp_path, stdout=subprocess.PIPE, PYTHONIOENCODING=encoding
    )
    assert (command.returncode, command.stderr) == (0, "")
    assert f" {shown} " in command.stdout
    command = ended(
        "neuco-check", "validate", "✓", cwd=tmp_path, stdout=subprocess.PIPE, PYTHONIOENCODING=encoding
    )
    assert command.returncode == 2
    assert "does not exist" in command.stderr


COUNT = ("template", "new.csv", "--ids", "ids.txt", "--dim", "4")


@pytest.mark.processes
@pytest.mark.parametrize(("name", "words"), [("neuco-worker", ("rank", "table.csv")), ("neuco-check", COUNT)])
def test_output_that_cannot_be_written(tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    """A full disk ends a command with a sentence; a reader that has ended, such as head, without one. The status is no verdict's."""
    (tmp_path / "table.csv").write_text(SMALL, encoding="utf-8")
    (tmp_path / "ids.txt").write_text("a\nb\n")
    with Path("/dev/full").open("w") as full:
        command = ended(name, *words, cwd=tmp_path, stdout=full)
    assert command.returncode == 2
    assert command.stderr == (
        f"{name}: The output of the command cannot be written: No space left on device.\n"
        "  Free space, or write to another place, and run the command again.\n"
    )
    (tmp_path / "new.csv").unlink(missing_ok=True)
    read, write = os.pipe()
    os.close(read)
    try:
        command = ended(name, *words, cwd=tmp_path, stdout=write)
    finally:
        os.close(write)
    assert (command.returncode, command.stderr) == (2, "")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("closed", "words", "status", "out", "err"),
    [
        (
            ">&-",
            ("rank", "table.csv"),
            2,
            "",
            "The output of the command cannot be written: Bad file descriptor.",
        ),
        ("<&-", ("rank", "-"), 2, "", "The table cannot be read as CSV"),
        ("<&- 2>&-", ("rank", "missing.csv"), 2, "", ""),
        (
            "<&- 2>&-",
            ("score", "e.csv", "a__regr.csv", "--folds", "1", "--epochs", "1", "--json"),
            0,
            "{",
            "",
        ),
        ("2>/dev/full", ("rank", "missing.csv"), 2, "", ""),
    ],
)
def test_standard_streams_that_are_closed(
    tmp_path: Path, closed: str, words: tuple[str, ...], status: int, out: str, err: str
) -> None:
    """A result that nobody gets is not done; errors go nowhere else, and a missing input is an empty one."""
    (tmp_path / "table.csv").write_text(SMALL, encoding="utf-8")
    for file, header in (("a__regr.csv", "id,label"), ("e.csv", "id,0")):
        (tmp_path / file).write_text(f"{header}\n" + "".join(f"s{n},{n % 7}\n" for n in range(40)))
    shell = [
        "sh",
        "-c",
        f'unset PYTHONUNBUFFERED; exec "$0" -m worker.cli "$@" {closed}',
        sys.executable,
        *words,
    ]
    command = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert command.returncode == status, command
    assert command.stdout.startswith(out) if out else command.stdout == ""
    assert err in command.stderr if err else command.stderr == ""


@pytest.mark.processes
def test_what_was_said_before_a_fault_is_not_written_later() -> None:
    """The status is that of the fault, and Python adds no words of its own; a log has both in their order."""
    code = (
        "from scoring.errors import InfrastructureError as Fault; from worker.participant.process import end, report;"
        "print('Waiting.'); end(report('x', Fault('No.', hint='', code='x')))"
    )
    told = subprocess.run([sys.executable, "-E", "-c", code], capture_output=True, check=False).stderr
    both = subprocess.run(
        [sys.executable, "-E", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert both.stdout == b"Waiting.\n" + told
    with Path("/dev/full").open("w") as full:
        command = subprocess.run(
            [sys.executable, "-E", "-c", code], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (command.returncode, command.stderr) == (1, told)


@pytest.mark.processes
def test_a_check_that_fails_itself_is_no_verdict(tmp_path: Path) -> None:
    """A file that would be scored is not refused because nobody reads the answer, and an unreachable repository contradicts nothing."""
    (tmp_path / "ids.txt").write_text("a\nb\n")
    (tmp_path / "good.csv").write_text("id,0\na,1\nb,2\n")
    with Path("/dev/full").open("w") as full:
        for words in (["good.csv"], ["good.csv", "--json"], ["ids.txt", "--json"]):
            command = ended(
                "neuco-check", "validate", *words, "--ids", "ids.txt", "--dim", "1", cwd=tmp_path, stdout=full
            )
            assert command.returncode == 2, command.stderr
    command = ended("neuco-worker", "verify", "http://127.0.0.1:9/gone", cwd=tmp_path, stdout=subprocess.PIPE)
    assert command.returncode == 2, command.stderr


def test_a_wrong_choice_is_told_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    """Without the words of the library that has found it."""
    assert guarded(["board", "export", "--format", "pdf"]) == 2
    assert (
        "Error: Invalid value for '--format': 'pdf' is not one of 'latex', 'csv', 'svg'."
        in capsys.readouterr().err
    )


def test_a_deleted_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command in a folder that another terminal has deleted says that this is missing."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert guarded(["init", "c", "--yes"]) == 2
    assert "The current folder cannot be used: No such file or directory." in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "status --config /dev/zero",
        "template new.csv --ids /dev/zero --dim 2",
        "verify . --receipt /dev/zero",
        "rank /dev/zero",
    ],
)
def test_a_device_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """What never ends is not read."""
    monkeypatch.chdir(tmp_path)
    assert guarded(words.split()) == 2
    assert not list(tmp_path.iterdir())


def test_the_program_lists_its_commands_by_role(capsys: pytest.CaptureFixture[str]) -> None:
    """Sections are in the order of work, and each command is in exactly one of them; its version is one line."""
    for option in ("--version", "-V"):
        assert guarded([option]) == 0
        assert re.fullmatch(r"neuco-worker \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)
    assert guarded(["--help"]) == 0
    page = capsys.readouterr().out
    places = [page.index(f" {heading} ") for heading in SECTIONS]
    assert places == sorted(places)
    listed = re.findall(r"^│ ([a-z]+)  ", page[places[0] :], re.MULTILINE)
    assert listed == [name for names in SECTIONS.values() for name in names]
    assert set(listed) == {name for name, command in program.commands.items() if not command.hidden}


@pytest.mark.processes
def test_the_configuration_is_found(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An option comes first, then the file that NEUCO_CHALLENGE names, then the one in this folder."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.delenv("NEUCO_CHALLENGE", raising=False)
    monkeypatch.chdir(harness.folder)
    assert guarded(["status"]) == 0
    assert "Tiny" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert guarded(["status"]) == 2
    message = capsys.readouterr().err
    assert "There is no configuration file at challenge.yaml." in message
    assert "neuco-worker init DIR" in message
    monkeypatch.setenv("NEUCO_CHALLENGE", str(harness.path))
    assert guarded(["status"]) == 0
    assert guarded(["bundle"]) == 0
    assert (harness.folder / "bundle.zip").is_file()
    assert guarded(["status", "--config", "other.yaml"]) == 2
    assert "There is no configuration file at other.yaml." in capsys.readouterr().err


def test_ctrl_c_ends_a_command_with_a_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 130, as in shells, and no traceback."""

    class Stopping(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Stopping()))
    assert guarded(["rank", "-"]) == 130
    assert capsys.readouterr().err == "Stopped.\n"


@pytest.mark.processes
def test_long_work_shows_its_progress(harness: Harness, worker: StepWorker, tmp_path: Path) -> None:
    """A terminal shows how much is done, the total and the time; a pipe gets only the result."""
    harness.submit("A", embeddings(1))
    harness.submit("B", embeddings(2))
    worker.drive()
    command = ("challenge", "backup", str(tmp_path / "saved.zip"))
    text = shown(*command, "--config", str(harness.path), NO_COLOR="1")
    assert re.search(r"Backing up.* 2 of 2 files 0:00:\d\d < ", text), text
    assert harness.command(*command, "--force").stderr == ""


def test_a_wrong_path_is_no_contradiction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify` of a folder without files of a challenge says so, and reports no contradiction."""
    (tmp_path / "notes.txt").write_text("remember")
    assert guarded(["verify", str(tmp_path)]) == 2
    printed = capsys.readouterr()
    assert "is not a challenge's leaderboard repository" in printed.err
    assert "ontradicted" not in printed.out

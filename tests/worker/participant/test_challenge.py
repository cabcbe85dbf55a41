"""What a challenge requires of a submission, wherever its published files are."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from scoring.errors import NeucoError, OrganizerError
from scoring.protocol import ids_hash
from tests.scoring.inputs.reading_tables import DIM, IDS, from_lines, good, lines_of
from tests.worker.harness.harness import clean_environment
from worker.participant.challenge import asked
from worker.participant.commands import template, validate

APP = typer.Typer()
APP.command()(validate)
APP.command()(template)


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A folder with the published files of a challenge with two phases, the second of which has not opened."""
    folder = tmp_path / "public"
    (folder / "ids").mkdir(parents=True)
    protocol = {"embedding_dim": DIM, "ids_hash": ids_hash(IDS)}
    entries = [
        {"phases": {"dev": {**protocol, "embedding_dim": 9}}},
        {"phases": {"dev": protocol, "eval": protocol}},
    ]
    (folder / "commitment.json").write_text(json.dumps(entries))
    (folder / "ids/dev.txt").write_text("".join(f"{name}\n" for name in IDS))
    return folder


def git(folder: Path, *arguments: str) -> None:
    """Run git without the user's configuration."""
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    command = ["git", "-C", str(folder), *identity, *arguments]
    subprocess.run(command, check=True, env=clean_environment(), capture_output=True)


@pytest.fixture
def bare(public: Path, tmp_path: Path) -> Path:
    """The same as a bare repository whose HEAD names a missing branch."""
    git(public, "init", "-q", "-b", "main")
    git(public, "add", ".")
    git(public, "commit", "-qm", "all")
    bare = tmp_path / "board.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "elsewhere", str(bare))
    git(public, "push", "-q", str(bare), "main", "main:files")
    return bare


def test_ids_and_dimension_come_from_wherever_they_are_published(public: Path, bare: Path) -> None:
    """A folder, a repository, and its clone without files give the same."""
    (public.parent / "clone").mkdir()
    git(public.parent / "clone", "clone", "-q", "--no-checkout", "-b", "main", str(bare), ".")
    places = [str(public), str(bare), f"file://{bare}"]
    for place in [*places, str(public.parent / "clone")]:
        found = asked(None, None, place, "dev")
        assert (found.ids, found.embedding_dim, found.phase) == (IDS, DIM, "dev"), place


def test_validate_and_template_need_nothing_else(bare: Path, tmp_path: Path) -> None:
    """A template has every id and no value, and the check says so; a good file is valid for its phase."""

    def run(*arguments: str) -> tuple[int, str, NeucoError | None]:
        done = CliRunner().invoke(APP, [*arguments, "--challenge", str(bare), "--phase", "dev"])
        error = done.exception if isinstance(done.exception, NeucoError) else None
        return done.exit_code, done.stdout, error

    empty, one = (str(tmp_path / name) for name in ("empty.csv", "one.csv"))
    code, text, _ = run("template", empty)
    assert (code, text.splitlines()[0]) == (0, f"Wrote {empty}: 12 rows with the columns id and 0 to 3.")
    assert lines_of(Path(empty).read_bytes()) == ["id,0,1,2,3", *(f"{name},,,," for name in IDS)]
    _, _, error = run("validate", empty)
    assert error is not None
    assert (error.code, error.sentence.partition(":")[0]) == ("cells.empty", "48 cells are empty")
    Path(one).write_bytes(from_lines(["id,1,2,3,4", *lines_of(good())[1:]]))
    assert run("validate", one)[1] == ""
    Path(one).write_bytes(good())
    code, text, _ = run("validate", one)
    assert (code, text.splitlines()[0]) == (
        0,
        "The file is valid for phase dev: 12 embeddings with 4 values each.",
    )
    document = json.loads(run("validate", one, "--json")[1])
    assert (document["valid"], document["phase"], document["dimension"]) == (True, "dev", DIM)


@pytest.mark.parametrize(("name", "code"), [("own.csv", "file.exists"), ("none/own.csv", "file.unwritable")])
def test_a_template_overwrites_no_file(public: Path, tmp_path: Path, name: str, code: str) -> None:
    """A target that exists is refused, and so is one whose folder does not."""
    (tmp_path / "own.csv").write_text("mine")
    with pytest.raises(OrganizerError) as error:
        template(tmp_path / name, challenge=str(public), phase="dev")
    assert error.value.code == code
    assert (tmp_path / "own.csv").read_text() == "mine"


def spoil(public: Path, case: str) -> None:
    """Publish something unusable."""
    if case == "other ids":
        (public / "ids/dev.txt").write_text("a\nb\n")
    elif case == "not JSON":
        (public / "commitment.json").write_text("no")
    elif case == "another form":
        (public / "commitment.json").write_text('[{"phases": 3}]')


@pytest.mark.parametrize(
    ("case", "phase", "words"),
    [
        ("other ids", "dev", "ids/dev.txt does not match the id list in commitment.json."),
        ("not JSON", "dev", "commitment.json cannot be read."),
        ("another form", "dev", "commitment.json cannot be read."),
        ("nothing scored yet", "eval", "The ids of phase eval are not published yet"),
        ("another phase", "test", "The challenge has no phase test."),
        ("no phase", None, "The challenge has several phases."),
    ],
)
def test_unusable_published_files_are_reported(
    public: Path, case: str, phase: str | None, words: str
) -> None:
    """The message says what to do instead; it is no verdict on the submission, so the exit status is 2."""
    spoil(public, case)
    with pytest.raises(OrganizerError) as error:
        asked(None, None, str(public), phase)
    assert error.value.sentence.startswith(words)
    assert error.value.cure


def test_places_without_a_challenge_are_refused(tmp_path: Path) -> None:
    """A folder without its files, an empty repository, an address at which nobody listens, or a command."""
    git(tmp_path, "init", "-q", "--bare", "empty.git")
    (tmp_path / "folder").mkdir()
    for place, words in (
        (str(tmp_path / "folder"), "git cannot reach it"),
        (str(tmp_path / "empty.git"), "nothing was pushed to it yet"),
        ("http://127.0.0.1:9/board.git", "git cannot reach it"),
        ("ext::sh -c true", "git cannot reach it"),
    ):
        with pytest.raises(OrganizerError, match=words):
            asked(None, None, place, "dev")


def test_an_unreachable_challenge_says_nothing_of_the_file(tmp_path: Path) -> None:
    """The exit status is 2, because 1 would say that the file is refused."""
    (tmp_path / "good.csv").write_bytes(good())
    done = CliRunner().invoke(
        APP, ["validate", str(tmp_path / "good.csv"), "--challenge", str(tmp_path / "none")]
    )
    assert isinstance(done.exception, OrganizerError)
    assert done.exception.exit_code == 2


@pytest.mark.parametrize(
    "given",
    [
        (None, None, None, None),
        (Path("ids.txt"), None, None, None),
        (None, 4, None, None),
        (Path("ids.txt"), 4, "place", None),
        (Path("ids.txt"), 4, None, "dev"),
    ],
)
def test_options_that_say_too_little_or_too_much_are_refused(given: tuple[object, ...]) -> None:
    """Ids and dimension must be given exactly once."""
    with pytest.raises(OrganizerError) as error:
        asked(*given)  # type: ignore[arg-type]
    assert error.value.code == "validate.usage"

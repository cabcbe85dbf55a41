"""What a challenge requires of a submission, wherever its published files are."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from scoring.errors import OrganizerError
from scoring.protocol import ids_hash
from tests.leaderboard.harness.git_server import git
from tests.scoring.inputs.reading_tables import DIM, IDS, from_lines, good, lines_of
from tests.scoring.inputs.test_reading_validate import run as invoked
from worker.fairness.manifests import Commitment
from worker.fairness.receipts import Line
from worker.participant import commands
from worker.participant.challenge import asked, last_written
from worker.participant.commands import app, template
from worker.participant.process import NoVerdict, run


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


@pytest.fixture
def bare(public: Path, tmp_path: Path) -> Path:
    """The same as a bare repository whose HEAD names a missing branch."""
    git("init", "-q", "-b", "main", at=public)
    git("add", ".", at=public)
    git("commit", "-qm", "all", at=public)
    bare = tmp_path / "board.git"
    git("init", "-q", "--bare", "-b", "elsewhere", str(bare), at=tmp_path)
    git("push", "-q", str(bare), "main", "main:files", at=public)
    return bare


@pytest.mark.processes
def test_ids_and_dimension_come_from_wherever_they_are_published(public: Path, bare: Path) -> None:
    """A folder, a repository, and its clone without files give the same."""
    (public.parent / "clone").mkdir()
    git("clone", "-q", "--no-checkout", "-b", "main", str(bare), ".", at=public.parent / "clone")
    places = [str(public), str(bare), f"file://{bare}"]
    for place in [*places, str(public.parent / "clone")]:
        wanted = asked(None, None, place, "dev")
        assert (wanted.ids, wanted.embedding_dim, wanted.phase) == (IDS, DIM, "dev"), place


@pytest.mark.processes
def test_validate_and_template_need_nothing_else(bare: Path, tmp_path: Path) -> None:
    """A template has every id and no value, and the check says so; a good file is valid for its phase."""
    there = ("--challenge", str(bare), "--phase", "dev")
    empty, file = (str(tmp_path / name) for name in ("empty.csv", "file.csv"))
    code, text, _ = invoked("template", empty, *there)
    assert (code, text.splitlines()[0]) == (0, f"Wrote {empty}: 12 rows with the columns id and 0 to 3.")
    assert lines_of(Path(empty).read_bytes()) == ["id,0,1,2,3", *(f"{name},,,," for name in IDS)]
    _, _, error = invoked("validate", empty, *there)
    assert error is not None
    assert (error.code, error.sentence.partition(":")[0]) == ("cells.empty", "48 cells are empty")
    Path(file).write_bytes(from_lines(["id,1,2,3,5", *lines_of(good())[1:]]))
    assert invoked("validate", file, *there)[1] == ""
    Path(file).write_bytes(good())
    code, text, _ = invoked("validate", file, *there)
    assert (code, text.splitlines()[0]) == (
        0,
        "The file is valid for phase dev: 12 embeddings with 4 values each.",
    )
    assert invoked("validate", file, "--max-megabytes", "inf", *there)[0] == 2
    document = json.loads(invoked("validate", file, "--json", *there)[1])
    assert (document["valid"], document["phase"], document["dimension"]) == (True, "dev", DIM)


@pytest.mark.parametrize(("name", "code"), [("own.csv", "file.exists"), ("none/own.csv", "file.unwritable")])
def test_a_template_overwrites_no_file(public: Path, tmp_path: Path, name: str, code: str) -> None:
    """A target that exists is refused, and so is one whose folder does not."""
    (tmp_path / "own.csv").write_text("mine")
    with pytest.raises(OrganizerError) as error:
        template(tmp_path / name, challenge=str(public), phase="dev")
    assert error.value.code == code
    assert (tmp_path / "own.csv").read_text() == "mine"


def test_an_interrupted_template_removes_only_its_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may come before it has found that the file exists, or while it writes."""

    def interrupt(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    (tmp_path / "own.csv").write_text("mine")
    for name, patched in (("own.csv", "pathlib.Path.open"), ("new.csv", "csv.writer")):
        with monkeypatch.context() as patch:
            patch.setattr(patched, interrupt)
            with pytest.raises(KeyboardInterrupt):
                commands._write(tmp_path / name, ["a"], 1)
    assert (tmp_path / "own.csv").read_text() == "mine"
    assert not (tmp_path / "new.csv").exists()


@pytest.mark.parametrize(
    ("file", "text", "phase", "words"),
    [
        ("ids/dev.txt", "a\nb\n", "dev", "ids/dev.txt does not match the id list in commitment.json."),
        ("commitment.json", "no", "dev", "commitment.json cannot be read."),
        ("commitment.json", '[{"phases": 3}]', "dev", "commitment.json cannot be read."),
        (
            "commitment.json",
            '[{"phases": {"dev": {"embedding_dim": Infinity}}}]',
            "dev",
            "commitment.json cannot be read.",
        ),
        *(
            (
                "commitment.json",
                f'[{{"phases": {{"dev": {{"embedding_dim": {dim}, "ids_hash": ""}}}}}}]',
                "dev",
                "commitment.json cannot be read.",
            )
            for dim in ("0", "-4", "1" + "0" * 30)
        ),
        ("commitment.json", "[]", None, "There is no phase in commitment.json."),
        ("README.md", "", "eval", "The ids of phase eval are not published yet"),
        ("README.md", "", "test", "The challenge has no phase test."),
        ("README.md", "", None, "The challenge has several phases."),
    ],
)
def test_unusable_published_files_are_reported(
    public: Path, file: str, text: str, phase: str | None, words: str
) -> None:
    """The message says what to do instead; it is no verdict on the submission, so the exit status is 2."""
    (public / file).write_text(text)
    with pytest.raises(OrganizerError) as error:
        asked(None, None, str(public), phase)
    assert error.value.sentence.startswith(words)
    assert error.value.hint
    assert error.value.exit_code == 2


@pytest.mark.processes
def test_line_ends_that_git_has_converted_do_not_matter(bare: Path, tmp_path: Path) -> None:
    """In a clone, what was committed is read; in a copy of its files, the ids are the same with the line ends of another system."""
    git("clone", "-q", "-c", "core.autocrlf=true", "-b", "main", str(bare), "clone", at=tmp_path)
    assert b"\r\n" in (tmp_path / "clone/ids/dev.txt").read_bytes()
    assert asked(None, None, str(tmp_path / "clone"), "dev").ids == IDS
    (tmp_path / "clone/.git").rename(tmp_path / "elsewhere")
    assert asked(None, None, str(tmp_path / "clone"), "dev").ids == IDS


@pytest.mark.processes
def test_places_without_a_challenge_are_refused(tmp_path: Path) -> None:
    """A folder without its files, an empty repository, an address at which nobody listens, or a command."""
    git("init", "-q", "--bare", "empty.git", at=tmp_path)
    (tmp_path / "folder").mkdir()
    for place, words in (
        (str(tmp_path / "folder"), "There is no commitment.json"),
        (str(tmp_path / "empty.git"), "there is no branch"),
        ("http://127.0.0.1:9/board.git", "Failed to connect"),
        ("ext::sh -c true", "transport 'ext' not allowed"),
    ):
        with pytest.raises(OrganizerError, match=words):
            asked(None, None, place, "dev")


def test_options_that_say_too_little_or_too_much_are_refused() -> None:
    """Ids and dimension must be given exactly once."""
    ids = Path("ids.txt")
    for ids_given, dim, challenge, phase in (
        (None, None, None, None),
        (ids, None, None, None),
        (None, 4, None, None),
        (ids, 4, "place", None),
        (ids, 4, None, "dev"),
    ):
        with pytest.raises(OrganizerError) as error:
            asked(ids_given, dim, challenge, phase)
        assert error.value.code == "validate.usage"


@pytest.mark.parametrize(
    ("hours", "words", "silent"),
    [
        (
            None,
            "The public log has no line yet. The first commitment is 4 days old (2026-01-01 12:00 UTC).",
            True,
        ),
        (0.5, "The last line of the public log is 30 minutes old", False),
        (3, "The last line of the public log is 3 hours old", False),
        (5, "The last line of the public log is 5 hours old", True),
    ],
)
def test_a_challenge_that_is_silent_is_told(hours: float | None, words: str, silent: bool) -> None:
    """By the age of the last line of its log, which grows at the interval that the first commitment fixed."""
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    line = {"made_at": (now - timedelta(hours=hours or 0)).isoformat()}
    assert line.keys() <= Line.model_fields.keys()
    assert {"receipts_every", "made_at"} <= Commitment.model_fields.keys()
    files = {
        "commitment.json": json.dumps(
            [{"receipts_every": 3600, "made_at": "2026-01-01T12:00:00+00:00", "phases": {"dev": {}}}]
        ),
        "receipts.jsonl": "" if hours is None else f"{{}}\n{json.dumps(line)}\n",
    }
    sentence, told = last_written(lambda path: files.get(path, "").encode(), now)
    assert (sentence.startswith(words), sentence.endswith("A line comes every 60 minutes."), told) == (
        True,
        True,
        silent,
    )
    files["reveal/dev/reveal.json"] = "{}"
    sentence, told = last_written(lambda path: files.get(path, "").encode(), now)
    assert (sentence.endswith("Everything has been revealed."), told) == (silent, False)
    with pytest.raises(OrganizerError, match="cannot be read"):
        last_written(lambda _: b"[{}]", now)


def test_the_command_asks_a_repository(public: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It exits with 1 if the challenge is silent, and says whom to write to."""
    entry = {"receipts_every": 20, "made_at": "2026-01-01T12:00:00+00:00", "phases": {"dev": {}}}
    (public / "commitment.json").write_text(json.dumps([entry]))
    assert run(app, ["status", str(public)]) == 1
    said = capsys.readouterr().out
    assert "A line comes every 20 seconds.\nThe challenge is silent: write to the organizers." in said


def test_a_look_that_fails_itself_tells_nothing_of_the_challenge(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without memory, its exit status is not that of a silent challenge."""

    def refuse(_: object) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr(json, "loads", refuse)
    with pytest.raises(NoVerdict) as failure:
        run(app, ["status", str(public)])
    assert failure.value.exit_code == 2

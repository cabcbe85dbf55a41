"""`challenge rename-team`: a team's name is no longer published, and everything else about it can still be checked."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.fair_challenge import revealed, with_reveal
from tests.leaderboard.harness.git_server import git
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.challenge.configuration import load
from worker.cli import guarded
from worker.fairness import events
from worker.fairness.pseudonyms import pseudonyms
from worker.fairness.register import RegisterFold
from worker.fairness.verify import Worth, receipt_verdicts, verdicts
from worker.fairness.verify.public import PublicRepository, opened
from worker.publishing.board_history import BoardHistory
from worker.publishing.boards import keep_boards, make_boards, read_inputs
from worker.sandbox import ManualClock

NAME, LATER, PSEUDONYM = "Jane Doe", "Jane D. from Bern", "Team Twelve"
REASON = "asked for by its members"
HISTORY = "leaderboard/history.jsonl"


@pytest.fixture
def harness(tmp_path: Path, cells: Path, fork_server: ForkServer) -> Iterator[Harness]:
    """A challenge that begins today, because commands use the real clock."""
    clock = ManualClock(datetime.now(UTC))
    with Harness(tmp_path, clock=clock, cells=cells, fork_server=fork_server) as harness:
        yield harness


def rename(harness: Harness, team: str = NAME, pseudonym: str = PSEUDONYM) -> None:
    """Run the organizer's command."""
    done = harness.command(
        "challenge", "rename-team", "--yes", "--team", team, "--as", pseudonym, "--reason", REASON
    )
    assert done.returncode == 0, done.stderr
    assert f"is called {pseudonym} from now on" in done.stdout


def reveal(harness: Harness, *options: str) -> None:
    """Reveal phases that are open too."""
    done = harness.command("challenge", "reveal", "--open", "--yes", "--reason", "a test", *options)
    assert done.returncode == 0, done.stderr


def published(harness: Harness) -> dict[str, str]:
    """Return the published files, without those that may only grow."""
    paths = git("ls-tree", "-r", "--name-only", "main", at=harness.board).split()
    return {path: git("show", f"main:{path}", at=harness.board) for path in paths if path != HISTORY}


def lies(repository: PublicRepository) -> set[str]:
    """Return the checks that found a contradiction."""
    return {one.check for one in verdicts(repository) if one.worth is Worth.CONTRADICTED}


def checked(harness: Harness) -> list[str]:
    """Return the result of a verification, which must not contain a contradiction."""
    with opened(str(harness.board)) as repository:
        found = list(verdicts(repository))
    assert [one for one in found if one.worth is Worth.CONTRADICTED] == []
    return [one.sentence for one in found]


def play(harness: Harness, worker: StepWorker) -> None:
    """Submit for two teams in two phases: one that is renamed later, and one that is not."""
    harness.submit(NAME, embeddings(1), method_name=f"{NAME}'s method")
    worker.drive()
    harness.submit("B", embeddings(2))
    harness.submit("B", embeddings(0), phase="eval")
    harness.submit(NAME, embeddings(1), phase="eval", is_public=False)
    worker.drive()


def test_a_name_is_removed_and_everything_can_still_be_checked(
    harness: Harness, worker: StepWorker, tmp_path: Path
) -> None:
    """With a running daemon and boards before and after, one of them closed: no file has the name, and nothing is contradicted."""
    play(harness, worker)
    harness.submit(NAME, embeddings(0), phase="eval")
    worker.drive()
    told = harness.stdout(1001)
    assert (
        harness.command(
            "board", "freeze", "--phase", "eval", "--now", "--yes", "--reason", "a test"
        ).returncode
        == 0
    )
    before = git("rev-parse", "main", at=harness.board)
    rename(harness)
    worker.drive()
    assert set(harness.teams()) == set(harness.teams("eval")) == {PSEUDONYM, "B"}
    harness.submit(NAME, embeddings(4))
    harness.submit("C", embeddings(3))
    worker.drive()
    assert set(harness.teams()) == {PSEUDONYM, "B", "C"}
    reveal(harness)
    assert [path for path, text in published(harness).items() if "Jane" in text] == []
    assert "Jane" not in git("log", "--format=%B", f"{before}..main", at=harness.board)
    sentences = checked(harness)
    assert any("the name of team" in one and f"is called {PSEUDONYM} ({REASON})" in one for one in sentences)
    assert any(f"“{PSEUDONYM}” is the pseudonym" in one for one in sentences)
    with opened(str(harness.board)) as repository:
        mine = list(receipt_verdicts(repository, told["receipt"], told["q_mean"]))
    assert Worth.CONTRADICTED not in {one.worth for one in mine}
    assert f"of team {PSEUDONYM}" in mine[-1].sentence


def test_a_revealed_phase_is_revealed_again_without_the_name(harness: Harness, worker: StepWorker) -> None:
    """After the end, boards, pages and reveal have the pseudonym with the next push."""
    play(harness, worker)
    reveal(harness, "--phase", "dev", "--no-labels")
    assert any("Jane" in text for path, text in published(harness).items() if path.startswith("reveal/dev"))
    rename(harness)
    assert harness.command("board", "publish").returncode == 0
    assert [path for path, text in published(harness).items() if "Jane" in text] == []
    assert not [path for path in published(harness) if "labels/" in path]
    checked(harness)
    before = harness.commits()
    reveal(harness, "--phase", "dev", "--no-labels")
    assert harness.commits() == before


def test_later_names_at_evalai_change_nothing(harness: Harness, worker: StepWorker) -> None:
    """The team has had two names before, and gets a third: each history line is checked with its own name."""
    play(harness, worker)
    harness.evalai.rename_team(NAME, LATER)
    worker.wait(60)
    assert set(harness.teams()) == {LATER, "B"}
    rename(harness, LATER)
    worker.drive()
    boards = harness.commits()
    harness.evalai.rename_team(LATER, "Jane Roe")
    worker.wait(60)
    assert set(harness.teams()) == {PSEUDONYM, "B"}
    assert harness.commits() == boards
    reveal(harness)
    assert [path for path, text in published(harness).items() if "Jane" in text] == []
    checked(harness)
    assert LATER in git("show", f"main:{HISTORY}", at=harness.board)


def test_a_board_that_was_made_with_the_name_is_not_stored_after_it(
    harness: Harness, worker: StepWorker
) -> None:
    """A board that was in progress during the command is made again."""
    play(harness, worker)
    with worker.store.write() as tx:
        tx.note(1002, excluded="a test")
        inputs = read_inputs(
            tx, load(harness.path), ["dev"], BoardHistory(), RegisterFold(), now=worker.clock.now()
        )
    pending = make_boards(inputs)
    assert [row.team for row in pending.new[0].standings] == [NAME]
    rename(harness)
    with worker.store.write() as tx:
        assert not keep_boards(tx, pending)


LIES: dict[str, tuple[str, Callable[[PublicRepository], PublicRepository]]] = {
    "another rank in an older line": ("boards", lambda public: history(public, _set("rank", 1))),
    "another submission in an older line": (
        "boards",
        lambda public: history(public, _set("submission", 1002)),
    ),
    "another score in an older line": ("boards", lambda public: history(public, _set("q_mean", 99.0))),
    "an older line is gone": ("boards", lambda public: history(public, lambda lines: lines.pop(0))),
    "a score is hidden with the name": ("reveal", lambda public: events_changed(public, _hide_the_score)),
    "a removal is hidden with the name": ("reveal", lambda public: events_changed(public, _hide_a_removal)),
    "another team's name is hidden too": ("reveal", lambda public: events_changed(public, _hide_another)),
    "the note is gone": ("reveal", lambda public: events_changed(public, _drop_the_note)),
}


def test_a_pseudonym_hides_nothing_but_the_name(harness: Harness, worker: StepWorker) -> None:
    """The team's rows, scores and decisions are checked like all others."""
    play(harness, worker)
    rename(harness)
    worker.drive()
    reveal(harness)
    with opened(str(harness.board)) as repository:
        public = PublicRepository(files=dict(repository.files))
    assert lies(public) == set()
    assert {
        what: found for what, (check, lie) in LIES.items() if check not in (found := lies(lie(public)))
    } == {}


def history(public: PublicRepository, change: Callable[[list[Any]], object]) -> PublicRepository:
    """Return the files with another history."""
    lines = [json.loads(line) for line in public.files[HISTORY].splitlines()]
    change(lines)
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return PublicRepository(files={**public.files, HISTORY: text.encode()})


def _set(field: str, value: Any) -> Callable[[list[Any]], None]:
    def change(lines: list[Any]) -> None:
        # In the line in which the other team came: both rows have changed.
        row = next(one for one in lines[1]["changed"] if one["team"] == NAME)
        assert row[field] != value
        row[field] = value

    return change


def events_changed(public: PublicRepository, change: Callable[[list[Any]], None]) -> PublicRepository:
    """Return the files with another register of dev."""
    document = revealed(public)
    change(document["register"])
    return with_reveal(public, document)


def _hide(opening: dict[str, Any], *names: str) -> None:
    """Open less of an event than allowed."""
    if "nonce" in opening:
        fields, nonce = opening["fields"], bytes.fromhex(opening["nonce"])
        opening.clear()
        opening |= events.opened_in_part(fields, nonce, fields.keys() - set(names))
        return
    for name in names:
        value, salt = opening["open"].pop(name)
        opening["hidden"][name] = events.field_hash(name, value, bytes.fromhex(salt))


def _without_name(register: list[Any], kind: str) -> dict[str, Any]:
    found = (one for one in register if "team" in one.get("hidden", ()) and "submission" in one["open"])
    return next(one for one in found if one["open"]["kind"][0] == kind)


def _hide_the_score(register: list[Any]) -> None:
    _hide(_without_name(register, events.SCORE), "q_mean")


def _hide_a_removal(register: list[Any]) -> None:
    _hide(_without_name(register, events.SUBMISSION), "removed")


def _hide_another(register: list[Any]) -> None:
    _hide(next(one for one in register if one.get("fields", {}).get("team") == "B"), "team")


def _drop_the_note(register: list[Any]) -> None:
    register.remove(next(one for one in register if one.get("fields", {}).get("what") == "renamed"))


@pytest.mark.parametrize(
    ("option", "cure"),
    [
        (("--team", "nobody"), "or its number there"),
        (("--as", "B"), "Choose another pseudonym"),
        (("--as", " "), "Choose another pseudonym"),
        (("--as", f"ex {NAME}"), "Write both without the name"),
        (("--reason", f"{NAME} asked"), "Write both without the name"),
        (("--reason", " "), "Add --reason"),
    ],
    ids=str,
)
def test_invalid_renames_are_refused(
    renamable: Harness, capsys: pytest.CaptureFixture[str], option: tuple[str, str], cure: str
) -> None:
    """The error has a sentence and a cure, and nothing changes."""
    options = {"--team": NAME, "--as": PSEUDONYM, "--reason": REASON, **dict([option])}
    refused(renamable, capsys, options, cure)


def test_the_organizers_own_team_is_called_by_its_methods(
    renamable: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    """Baselines have the names of their methods, which the rules list."""
    with closing(renamable.store()) as store, store.read() as tx:
        (own,) = [str(row.team_key) for row in tx.submissions() if row.own]
    options = {"--team": own, "--as": PSEUDONYM, "--reason": REASON}
    refused(renamable, capsys, options, "Rename only teams of participants")


def refused(harness: Harness, capsys: pytest.CaptureFixture[str], options: dict[str, str], cure: str) -> None:
    """Run the command, which fails with a sentence and changes nothing."""
    words = [word for option in options.items() for word in option]
    with closing(harness.store()) as store:
        with store.read() as tx:
            before = tx.events(), tx.boards("dev"), pseudonyms(tx)
        assert guarded(["challenge", "rename-team", "--yes", *words, "--config", str(harness.path)]) == 2
        with store.read() as tx:
            assert (tx.events(), tx.boards("dev"), pseudonyms(tx)) == before
    assert cure in capsys.readouterr().err


@pytest.fixture(scope="module")
def renamable(
    tmp_path_factory: pytest.TempPathFactory, cells: Path, fork_server: ForkServer
) -> Iterator[Harness]:
    """A challenge without a renamed team: two teams and a host."""
    folder, clock = tmp_path_factory.mktemp("renamable"), ManualClock(datetime.now(UTC))
    with Harness(folder, clock=clock, cells=cells, fork_server=fork_server) as harness:
        with harness.worker() as worker:
            for seed, team in enumerate((NAME, "B", "host")):
                harness.submit(team, embeddings(seed))
            worker.drive()
        yield harness


def test_names_in_rules_names_of_baselines_and_pseudonyms_stay(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rules are revealed as they were, a baseline is identified by its name, and a team has only one pseudonym."""
    play(harness, worker)
    rename(harness)
    again = {"--team": PSEUDONYM, "--as": "Team Thirteen", "--reason": REASON}
    refused(harness, capsys, {**again, "--team": NAME}, "already replaced")
    same = ("--team", NAME, "--as", PSEUDONYM, "--reason", REASON)
    assert "nothing was done" in harness.command("challenge", "rename-team", "--yes", *same).stdout
    for marked in (True, False):
        harness.evalai.edit(1002, is_baseline=marked)
        worker.wait(60)
    refused(harness, capsys, {**again, "--team": "B"}, "Rename only teams of participants")
    harness.submit("C", embeddings(3))
    worker.drive()
    harness.configure({"leaderboard": {"hidden_teams": ["C"]}})
    assert harness.command("challenge", "apply", "--yes", "--reason", "asked to leave").returncode == 0
    refused(harness, capsys, {**again, "--team": "C"}, "the name cannot be removed")

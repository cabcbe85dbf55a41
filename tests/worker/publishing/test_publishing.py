"""The board follows the scores, decisions and names without delaying them, and each commit says what it changes."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from leaderboard.ranking import to_json
from scoring.protocol import ids_hash
from tests.leaderboard.harness.site_fixtures import moving_site
from tests.waiting import until
from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import IDS, KEY, Harness, StepWorker, embeddings, git
from worker.challenge.configuration import load
from worker.fairness.register import RegisterReplay
from worker.organizer.board_by_hand import close, reopen
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session
from worker.publishing.boards import PORTION, BoardHistory, begin_cycle, keep_boards, make_boards
from worker.state import Deposed, State, Store


@pytest.mark.processes
@pytest.mark.parametrize("change", ["rename", "disqualify"])
def test_a_change_while_a_push_is_under_way_is_pushed_next(harness: Harness, change: str) -> None:
    """What the listing brings or a person decides is not in the current push; another push follows by itself."""
    gate = Gate("before call push")
    with harness.worker(checkpoint=gate) as worker:
        worker.drive()
        gate.close()
        pk = harness.submit("A", embeddings(1))
        worker.drive(gate.reached)
        if change == "rename":
            harness.evalai.rename_team("A", "B")
            worker.clock.advance(30)  # the listing is due
            worker.drive(lambda: worker.row(pk).team == "B")
        else:
            harness.decide("challenge", "disqualify", str(pk), "--reason", "a test")
        gate.open()
        worker.drive()
        assert worker.state(pk) is State.PUBLISHED
        assert harness.teams() == (["B"] if change == "rename" else [])


@pytest.mark.processes
def test_a_deposed_leader_pushes_nothing(harness: Harness) -> None:
    """A machine that slept just before a push wakes up after another one has led and closed a phase, which stays closed."""
    gate = Gate("before call push")
    with harness.worker(checkpoint=gate) as sleeper:
        harness.submit("A", embeddings(1))
        sleeper.drive()
        gate.close()
        harness.submit("B", embeddings(2))
        sleeper.drive(gate.reached)
        with harness.worker() as successor:
            successor.drive()
            harness.decide("board", "close", "--phase", "dev", "--now")
            successor.drive()
        tip = git(harness.board, "rev-parse", "main")
        gate.open()
        with pytest.raises(Deposed):
            sleeper.drive(lambda: False)
        until(lambda: "runner-git" not in {thread.name for thread in threading.enumerate()})
    assert git(harness.board, "rev-parse", "main") == tip


@pytest.mark.processes
def test_a_phase_closes_with_everything_that_was_answered(harness: Harness) -> None:
    """This includes answers that no board has shown; later ones are on none until the board is opened again."""
    harness.configure({"leaderboard": {"publish_every": 3600}})
    with harness.worker() as worker:

        def answered(team: str, seed: int) -> int:
            pk = harness.submit(team, embeddings(seed))
            worker.drive(lambda: worker.states().get(pk) == "posted")
            return pk

        first = answered("A", 1)
        worker.clock.advance(3600)
        worker.drive(lambda: worker.state(first) is State.PUBLISHED)
        second = answered("B", 2)
        assert harness.teams() == ["A"]
        harness.decide("board", "close", "--phase", "dev", "--now", "--yes")
        third = answered("C", 3)
        worker.clock.advance(3600)
        worker.drive(lambda: {worker.state(second), worker.state(third)} == {State.PUBLISHED})
        assert set(harness.teams()) == {"A", "B"}
        harness.decide("board", "close", "--phase", "dev", "--undo")
        worker.clock.advance(3600)
        worker.drive(lambda: set(harness.teams()) == {"A", "B", "C"})


@pytest.mark.processes
def test_the_log_goes_on_whatever_the_interval_of_pushes(harness: Harness) -> None:
    """Three lines later, a score that is not in the log contradicts its receipt."""
    harness.configure({"leaderboard": {"publish_every": 86400, "receipts_every": 3600}})
    with harness.worker() as worker:
        worker.drive()
        pk = harness.submit("A", embeddings(1))
        worker.drive(lambda: worker.states().get(pk) == "posted")
        worker.clock.advance(3600)
        worker.drive(lambda: worker.state(pk) is State.PUBLISHED)
    assert harness.stdout(pk)["receipt"]["commitment"] in harness.published("receipts.jsonl")


@pytest.mark.processes
def test_a_board_that_a_decision_overtakes_is_not_stored(harness: Harness, worker: StepWorker) -> None:
    """It was computed before the phase was closed, and is made again."""
    harness.submit("A", embeddings(1))
    pk = harness.submit("B", embeddings(2))
    worker.drive()
    now = worker.clock.now()
    with worker.store.write() as tx:
        tx.note(pk, excluded="a test")
        cycle = begin_cycle(
            tx, KEY, load(harness.path), ["dev"], BoardHistory(), replay=RegisterReplay(), now=now
        )
    cycle = make_boards(cycle)
    assert [row.team for row in cycle.new[0].standings] == ["A"]
    with worker.store.write() as tx:
        tx.close_phase("dev", at=now)
        assert not keep_boards(tx, cycle)
        tx.close_phase("dev", at=None)
        assert keep_boards(tx, cycle)


@pytest.mark.processes
def test_only_the_page_says_when_the_log_was_continued(harness: Harness, worker: StepWorker) -> None:
    """So a visitor sees that the challenge is alive, and no other file changes with every line; `verify` derives the same page."""

    def files() -> dict[str, str]:
        names = git(harness.board, "ls-tree", "-r", "--name-only", "main").split()
        return {name: harness.published(name) for name in names}

    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: worker.states().get(pk) == "published")
    seen = []
    for line in (1, 2):
        worker.clock.advance(3600)
        worker.drive(lambda line=line: files().get("receipts.jsonl", "").count("\n") + 1 > line)
        seen.append(files())
    before, after = seen
    assert {name for name in after if after[name] != before[name]} == {"index.html", "receipts.jsonl"}
    made_at = json.loads(after["receipts.jsonl"].splitlines()[-1])["made_at"]
    assert f"public log</a>: {made_at[:16].replace('T', ' ')} UTC" in after["index.html"]
    assert harness.contradictions() == []


def messages(harness: Harness) -> list[str]:
    """Return the commit messages of the branch, oldest first."""
    texts = git(harness.board, "log", "--reverse", "--format=%B%x00", "main").split("\0")
    return [text.strip() for text in texts if text.strip()]


@pytest.mark.processes
def test_a_commit_says_what_it_changes(harness: Harness, worker: StepWorker) -> None:
    """Boards, a batch of receipts, a closed board and a reveal are told apart.

    While the remote is away, scoring goes on; the boards follow within 90 seconds of its return, and the alert is resolved.
    """
    worker.drive()
    away = harness.board.rename(harness.folder / "away.git")
    pks = [harness.submit(team, embeddings(number)) for number, team in enumerate("AB", 1)]
    worker.drive(lambda: list(worker.states().values()) == ["posted", "posted"])
    for _ in range(8):
        worker.clock.advance(60)
        worker.wait(1)
    assert any(code.startswith("leaderboard.") for code in worker.alerts())
    away.rename(harness.board)
    back = worker.clock.now()
    worker.drive(lambda: worker.state(pks[0]) is State.PUBLISHED)
    assert (worker.clock.now() - back).total_seconds() <= 90
    assert worker.alerts() == set()
    worker.advance(3601)
    with open_session(harness.path) as session:
        then = replace(session, clock=worker.clock.now)
        for decide in (close, reopen, close):
            decide(then, "dev")
            worker.drive()
        reveal(then, ["dev"], labels=True)
    worker.drive()
    assert messages(harness) == [
        "Publish a commitment",
        "dev: 2 submissions counted",
        "Publish receipts",
        "Close the board of phase dev",
        "Open the board of phase dev",
        "Close the board of phase dev",
        "Reveal phase dev\n\nPublish receipts",
    ]


@pytest.mark.processes
def test_no_batch_is_backdated(harness: Harness, worker: StepWorker) -> None:
    """After a pause the next batch carries its own time, missed ones are not made up for, and the first commitment's interval stays."""
    hour, slack = timedelta(hours=1), timedelta(minutes=10)
    worker.drive()
    begun_at = worker.clock.now().replace(microsecond=0)
    harness.configure({"leaderboard": {"receipts_every": 24 * 3600}})
    worker.reload()
    for hours in (1, 10, 1):
        worker.stop()
        worker.clock.advance(hours * 3600)
        worker.start()
        worker.drive()
    lines = map(json.loads, harness.published("receipts.jsonl").splitlines())
    first, paused, last = (datetime.fromisoformat(line["made_at"]) for line in lines)
    assert begun_at < first <= begun_at + hour + slack
    assert first + 10 * hour <= paused
    assert paused < last <= paused + hour + slack


@pytest.mark.processes
def test_methods_of_private_submissions_are_not_shown(harness: Harness, worker: StepWorker) -> None:
    """Those of public ones are on the board with the value, as they were sent."""
    code = "https://git.example/code"
    words = {"method_name": "first method", "project_url": code, "publication_url": "javascript:alert(1)"}
    pk = harness.submit("A", embeddings(1), **words)
    harness.submit("B", embeddings(2), method_name="quiet method", is_public=False)
    worker.drive()
    (entry,) = harness.boards()
    assert (entry["method"], entry["project_url"], entry["publication_url"]) == ("first method", code, "")
    harness.evalai.edit(pk, method_name="second method")
    worker.drive()
    everything = git(harness.board, "log", "--patch", "--all")
    assert "first method" in everything
    assert "second method" not in everything
    assert "quiet method" not in everything


def test_the_history_in_memory_is_read_once(tmp_path: Path) -> None:
    """Boards are complete, but private figures are kept only for the latest, and an unchanged row once."""
    stored = [
        replace(board, fingerprint=f"{board.sequence}")
        for board in moving_site(PORTION + 7).phases[0].history
    ]
    history = BoardHistory()
    with closing(Store(f"sqlite:///{tmp_path}/worker.db")) as store, store.write() as tx:
        for begin, end in pairwise((0, 0, 1, PORTION + 2, len(stored))):
            for board in stored[begin:end]:
                tx.save_board(board.phase, board.sequence, to_json(board))
            read = history.read(tx, "dev")
            assert history.read(tx, "another") == ()
            assert list(read[:-1]) == [replace(board, figures=None) for board in stored[: max(end - 1, 0)]]
            assert read[-1:] == tuple(stored[:end][-1:])
            for board in stored[begin:end]:
                tx.save_board(board.phase, board.sequence, "no board: it is not read again")
    rows = [row for board in read for row in board.standings]
    equal = [row for old, new in pairwise(stored) for row in new.standings if row in old.standings]
    assert equal
    assert len({id(row) for row in rows}) == len(rows) - len(equal)


@pytest.mark.processes
def test_an_id_list_is_published_with_the_first_score_of_its_phase(tmp_path: Path) -> None:
    """Ids of a phase that has not opened appear nowhere; those of an open one are the ids that were committed to.

    The command that checks a file applies the limit of this challenge.
    """
    with Harness(tmp_path) as harness, harness.worker() as worker:
        harness.configure({"submission": {"max_megabytes": 7}})
        worker.reload()
        worker.drive()
        assert git(harness.board, "ls-tree", "--name-only", "main", "ids/") == ""
        harness.submit("A", embeddings(1))
        worker.drive()
        assert git(harness.board, "ls-tree", "--name-only", "main", "ids/").split() == ["ids/dev.txt"]
        assert harness.published("ids/dev.txt").split("\n") == [*sorted(IDS), ""]
        protocol = json.loads(harness.published("commitment.json"))[-1]["phases"]["dev"]
        assert protocol["ids_hash"] == ids_hash(IDS)
        command = f"--ids ids/dev.txt --dim {protocol['embedding_dim']} --max-megabytes 7"
        assert command in harness.published("README.md")

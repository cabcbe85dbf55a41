"""Hosts: their baselines are shown as such from the first board on, their trials never; nobody else's submission is taken for theirs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any

from tests.worker.harness.harness import Play, Stage, embeddings, git
from worker.fairness.verify import GROWING, Truth, verdicts
from worker.fairness.verify.public import opened as opened_repository
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session

BASELINE = "Baseline random embeddings"


def rows(stage: Stage) -> dict[str, int | None]:
    """Return the board's teams with their numbers."""
    return {row["team"]: row["rank"] for row in stage.boards()}


def history(stage: Stage) -> list[list[str]]:
    """Return the teams that each line of the published history speaks of."""
    lines = git(stage.board, "show", "main:leaderboard/history.jsonl").splitlines()
    return [[row["team"] for row in json.loads(line)["changed"]] for line in lines]


def lookups(stage: Stage) -> list[str]:
    """Return the listings of a phase that were asked for."""
    return [
        entry.path
        for entry in stage.evalai.journal
        if entry.kind == "request" and "/challenge_phase/" in entry.path and entry.method == "GET"
    ]


def lies(stage: Stage) -> list[str]:
    """Return what is called a lie about the repository."""
    with opened_repository(str(stage.board), growing=GROWING) as repository:
        return [verdict.sentence for verdict in verdicts(repository) if verdict.truth is Truth.FALSE]


def revealed(stage: Stage, play: Play) -> None:
    """Reveal phase dev and push."""
    with open_session(stage.path) as session:
        reveal(replace(session, clock=play.clock.now), ["dev"], labels=True)
    play.drive()


def test_only_hosts_have_baselines(stage: Stage, play: Play) -> None:
    """Names make nobody a host: not that of a method, not that of a team; whoever sent it does."""
    stage.evalai.rename_team("host", "Organizers")
    stage.submit("A", embeddings(0), method_name=BASELINE)
    stage.submit(BASELINE, embeddings(1))
    stage.submit("Host_99_Team", embeddings(2), method_name="a method")
    baseline = stage.submit("Organizers", embeddings(3), method_name=BASELINE)
    trials = [
        stage.submit("Organizers", embeddings(4), method_name="does it work?"),
        stage.submit("cohost", embeddings(5), method_name="mine too?"),
    ]
    play.drive()
    assert {row["team"] for row in stage.boards() if row["baseline"]} == {BASELINE}
    assert {row["submission"] for row in stage.boards() if row["baseline"]} == {baseline}
    assert sorted(rank or 0 for rank in rows(stage).values()) == [0, 1, 2, 3]
    assert set(rows(stage)) == {"A", BASELINE, f"{BASELINE} (2)", "Host_99_Team"}
    assert [stage.status(pk) for pk in trials] == ["finished", "finished"]
    assert all("q_mean" in stage.stdout(pk) for pk in trials)
    assert not {"Organizers", "cohost"} & {team for line in history(stage) for team in line}


def test_a_baseline_has_its_name_on_every_board(stage: Stage, play: Play) -> None:
    """Alone or with another one of the same team, and when EvalAI is told only later that it is one."""
    stage.evalai.rename_team("host", "Host_1_Team")
    stage.submit("host", embeddings(0), method_name=BASELINE)
    play.drive()
    trial = stage.submit("host", embeddings(1), method_name="pooled means")
    play.drive()
    assert rows(stage) == {BASELINE: None}
    stage.evalai.edit(trial, is_baseline=True)
    play.drive()
    assert rows(stage) == {BASELINE: None, "pooled means": None}
    stage.evalai.edit(trial, is_baseline=False)
    play.drive()
    assert rows(stage) == {BASELINE: None}
    assert "Host_1_Team" not in {team for line in history(stage) for team in line}


def test_new_authors_are_looked_up_together_and_once(stage: Stage, play: Play) -> None:
    """A burst costs one listing of its phase, and who was met before costs nothing."""
    play.drive()
    for team in "ABCDEF":
        stage.submit(team, embeddings(0))
    play.drive()
    asked = len(lookups(stage))
    assert asked == 1
    stage.submit("A", embeddings(1))
    stage.submit("A", embeddings(1), phase="eval")
    play.drive()
    assert len(lookups(stage)) == asked
    assert len(rows(stage)) == 6


def test_nobody_is_looked_up_when_all_hosts_are_known(stage: Stage, play: Play) -> None:
    """The token's owner is the only host: whoever else submits is a participant."""
    stage.evalai.change_hosts("host")
    stage.submit("A", embeddings(0))
    stage.submit("host", embeddings(1), method_name="a trial")
    play.drive()
    assert (lookups(stage), set(rows(stage))) == ([], {"A"})


def test_who_becomes_a_host_or_leaves_is_followed(stage: Stage, play: Play) -> None:
    """As at EvalAI, the members of now decide."""
    guest = stage.submit("guest", embeddings(0))
    stage.submit("A", embeddings(1))
    play.drive()
    assert set(rows(stage)) == {"guest", "A"}
    author = stage.evalai.world.users[stage.evalai.submission(guest)["created_by"]].name
    stage.evalai.change_hosts("host", "cohost", author)
    play.clock.advance(6 * 3600)
    play.drive()
    assert set(rows(stage)) == {"A"}
    stage.evalai.change_hosts("host")
    play.clock.advance(6 * 3600)
    play.drive()
    assert set(rows(stage)) == {"guest", "A"}


def test_a_server_that_does_not_tell_its_hosts_stops_nothing(stage: Stage, play: Play) -> None:
    """Until it does, EvalAI's name for the hosts' team decides; what was published meanwhile is followed by other boards, and is no lie."""
    stage.evalai.hide_hosts()
    stage.evalai.rename_team("host", "Host_1_Team")
    stage.submit("A", embeddings(0), method_name=BASELINE)
    stage.submit("host", embeddings(1), method_name=BASELINE)
    trial = stage.submit("cohost", embeddings(2))
    stage.evalai.rename_team("cohost", "C")
    play.drive()
    assert rows(stage) == {BASELINE: None, "A": rows(stage)["A"], "C": rows(stage)["C"]}
    assert stage.status(trial) == "finished"
    for _ in range(3):
        play.clock.advance(600)
        play.drive()
    assert play.alerts() == {"evalai.hosts_unknown"}
    stage.evalai.hide_hosts(hidden=False)
    play.clock.advance(3600)
    play.drive()
    assert play.alerts() == set()
    assert rows(stage) == {BASELINE: None, "A": 1}
    revealed(stage, play)
    assert lies(stage) == []


def test_an_upgraded_state_learns_who_sent_what(stage: Stage, play: Play) -> None:
    """Of rows from an earlier version nobody knows the author: the next listing tells, and the boards before are not contradicted."""
    stage.evalai.hide_hosts()
    stage.evalai.rename_team("host", "Organizers")
    stage.submit("A", embeddings(0), method_name=BASELINE)
    stage.submit("host", embeddings(1), method_name="a trial")
    stage.submit("host", embeddings(2), phase="eval", method_name=BASELINE)
    play.drive()
    assert set(rows(stage)) == {"A", "Organizers"}
    play.stop()
    with closing(sqlite3.connect(stage.state / "worker.db")) as database, database:
        database.execute("UPDATE submissions SET created_by = NULL, by_host = NULL")
    stage.evalai.hide_hosts(hidden=False)
    play.start()
    play.drive()
    assert rows(stage) == {"A": 1}
    assert [row["team"] for row in stage.boards("eval")] == [BASELINE]
    with play.store.read() as tx:
        assert [known.by_host for known in tx.submissions()] == [False, True, True]
    revealed(stage, play)
    assert lies(stage) == []


def test_an_author_whom_no_listing_shows_is_judged_by_the_team(stage: Stage, play: Play) -> None:
    """A team's name that EvalAI cannot find again, and a submission that was deleted: nothing asks without end."""
    play.drive()
    stage.submit("A\0", embeddings(0))
    gone = stage.submit("B", embeddings(0))
    play.drive(lambda: gone in play.states())
    stage.evalai.delete(gone)
    play.drive()
    assert stage.teams() == ["A\ufffd"]
    asked = len(lookups(stage))
    play.wait(60)
    assert len(lookups(stage)) == asked


def test_a_drain_ends_well_without_the_hosts(live: Stage) -> None:
    """Cron's run answers, pushes and exits with 0, although nobody tells who the hosts are."""
    live.evalai.hide_hosts()
    pk = live.submit("A", embeddings(0))
    done = live.once()
    assert done.returncode == 0, done.stderr
    assert (live.status(pk), live.teams()) == ("finished", ["A"])


def test_baselines_may_weigh_nothing(stage: Stage, play: Play) -> None:
    """Outside the weights they change no other row; a participant's namesake weighs as ever."""
    stage.configure({"leaderboard": {"baselines_weigh": False}})
    play.reload()
    for team, seed in (("A", 0), ("B", 1)):
        stage.submit(team, embeddings(seed), method_name=BASELINE)
    play.drive()
    before = shown(stage)
    stage.submit("host", embeddings(2), method_name=BASELINE)
    play.drive()
    after = shown(stage)
    assert len(after) == len(before) + 1
    assert [row for row in after if not row["baseline"]] == before


def shown(stage: Stage) -> list[dict[str, Any]]:
    """Return the rows without what a new row moves."""
    kept = ("team", "rank", "rank_by_mean", "q_mean", "baseline")
    return [{key: row[key] for key in kept} for row in stage.boards()]

"""Hosts: their baselines are shown as such from the first board on, their trials never, and no other submission is taken for theirs."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git
from worker.evalai import Author, Client
from worker.sandbox import Fault, ManualClock

pytestmark = pytest.mark.processes

BASELINE, OTHER = "Baseline random embeddings", "Baseline mean embeddings"


def rows(harness: Harness) -> dict[str, int | None]:
    """Return the board's teams with their numbers."""
    return {row["team"]: row["rank"] for row in harness.boards()}


def history(harness: Harness) -> list[list[str]]:
    """Return the teams in each line of the published history."""
    lines = git(harness.board, "show", "main:leaderboard/history.jsonl").splitlines()
    return [[row["team"] for row in json.loads(line)["changed"]] for line in lines]


def lookups(harness: Harness) -> list[str]:
    """Return the requested listings of a phase."""
    return [
        entry.path
        for entry in harness.evalai.journal
        if entry.kind == "request" and "/challenge_phase/" in entry.path and entry.method == "GET"
    ]


def test_only_hosts_have_baselines(harness: Harness, worker: StepWorker) -> None:
    """Neither the name of a method nor that of a team makes anybody a host; only the author does."""
    harness.evalai.rename_team("host", "Organizers")
    harness.submit("A", embeddings(0), method_name=BASELINE)
    harness.submit(BASELINE, embeddings(1))
    harness.submit("Host_99_Team", embeddings(2), method_name="a method")
    baseline = harness.submit("Organizers", embeddings(3), method_name=BASELINE)
    trials = [
        harness.submit("Organizers", embeddings(4), method_name="does it work?"),
        harness.submit("cohost", embeddings(5), method_name="mine too?"),
    ]
    worker.drive()
    assert {row["team"] for row in harness.boards() if row["baseline"]} == {BASELINE}
    assert {row["submission"] for row in harness.boards() if row["baseline"]} == {baseline}
    assert sorted(rank or 0 for rank in rows(harness).values()) == [0, 1, 2, 3]
    assert set(rows(harness)) == {"A", BASELINE, f"{BASELINE} (2)", "Host_99_Team"}
    assert [harness.status(pk) for pk in trials] == ["finished", "finished"]
    assert all("q_mean" in harness.stdout(pk) for pk in trials)
    assert not {"Organizers", "cohost"} & {team for line in history(harness) for team in line}


def test_a_file_that_is_registered_before_its_author_is_known_changes_nothing_later(
    harness: Harness, worker: StepWorker
) -> None:
    """What becomes known before the answer is no decision."""
    other = harness.submit("A")
    worker.drive()
    baseline = harness.submit("host", embeddings(1), method_name=BASELINE)
    worker.drive(lambda: worker.states().get(baseline) == "fetched")
    harness.decide("challenge", "disqualify", str(other))
    worker.drive()
    with worker.store.read() as tx:
        about = [event.fields for event in tx.events() if event.fields.get("submission") == baseline]
    assert [about[place]["own"] for place in (0, -1)] == [False, True]
    page = harness.published("README.md")
    assert ("was disqualified" in page, "late baseline" in page, "became a baseline" in page) == (
        True,
        True,
        False,
    )


def test_a_baseline_is_a_decision_only_after_the_first_ranked_entry(
    harness: Harness, worker: StepWorker
) -> None:
    """Before that, no rank depends on it, however many there are."""
    for number, (team, method) in enumerate(
        (("host", BASELINE), ("host", OTHER), ("A", ""), ("host", OTHER))
    ):
        pk = harness.submit(team, embeddings(number), method_name=method)
        worker.drive()
    harness.decide("challenge", "reveal", "--phase", "dev", "--open")
    [said] = [
        verdict.sentence
        for verdict in harness.verdicts()
        if verdict.check == "decisions" and "came as a late baseline" in verdict.sentence
    ]
    assert said.count("came as a late baseline") == 1
    assert f"submission {pk} of " in said


def test_new_submissions_are_looked_up_together_and_once(harness: Harness, worker: StepWorker) -> None:
    """A burst costs one listing of its phase, and a deleted submission costs nothing after one look."""
    worker.drive()
    for team in "ABC":
        harness.submit(team, embeddings(0))
    worker.drive()
    assert len(lookups(harness)) == 1
    harness.submit("A", embeddings(1), phase="eval")
    worker.drive()
    assert len(lookups(harness)) == 2
    gone = harness.submit("D", embeddings(0))
    worker.drive(lambda: gone in worker.states())
    harness.evalai.edit(gone, ignore_submission=True)
    worker.drive()
    asked = len(lookups(harness))
    worker.wait(60)
    assert (len(lookups(harness)), len(rows(harness))) == (asked, 3)


def test_a_team_that_renames_itself_without_a_pause_stops_nothing(
    harness: Harness, worker: StepWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its submission is looked up again later; until then, all are scored and answered."""
    worker.drive()
    names, read = count(1), Client.authors
    harness.evalai.add_team("Name 0")

    def renamed(client: Client, phase_pk: int, *, page: int = 1) -> dict[int, Author]:
        number = next(names)
        harness.evalai.rename_team(f"Name {number - 1}", f"Name {number}")
        return read(client, phase_pk, page=page)

    with monkeypatch.context() as patch:
        patch.setattr(Client, "authors", renamed)
        pks = [harness.submit(team, embeddings(1)) for team in ("Name 0", "A")]
        worker.drive(lambda: len(lookups(harness)) > 9 or {harness.status(pk) for pk in pks} == {"finished"})
        assert len(lookups(harness)) < 9
    worker.advance(700)
    assert all(worker.row(pk).by_member for pk in pks)


def test_authors_on_many_pages_are_found_page_by_page(tmp_path: Path, cells: Path) -> None:
    """Each page is a call of its own, new submissions come first, and a restart goes on with the page at which the worker was ended."""
    calls, third = count(1), Gate("call 3")
    third.close()

    def checkpoint(name: str) -> None:
        if name == "before call authors":
            third(f"call {next(calls)}")

    with (
        Harness(tmp_path, clock=ManualClock(), cells=cells, settings={"page_size": 5}) as harness,
        harness.worker(checkpoint=checkpoint) as worker,
    ):
        worker.drive()
        with worker.store.write() as tx:
            tx.set_pause("pause", now=worker.clock.now())
        harness.evalai.world.tells_hosts = False
        for number in range(13):
            harness.submit("ABCDE"[number % 5], b"id,0\n")
        worker.drive(lambda: len(worker.states()) == 13)
        harness.evalai.world.tells_hosts = True
        before = len(lookups(harness))
        worker.drive(third.reached)
        worker.restart()  # while the third page is read
        harness.submit("F", b"id,0\n")
        worker.drive(lambda: len(lookups(harness)) >= before + 4)
        worker.drive(lambda: not worker.daemon.intake.busy)
        with worker.store.read() as tx:
            assert tx.authors_unknown() == []
        pages = [int(path.rpartition("=")[2]) for path in lookups(harness)[before:]]
        assert pages == [1, 2, 1, 3]
        third.open()


def test_who_sent_a_submission_is_decided_once(harness: Harness, worker: StepWorker) -> None:
    """A host who leaves does not become a competitor, and a participant who joins the hosts competes with what was sent before."""
    guest = harness.submit("guest", embeddings(0))
    trial = harness.submit("cohost", embeddings(1))
    baseline = harness.submit("cohost", embeddings(2), method_name=BASELINE)
    worker.drive()
    before = rows(harness)
    assert set(before) == {"guest", BASELINE}
    author = harness.evalai.world.users[harness.evalai.submission(guest)["created_by"]].name
    harness.evalai.change_hosts("host", author)
    late, again = harness.submit("guest", embeddings(3)), harness.evalai.rerun(trial)
    worker.drive()
    assert rows(harness) == before
    assert worker.row(late).own
    assert worker.row(again).own
    text = worker.alert("evalai.hosts_changed")
    assert "'cohost' left" in text
    assert f"{trial}, {baseline}" in text
    assert f"{author!r} joined" in text
    late = harness.submit("cohost", embeddings(4))
    worker.advance(25 * 3600)
    assert (late in {row["submission"] for row in harness.boards()}, worker.alerts()) == (True, set())


@pytest.mark.parametrize("seen_first", [False, True])
def test_nobody_becomes_a_host_by_what_is_written_into_a_submission(
    harness: Harness, worker: StepWorker, seen_first: bool
) -> None:
    """A host's number in place of its author's, before or after the first sight, takes no team off the board."""
    worker.drive()
    pk = harness.submit("A", embeddings(0), method_name=BASELINE)
    author = harness.evalai.submission(pk)["created_by"]
    if seen_first:
        worker.drive(lambda: pk in worker.states() and worker.row(pk).created_by is not None)
    harness.evalai.edit(pk, created_by=harness.evalai.world.user("host").pk)
    worker.wait(20)
    harness.evalai.edit(pk, created_by=author)
    worker.wait(20)
    if not seen_first:
        assert f"`neuco-worker challenge retry {pk}`" in worker.alert("facts.author_not_in_team")
        harness.decide("challenge", "retry", str(pk))
    worker.drive()
    late = harness.submit("A", embeddings(1))
    worker.finish(pk, late)
    assert rows(harness) == {"A": 1}


@pytest.mark.parametrize("back", ["before the listing", "after it"])
def test_an_author_who_is_a_host_for_a_moment_makes_no_other_one(
    harness: Harness, worker: StepWorker, monkeypatch: pytest.MonkeyPatch, back: str
) -> None:
    """Nor does a number that a host is known by: only a member of the submission's team counts."""
    harness.submit("host", embeddings(5))
    worker.drive()
    pk = harness.submit("A", embeddings(0))
    author, host = harness.evalai.submission(pk)["created_by"], harness.evalai.world.user("host").pk
    numbers, read = {"before the listing": (host, author), "after it": (author, host)}[back], Client.authors
    harness.evalai.edit(pk, created_by=numbers[0])

    def authors(client: Client, phase_pk: int, *, page: int = 1) -> dict[int, Author]:
        harness.evalai.edit(pk, created_by=numbers[1])
        listed = read(client, phase_pk, page=page)
        harness.evalai.edit(pk, created_by=author)
        return listed

    monkeypatch.setattr(Client, "authors", authors)
    worker.wait(60)
    monkeypatch.undo()
    assert (worker.row(pk).own, worker.alerts() != set()) == (False, True)
    later = harness.submit("A", embeddings(1))
    worker.drive()
    assert {row["submission"] for row in harness.boards()} == {later}


def test_a_host_who_leaves_while_authors_cannot_be_looked_up_stays_one(harness: Harness) -> None:
    """What is decided is not decided again, even if nothing else is known of the submission yet."""
    with harness.worker() as worker:
        harness.submit("cohost", embeddings(1))
        worker.drive()

    def checkpoint(name: str) -> None:
        if name == "before call authors":
            harness.evalai.faults.force(Fault.ERROR_BEFORE)

    with harness.worker(checkpoint=checkpoint) as worker:
        baseline = harness.submit("cohost", embeddings(2), method_name=BASELINE)
        worker.drive()
        harness.evalai.change_hosts("host")
        worker.advance(6 * 3600)
        assert "'cohost' left" in worker.alert("evalai.hosts_changed")
        assert (worker.row(baseline).by_member, worker.row(baseline).own) == (None, True)
        assert rows(harness) == {BASELINE: None}


def test_a_server_that_hides_its_hosts_stops_nothing(harness: Harness, worker: StepWorker) -> None:
    """Until they are known, nobody is a host, whatever the team's name; later boards correct the earlier ones without a contradiction."""
    harness.evalai.world.tells_hosts = False
    harness.evalai.rename_team("host", "Host_1_Team")
    harness.submit("A", embeddings(0), method_name=BASELINE)
    harness.submit("host", embeddings(1), method_name=BASELINE)
    trial = harness.submit("cohost", embeddings(2))
    harness.evalai.rename_team("cohost", "C")
    worker.drive()
    assert sorted(rows(harness)) == ["A", "C", "Host_1_Team"]
    assert harness.status(trial) == "finished"
    for _ in range(3):
        worker.advance(600)
    assert worker.alerts() == {"evalai.hosts_unknown"}
    harness.evalai.world.tells_hosts = True
    worker.advance(3600)
    assert worker.alerts() == set()
    assert rows(harness) == {BASELINE: None, "A": 1}
    assert harness.contradictions() == []

"""Senders: whatever participants write into a submission at EvalAI, it stays with the team and the author that were seen first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.organizer.archiving import mark_restored
from worker.organizer.decisions import disqualify, retry
from worker.organizer.session import open_session
from worker.state import State

pytestmark = pytest.mark.processes


def numbers(harness: Harness, pk: int) -> tuple[int, int]:
    """Return the team and the author that EvalAI shows for a submission."""
    shown = harness.evalai.submission(pk)
    return shown["participant_team"], shown["created_by"]


def shown(harness: Harness) -> dict[str, tuple[int | None, int]]:
    """Return the board: team to rank and submission."""
    return {row["team"]: (row["rank"], row["submission"]) for row in harness.boards()}


def test_a_submission_stays_with_its_team(harness: Harness, worker: StepWorker) -> None:
    """A poor file that is moved to the leading team changes no row; the alert names both teams until the change is undone.

    A member who leaves a team changes nothing either.
    """
    leading = harness.submit("Leading", embeddings(0, noise=0.1))
    poor = harness.submit("Poor", embeddings(1, noise=3.0))
    worker.drive()
    before = shown(harness)
    (team, rival), (own, author) = numbers(harness, leading), numbers(harness, poor)
    harness.evalai.world.teams[team].members.remove(rival)
    for changes, code in (
        ({"participant_team": team}, {"facts.changed"}),
        ({"participant_team": own, "created_by": rival}, {"facts.changed"}),
        ({"created_by": author}, set()),
    ):
        harness.evalai.edit(poor, **changes)
        worker.drive()
        assert (shown(harness), worker.alerts()) == (before, code)
        if "participant_team" in changes and len(changes) == 1:
            sentence = worker.alert("facts.changed")
            assert f"team 'Poor' (number {own}) became team 'Leading' (number {team})" in sentence


def test_a_submission_that_changes_its_team_before_the_answer_is_its_first_teams(
    harness: Harness, worker: StepWorker
) -> None:
    """It is answered, and on the board for the team that sent it."""
    other = harness.submit("Other", embeddings(1))
    worker.drive()
    pk = harness.submit("A", embeddings(0))
    worker.drive(lambda: worker.states().get(pk) == State.FETCHED)
    harness.evalai.edit(pk, participant_team=numbers(harness, other)[0])
    worker.drive()
    assert (worker.alerts(), set(shown(harness))) == ({"facts.changed"}, {"A", "Other"})
    assert (harness.status(pk), shown(harness)["Other"][1]) == ("finished", other)


@pytest.mark.parametrize("ends_with", ["retry", "disqualify"])
def test_a_submission_for_a_team_of_others_waits(
    harness: Harness, worker: StepWorker, ends_with: str
) -> None:
    """Its author is not a member of the team; either command ends the wait."""
    rival = harness.submit("Rival", embeddings(0))
    worker.drive()
    forged = harness.submit("A", embeddings(2, noise=3.0))
    team = numbers(harness, rival)[0]
    harness.evalai.edit(forged, participant_team=team)
    worker.wait(60)
    assert worker.alerts() == {"facts.author_not_in_team"}
    assert (harness.posts(forged), shown(harness)["Rival"][1]) == ([], rival)
    with open_session(harness.path) as session:
        if ends_with == "retry":
            retry(session, forged)
        else:
            disqualify(session, forged, "Rival did not send it")
    worker.finish(forged)
    assert worker.alerts() == set()
    assert shown(harness)["Rival"][1] == (forged if ends_with == "retry" else rival)


@pytest.mark.parametrize(
    ("hidden", "shown_again"),
    [
        ({"ignore_submission": True}, {"ignore_submission": False}),
        ({"phase": "eval"}, {"phase": "dev"}),
        ({"participant_team": None}, {}),
    ],
    ids=["deleted", "phase", "team"],
)
def test_a_submission_that_hides_from_the_lookup_is_looked_up_later(
    harness: Harness, worker: StepWorker, hidden: dict[str, object], shown_again: dict[str, object]
) -> None:
    """Who writes into it cannot have it believed: it waits, or is taken off, once EvalAI shows it as at first."""
    rival = harness.submit("Rival", embeddings(0))
    worker.drive()
    forged = harness.submit("A", embeddings(2, noise=3.0))
    own, team = numbers(harness, forged)[0], numbers(harness, rival)[0]
    harness.evalai.edit(forged, participant_team=team)
    worker.drive(lambda: forged in worker.states() and worker.row(forged).evalai_shows is not None)
    harness.evalai.edit(forged, **{name: value or own for name, value in hidden.items()})
    worker.wait(60)
    harness.evalai.edit(forged, **{"participant_team": team, **shown_again})
    worker.advance(700)
    worker.drive(lambda: "facts.author_not_in_team" in worker.alerts())
    worker.drive()
    assert shown(harness)["Rival"][1] == rival


def test_a_stranger_found_while_the_file_is_scored_waits(harness: Harness) -> None:
    """The score ends no hold, and on a ladder the team's own next file does not wait for the organizers."""
    harness.configure({"phases": {"dev": {"selection": "ladder", "ladder_step": 0.5}}})
    with harness.worker() as worker:
        rival = harness.submit("Rival", embeddings(0, noise=3.0))
        worker.drive()
        forged = harness.submit("A", embeddings(1))
        harness.evalai.edit(forged, participant_team=numbers(harness, rival)[0], phase="eval")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worker.daemon.evaluation.runner, "look", lambda _: False)
            worker.drive(lambda: worker.states().get(forged) == State.SCORING)
            harness.evalai.edit(forged, phase="dev")
            worker.clock.advance(60)
            worker.drive(lambda: worker.row(forged).hold is not None)
        own = harness.submit("Rival", embeddings(2, noise=0.1))
        worker.drive(lambda: harness.status(own) == "finished")
        assert (worker.state(forged), harness.posts(forged)) == (State.SCORED, [])
        assert worker.alerts() == {"facts.author_not_in_team"}
        with open_session(harness.path) as session:
            retry(session, forged)
        worker.finish(forged)
        assert worker.alerts() == set()


def test_a_stranger_found_after_the_answer_is_taken_off(harness: Harness, worker: StepWorker) -> None:
    """If nothing could be looked up until then, the team's own submission counts again once the author is known."""
    harness.evalai.world.tells_hosts = False
    own = harness.submit("Rival", embeddings(0))
    worker.drive()
    forged = harness.submit("A", embeddings(2, noise=3.0))
    harness.evalai.edit(forged, participant_team=numbers(harness, own)[0])
    worker.drive()
    assert (harness.status(forged), shown(harness)["Rival"][1]) == ("finished", forged)
    harness.evalai.world.tells_hosts = True
    worker.clock.advance(3600)
    worker.drive()
    assert shown(harness) == {"Rival": (1, own)}
    assert "facts.author_not_in_team" in worker.alerts()


def test_a_renamed_team_is_the_same_team(harness: Harness, worker: StepWorker) -> None:
    """All its submissions get the new name, and two teams that swap their names keep their rows."""
    first, second = (
        harness.submit("A", embeddings(0, noise=0.1)),
        harness.submit("B", embeddings(1, noise=3.0)),
    )
    worker.drive()
    before = {pk: rank for rank, pk in shown(harness).values()}
    for old, new in (("A", "C"), ("B", "A"), ("C", "B")):
        harness.evalai.rename_team(old, new)
    worker.drive()
    assert shown(harness) == {"B": (before[first], first), "A": (before[second], second)}
    assert worker.alerts() == set()


def test_a_name_that_looks_like_another_teams_is_marked_and_told(
    harness: Harness, worker: StepWorker
) -> None:
    """Nothing is held; the alert ends when the team is renamed once more."""
    for seed, team in enumerate(("Alpha", "Beta")):
        harness.submit(team, embeddings(seed))
    worker.drive()
    harness.evalai.rename_team("Beta", "\u0391lpha")  # a Greek letter
    worker.drive()
    assert (set(shown(harness)), worker.alerts()) == ({"Alpha", "\u0391lpha (2)"}, {"team.name_alike"})
    harness.evalai.rename_team("\u0391lpha", "Gamma")
    worker.drive()
    assert (set(shown(harness)), worker.alerts()) == ({"Alpha", "Gamma"}, set())


def test_a_team_gets_rid_of_a_submission_it_did_not_send(harness: Harness, worker: StepWorker) -> None:
    """What cannot be told from an honest upload is taken off with a reason, and the team's own submission counts again."""
    own = harness.submit("A", embeddings(0))
    worker.drive()
    forged = harness.submit("A", embeddings(1, noise=3.0))
    worker.drive()
    assert shown(harness)["A"][1] == forged
    with open_session(harness.path) as session:
        disqualify(session, forged, "team A did not send it")
    worker.drive()
    assert shown(harness)["A"][1] == own


def test_a_rerun_has_what_was_first_seen_of_the_submission_that_it_repeats(
    harness: Harness, worker: StepWorker
) -> None:
    """It is known by its file alone; whatever its team writes into the old row or the new one, the board and the file stay."""
    own = harness.submit("A", embeddings(0, noise=0.1))
    other = harness.submit("B", embeddings(1, noise=3.0))
    worker.drive()
    before = shown(harness)["B"]
    forged = harness.evalai.world.store(harness.evalai.world.submissions[own], "x.csv", embeddings(5))
    harness.evalai.edit(own, participant_team=numbers(harness, other)[0], input_file=forged)
    first, second = harness.evalai.rerun(own), None
    harness.evalai.edit(first, rerun_resumed_at=None, is_public=False, method_name="forged")
    worker.drive()
    second = harness.evalai.rerun(first)
    harness.evalai.edit(second, rerun_resumed_at=None)
    worker.drive()
    kept = ("team_key", "created_by", "by_host", "public", "method", "submitted_at", "content_hash", "q_mean")
    for name in kept:
        assert getattr(worker.row(second), name) == getattr(worker.row(own), name), name
    assert [worker.state(pk) for pk in (own, first)] == [State.SUPERSEDED] * 2
    assert shown(harness) == {"A": (1, second), "B": before}
    assert worker.alerts() == {"facts.changed"}


def test_a_submission_of_another_challenge_is_told_and_waits_for_nobody(
    harness: Harness, worker: StepWorker
) -> None:
    """It is not scored, unless the organizer says that it was sent to this challenge."""
    worker.drive()
    harness.evalai.add_team("Else", elsewhere=True)
    moved = [harness.submit("Else", embeddings(seed), phase="elsewhere") for seed in range(2)]
    for pk in moved:
        harness.evalai.edit(pk, phase="dev")
    worker.advance(3600)
    assert [worker.state(pk) for pk in moved] == [State.CANCELLED] * 2
    assert worker.alerts() == {"facts.other_challenge"}
    for method in ("another", harness.evalai.submission(moved[1])["method_name"]):
        harness.evalai.edit(moved[1], method_name=method)
        worker.drive(lambda method=method: worker.row(moved[1]).at_evalai["method"] == method)
        assert worker.state(moved[1]) is State.CANCELLED
    assert harness.command("challenge", "retry", str(moved[0])).returncode == 0
    worker.finish(moved[0])
    assert (
        harness.command(
            *("challenge", "disqualify", str(moved[1]), "--yes", "--reason", "not ours")
        ).returncode
        == 0
    )
    worker.advance(3600)
    assert (set(shown(harness)), worker.alerts()) == ({"Else"}, set())


def test_a_rerun_of_a_submission_that_was_never_seen_counts_for_nobody(
    harness: Harness, worker: StepWorker
) -> None:
    """A stranger hid the first run in another challenge, ran it again there, and moved that to a rival: its number fits."""
    for seed in range(2):
        rival = harness.submit("Rival", embeddings(seed))
        worker.drive()
    before, (team, author) = shown(harness), numbers(harness, rival)
    hidden = harness.submit("Poor", embeddings(2, noise=3.0))
    harness.evalai.edit(hidden, phase="elsewhere")
    again = harness.evalai.rerun(hidden)
    harness.evalai.edit(again, phase="dev", participant_team=team, created_by=author)
    worker.wait(60)
    assert (shown(harness), worker.state(again)) == (before, State.CANCELLED)
    assert f"`neuco-worker challenge disqualify {again}`" in worker.alert("facts.other_challenge")


def plant(harness: Harness, attacker: str, rival: int) -> int:
    """Submit for a team, and move the submission at once to a rival and the rival's author; the queue's message is not changed."""
    pk = harness.submit(attacker, embeddings(2, noise=3.0))
    team, author = numbers(harness, rival)
    harness.evalai.edit(pk, participant_team=team, created_by=author)
    return pk


@pytest.mark.parametrize(("sent_before", "ends_with"), [(0, "retry"), (1, "disqualify"), (2, "retry")])
def test_a_submission_whose_number_its_team_had_used_waits(
    harness: Harness, worker: StepWorker, sent_before: int, ends_with: str
) -> None:
    """Nobody can write a number. The alert names both teams, and either command ends the wait."""
    for _ in range(2):
        rival = harness.submit("Rival", embeddings(0))
        worker.advance(60)
    for _ in range(sent_before):
        harness.submit("Poor", embeddings(1))
        worker.drive()
    planted = plant(harness, "Poor", rival)
    worker.wait(60)
    fits = sent_before == 2
    assert worker.row(planted).hold == (None if fits else "facts.number_used")
    assert worker.alerts() == (set() if fits else {"facts.number_used"})
    if fits:  # as far as the numbers show, it is the rival's
        return
    assert (harness.posts(planted), shown(harness)["Rival"][1]) == ([], rival)
    sentence = worker.alert("facts.number_used")
    assert "names team 'Rival'" in sentence
    assert ("by team 'Poor'" if sent_before else "by a team that had sent nothing") in sentence
    with open_session(harness.path) as session:
        if ends_with == "retry":
            retry(session, planted)
        else:
            disqualify(session, planted, "Rival did not send it")
    worker.finish(planted)
    assert worker.alerts() == set()
    assert shown(harness)["Rival"][1] == (planted if ends_with == "retry" else rival)


@pytest.mark.parametrize("code", ["facts.number_used", "facts.author_not_in_team"])
def test_a_large_upload_for_a_team_of_others_waits(harness: Harness, worker: StepWorker, code: str) -> None:
    """It is checked while it is under way, and its end changes nothing; the command that the alert names has it scored."""
    rival = harness.submit("Rival", embeddings(0))
    worker.advance(60)
    upload = harness.evalai.begin_upload("Poor", "dev")
    team, author = numbers(harness, rival)
    harness.evalai.edit(
        upload, participant_team=team, **({"created_by": author} if code == "facts.number_used" else {})
    )
    worker.wait(60)
    assert f"`neuco-worker challenge retry {upload}`" in worker.alert(code)
    harness.evalai.finish_upload(upload, embeddings(2, noise=3.0))
    worker.advance(60)
    assert (harness.posts(upload), shown(harness)["Rival"][1], worker.alerts()) == ([], rival, {code})
    harness.decide("challenge", "retry", str(upload))
    worker.finish(upload)
    assert worker.alerts() == set()


@pytest.mark.parametrize("escape", ["cancelled for a while", "cancelled before a restore", "run again"])
def test_a_submission_that_waits_for_the_organizers_cannot_escape(
    harness: Harness, worker: StepWorker, escape: str
) -> None:
    """Neither a cancellation that is undone nor a re-run ends its wait, and the alert names the command that does."""
    rival = harness.submit("Rival", embeddings(0))
    worker.advance(60)
    planted = plant(harness, "Poor", rival)
    worker.wait(60)
    if escape == "run again":
        planted = harness.evalai.rerun(planted)
    else:
        harness.evalai.edit(planted, status="cancelled")
        if escape == "cancelled before a restore":
            with worker.store.write() as tx:
                mark_restored(tx, worker.clock.now().isoformat())
            worker.restart()
        worker.wait(60)
        harness.evalai.edit(planted, status="submitted")
    worker.wait(60)
    assert f"`neuco-worker challenge retry {planted}`" in worker.alert("facts.number_used")
    assert (harness.posts(planted), shown(harness)["Rival"][1]) == ([], rival)
    harness.decide("challenge", "retry", str(planted))
    worker.finish(planted)
    assert (shown(harness)["Rival"][1], worker.alerts()) == (planted, set())


@pytest.mark.parametrize(
    ("command", "decided_first"), [("disqualify", True), ("disqualify", False), ("follow", False)]
)
def test_a_decision_about_a_submission_concerns_its_reruns(
    harness: Harness, worker: StepWorker, command: str, decided_first: bool
) -> None:
    """Also one that is seen before the decision and scored after it; `--undo` takes back both."""
    own = harness.submit("A", embeddings(0))
    other = harness.submit("B", embeddings(1))
    worker.drive()
    harness.evalai.edit(own, ignore_submission=True)
    worker.drive()
    harness.decide("challenge", "pause")
    decision = ("challenge", command, str(own), "--yes", "--reason", "withdrawn")
    if decided_first:
        harness.decide(*decision)
    again = harness.evalai.rerun(own)
    worker.drive(lambda: worker.states().get(again) == State.FETCHED)
    if not decided_first:
        harness.decide(*decision)
    harness.decide("challenge", "pause", "--undo")
    worker.finish(again)
    assert shown(harness) == {"B": (1, other)}
    harness.decide("challenge", "disqualify", str(own), "--undo")
    worker.drive()
    assert set(shown(harness)) == {"A", "B"}


@pytest.mark.parametrize("named", range(3))
def test_a_decision_concerns_every_run(harness: Harness, worker: StepWorker, named: int) -> None:
    """Whichever is named, none counts: neither one between the first and the newest, which somebody cancelled, nor one that comes later."""
    runs = [harness.submit("A", embeddings(0))]
    other = harness.submit("B", embeddings(1))
    worker.drive()
    runs.append(harness.evalai.rerun(runs[0]))
    worker.drive()
    harness.decide("challenge", "pause")
    runs.append(harness.evalai.rerun(runs[0]))
    worker.drive(lambda: worker.states().get(runs[2]) == State.FETCHED)
    harness.evalai.edit(runs[2], status="cancelled")
    worker.drive(lambda: worker.states()[runs[2]] == State.CANCELLED)
    harness.decide("challenge", "pause", "--undo")
    worker.drive()
    assert shown(harness) == {"A": (1, runs[1]), "B": (2, other)}
    harness.decide("challenge", "disqualify", str(runs[named]))
    worker.finish(harness.evalai.rerun(runs[0]))
    assert shown(harness) == {"B": (1, other)}
    harness.decide("challenge", "disqualify", str(runs[named]), "--undo")
    worker.drive()
    assert set(shown(harness)) == {"A", "B"}


def test_a_file_that_is_run_several_times_counts_once(harness: Harness, worker: StepWorker) -> None:
    """Whichever run is answered last: a stranger can cancel one until another is answered."""
    first = harness.submit("A", embeddings(0))
    worker.drive()
    runs = [harness.evalai.rerun(first) for _ in range(2)]
    harness.evalai.edit(runs[0], status="cancelled")
    worker.finish(runs[1])
    harness.evalai.edit(runs[0], status="submitted")
    worker.finish(*runs)
    assert [(row["submission"], row["submissions"]) for row in harness.boards()] == [(runs[1], 1)]


def simultaneous(harness: Harness, worker: StepWorker, last: int) -> None:
    """Two uploads at the same moment get the same number."""
    pks = [harness.submit("Rival", embeddings(seed)) for seed in (1, 2)]
    harness.evalai.edit(
        pks[1], submission_number=harness.evalai.world.submissions[pks[0]]["submission_number"]
    )


def moved_away(harness: Harness, worker: StepWorker, last: int) -> None:
    """A stranger moves the last one away, so that the next has its number, and back later."""
    team, _ = numbers(harness, last)
    other, _ = numbers(harness, harness.submit("Other", embeddings(1)))
    harness.evalai.edit(last, participant_team=other)
    harness.submit("Rival", embeddings(1))
    worker.advance(60)
    harness.evalai.edit(last, participant_team=team)
    worker.advance(60)


def rerun(harness: Harness, worker: StepWorker, last: int) -> None:
    """A host re-runs one that a stranger has moved: the re-run has the number of another team."""
    other = harness.submit("Other", embeddings(1))
    worker.advance(60)
    harness.evalai.edit(last, participant_team=numbers(harness, other)[0])
    again = harness.evalai.rerun(last)
    harness.evalai.edit(again, participant_team=numbers(harness, harness.submit("Rival", embeddings(1)))[0])


def repeated(harness: Harness, worker: StepWorker, last: int) -> None:
    """EvalAI gives a number twice, which no other team could have had."""
    again = harness.submit("Rival", embeddings(1))
    number = harness.evalai.world.submissions[last]["submission_number"]
    harness.evalai.edit(again, submission_number=number)


@pytest.mark.parametrize("disturb", [simultaneous, moved_away, rerun, repeated])
def test_no_number_turns_against_an_honest_file(
    harness: Harness, worker: StepWorker, disturb: Callable[[Harness, StepWorker, int], None]
) -> None:
    """It is scored and answered; at most an alert is raised. Whatever else can happen to numbers is in ``evalai/test_numbers.py``."""
    harness.configure({"phases": {"dev": {"selection": "last"}}})
    for _ in range(2):
        last = harness.submit("Rival", embeddings(0))
        worker.advance(60)
    disturb(harness, worker, last)
    worker.advance(60)
    honest = harness.submit("Rival", embeddings(0, noise=0.1))
    worker.advance(60)
    assert (harness.status(honest), shown(harness)["Rival"][1]) == ("finished", honest)
    with worker.store.read() as tx:
        assert [row for row in tx.submissions() if row.hold is not None] == []


def test_an_author_who_is_new_for_a_team_and_a_gap_are_told_once(
    harness: Harness, worker: StepWorker
) -> None:
    """Neither delays anything; the alert ends after a day."""
    rival = harness.submit("Rival", embeddings(0))
    for _ in range(3):
        harness.submit("Poor", embeddings(1))
        worker.drive()
    team, _ = numbers(harness, rival)
    member = harness.evalai.world.user("second")
    harness.evalai.world.teams[team].members.append(member.pk)
    planted = harness.submit("Poor", embeddings(2))
    harness.evalai.edit(planted, participant_team=team, created_by=member.pk)
    worker.finish(planted)
    assert worker.alerts() == {"facts.sender_unusual"}
    sentence = worker.alert("facts.sender_unusual")
    assert (
        "its author has not sent anything for this team before, and its number in the phase, 4," in sentence
    )
    worker.advance(24 * 3600 + 60)
    assert worker.alerts() == set()
    harness.evalai.edit(harness.submit("Rival", embeddings(3)), created_by=member.pk)
    worker.drive()
    assert worker.alerts() == set()

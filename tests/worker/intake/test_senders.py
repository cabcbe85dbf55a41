"""Senders: whatever participants write into a submission at EvalAI, it stays with the team and the author that were seen first."""

from __future__ import annotations

from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.organizer.decisions import disqualify, retry
from worker.organizer.session import open_session
from worker.state import State


def numbers(harness: Harness, pk: int) -> tuple[int, int]:
    """Return the team and the author that EvalAI shows for a submission."""
    shown = harness.evalai.submission(pk)
    return shown["participant_team"], shown["created_by"]


def shown(harness: Harness) -> dict[str, tuple[int | None, int]]:
    """Return the board: team to rank and submission."""
    return {row["team"]: (row["rank"], row["submission"]) for row in harness.boards()}


def text(worker: StepWorker, key: str) -> str:
    """Return the text of an open alert."""
    with worker.store.read() as tx:
        return next(alert.text for alert in tx.alerts() if alert.key == key)


def test_an_answered_submission_stays_with_its_team(harness: Harness, worker: StepWorker) -> None:
    """A poor file that is moved to the leading team changes no row, and the alert names both teams until the change is undone."""
    leading = harness.submit("Leading", embeddings(0, noise=0.1))
    poor = harness.submit("Poor", embeddings(1, noise=3.0))
    worker.drive()
    before = shown(harness)
    (team, _), (own, author) = numbers(harness, leading), numbers(harness, poor)
    harness.evalai.edit(poor, participant_team=team)
    worker.drive()
    assert shown(harness) == before
    assert worker.alerts() == {"facts.team_differs"}
    assert f"'Poor' (number {own})" in text(worker, f"sender:{poor}")
    assert f"'Leading' (number {team})" in text(worker, f"sender:{poor}")
    harness.evalai.edit(poor, participant_team=own, created_by=numbers(harness, leading)[1])
    worker.drive()
    assert (shown(harness), worker.alerts()) == (before, {"facts.author_differs"})
    harness.evalai.edit(poor, created_by=author)
    worker.drive()
    assert (shown(harness), worker.alerts()) == (before, set())


def test_a_submission_that_changes_its_team_before_the_answer_waits(
    harness: Harness, worker: StepWorker
) -> None:
    """It is neither answered nor on the board until it shows its team again."""
    other = harness.submit("Other", embeddings(1))
    worker.drive()
    pk = harness.submit("A", embeddings(0))
    worker.drive(lambda: worker.states().get(pk) == State.FETCHED)
    own = numbers(harness, pk)[0]
    harness.evalai.edit(pk, participant_team=numbers(harness, other)[0])
    worker.wait(60)
    assert (worker.alerts(), list(shown(harness)), harness.posts(pk)) == (
        {"facts.team_differs"},
        ["Other"],
        [],
    )
    harness.evalai.edit(pk, participant_team=own)
    worker.drive()
    assert (worker.alerts(), set(shown(harness)), harness.status(pk)) == (set(), {"A", "Other"}, "finished")


def test_a_submission_for_a_team_of_others_waits(harness: Harness, worker: StepWorker) -> None:
    """Its author is not a member of the team at first sight; once the author is one, the submission continues."""
    rival = harness.submit("Rival", embeddings(0))
    worker.drive()
    author = numbers(harness, harness.submit("A", embeddings(1)))[1]
    forged = harness.submit("A", embeddings(2, noise=3.0))
    harness.evalai.edit(forged, participant_team=numbers(harness, rival)[0])
    worker.wait(60)
    assert worker.alerts() == {"facts.author_not_in_team"}
    assert (harness.posts(forged), shown(harness)["Rival"][1]) == ([], rival)
    world = harness.evalai.world
    world.teams[numbers(harness, rival)[0]].members.append(author)
    with open_session(harness.path) as session:
        retry(session, forged)
    worker.drive()
    assert (worker.alerts(), harness.status(forged)) == (set(), "finished")


def test_a_submission_that_goes_to_and_fro_is_not_believed(harness: Harness, worker: StepWorker) -> None:
    """Its author is looked up while it names the author's own team, and again when it names the other team."""
    rival = harness.submit("Rival", embeddings(0))
    worker.drive()
    forged = harness.submit("A", embeddings(2, noise=3.0))
    own, team = numbers(harness, forged)[0], numbers(harness, rival)[0]
    harness.evalai.edit(forged, participant_team=team)
    worker.drive(lambda: forged in worker.states() and worker.row(forged).team_key == team)
    harness.evalai.edit(forged, participant_team=own)
    worker.wait(60)
    assert worker.alerts() == {"facts.team_differs"}
    harness.evalai.edit(forged, participant_team=team)
    worker.wait(60)
    assert worker.alerts() == {"facts.author_not_in_team"}
    assert (harness.posts(forged), shown(harness)["Rival"][1]) == ([], rival)


def test_a_member_who_leaves_changes_nothing(harness: Harness, worker: StepWorker) -> None:
    """Only the first sight counts: later submissions of others, and rescores, find the team as it was."""
    pk = harness.submit("A", embeddings(0))
    worker.drive()
    team, author = numbers(harness, pk)
    harness.evalai.world.teams[team].members.remove(author)
    harness.evalai.edit(pk, is_public=True)
    worker.drive()
    assert (worker.alerts(), shown(harness)) == (set(), {"A": (1, pk)})


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
        harness.submit("B", embeddings(1, noise=2.0)),
    )
    worker.drive()
    before = {pk: rank for rank, pk in shown(harness).values()}
    for old, new in (("A", "C"), ("B", "A"), ("C", "B")):
        harness.evalai.rename_team(old, new)
    worker.drive()
    assert shown(harness) == {"B": (before[first], first), "A": (before[second], second)}
    assert worker.alerts() == set()


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

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
    """A poor file that is moved to the leading team changes no row; the alert names both teams until the change is undone.

    A member who leaves a team changes nothing either.
    """
    leading = harness.submit("Leading", embeddings(0, noise=0.1))
    poor = harness.submit("Poor", embeddings(1, noise=3.0))
    worker.drive()
    before = shown(harness)
    (team, rival), (own, author) = numbers(harness, leading), numbers(harness, poor)
    harness.evalai.world.teams[team].members.remove(rival)
    harness.evalai.edit(leading, is_public=True)
    for changes, code in (
        ({"participant_team": team}, {"facts.team_differs"}),
        ({"participant_team": own, "created_by": rival}, {"facts.author_differs"}),
        ({"created_by": author}, set()),
    ):
        harness.evalai.edit(poor, **changes)
        worker.drive()
        assert (shown(harness), worker.alerts()) == (before, code)
        if "facts.team_differs" in code:
            sentence = text(worker, f"sender:{poor}")
            assert (f"'Poor' (number {own})" in sentence, f"'Leading' (number {team})" in sentence) == (
                True,
                True,
            )


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
    """Its author is not a member of the team at first sight, whatever it names later; once the author is one, it continues.

    Its author is looked up while it names the author's own team, and again when it names the other team.
    """
    rival = harness.submit("Rival", embeddings(0))
    worker.drive()
    forged = harness.submit("A", embeddings(2, noise=3.0))
    (own, author), team = numbers(harness, forged), numbers(harness, rival)[0]
    harness.evalai.edit(forged, participant_team=team)
    worker.drive(lambda: forged in worker.states() and worker.row(forged).team_key == team)
    for named, code in ((own, "facts.team_differs"), (team, "facts.author_not_in_team")):
        harness.evalai.edit(forged, participant_team=named)
        worker.wait(60)
        assert worker.alerts() == {code}
    assert (harness.posts(forged), shown(harness)["Rival"][1]) == ([], rival)
    harness.evalai.world.teams[team].members.append(author)
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

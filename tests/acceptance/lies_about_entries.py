"""Lies about entries: submissions, their scores, and what their teams were told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from tests.acceptance.liar import Story
from tests.acceptance.lie import Lie, Tell, decide, facts, raise_score, score
from worker.fairness import events

STEP = 5.0  # of the ladder; so large that the second submission of a team never beats the first


def _facts_of_the_winner(story: Story, *, only_first: bool = False, **facts: Any) -> None:
    """Change what was seen first of the winner's last submission, in all events or in the first one."""
    about = [
        event for event in story.about(story.sent_by("A")[-1]) if event.fields["kind"] == events.SUBMISSION
    ]
    for event in about[:1] if only_first else about:
        event.fields.update(facts)


def _sent_a_minute_earlier(story: Story) -> None:
    """Let the winner's last submission be sent shortly before its first one, which then counts."""
    first = next(event for event in story.about(story.sent_by("A")[0]) if "submitted_at" in event.fields)
    before = datetime.fromisoformat(first.fields["submitted_at"]) - timedelta(minutes=1)
    _facts_of_the_winner(story, submitted_at=before.isoformat())


def _refuse_the_winner(story: Story) -> None:
    for event in story.about(story.sent_by("A")[-1]):
        if event.fields.get("answered"):
            event.fields.update(answered=False, refused=True)


def _set_folds(change: Callable[[list[Any]], list[Any]]) -> Tell:
    def tell(story: Story) -> None:
        cell = score(story, "C").fields["cells"]["alpha"]
        cell["folds"] = change(cell["folds"])

    return tell


def _one_fold(story: Story) -> None:
    for event in story.of(events.SCORE):
        for cell in event.fields["cells"].values():
            cell["folds"], cell["test_parts"] = cell["folds"][:1], []


def _equal_content(story: Story) -> None:
    content = score(story, "A").fields["content"]
    for event in story.about(story.sent_by("C")[0]):
        event.fields["content"] = content


def _second_score(**changes: Any) -> Tell:
    def tell(story: Story) -> None:
        first = score(story, "A")
        again = decide(story, events.SCORE, first, **changes)
        if not changes:
            again.fields["cells"]["alpha"]["folds"][0] -= 0.1

    return tell


def _second_file(story: Story) -> None:
    """Score an entry twice, by two files, and register neither of them."""
    for event in story.about(story.sent_by("C")[0]):
        event.fields.update(content=None) if event.fields["kind"] == events.SUBMISSION else None
    raise_score(decide(story, events.SCORE, score(story, "C"), content="ab" * 32), 0.05)


def _swap_entries(story: Story) -> None:
    first, second = score(story, "B"), score(story, "C")
    first.fields["entry"], second.fields["entry"] = second.fields["entry"], first.fields["entry"]


def _swap_all_but_the_file(story: Story) -> None:
    first, second = score(story, "B").fields, score(story, "C").fields
    for name in ("entry", "submission", "team_key"):
        first[name], second[name] = second[name], first[name]


def _swap_names(story: Story) -> None:
    other = {"B": "C", "C": "B"}
    for event in story.events:
        if event.fields.get("team") in other:
            event.fields["team"] = other[event.fields["team"]]


def _other_fact(**changes: Any) -> Tell:
    return lambda story: decide(story, events.SUBMISSION, facts(story, "C"), **changes)


def _twice_registered(story: Story) -> None:
    for event in story.about(story.sent_by("C")[0]):
        again = story.add({**event.fields, "entry": "ab" * 16, "team_key": 99}, event.at)
        if "team" in again.fields:
            again.fields["team"] = "Z"
        again.nonce = "cd" * 31 + event.nonce[:2]


def _in_two_phases(story: Story) -> None:
    for event in story.about(story.sent_by("A", "eval")[0]):
        event.fields["submission"] = story.sent_by("A")[0]


def _other_rows(story: Story) -> None:
    for event in story.of(events.SCORE):
        event.fields["cells"]["alpha"]["row_set"] = "ab" * 32


def _different_parts(story: Story) -> None:
    for event in story.of(events.SCORE):
        for cell in event.fields["cells"].values():
            cell["test_parts"] = []


def _half_open(story: Story) -> None:
    decide(story, events.SUBMISSION, facts(story, "C"), method="another").whole = False


def _run_again(story: Story, by: int) -> None:
    """Leave out the winner's answer, as if its submission had been run again."""
    about = story.about(story.sent_by("A")[-1])
    story.drop(event for event in about if event.fields.get("answered"))
    for event in about:
        event.fields.update(superseded_by=by) if event.fields["kind"] == events.SUBMISSION else None


def _run_again_otherwise(**changes: Any) -> Tell:
    """Run the winner's last submission again, and register the later run, which has the same file, with another fact."""

    def tell(story: Story) -> None:
        decide(story, events.SUBMISSION, facts(story, "A"), answered=False, superseded_by=4242)
        for event in story.about(story.sent_by("A")[-1])[:-1]:
            fields = {**event.fields, "submission": 4242, "entry": "ab" * 16}
            fields |= {name: value for name, value in changes.items() if name in fields}
            story.add(fields, event.at + timedelta(seconds=1))

    return tell


def with_ladder(story: Story) -> Story:
    """Change a story as if phase dev had used a ladder from the beginning."""
    for event in story.of(events.PHASE):
        event.fields["rules"] = {**event.fields["rules"], "selection": "ladder", "ladder_step": STEP}
    for event in story.of(events.SCORE):
        scored = events.parse(event.fields)
        if event.whole and isinstance(scored, events.ScoreEvent):
            answer = story.replay(event.at)["dev"].shown_value(scored, event.at)
            event.fields |= {"q_mean": answer.value, "counts": answer.counts}
    return story


def _on_the_ladder(number: int, **changes: Any) -> Tell:
    """Change what the winner was told about one of its submissions."""

    def tell(story: Story) -> None:
        submission = story.sent_by("A")[number]
        (event,) = (
            event for event in with_ladder(story).about(submission) if event.fields["kind"] == events.SCORE
        )
        event.fields |= changes

    return tell


def _own_value(story: Story) -> None:
    event = score(story, "A")
    own = event.fields["q_mean"]
    with_ladder(story)
    event.fields["q_mean"] = own


ENTRIES: dict[str, Lie] = {
    "all folds failed": Lie(_set_folds(lambda folds: [None for _ in folds]), "dev: possible"),
    "one fold instead of four": Lie(_one_fold, "dev: possible"),
    "equal content with other folds": Lie(_equal_content, "dev: possible"),
    "a second, lower score": Lie(_second_score(), "dev: possible"),
    "a second score, of another file": Lie(
        _second_file, "dev: facts", "has another content than the register"
    ),
    "a second value for the same scores": Lie(_second_score(q_mean=1.0), "dev: facts"),
    "scores under each other's entry": Lie(_swap_entries, "dev: facts"),
    "scores of each other's file": Lie(_swap_all_but_the_file, "dev: facts"),
    "a submission that was sent at another time": Lie(
        _other_fact(submitted_at="2023-09-14T00:00:00+00:00"), "dev: facts"
    ),
    "a submission that changes its team": Lie(_other_fact(team_key=99), "dev: facts"),
    "a submission that was never public": Lie(_other_fact(public_at_first=False, public=False), "dev: facts"),
    "another file in its place": Lie(_other_fact(file="ab" * 32), "dev: facts"),
    "one submission as two": Lie(_twice_registered, "dev: facts"),
    "one submission in two phases": Lie(_in_two_phases, "register", "in phase eval and in phase dev"),
    "other rows of a task": Lie(_other_rows, "dev: facts"),
    "equal folds as if they differed": Lie(_different_parts, "dev: facts"),
    "an event of a public entry that stays closed": Lie(_half_open, "dev: facts"),
    "a score whose submission is closed": Lie(
        lambda story: setattr(facts(story, "C"), "whole", False), "dev: facts"
    ),
    "a score from before the commitment": Lie(
        lambda story: score(story, "C").fields.update(at="2001-01-01T00:00:00+00:00"), "dev: scores"
    ),
    "a task that nobody committed to": Lie(
        lambda story: (
            score(story, "C")
            .fields["cells"]
            .update(zeta={"version": "00" * 32, "row_set": "00" * 32, "test_parts": [], "folds": [0.5]})
        ),
        "dev: scores",
    ),
    "its own value, where the ladder's was due": Lie(_own_value, "dev: facts"),
    "a submission that counts and climbed nothing": Lie(_on_the_ladder(-1, counts=True), "dev: facts"),
    "a submission that climbed and was told that it does not count": Lie(
        _on_the_ladder(0, counts=False), "dev: facts"
    ),
    "an answer that says nothing of the ladder": Lie(_on_the_ladder(0, counts=None), "dev: facts"),
    "an entry from before the first commitment": Lie(
        lambda story: _facts_of_the_winner(story, at="2001-01-01T00:00:00+00:00", only_first=True),
        "dev: received",
        "before the first commitment",
    ),
    "an entry that was sent after its score": Lie(
        lambda story: _facts_of_the_winner(story, submitted_at="2031-01-01T00:00:00+00:00"),
        "dev: received",
        "is said to have been sent on 2031",
    ),
    "an entry that was scored and never answered": Lie(
        lambda story: story.drop(
            event for event in story.about(story.sent_by("A")[-1]) if event.fields.get("answered")
        ),
        words="(scored, not answered; registered on",
    ),
    "an entry that is said to be refused": Lie(
        _refuse_the_winner, words="(it is said to be refused; registered on"
    ),
    "a rival's entry that is a trial from the start": Lie(
        lambda story: [event.fields.update(own=True) for event in story.about(story.sent_by("A")[-1])],
        words="(it is taken for a trial; registered on",
    ),
    "an entry that was received and never scored": Lie(
        lambda story: story.drop(story.about(story.sent_by("A")[-1])[1:]),
        words="(received, not scored; registered on",
    ),
    "an entry that was sent long before": Lie(
        lambda story: _facts_of_the_winner(story, submitted_at="2021-01-01T00:00:00+00:00"),
        words="were sent earlier than a submission with a lower number",
    ),
    "an entry that was sent a minute before the one that counts": Lie(
        _sent_a_minute_earlier, words="were sent earlier than a submission with a lower number"
    ),
    "a public entry as a private one that is opened": Lie(
        lambda story: (
            _facts_of_the_winner(story, public=False, public_at_first=False)
            or score(story, "A").fields.update(public_at_first=False)
        ),
        words="(it is said to be private; registered on",
    ),
    "an entry that is private when it is first seen": Lie(
        lambda story: _facts_of_the_winner(story, public=False), words="of “A” was made private on"
    ),
    "a private entry that counts when it is first seen": Lie(
        lambda story: [
            event.fields.update(public_at_first=False) for event in story.about(story.sent_by("A")[-1])
        ],
        words="of “A” was made public on",
    ),
    "a friend's scores are raised": Lie(
        lambda story: raise_score(score(story, "C"), 0.05),
        words="submissions were not recomputed from their files: they are taken on trust.",
    ),
    "names of two teams swapped": Lie(_swap_names, words="who sent each submission"),
    "an entry that was run again as a rival's": Lie(
        lambda story: _run_again(story, story.sent_by("C")[-1]),
        "dev: facts",
        "which is of another team or file",
    ),
    "an entry that was run again as a private one": Lie(
        _run_again_otherwise(public_at_first=False, public=False),
        "dev: facts",
        "or was not sent in the same way",
    ),
    "an entry that was run again as an older one": Lie(
        _run_again_otherwise(submitted_at="2023-09-14T00:00:00+00:00"),
        "dev: facts",
        "or was not sent in the same way",
    ),
    "an entry that was run again as one that nobody opens": Lie(
        lambda story: _run_again(story, 4242),
        words="not answered, run again as submission 4242, which is not open",
    ),
    "a public entry as a private one": Lie(
        lambda story: [setattr(event, "whole", False) for event in story.about(story.sent_by("A")[-1])],
        words="opened only in part (private",
        receipt="was revealed as private",
    ),
}

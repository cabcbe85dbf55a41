"""Properties of the Ladder: what is shown of a score follows from the scores before it, and reveals as little as it may."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.worker.harness.rules import phase_rules
from worker.fairness.membership import LadderEntry, ladders

RULES = phase_rules(selection="ladder", ladder_step=0.1)
VALUES = st.floats(-5, 100, allow_nan=False)


@st.composite
def ladder_entries(draw: st.DrawFn) -> list[LadderEntry]:
    """Draw the submissions of a few teams; a repeated file has the score of its content."""
    scores = draw(st.dictionaries(st.sampled_from("abcdefgh"), VALUES, min_size=1))
    contents = st.sampled_from(sorted(scores))
    teams = st.tuples(st.integers(1, 2), st.booleans())
    drawn = draw(st.lists(st.tuples(teams, contents, st.booleans()), max_size=20))
    return [
        LadderEntry(
            submission=1000 + place,
            team=team,
            content=content,
            place=place,
            q_mean=scores[content] if scored else None,
        )
        for place, (team, content, scored) in enumerate(drawn)
    ]


@given(ladder_entries())
def test_shown_values_rise_by_steps(submissions: list[LadderEntry]) -> None:
    """Each value that counts is a multiple of the step and more than half a step above the last; nothing else is ever shown."""
    shown = ladders(submissions, RULES)
    for team in {entry.team for entry in submissions}:
        ladder = [
            shown[entry.submission]
            for entry in submissions
            if entry.team == team and entry.submission in shown
        ]
        counted = sorted({score.value for score in ladder if score.counts and score.value is not None})
        assert {score.value for score in ladder} == set(counted)
        assert all(abs(value / 0.1 - round(value / 0.1)) < 1e-6 for value in counted)
        assert all(later - earlier > 0.05 - 1e-9 for earlier, later in pairwise(counted))


def test_a_value_that_is_exactly_a_step_higher_does_not_count() -> None:
    """Only more than a step counts. Here every number is exact, so the two cases differ."""
    submissions = [
        LadderEntry(submission=place, team=(1, True), content=str(place), place=place, q_mean=value)
        for place, value in enumerate((10.0, 10.5, 10.5625))
    ]
    shown = ladders(submissions, phase_rules(selection="ladder", ladder_step=0.5))
    assert [shown[place].counts for place in range(3)] == [True, False, True]


@given(ladder_entries())
def test_a_content_keeps_the_place_of_its_first_file(submissions: list[LadderEntry]) -> None:
    """Submitting or re-running a file again changes no answer, and neither does a missing score of the first file."""
    shown = ladders(submissions, RULES)
    again = [
        replace(entry, submission=entry.submission + 5000, place=entry.place + 5000)
        for entry in submissions
        if entry.q_mean is not None
    ]
    both = ladders([*submissions, *again], RULES)
    assert {pk: both[pk] for pk in shown} == shown
    without = ladders([*(replace(entry, q_mean=None) for entry in submissions), *again], RULES)
    assert without == {entry.submission: both[entry.submission] for entry in again}

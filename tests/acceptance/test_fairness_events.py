"""Every event matters: dropped, repeated, moved in time, or given to another team, it is contradicted or changes what the report says."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.acceptance.fair_challenge import Fair
from tests.acceptance.liar import Story, Told, honest
from worker.verify import Status, verdicts
from worker.verify.public import PublicRepository

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("fairness")]

Change = Callable[[Story, Told], object]


def _moved(by: timedelta) -> Change:
    def move(story: Story, event: Told) -> None:
        story.drop([event])
        story.add(event.fields, event.at + by, whole=event.whole)

    return move


def _given(name: str, value: object) -> Change:
    return lambda _, event: event.fields.update({name: value}) if name in event.fields else None


CHANGES: dict[str, Change] = {
    "dropped": lambda story, event: story.drop([event]),
    "repeated": lambda story, event: story.add(
        event.fields, event.at + timedelta(minutes=1), whole=event.whole
    ),
    "closed": lambda _, event: setattr(event, "whole", False) if "entry" in event.fields else None,
    "two hours later": _moved(timedelta(hours=2)),
    "ten hours earlier": _moved(timedelta(hours=-10)),
    "of another team": _given("team_key", 999),
    "of another name": _given("team", "Somebody"),
    "of the organizers": _given("own", True),
    "private": _given("public_at_first", False),
    "disqualified": _given("removed", "a reason"),
    "of another submission": _given("submission", 77),
}
HARMLESS: dict[str, str] = {
    r".* repeated": "the same facts once more decide nothing",
    r".* (two hours later|ten hours earlier)": "the clocks are taken on trust, as long as the order and the log allow it",
    r"submission \d+ .* dropped": "the next event about the submission has the same facts; only a time is lost",
}
"""What may change without a word, each as a pattern, with the reason."""


def _said(repository: PublicRepository) -> set[tuple[str, str | None, str]] | None:
    """Return everything that is said, without the numbers of events and lines; None if anything is contradicted."""
    said = list(verdicts(repository))
    if any(verdict.status is Status.CONTRADICTED for verdict in said):
        return None
    return {
        (verdict.check, verdict.phase, re.sub(r"\ball \d+ \w+|\d+ events?", "", verdict.sentence))
        for verdict in said
    }


def _changed(happened: Story) -> Iterator[tuple[str, PublicRepository]]:
    for number, event in enumerate(happened.events):
        if not event.whole:  # opened only in part, which the report says
            continue
        for name, change in CHANGES.items():
            story = replace(happened, events=copy.deepcopy(happened.events))
            change(story, story.events[number])
            if story.events != happened.events:
                yield f"{event.fields['kind']} {number} {event.fields.get('team')} {name}", story.publish()


def test_every_event_matters(ended: Fair) -> None:
    """Nothing about an event can be told otherwise without a contradiction or another sentence."""
    happened = honest(ended)
    truth = _said(happened.publish())
    assert truth is not None
    silent = list[str]()
    for name, repository in _changed(happened):
        said = _said(repository)
        if said is not None and said <= truth:
            silent.append(name)
    assert [name for name in silent if not any(re.fullmatch(pattern, name) for pattern in HARMLESS)] == []
    assert [pattern for pattern in HARMLESS if not any(re.fullmatch(pattern, name) for name in silent)] == []

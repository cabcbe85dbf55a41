"""Lies about the public random value that determines the splits are contradicted, or reported as taken on trust."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.fair_challenge import FILES, PHASES, Fair
from tests.acceptance.liar import Story, honest
from tests.acceptance.liar_draws import (
    AT,
    BEGUN,
    EARLIER,
    MIXED,
    NAMED,
    ROUND,
    SIGNATURES,
    Organizers,
    Sent,
    mixed,
    named,
    read_sent,
)
from tests.worker.harness.harness import SECRET
from worker.challenge.setups import read_record
from worker.fairness.drand import QUICKNET, value_of
from worker.fairness.verify import Worth, verdicts
from worker.organizer.rehearsal.practice_draw import practice_chain, sign

pytestmark = pytest.mark.xdist_group("fairness_liar")
Tell = Callable[[Organizers], object]
LOTTO = {"source": "Lotto", "at": AT.isoformat(), "round": None, "chain": None}
OURS = practice_chain(genesis=QUICKNET.genesis, period_s=QUICKNET.period_s).to_json()


@pytest.fixture(scope="module")
def happened(ended: Fair) -> Story:
    """The true story, dated to follow a real round of the network."""
    return honest(ended, BEGUN)


@pytest.fixture(scope="module")
def sent(ended: Fair, tmp_path_factory: pytest.TempPathFactory) -> Sent:
    """The organizers' unpublished data."""
    folder = tmp_path_factory.mktemp("sent")
    files = [folder / f"{name}.csv" for name in FILES]
    for file, content in zip(files, FILES.values(), strict=True):
        file.write_bytes(content)
    with closing(ended.harness.store()) as store, store.read() as tx:
        records = {name: record for name in PHASES if (record := read_record(tx, name)) is not None}
    return read_sent(records, files, bytes.fromhex(SECRET))


@pytest.fixture
def organizers(happened: Story, sent: Sent, tmp_path: Path) -> Organizers:
    """Organizers who have not made any commitment yet."""
    return Organizers(copy.deepcopy(happened), sent, tmp_path)


def steps(*taken: Tell) -> Tell:
    """Take steps one after the other."""

    def tell(organizers: Organizers) -> None:
        for step in taken:
            step(organizers)

    return tell


def commit(at: datetime, **options: Any) -> Tell:
    """Commit at a claimed time."""
    return lambda organizers: organizers.commit(at, **options)


def grind(value: str | None) -> Tell:
    """Try secrets until the friend wins."""
    return lambda organizers: organizers.grind(value)


def with_ground_value(at: datetime) -> Tell:
    """Mix in a value with which the friend wins."""
    return lambda organizers: organizers.commit(at, drawn={"value": organizers.grind_value()})


def mixes(**otherwise: object) -> Tell:
    """Announce the round, and mix in something else."""
    return steps(NAME, commit(MIXED, drawn=mixed(**otherwise)))


def names(**otherwise: object) -> Tell:
    """Announce something else, and mix in the round."""
    return steps(commit(NAMED, draw=named(**otherwise)), MIX)


NAME, MIX = commit(NAMED, draw=named()), commit(MIXED, drawn=mixed())
DRAW = steps(NAME, MIX)
VALUE = value_of(SIGNATURES[ROUND])
BEFORE, AFTER = AT - timedelta(minutes=1), MIXED + timedelta(minutes=1)
FIRST_AT = QUICKNET.made_at(EARLIER)
NAME_FIRST = commit(FIRST_AT - timedelta(minutes=11), draw=named(EARLIER))
MIX_FIRST = commit(FIRST_AT + timedelta(minutes=1), drawn=mixed(EARLIER))
RELABEL: Tell = Organizers.change_label
LIES: dict[str, tuple[Tell, Worth, str]] = {
    name: (tell, worth, words)
    for worth, rows in {
        Worth.CONTRADICTED: {
            "a value that is made up": (mixes(value="66" * 32), "is not the one of round"),
            "a signature of our own": (mixes(signature=sign(ROUND)), "is not the one of round"),
            "a round without its signature": (
                steps(NAME, commit(MIXED, drawn={"round": ROUND, "value": VALUE})),
                "is not the one of round",
            ),
            "another round's signature": (mixes(signature=SIGNATURES[EARLIER]), "is not the one of round"),
            "another round": (mixes(number=EARLIER), f"round {EARLIER} was mixed into its splits"),
            "a chain of our own by drand's name": (
                names(chain={**OURS, "name": QUICKNET.name}),
                "names drand quicknet, but gives the key of another chain",
            ),
            "a round that was known": (
                steps(commit(AT + timedelta(seconds=30), draw=named()), MIX),
                "that was already known",
            ),
            "an earlier round": (
                steps(commit(NAMED, draw=named(EARLIER)), commit(MIXED, drawn=mixed(EARLIER))),
                "that was already known",
            ),
            "a moment that is not the round's": (
                names(at=(AT + timedelta(seconds=30)).isoformat()),
                "was not made at the time that commitment 1 gives",
            ),
            "a round before it was made": (
                steps(NAME, commit(BEFORE, drawn=mixed())),
                "that did not exist yet",
            ),
            "a lottery before it was drawn": (
                steps(commit(NAMED, draw=LOTTO), with_ground_value(BEFORE)),
                "that did not exist yet",
            ),
            "a round that nobody named": (MIX, "that no commitment had announced"),
            "values tried that nobody named": (
                steps(commit(NAMED), with_ground_value(MIXED)),
                "that no commitment had announced",
            ),
            "a round that was named and not used": (
                steps(grind(None), NAME),
                "was never mixed into its splits",
            ),
            "a second round for one name": (
                steps(DRAW, commit(AFTER, drawn=mixed(EARLIER))),
                "that no commitment had announced",
            ),
            "another secret when it was known": (
                steps(NAME, grind(VALUE), MIX),
                "its secret changed in commitment 2",
            ),
            "other tasks when it was known": (steps(NAME, RELABEL, MIX), "its tasks changed in commitment 2"),
        },
        Worth.BELIEVED: {
            "secrets tried without a value": (
                steps(grind(None), commit(NAMED)),
                "the organizers could have tried many and chosen some",
            ),
            "a lottery that was never drawn": (
                steps(commit(NAMED, draw=LOTTO), with_ground_value(MIXED)),
                "that Lotto published this value is taken on trust",
            ),
            "a chain of our own": (
                steps(
                    commit(NAMED, draw=named(source="a chain of ours", chain=OURS)),
                    commit(MIXED, drawn=mixed(signature=sign(ROUND))),
                ),
                "that nobody could choose the values of this chain is taken on trust",
            ),
            "two draws": (
                steps(NAME_FIRST, MIX_FIRST, DRAW),
                "this is draw number 2; that the earlier ones were not dropped because of their values is taken on trust",
            ),
            "named again when it was known": (steps(NAME_FIRST, DRAW), "this is draw number 2"),
            "another secret after the draw": (
                steps(DRAW, grind(VALUE), commit(AFTER)),
                "its secret changed in commitment 3, when the value was known, so these splits could have been chosen",
            ),
            "other tasks after the draw": (
                steps(DRAW, RELABEL, commit(AFTER)),
                "its tasks changed in commitment 3, when the value was known, so these splits could have been chosen",
            ),
        },
        Worth.CONSISTENT: {
            "an honest draw": (DRAW, f"round {ROUND} of drand quicknet (value {VALUE[:16]}"),
        },
    }.items()
    for name, (tell, words) in rows.items()
}
"""What organizers do, and what the report says of it."""


@pytest.mark.parametrize("lie", LIES)
def test_a_chosen_draw_is_found(organizers: Organizers, lie: str) -> None:
    """A draw that was invented is contradicted, and one that may have been chosen is taken on trust, with the reason.

    The scores follow from it, and everything else is consistent.
    """
    tell, worth, words = LIES[lie]
    tell(organizers)
    found = list(verdicts(organizers.tell().publish()))
    expected = {"beacon"} if worth is Worth.CONTRADICTED else set()
    assert {one.check for one in found if one.worth is Worth.CONTRADICTED} == expected
    (told,) = [one for one in found if (one.check, one.phase) == ("beacon", "dev")]
    assert (told.worth, words.lower() in told.sentence.lower()) == (worth, True)

"""Lies about the public random value that determines the splits are contradicted, or reported as taken on trust."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.acceptance.fair_challenge import Fair, lies
from tests.acceptance.liar import FILES, PHASES, Git, Story, honest
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
from worker.fairness.verify import Worth, older_verdicts, verdicts
from worker.fairness.verify.public import opened
from worker.fairness.verify.published import published_verdicts
from worker.organizer.rehearsal.practice_chain import practice_chain, sign

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


def draw(organizers: Organizers) -> None:
    """Announce a round, and mix it in."""
    organizers.commit(NAMED, draw=named())
    organizers.commit(MIXED, drawn=mixed())


def test_an_honest_draw_is_consistent(organizers: Organizers) -> None:
    """A round that was announced in time, signed by the network and mixed in once is consistent, and nothing about it is taken on trust."""
    draw(organizers)
    repository = organizers.tell().publish()
    said = [*verdicts(repository), *published_verdicts(repository)]
    assert not [one for one in said if one.worth is Worth.CONTRADICTED]
    drawn = {one.phase: one for one in said if one.check == "beacon"}
    assert {name: one.worth for name, one in drawn.items()} == dict.fromkeys(PHASES, Worth.CONSISTENT)
    assert (
        f"round {ROUND} of drand quicknet (value {value_of(SIGNATURES[ROUND])[:16]}" in drawn["dev"].sentence
    )


def _mixes(**otherwise: object) -> Tell:
    def tell(organizers: Organizers) -> None:
        organizers.commit(NAMED, draw=named())
        organizers.commit(MIXED, drawn=mixed(**otherwise))

    return tell


def _names(**otherwise: object) -> Tell:
    def tell(organizers: Organizers) -> None:
        organizers.commit(NAMED, draw=named(**otherwise))
        organizers.commit(MIXED, drawn=mixed())

    return tell


def _known(organizers: Organizers) -> None:
    organizers.commit(AT + timedelta(seconds=30), draw=named())
    organizers.commit(MIXED, drawn=mixed())


def _an_earlier_round(organizers: Organizers) -> None:
    organizers.commit(NAMED, draw=named(EARLIER))
    organizers.commit(MIXED, drawn=mixed(EARLIER))


def _too_early(organizers: Organizers) -> None:
    organizers.commit(NAMED, draw=named())
    organizers.commit(AT - timedelta(minutes=1), drawn=mixed())


def _lotto_too_early(organizers: Organizers) -> None:
    organizers.commit(NAMED, draw=LOTTO)
    organizers.commit(AT - timedelta(minutes=1), drawn={"value": organizers.grind_value()})


def _values_tried(organizers: Organizers) -> None:
    organizers.commit(NAMED)
    organizers.commit(MIXED, drawn={"value": organizers.grind_value()})


def _without_signature(organizers: Organizers) -> None:
    organizers.commit(NAMED, draw=named())
    organizers.commit(MIXED, drawn={"round": ROUND, "value": value_of(SIGNATURES[ROUND])})


def _never_mixed_in(organizers: Organizers) -> None:
    organizers.grind(None)
    organizers.commit(NAMED, draw=named())


def _another_secret(organizers: Organizers) -> None:
    organizers.commit(NAMED, draw=named())
    organizers.grind(value_of(SIGNATURES[ROUND]))
    organizers.commit(MIXED, drawn=mixed())


def _other_tasks(organizers: Organizers) -> None:
    organizers.commit(NAMED, draw=named())
    organizers.change_label()
    organizers.commit(MIXED, drawn=mixed())


def _twice_for_one_name(organizers: Organizers) -> None:
    draw(organizers)
    organizers.commit(MIXED + timedelta(minutes=1), drawn=mixed(EARLIER))


CAUGHT: dict[str, tuple[Tell, str]] = {
    "a value that is made up": (_mixes(value="66" * 32), "is not the one of round"),
    "a signature of our own": (_mixes(signature=sign(ROUND)), "is not the one of round"),
    "a round without its signature": (_without_signature, "is not the one of round"),
    "another round's signature": (_mixes(signature=SIGNATURES[EARLIER]), "is not the one of round"),
    "another round": (_mixes(number=EARLIER), f"round {EARLIER} was mixed into its splits"),
    "a chain of our own by drand's name": (
        _names(chain={**OURS, "name": QUICKNET.name}),
        "names drand quicknet, but gives the key of another chain",
    ),
    "a round that was known": (_known, "that was already known"),
    "an earlier round": (_an_earlier_round, "that was already known"),
    "a moment that is not the round's": (
        _names(at=(AT + timedelta(seconds=30)).isoformat()),
        "was not made at the time that commitment 1 gives",
    ),
    "a round before it was made": (_too_early, "that did not exist yet"),
    "a lottery before it was drawn": (_lotto_too_early, "that did not exist yet"),
    "a round that nobody named": (
        lambda organizers: organizers.commit(MIXED, drawn=mixed()),
        "that no commitment had announced",
    ),
    "values tried that nobody named": (_values_tried, "that no commitment had announced"),
    "a round that was named and not used": (_never_mixed_in, "was never mixed into its splits"),
    "a second round for one name": (_twice_for_one_name, "that no commitment had announced"),
    "another secret when it was known": (_another_secret, "its secret changed in commitment 2"),
    "other tasks when it was known": (_other_tasks, "its tasks changed in commitment 2"),
}


@pytest.mark.parametrize("lie", CAUGHT)
def test_an_invented_draw_is_contradicted(organizers: Organizers, lie: str) -> None:
    """An invented draw is contradicted even if the scores follow from it and everything else is consistent."""
    tell, words = CAUGHT[lie]
    tell(organizers)
    repository = organizers.tell().publish()
    found = list(verdicts(repository))
    assert {one.check for one in found if one.worth is Worth.CONTRADICTED} == {"beacon"}
    (said,) = [one for one in found if (one.check, one.phase) == ("beacon", "dev")]
    assert (said.worth, words.lower() in said.sentence.lower()) == (Worth.CONTRADICTED, True)


def _secrets_tried(organizers: Organizers) -> None:
    organizers.grind(None)
    organizers.commit(NAMED)


def _lotto_invented(organizers: Organizers) -> None:
    organizers.commit(NAMED, draw=LOTTO)
    organizers.commit(MIXED, drawn={"value": organizers.grind_value()})


def _own_chain(organizers: Organizers) -> None:
    organizers.commit(NAMED, draw=named(source="a chain of ours", chain=OURS))
    organizers.commit(MIXED, drawn=mixed(signature=sign(ROUND)))


def _drawn_twice(organizers: Organizers) -> None:
    earlier = QUICKNET.made_at(EARLIER)
    organizers.commit(earlier - timedelta(minutes=11), draw=named(EARLIER))
    organizers.commit(earlier + timedelta(minutes=1), drawn=mixed(EARLIER))
    draw(organizers)


def _named_twice(organizers: Organizers) -> None:
    organizers.commit(QUICKNET.made_at(EARLIER) - timedelta(minutes=11), draw=named(EARLIER))
    draw(organizers)


def _secret_changed(organizers: Organizers) -> None:
    draw(organizers)
    organizers.grind(value_of(SIGNATURES[ROUND]))
    organizers.commit(MIXED + timedelta(minutes=1))


def _tasks_changed(organizers: Organizers) -> None:
    draw(organizers)
    organizers.change_label()
    organizers.commit(MIXED + timedelta(minutes=1))


BELIEVED: dict[str, tuple[Tell, str]] = {
    "secrets tried without a value": (_secrets_tried, "the organizers could have tried many and chosen some"),
    "a lottery that was never drawn": (_lotto_invented, "that Lotto published this value is taken on trust"),
    "a chain of our own": (_own_chain, "that nobody could choose the values of this chain is taken on trust"),
    "two draws": (
        _drawn_twice,
        "this is draw number 2; that the earlier ones were not dropped because of their values is taken on trust",
    ),
    "named again when it was known": (_named_twice, "this is draw number 2"),
    "another secret after the draw": (
        _secret_changed,
        "its secret changed in commitment 3, when the value was known, so these splits could have been chosen",
    ),
    "other tasks after the draw": (
        _tasks_changed,
        "its tasks changed in commitment 3, when the value was known, so these splits could have been chosen",
    ),
}


@pytest.mark.parametrize("lie", BELIEVED)
def test_a_draw_that_may_have_been_chosen_is_named(organizers: Organizers, lie: str) -> None:
    """A lie that cannot be contradicted is reported as taken on trust, with the reason."""
    tell, words = BELIEVED[lie]
    tell(organizers)
    repository = organizers.tell().publish()
    found = list(verdicts(repository))
    assert Worth.CONTRADICTED not in {one.worth for one in found}
    (said,) = [one for one in found if (one.check, one.phase) == ("beacon", "dev")]
    assert (said.worth, words.lower() in said.sentence.lower()) == (Worth.BELIEVED, True)


def test_an_older_clone_detects_secrets_tried_after_the_round(
    happened: Story, sent: Sent, tmp_path: Path
) -> None:
    """A backdated commitment is consistent by the organizers' own clock, but contradicts a clone that was made before the round."""
    folders = [tmp_path / name for name in ("true", "false")]
    for folder in folders:
        folder.mkdir()
    true, false = (Organizers(copy.deepcopy(happened), sent, folder) for folder in folders)
    false.grind(value_of(SIGNATURES[ROUND]))
    for organizers in (true, false):
        draw(organizers)
    before, after = true.tell().publish(AT - timedelta(minutes=1)), false.tell().publish()
    older, rewritten, appended = (
        Git(tmp_path / name, happened.signer) for name in ("older", "rewritten", "appended")
    )
    for repository, pushes in ((older, [before]), (rewritten, [after]), (appended, [before, after])):
        for pushed in pushes:
            repository.push(pushed)
    with opened(str(rewritten.folder)) as public, opened(str(older.folder)) as clone:
        said = list(verdicts(public))
        assert Worth.CONTRADICTED not in {one.worth for one in said}
        assert [one for one in said if one.check == "beacon" and "by the organizers' clock" in one.sentence]
        assert [one for one in said if one.check == "clocks" and "--against" in one.sentence]
        assert [
            one
            for one in older_verdicts(public, clone)
            if one.worth is Worth.CONTRADICTED and "commitment.json does not begin with" in one.sentence
        ]
    with opened(str(appended.folder)) as public:
        assert "history" in lies(public)

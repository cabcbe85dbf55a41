"""Lies of organizers who have every key and the software: caught, or named as believed in so many words."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.acceptance.fair_challenge import Fair, lies
from tests.acceptance.ladder_lies import BROKEN, with_ladder
from tests.acceptance.liar import BEGUN, EVERY, FILES, HOSTS, Git, Story, honest
from tests.acceptance.lies import CAUGHT, NAMED, raise_score, score
from worker.fairness import disclosure, events
from worker.fairness.verify import Worth, make_report, older_verdicts, receipt_verdicts, verdicts
from worker.fairness.verify.public import opened
from worker.fairness.verify.published import published_verdicts
from worker.fairness.verify.recompute import submission_verdicts

pytestmark = pytest.mark.xdist_group("fairness_liar")


@pytest.fixture(scope="module")
def happened(ended: Fair) -> Story:
    """What happened, with nothing drawn."""
    return honest(ended)


@pytest.fixture
def story(happened: Story) -> Story:
    """The same once more, to be told otherwise."""
    return copy.deepcopy(happened)


def test_what_happened_is_never_contradicted(story: Story) -> None:
    """The kit tells the truth as the worker does: else its lies would be found by their making."""
    repository = story.publish()
    found = [*verdicts(repository), *published_verdicts(repository)]
    assert not [one for one in found if one.worth is Worth.CONTRADICTED]
    assert len(story.boards("dev")) > 2
    for team in "ABC":
        said = list(receipt_verdicts(repository, story.receipt(story.sent_by(team)[-1])))
        assert (said[-1].worth, len(said)) == (Worth.CONSISTENT, 3)


@pytest.mark.parametrize("lie", CAUGHT)
def test_lies_that_the_repository_alone_contradicts(story: Story, lie: str) -> None:
    """Everything was made to fit, but for what cannot be."""
    tell, check = CAUGHT[lie]
    tell(story)
    found = lies(story.publish())
    assert check in found
    assert not found & {
        "signatures",
        "seal",
        "commitment",
        "dev: commitment",
        "dev: labels",
        "page",
        "dev: page",
    }


@pytest.mark.parametrize("lie", NAMED)
def test_lies_that_fit_are_named(happened: Story, story: Story, lie: str) -> None:
    """What nothing can contradict is told in so many words; the receipt of whom it harms contradicts it."""
    tell, words, evidence = NAMED[lie]
    receipt = happened.receipt(happened.sent_by("A")[-1])
    tell(story)
    repository = story.publish()
    report = make_report(repository, verdicts(repository))
    assert [one for one in report.verdicts if one.worth is Worth.CONTRADICTED] == []
    assert [one for one in report.verdicts if words.lower() in one.sentence.lower()]
    if evidence is not None:
        said = [one for one in receipt_verdicts(repository, receipt) if one.worth is Worth.CONTRADICTED]
        assert [one for one in said if evidence.lower() in one.sentence.lower()], said


def test_a_ladder_that_was_climbed_is_never_contradicted(story: Story) -> None:
    """The kit tells what a worker tells under that rule; who did not climb hears which submission counts."""
    repository = with_ladder(story).publish()
    assert [one.sentence for one in verdicts(repository) if one.worth is Worth.CONTRADICTED] == []
    first, second = (story.receipt(pk) for pk in story.sent_by("A"))
    assert (first["counts"], second["counts"], first["q_mean"] == second["q_mean"]) == (True, False, True)
    said = list(receipt_verdicts(repository, second))[-1]
    assert said.worth is Worth.CONSISTENT
    assert f"submission {first['submission']} of the same team counts" in said.sentence


@pytest.mark.parametrize("lie", BROKEN)
def test_a_broken_ladder_is_contradicted(story: Story, lie: str) -> None:
    """Everything else was made to fit."""
    tell, check = BROKEN[lie]
    tell(with_ladder(story))
    assert lies(story.publish()) >= {check}


def test_an_invented_baseline_is_found_by_its_file(story: Story) -> None:
    """Baselines decide weights and places, so their contents are published, and computed again."""
    (baseline,) = [one for one in story.of(events.SCORE) if one.fields["team"] == HOSTS]
    raise_score(baseline, 0.05)
    repository = story.publish()
    assert lies(repository) == set()
    (found,) = published_verdicts(repository)
    assert (found.worth, "its scores do not follow from its published file" in found.sentence) == (
        Worth.CONTRADICTED,
        True,
    )
    story.hidden["dev"]["reveal/dev/files.json"] = disclosure.text(
        [], {baseline.fields["submission"]: "the disk was full"}
    ).encode()
    (found,) = published_verdicts(story.publish())
    assert (found.worth, "its scores are taken on trust: the disk was full" in found.sentence) == (
        Worth.BELIEVED,
        True,
    )


def test_a_raised_score_is_found_by_whoever_has_the_file(story: Story, tmp_path: Path) -> None:
    """A friend's score that was raised before it was registered fits everything but the file."""
    raise_score(score(story, "C"), 0.05)
    file = tmp_path / "c.csv"
    file.write_bytes(FILES["C"])
    (found,) = submission_verdicts(story.publish(), file, engine="default")
    assert (found.worth, "not those of your file" in found.sentence) == (Worth.CONTRADICTED, True)


def test_a_log_that_never_begins_is_overdue(story: Story) -> None:
    """The first batch is due as well: who gets a receipt and never sees one has a contradiction after three days."""
    story.log, story.revealed = [], ()
    receipt = story.receipt(story.sent_by("A")[0])
    repository = story.publish(story.revealed_at)
    for days, worth in ((1, Worth.NOT_REVEALED), (4, Worth.CONTRADICTED)):
        said = list(receipt_verdicts(repository, receipt, now=BEGUN + timedelta(days=days)))
        assert said[1].worth is worth, said


def test_a_push_that_is_on_its_way_is_no_lie(story: Story) -> None:
    """An answer may leave before the line that it names is pushed; a line that never comes is overdue."""
    receipt = story.receipt(story.sent_by("A")[-1])
    place = receipt["batch"]
    behind = story.publish(story.log[place - 2])
    for hours, worth in ((2, Worth.NOT_REVEALED), (4, Worth.CONTRADICTED)):
        said = list(receipt_verdicts(behind, receipt, now=story.log[place - 2] + hours * EVERY))
        assert (said[1].worth, str(place) in said[1].sentence) == (worth, worth is Worth.NOT_REVEALED)


FROM_THE_START = {
    "a friend's scores are raised",
    "names of two teams swapped",
    "an entry that was never registered",
    "a score that was never registered",
    "a public entry as a private one",
    "closed before the winner sent",
    "one line for a whole day",
}
"""Lies that fit if they are told from the beginning, and not if they are told in the end."""


@pytest.mark.parametrize(
    "lie", [name for name, (_, _, evidence) in NAMED.items() if evidence or name in FROM_THE_START]
)
def test_what_was_published_cannot_be_told_otherwise(
    happened: Story, story: Story, tmp_path: Path, lie: str
) -> None:
    """A lie that comes after what was published is a decision that is told, or takes away what stood there."""
    tell, words, _ = NAMED[lie]
    appended = Git(tmp_path / "appended")
    appended.push(happened.publish(story.log[-4]))
    tell(story)
    appended.push(story.publish())
    with opened(str(appended.folder)) as public:
        found = list(verdicts(public))
    wrong = {one.check for one in found if one.worth is Worth.CONTRADICTED}
    told = [one for one in found if one.check == "decisions" and words.lower() in one.sentence.lower()]
    if lie in FROM_THE_START:
        assert "history" in wrong
    else:
        assert told
        assert wrong == set()


def test_what_is_dated_back_is_seen_in_the_order_of_commits(story: Story, tmp_path: Path) -> None:
    """Lines of the log that come after younger boards, and a reveal that comes after what it leaves out, were dated back."""
    silent = replace(story, log=story.log[:1])
    earlier = replace(story, revealed_at=story.log[2])
    for name, pushes, found in (
        ("honest", [story.publish(story.log[3]), story.publish(story.log[-3]), story.publish()], set()),
        ("silent", [silent.publish(story.log[-3]), story.publish()], {"times"}),
        ("revealed", [story.publish(story.log[-3]), earlier.publish()], {"times"}),
    ):
        repository = Git(tmp_path / name)
        for pushed in pushes:
            repository.push(pushed)
        with opened(str(repository.folder)) as public:
            assert lies(public) & {"history", "times", "order", "seal"} == found
            assert found or lies(public) == set()


def test_a_log_that_came_all_at_once_is_believed(story: Story, tmp_path: Path) -> None:
    """Nothing shows that lines of one commit were made one after the other."""
    repository = Git(tmp_path / "once")
    repository.push(story.publish())
    with opened(str(repository.folder)) as public:
        (found,) = [one for one in verdicts(public) if one.check == "times"]
    words = f"up to {len(story.log)} lines of the public log came in one commit"
    assert (found.worth, words in found.sentence) == (Worth.BELIEVED, True)


def test_a_history_made_again_contradicts_clones_and_receipts(
    happened: Story, story: Story, tmp_path: Path
) -> None:
    """Made again from its beginning it fits in itself, which is said; appended to what was published it does not even do that."""
    raise_score(score(story, "C"), 0.05)
    older, rewritten, appended = (Git(tmp_path / name) for name in ("older", "rewritten", "appended"))
    middle = story.log[-4]
    older.push(happened.publish(middle))
    for pushed in (story.publish(middle), story.publish()):
        rewritten.push(pushed)
    for pushed in (happened.publish(middle), story.publish()):
        appended.push(pushed)
    receipt = happened.receipt(happened.sent_by("C")[0])
    with opened(str(rewritten.folder)) as public, opened(str(older.folder)) as before:
        found = list(verdicts(public))
        assert Worth.CONTRADICTED not in {one.worth for one in found}
        (clocks,) = [one for one in found if one.check == "clocks"]
        assert (clocks.worth, "--receipt, --against" in clocks.sentence) == (Worth.BELIEVED, True)
        assert Worth.CONTRADICTED in {one.worth for one in older_verdicts(public, before)}
        assert Worth.CONTRADICTED in {one.worth for one in receipt_verdicts(public, receipt)}
    with opened(str(appended.folder)) as public:
        assert "history" in lies(public)


def test_a_decoy_is_named_by_its_branch(story: Story, tmp_path: Path) -> None:
    """What HEAD points at is checked, and its name comes first."""
    decoy = Git(tmp_path / "decoy", branch="decoy")
    decoy.push(story.publish())
    with opened(str(decoy.folder)) as public:
        assert make_report(public, ()).heading()[1].startswith("Branch decoy, commit ")

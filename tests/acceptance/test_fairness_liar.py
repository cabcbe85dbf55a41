"""Lies by organizers who have all keys and the software are either contradicted or explicitly reported as taken on trust."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from leaderboard.rendering import HISTORY
from tests.acceptance.fair_challenge import FILES, PHASES, Fair, lies, named
from tests.acceptance.liar import BEGUN, EVERY, Git, Story, honest
from tests.acceptance.liar_draws import DRAWS, NAMED, commit, drawn, grind
from tests.acceptance.lie import raise_score, score
from tests.acceptance.lies import LIES
from tests.acceptance.lies_about_decisions import take_off
from tests.acceptance.lies_about_documents import regroup_from_the_start
from tests.acceptance.lies_about_entries import with_ladder
from tests.worker.harness.commits import forged_line
from worker.fairness import commitments, events, receipts
from worker.verify import Report, Status, Verdict, make_report, older_verdicts, receipt_verdicts, verdicts
from worker.verify.earlier import ROW
from worker.verify.public import PublicRepository
from worker.verify.recompute import published_verdicts, submission_verdicts
from worker.verify.revealed import read_reveals

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("fairness")]

Forgery = Callable[[dict[str, bytes]], dict[str, bytes]]


@pytest.fixture(scope="module")
def happened(ended: Fair) -> Story:
    """The true story."""
    return honest(ended)


@pytest.fixture
def story(happened: Story) -> Story:
    """A copy of the true story that a test can falsify."""
    return copy.deepcopy(happened)


def report_on(folder: Path, story: Story, *versions: PublicRepository) -> Report:
    """Publish versions of a challenge one after the other, and verify the last one with its history."""
    repository = Git(folder, story.signer)
    for version in versions:
        repository.push(version)
    with repository.checked() as public:
        return make_report(public, verdicts(public))


def wrong(report: Report) -> list[Verdict]:
    """Return the verdicts that contradict."""
    return [verdict for verdict in report.verdicts if verdict.status is Status.CONTRADICTED]


def forged(version: PublicRepository, change: Forgery) -> PublicRepository:
    """Return a version with other files."""
    return replace(version, files=change(dict(version.files)))


def test_the_truth_is_never_contradicted(story: Story) -> None:
    """The kit's true story has no contradiction, so the lies below are not found merely because of how the kit writes files."""
    repository = story.publish()
    all_verdicts = [*verdicts(repository), *published_verdicts(repository)]
    assert not [verdict for verdict in all_verdicts if verdict.status is Status.CONTRADICTED]
    assert len(story.boards("dev")) > 2
    for team in "ABC":
        on_receipt = list(receipt_verdicts(repository, story.receipt(story.sent_by(team)[-1])))
        assert (on_receipt[-1].status, len(on_receipt)) == (Status.CONSISTENT, 3)


@pytest.mark.parametrize("name", [*LIES, *DRAWS])
def test_every_lie_is_found(happened: Story, story: Story, name: str) -> None:
    """Its check contradicts the lie, or the report discloses it; and the receipt of a participant whom it harms tells of it."""
    lie = {**LIES, **DRAWS}[name]
    receipt = happened.receipt(happened.sent_by("A")[-1])
    lie.tell(story)
    repository = story.publish()
    report = make_report(repository, verdicts(repository))
    contradicting = wrong(report)
    sentences = [
        verdict.sentence
        for verdict in (contradicting if lie.check else report.verdicts)
        if lie.check in ("", named(verdict))
    ]
    sentences += [] if lie.check else report.trust
    assert [sentence for sentence in sentences if lie.words.lower() in sentence.lower()]
    if not lie.check:
        assert contradicting == []
    elif name in DRAWS:  # the scores follow from the draw, and everything else is consistent
        assert {verdict.check for verdict in contradicting} == {"beacon"}
    elif not lie.words:  # everything else agrees with the lie
        assert not {verdict.check for verdict in contradicting} & {"signatures", "commitment", "labels"}
    if lie.receipt:
        # a disqualification is a decision, which says when and why, and contradicts nobody
        status = Status.CONSISTENT if "disqualified" in lie.receipt else Status.CONTRADICTED
        said = [verdict for verdict in receipt_verdicts(repository, receipt) if verdict.status is status]
        assert [verdict for verdict in said if lie.receipt.lower() in verdict.sentence.lower()]


def test_nothing_is_said_of_no_scores(story: Story) -> None:
    """No sentence is true only because there is nothing that it could be false of."""
    story.drop([event for event in story.events if "entry" in event.fields])
    repository = story.publish()
    report = make_report(repository, [*verdicts(repository), *published_verdicts(repository)])
    assert report.number(Status.CONTRADICTED) == 0
    assert report.sentence.endswith("No public submission was scored.")
    empty = {verdict.check: verdict.sentence for verdict in report.verdicts if verdict.phase == "dev"}
    assert {empty["scores"], empty["possible"]} == {"No score is open."}


def test_an_honest_ladder_is_never_contradicted(story: Story) -> None:
    """A true story under the ladder rule has no contradiction, and a receipt that does not count leads to the submission that does."""
    repository = with_ladder(story).publish()
    assert [
        verdict.sentence for verdict in verdicts(repository) if verdict.status is Status.CONTRADICTED
    ] == []
    first, second = (story.receipt(pk) for pk in story.sent_by("A"))
    assert (first["counts"], second["counts"], first["q_mean"] == second["q_mean"]) == (True, False, True)
    verdict = list(receipt_verdicts(repository, second))[-1]
    assert verdict.status is Status.CONSISTENT
    assert f"submission {first['submission']} of the same team counts" in verdict.sentence


def test_a_reason_is_not_taken_for_a_late_answer(story: Story) -> None:
    """The reason of a disqualification may be the words for another place."""
    take_off(removed="after the close")(story)
    assert not any("was answered after" in verdict.sentence for verdict in verdicts(story.publish()))


def test_splits_that_change_after_a_score_are_found(story: Story) -> None:
    """Whoever may still change secret or value when scores are known can keep the better splits."""
    DRAWS["an honest draw"].tell(story)
    assert lies(story.publish()) == set()
    told_at = score(story, "C").fields["at"]
    score(story, "C").fields["at"] = NAMED.isoformat()
    assert "dev: splits" in lies(story.publish())
    score(story, "C").fields["at"] = told_at
    for at, told, words in (
        (BEGUN, Status.BELIEVED, "was changed after commitment 1, before the first score"),
        (story.revealed_at, Status.CONTRADICTED, "were changed in commitment 2, after submissions"),
    ):
        drawn(commit(NAMED), grind(None), commit(at))(story)
        found = [verdict for verdict in verdicts(story.publish()) if verdict.check == "splits"]
        assert (found[0].status, words in found[0].sentence) == (told, True)


def test_private_scores_and_trials_help_to_choose_splits_too(story: Story) -> None:
    """That something was scored shows in the register, even if nothing else of it is open."""
    drawn(commit(NAMED), grind(None), commit(BEGUN))(story)
    assert lies(story.publish()) == set()
    (private,) = (event for event in story.of(events.SCORE) if not event.whole)
    private.fields["at"] = (BEGUN - timedelta(minutes=1)).isoformat()
    assert "dev: splits" in lies(story.publish())


def test_scores_of_other_tasks_than_the_board_has_are_not_recomputed(story: Story, tmp_path: Path) -> None:
    """Tasks that change after the close leave the board as it is, and its own labels are not published."""
    *before, close = story.of(events.PHASE)
    story.add(close.fields, close.at + timedelta(minutes=10))
    for event in (*before, close):
        event.fields["tasks"] = {**event.fields["tasks"], "alpha": "ab" * 32}
    file = tmp_path / "c.csv"
    file.write_bytes(FILES["C"])
    (verdict,) = submission_verdicts(story.publish(), file, engine="local")
    assert (verdict.status, "was closed before its tasks" in verdict.sentence) == (Status.BELIEVED, True)


def test_what_a_reveal_no_longer_opens_is_told(story: Story, tmp_path: Path) -> None:
    """A late entry decides no board, so nothing else would miss it."""
    close = story.of(events.PHASE)[-1]
    about = story.about(story.sent_by("C")[0])
    for number, event in enumerate(about):
        event.fields["at"] = (close.at + timedelta(minutes=number + 1)).isoformat()
        event.fields.update(q_mean=None, counts=False) if event.fields["kind"] == events.SCORE else None
    repository = Git(tmp_path / "board", story.signer)
    for is_open in (True, False):
        for event in about:
            event.whole = is_open
        repository.push(story.publish())
        with repository.checked() as public:
            all_verdicts = list(verdicts(public))
        told = [verdict for verdict in all_verdicts if "than is revealed now" in verdict.sentence]
        assert [verdict.status for verdict in told] == ([] if is_open else [Status.NOT_REVEALED])
        assert Status.CONTRADICTED not in {verdict.status for verdict in all_verdicts}
    assert f"revealed more of {len(about)} events of its register" in told[0].sentence


def test_another_grouping_from_the_start_is_found_by_a_published_file(story: Story) -> None:
    """Groups that were committed to, but not scored with, contradict no document; the scores of a published file do not follow."""
    regroup_from_the_start(story)
    repository = story.publish()
    assert lies(repository) == set()
    found = [verdict for verdict in published_verdicts(repository) if verdict.status is Status.CONTRADICTED]
    assert any("do not follow from this file" in verdict.sentence for verdict in found)


def test_an_invented_baseline_is_found_by_its_file(story: Story) -> None:
    """Baselines affect weights and ranks, so their files are published and recomputed; without the file, the report says so."""
    (baseline,) = [event for event in story.of(events.SCORE) if event.fields["own"]]
    submission = baseline.fields["submission"]
    raise_score(baseline, 0.05)
    repository = story.publish()
    assert lies(repository) == set()
    (verdict,) = [
        verdict for verdict in published_verdicts(repository) if verdict.status is Status.CONTRADICTED
    ]
    assert "the published scores do not follow from this file" in verdict.sentence
    content = next(record.content for record in read_reveals(repository).phases["dev"].records[submission])
    story.contents = {name: part for name, part in story.contents.items() if not name.startswith(content)}
    without = list(published_verdicts(story.publish()))
    assert Status.CONTRADICTED not in {verdict.status for verdict in without}
    assert f"no file is published now of submission {submission}" in " ".join(
        verdict.sentence.lower() for verdict in without
    )


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({"by": 0.05, "task": "beta", "folds": [1]}, True),
        ({"by": -0.05, "task": "beta", "folds": [2]}, True),
        # four positive samples, so one sample changes F1 by at most a half
        ({"by": 0.6, "task": "beta", "folds": [1]}, False),
        ({"by": 0.05, "task": "beta", "folds": [1, 2]}, False),
        ({"by": 0.05, "task": "alpha", "folds": [1]}, False),
    ],
)
def test_a_raised_score_is_found_unless_one_sample_explains_it(
    story: Story, tmp_path: Path, changes: dict[str, Any], is_told: bool
) -> None:
    """Another processor or engine may count one sample of a fold differently: that is told; what it does not explain is a contradiction."""
    raise_score(score(story, "C"), **changes)
    file = tmp_path / "c.csv"
    file.write_bytes(FILES["C"])
    (verdict,) = submission_verdicts(story.publish(), file, engine="local")
    words = "in 1 score of F1, one sample at the threshold counts differently"
    if is_told:
        assert (verdict.status, words in verdict.sentence) == (Status.RECOMPUTED, True)
    else:
        assert (verdict.status, "do not follow" in verdict.sentence) == (Status.CONTRADICTED, True)


@pytest.mark.parametrize(
    ("public", "qualifies", "told", "words"),
    [
        (True, True, {}, "was revealed as private"),
        (None, True, {}, "was revealed as private"),
        (False, True, {"q_mean": 99.0}, "is not the one in your receipt"),
        (False, True, {"nonce": "00" * 32}, "is not the one in your receipt"),
        (False, False, {}, "your team may compete in phase eval; the reveal hides whose submission it is"),
        (False, True, {}, "is on no board"),
    ],
)
def test_a_receipt_opens_a_closed_score(
    story: Story, public: bool | None, qualifies: bool, told: dict[str, Any], words: str
) -> None:
    """Its owner is told that a submission is private only if it was registered as private, with the value in the receipt.

    A team that may compete in another phase because of it is not hidden.
    """
    submission = story.sent_by("A")[-1]
    for event in story.about(submission):
        event.fields["public_at_first"], event.whole = public, False
        event.qualifies = qualifies and event.fields["kind"] == events.SUBMISSION
    body = {**story.receipt(submission), **told}
    del body["signature"]
    receipt = {**body, "signature": story.signer.sign(receipts.RECEIPT, body)}
    last = list(receipt_verdicts(story.publish(), receipt))[-1]
    assert words in last.sentence
    assert (last.status is Status.CONSISTENT) == words.endswith("no board")


def test_organizers_own_receipt_contradicts_no_decision(story: Story) -> None:
    """Rules that no longer list a baseline make a trial of it."""
    (baseline,) = [event for event in story.of(events.SCORE) if event.fields["own"]]
    first, close = story.of(events.PHASE)
    close.fields["rules"] = {**first.fields["rules"], "baselines": []}
    close.fields["closed_at"] = close.fields["at"]
    last = list(receipt_verdicts(story.publish(), story.receipt(baseline.fields["submission"])))[-1]
    assert (last.status, "a trial of their own" in last.sentence) == (Status.BELIEVED, True)


@pytest.mark.parametrize("is_hosts", [True, False])
def test_a_trial_that_a_rival_has_sent_is_contradicted(story: Story, *, is_hosts: bool) -> None:
    """A team that competes sends no trials; whose the organizers' baseline is may be registered only after its file."""
    baseline = next(event for event in story.of(events.SUBMISSION) if event.fields["own"])
    baseline.fields["own"] = False
    submission = story.sent_by("A")[-1]
    for event in story.about(submission):
        event.whole, event.fields["own"] = False, True
        event.fields["team_key"] = (baseline if is_hosts else event).fields["team_key"]
    last = list(receipt_verdicts(story.publish(), story.receipt(submission)))[-1]
    assert (last.status is Status.BELIEVED, "team A sent it" in last.sentence) == (is_hosts, not is_hosts)


def test_a_log_that_never_begins_is_overdue(story: Story) -> None:
    """A receipt may arrive before the log's line that it names, but a line that stays missing is a contradiction, also the first one."""
    late, early = (story.receipt(story.sent_by("A")[place]) for place in (-1, 0))
    place = late["batch"]
    behind = story.publish(story.log[place - 2])
    story.log, story.revealed = [], ()
    without = story.publish(story.revealed_at)
    for repository, receipt, since in ((behind, late, BEGUN + (place - 1) * EVERY), (without, early, BEGUN)):
        for hours, status in ((1, Status.NOT_REVEALED), (4, Status.CONTRADICTED)):
            on_receipt = list(receipt_verdicts(repository, receipt, now=since + hours * EVERY))
            assert on_receipt[1].status is status, on_receipt
            copy = list(
                receipt_verdicts(replace(repository, is_copy=True), receipt, now=since + hours * EVERY)
            )
            assert copy[1].status is Status.NOT_REVEALED, copy  # it may be older than the answer


def test_an_answer_after_the_end_waits_for_the_next_line(story: Story) -> None:
    """Whoever sends once everything is revealed gets a receipt up to an interval before its line and its entry are published."""
    repository = story.publish()
    last = repository.log[-1]
    due = {"batch": last.sequence, "chain": last.head, "commitment": "ab" * 32}
    body = {**story.receipt(story.sent_by("A")[-1]), **due}
    del body["signature"]
    receipt = {**body, "signature": story.signer.sign(receipts.RECEIPT, body)}
    for hours, status in ((1, Status.NOT_REVEALED), (4, Status.CONTRADICTED)):
        on_receipt = list(receipt_verdicts(repository, receipt, now=last.made_at + hours * EVERY))
        assert {verdict.status for verdict in on_receipt[1:]} == {status}, on_receipt


FROM_THE_START = (
    "a friend's scores are raised",
    "an entry that was never registered",
    "one line for a whole day",
)
"""Lies that are consistent if they start at the beginning of the challenge, but not if they start only at the end."""


@pytest.mark.parametrize("name", [*FROM_THE_START, "the winner is disqualified"])
def test_published_facts_cannot_be_changed(happened: Story, story: Story, tmp_path: Path, name: str) -> None:
    """A lie that starts after publication is either reported as a decision or contradicts the published history."""
    lie = LIES[name]
    lie.tell(story)
    report = report_on(tmp_path / "appended", story, happened.publish(happened.log[-4]), story.publish())
    decisions = [
        verdict
        for verdict in report.verdicts
        if verdict.check == "decisions" and lie.words.lower() in verdict.sentence.lower()
    ]
    if name in FROM_THE_START:
        assert "history" in {verdict.check for verdict in wrong(report)}
    else:
        assert decisions
        assert wrong(report) == []


def test_backdating_shows_in_the_order_of_commits(story: Story, tmp_path: Path) -> None:
    """Backdating is found if log lines are committed after boards with later dates, or a reveal after log lines with later dates.

    If many log lines arrive in one commit, nothing proves when each was made, and the report says so.
    """
    silent = replace(story, log=story.log[:1])
    earlier = replace(story, revealed_at=story.log[2])
    for name, pushes, expected in (
        ("honest", [story.publish(story.log[3]), story.publish(story.log[-3]), story.publish()], set()),
        ("silent", [silent.publish(story.log[-3]), story.publish()], {"times"}),
        ("revealed", [story.publish(story.log[-3]), earlier.publish()], {"times"}),
    ):
        found = {named(verdict) for verdict in wrong(report_on(tmp_path / name, story, *pushes))}
        assert found & {"history", "times", "order", "signed"} == expected
        assert expected or found == set()
    once = report_on(tmp_path / "once", story, story.publish())
    (times,) = [verdict for verdict in once.verdicts if verdict.check == "times"]
    words = f"up to {len(story.log)} lines of the public log came in one commit"
    assert (times.status, words in times.sentence) == (Status.BELIEVED, True)


def test_a_rewritten_history_contradicts_clones_and_receipts(
    happened: Story, story: Story, tmp_path: Path
) -> None:
    """A fully rewritten history only contradicts older clones and receipts; a partly rewritten one contradicts itself."""
    raise_score(score(story, "C"), 0.05)
    older, rewritten, appended = (
        Git(tmp_path / name, story.signer) for name in ("older", "rewritten", "appended")
    )
    middle = story.log[-4]
    older.push(happened.publish(middle))
    for pushed in (story.publish(middle), story.publish()):
        rewritten.push(pushed)
    for pushed in (happened.publish(middle), story.publish()):
        appended.push(pushed)
    receipt = happened.receipt(happened.sent_by("C")[0])
    with rewritten.checked() as public, older.checked() as before:
        all_verdicts = list(verdicts(public))
        assert Status.CONTRADICTED not in {verdict.status for verdict in all_verdicts}
        assert any("--receipt, --against" in sentence for sentence in make_report(public, all_verdicts).trust)
        assert Status.CONTRADICTED in {verdict.status for verdict in older_verdicts(public, before)}
        assert Status.CONTRADICTED in {verdict.status for verdict in receipt_verdicts(public, receipt)}
    with appended.checked() as public:
        assert "history" in lies(public)


def test_what_the_key_has_signed_counts_in_unsigned_commits(
    happened: Story, story: Story, tmp_path: Path
) -> None:
    """Organizers cannot first publish without signing their commits, and then forge what they published; clones remember it, too."""
    raise_score(score(story, "C"), 0.05)
    appended, rewritten, older = (
        Git(tmp_path / name, story.signer) for name in ("appended", "rewritten", "older")
    )
    for repository in (appended, rewritten, older):
        repository.push(story.publish(story.log[0]))
    for repository in (appended, older):
        repository.push(happened.publish(story.log[-4]), signed=False)
    for repository in (appended, rewritten):
        repository.push(story.publish())
    with appended.checked() as public:
        sentences = [
            verdict.sentence for verdict in verdicts(public) if verdict.status is Status.CONTRADICTED
        ]
    assert any("something that the challenge's key has signed" in sentence for sentence in sentences)
    with rewritten.checked() as public, older.checked() as before:
        assert lies(public) == set()
        sentences = [
            verdict.sentence
            for verdict in older_verdicts(public, before)
            if verdict.status is Status.CONTRADICTED
        ]
    assert any("receipts.jsonl lacks something" in sentence for sentence in sentences)


def test_a_commitment_that_nothing_opens_is_found(story: Story) -> None:
    """Also one from after the reveal, because every push opens what is new; and what was revealed belongs to a commitment."""
    manifests = story.reveals["dev"]["manifests"]
    story.reveals["dev"]["manifests"] = {**manifests, "2": manifests["1"]}
    assert "dev: commitment" in lies(story.publish())
    story.reveals["dev"]["manifests"] = manifests
    first = story.entries[-1]
    second = {**first, "sequence": 2, "made_at": (story.revealed_at + EVERY).isoformat()}
    story.entries = [first, commitments.signed(second, story.signer)]
    assert "dev: commitment" in lies(story.publish())


def test_a_line_of_the_history_too_few_or_too_many_is_found(story: Story) -> None:
    """Also by another version, which compares no bytes of pages."""
    honest_lines = story.publish().files[HISTORY].splitlines(keepends=True)
    for lines in (honest_lines[:-1], [*honest_lines, honest_lines[-1]]):
        story.on_files = lambda files, lines=lines: {**files, HISTORY: b"".join(lines)}
        assert "eval: boards" in lies(story.publish())


def test_scores_on_hashed_labels_cannot_be_checked(happened: Story, story: Story, tmp_path: Path) -> None:
    """If only hashes of a phase's labels are released, its scores cannot be recomputed, even from a team's file; another phase's can.

    Labels that were released before were withdrawn, unless the state was restored from a backup meanwhile.
    """
    story.reveals["eval"]["labels"] = "hashes"
    story.hidden["eval"] = {
        path: text for path, text in story.hidden["eval"].items() if "labels/" not in path
    }
    repository = story.publish()
    labels = {verdict.phase: verdict for verdict in verdicts(repository) if verdict.check == "labels"}
    assert [labels[name].status for name in PHASES] == [Status.CONSISTENT, Status.BELIEVED]
    pushes = [happened.publish(), repository]
    found = wrong(report_on(tmp_path / "board", story, *pushes))
    assert [named(verdict) for verdict in found] == ["eval: labels"]
    gap = {"first": len(repository.log) + 1, "last": len(repository.log)}
    log = forged_line(repository.files[receipts.PATH].decode(), story.signer, restored=gap)
    pushes.append(forged(repository, lambda files: {**files, receipts.PATH: log}))
    restored = wrong(report_on(tmp_path / "restored", story, *pushes))
    assert "eval: labels" not in {named(verdict) for verdict in restored}
    file = tmp_path / "a.csv"
    file.write_bytes(FILES["A"])
    all_verdicts = list(submission_verdicts(repository, file, engine="local"))
    assert [verdict.status for verdict in all_verdicts] == [Status.RECOMPUTED, Status.BELIEVED]
    assert all("cannot be recomputed" in verdict.sentence for verdict in (labels["eval"], all_verdicts[1]))


def _document(change: Callable[[dict[str, Any]], object]) -> Forgery:
    """Return what changes the JSON of phase dev before it is committed."""

    def files(before: dict[str, bytes]) -> dict[str, bytes]:
        document = json.loads(before["leaderboard/dev.json"])
        change(document)
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        return {**before, "leaderboard/dev.json": text.encode()}

    return files


def _change_row(document: dict[str, Any]) -> None:
    """Give each field of the first row another value of its type."""
    row = document["entries"][0]
    for field in ROW:
        match row[field]:
            case bool(value):
                row[field] = not value
            case int(value) | float(value):
                row[field] = value + 1
            case None:
                row[field] = 1
            case "own":
                row[field] = "passive"
            case _:
                row[field] = {"team": "Z", "move_kind": "own", "last_submission": "2021-01-01T00:00:00Z"}[
                    field
                ]


def _swap_teams(document: dict[str, Any]) -> None:
    first, second = document["entries"][:2]
    first["team"], second["team"] = second["team"], first["team"]


EARLIER = {
    "two names were swapped": (_document(_swap_teams), "has another team in row 1"),
    "a row was missing": (
        _document(lambda document: document["entries"].pop()),
        "other rows than in the history",
    ),
    "every value of a row was another one": (
        _document(_change_row),
        f"has another {', '.join(sorted(ROW))} in row 1",
    ),
    "another phase": (_document(lambda document: document.update(phase="eval")), "is of another phase"),
    "another new submission": (
        _document(lambda document: document.update(triggers=[77])),
        "names other submissions as new",
    ),
    "another number": (_document(lambda document: document.update(sequence=77)), "is not in the history"),
    "no number": (_document(lambda document: document.update(sequence=0)), "no place in the history"),
    "other rules": (
        _document(lambda document: document["rules"].update(selection="best")),
        "states other rules or another close than those that were registered then",
    ),
    "another close": (
        _document(lambda document: document.update(closed_at="2023-09-15T13:00:00Z")),
        "states other rules or another close than those that were registered then",
    ),
    "another dimension": (
        _document(lambda document: document["terms"].update(embedding_dim=7)),
        "to which there is no commitment",
    ),
    "another id list": (
        lambda files: {**files, "ids/dev.txt": b"img_1\nimg_2\n"},
        "is not one committed to",
    ),
}
"""What was signed in an earlier commit and put right in the last one, with the words that contradict it."""


@pytest.mark.parametrize("name", EARLIER)
def test_what_was_put_right_at_the_end_is_found(story: Story, tmp_path: Path, name: str) -> None:
    """For a while, the challenge signed something else than what follows; its newest commit is honest."""
    forge, words = EARLIER[name]
    first, second = story.publish(story.log[0]), story.publish(story.log[-4])
    found = wrong(report_on(tmp_path / "board", story, first, forged(second, forge), story.publish()))
    assert {named(verdict) for verdict in found} == {"dev: ids" if "id list" in name else "dev: earlier"}
    assert words in found[0].sentence


def test_a_restore_excuses_only_what_was_made_before_it(story: Story, tmp_path: Path) -> None:
    """What is shown after the state was restored from a backup is compared like everything else."""
    fields = {
        "kind": events.CHALLENGE,
        "phase": None,
        "what": events.RESTORED,
        "text": "A backup was restored.",
    }
    story.add(fields, story.log[2] - timedelta(minutes=5))
    gap = {"first": 3, "last": 2}
    story.on_lines = lambda body: {**body, "restored": gap} if body["sequence"] == 3 else body
    forge, words = EARLIER["other rules"]
    first, second = story.publish(story.log[2]), story.publish(story.log[-4])
    report = report_on(tmp_path / "board", story, first, forged(second, forge), story.publish())
    assert any("According to line 3, the state was restored" in sentence for sentence in report.trust)
    assert [(named(verdict), words in verdict.sentence) for verdict in wrong(report)] == [
        ("dev: earlier", True)
    ]


def test_an_older_state_in_between_is_found(story: Story, tmp_path: Path) -> None:
    """For a while, the challenge signed all files as they had been before; its newest commit has everything."""
    first, second = story.publish(story.log[2]), story.publish(story.log[9])
    found = wrong(report_on(tmp_path / "board", story, first, second, first, story.publish()))
    assert {named(verdict) for verdict in found} == {"history"}
    assert all("lacks something that a commit before it has" in verdict.sentence for verdict in found)


def test_nothing_is_said_of_phases_that_are_not_revealed(story: Story) -> None:
    """While all is hidden, nobody can say that tasks and rules are those that were fixed, or that scores are possible."""
    story.revealed = ()
    repository = story.publish()
    answers = make_report(repository, verdicts(repository)).answers
    for answer in answers[:3]:
        assert (answer.status, answer.question.yes in answer.sentences) == (Status.NOT_REVEALED, False)


def test_each_sentence_has_its_own_mark(story: Story) -> None:
    """What is not revealed, or was decided, is not marked as contradicted because something else is."""
    story.revealed = ("dev",)
    LIES["boards that are numbered otherwise"].tell(story)
    repository = story.publish()
    lines = list(make_report(repository, verdicts(repository)).lines(verbose=False))
    for mark, words in (("?", "Phase eval: Not"), ("✓", "Phase dev: Its rules"), ("✗", "Phase dev: Board")):
        assert {line[:4] for line in lines if words in line} == {f"  {mark} "}


def test_an_older_board_than_in_the_history_is_found(story: Story, tmp_path: Path) -> None:
    """For a while, the page stays as it is, and the history goes on."""
    first, second = story.publish(story.log[9]), story.publish(story.log[-4])
    kept = {path: first.files[path] for path in first.files if "/dev" in path}
    mixed = forged(second, lambda files: {**files, **kept})
    found = wrong(report_on(tmp_path / "board", story, first, mixed, story.publish()))
    assert {named(verdict) for verdict in found} == {"dev: earlier"}
    assert "showed was not the newest one then, which was board 5" in found[0].sentence


def test_another_deadline_before_is_told(story: Story, tmp_path: Path) -> None:
    """Deadlines and limits are the organizers' own words, so a change is told and contradicts nothing."""
    pushes = list[PublicRepository]()
    for number, day, per_day in ((-5, "01", None), (-4, "09", 3)):
        limits = {"ends_at": f"2024-01-{day}T00:00:00Z", "per_day": per_day}
        limited = _document(lambda document, limits=limits: document["terms"].update(limits))
        pushes.append(forged(story.publish(story.log[number]), limited))
    report = report_on(tmp_path / "board", story, *pushes, story.publish())
    assert wrong(report) == []
    told = [verdict.sentence for verdict in report.verdicts if verdict.check == "earlier"]
    assert any("ends_at from 2024-01-01" in sentence for sentence in told)
    assert any("per_day from none to 3" in sentence for sentence in told)
    assert any("ends_at from 2024-01-09" in sentence for sentence in told)  # it was lifted


@pytest.mark.parametrize(
    ("forge", "words"),
    [
        (
            lambda document: document["decisions"].append(
                {
                    **document["decisions"][0],
                    "at": "2023-09-16T10:30:00Z",
                    "text": "team A was disqualified",
                    "reason": "cheating",
                }
            ),
            "“team A was disqualified on 2023-09-16T10:30 (cheating)” in commit",
        ),
        (
            lambda document: document["entries"][0].update(method="Copied from C"),
            "“Copied from C under submission 1006” in commit",
        ),
        (
            lambda document: document["entries"][0].update(project_url="https://example.org/c"),
            "“https://example.org/c under submission 1006” in commit",
        ),
    ],
)
def test_words_that_nobody_registered_are_told(
    story: Story, tmp_path: Path, forge: Callable[[dict[str, Any]], object], words: str
) -> None:
    """For a while, the page told of a decision, or of a method, that is not in the register."""
    last = story.publish()
    report = report_on(tmp_path / "board", story, forged(last, _document(forge)), last)
    (sentence,) = [verdict.sentence for verdict in report.verdicts if "has said" in verdict.sentence]
    assert words in sentence


def test_a_withdrawn_id_list_is_told(story: Story, tmp_path: Path) -> None:
    """Participants check their files with it, so it stays."""
    listed = {"ids/dev.txt": story.hidden["dev"]["reveal/dev/ids.txt"]}
    before = forged(story.publish(story.log[-4]), lambda files: {**files, **listed})
    report = report_on(tmp_path / "board", story, before, story.publish())
    (sentence,) = [verdict.sentence for verdict in report.verdicts if "ids/dev.txt" in verdict.sentence]
    assert sentence.endswith("and is not published now.")


def test_pages_of_another_version_are_not_said_to_follow(story: Story, tmp_path: Path) -> None:
    """Whoever claims to have rendered a page with another version is not told that it follows from the boards."""
    last = story.publish()
    page = last.files["index.html"].replace(commitments.SOFTWARE.encode(), b"neuco-worker 99")
    other = forged(last, lambda files: {**files, "index.html": page})
    report = report_on(tmp_path / "board", story, story.publish(story.log[-4]), other)
    (shown,) = [answer for answer in report.answers if answer.question.text.startswith("Is what I see")]
    assert (shown.status, report.number(Status.CONTRADICTED)) == (Status.BELIEVED, 0)
    assert any("rendered by “neuco-worker 99”" in sentence for sentence in report.trust)

"""What a repository's history shows; and no document breaks the check."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.acceptance.fair_challenge import (
    REVEAL,
    Fair,
    changed,
    lies,
    named,
    to,
    with_file,
)
from tests.worker.harness.commits import sign_head
from tests.worker.harness.harness import clean_environment
from worker.fairness import receipts
from worker.fairness.verify import Worth, make_report, older_verdicts, receipt_verdicts, verdicts
from worker.fairness.verify.public import opened, read_folder

pytestmark = pytest.mark.xdist_group("fairness")


def test_boards_from_after_the_reveal_wait_for_another_one(fair: Fair) -> None:
    """A late answer or a renamed team may change a board after the reveal; that is no lie, and the board waits for the next reveal."""
    repository = changed(read_folder(fair.public), REVEAL, to("boards", value=lambda boards: boards[:-1]))
    before_it = changed(repository, REVEAL, to("revealed_at", value="2001-01-01T00:00:00+00:00"))
    (board,) = [verdict for verdict in verdicts(before_it) if named(verdict) == "dev: boards"]
    assert (board.worth, "after the reveal; this can be checked" in board.sentence) == (
        Worth.NOT_REVEALED,
        True,
    )


def test_rewritten_history_of_the_repository_is_found(fair: Fair, tmp_path: Path) -> None:
    """A commit whose line was removed from an append-only file is named; an older clone shows removed commits."""
    copy = tmp_path / "copy"

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        command = ["git", "-C", str(copy), *identity, *arguments]
        subprocess.run(command, check=True, env=clean_environment(), capture_output=True)

    copy.mkdir()
    git("clone", "-q", "-b", "main", str(fair.board), ".")
    lines = (copy / "leaderboard/history.jsonl").read_text().splitlines()
    (copy / "leaderboard/history.jsonl").write_text("\n".join(lines[1:]) + "\n")
    git("commit", "-qam", "tidy")
    sign_head(copy, fair.signer)
    with opened(str(copy)) as repository, opened(str(fair.board)) as older:
        assert "history" in lies(repository)
        found = [verdict.sentence for verdict in verdicts(repository) if verdict.check == "history"]
        assert any("by neuco-worker published is no longer in it" in sentence for sentence in found)
        ahead = list(older_verdicts(repository, older))
        assert {verdict.worth for verdict in older_verdicts(older, older)} == {Worth.CONSISTENT}
    assert [verdict.worth for verdict in ahead].count(Worth.CONTRADICTED) == 1
    git("reset", "-q", "--hard", "HEAD~2")
    git("commit", "-q", "--allow-empty", "-m", "another way")
    with opened(str(copy)) as repository:
        first, *files = older_verdicts(repository, older)
        assert (first.worth, "History was rewritten: commit" in first.sentence) == (Worth.CONTRADICTED, True)
        assert Worth.CONTRADICTED in {verdict.worth for verdict in files}
    copied = list(older_verdicts(older, read_folder(fair.public)))
    assert [verdict.worth for verdict in copied] == [Worth.BELIEVED, *[Worth.CONSISTENT] * 3]


def test_boards_from_before_the_commitment_are_found(fair: Fair, tmp_path: Path) -> None:
    """Boards that were committed before there was a commitment are a contradiction, whatever time the commitment claims."""
    copy = tmp_path / "copy"
    shutil.copytree(fair.public, copy)
    for arguments in (
        ("init", "-q", "-b", "main"),
        ("add", "leaderboard"),
        ("commit", "-q", "-m", "boards"),
        ("add", "."),
        ("commit", "-q", "-m", "commitment"),
    ):
        command = ["git", "-C", str(copy), "-c", "user.name=x", "-c", "user.email=x@example.org", *arguments]
        subprocess.run(command, check=True, env=clean_environment())
    with opened(str(copy)) as repository:
        assert lies(repository) == {"order"}


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_document_breaks_the_verdict(fair: Fair, data: st.DataObject) -> None:
    """The check ends with verdicts, never with a traceback, if any value of a published document is replaced by another one."""
    repository = read_folder(fair.public)
    path = data.draw(st.sampled_from([REVEAL, "commitment.json", "leaderboard/dev.json", receipts.PATH]))
    value = data.draw(ANYTHING)

    def spoil(document: Any) -> Any:
        place, parent, key = document, None, None
        for _ in range(data.draw(st.integers(1, 7))):
            if isinstance(place, dict) and place:
                parent, key = place, data.draw(st.sampled_from(sorted(place)))
            elif isinstance(place, list) and place:
                parent, key = place, data.draw(st.integers(0, len(place) - 1))
            else:
                break
            place = parent[key]
        if parent is not None:
            parent[key] = value
        return document

    if path == REVEAL and data.draw(st.booleans()):  # the document itself, which lists its parts
        spoilt = with_file(repository, path, json.dumps(spoil(repository.json(path))).encode())
    else:
        spoilt = changed(repository, path, spoil)
    told = {"commitment": "00", "nonce": "11", "challenge": "22", "chain": "33"}
    found = [*verdicts(spoilt), *receipt_verdicts(spoilt, told, 1.0)]
    assert {verdict.worth for verdict in found} <= set(Worth)
    report = make_report(spoilt, found)
    assert report.heading()
    json.dumps(report.to_json())

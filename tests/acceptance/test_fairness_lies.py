"""Every planted lie, crude or consistent with the rest, is found by the check that is meant to find it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.acceptance.fair_challenge import (
    REVEAL,
    Change,
    Fair,
    changed,
    forged,
    lies,
    named,
    of_event,
    to,
    with_file,
)
from tests.worker.harness.commits import sign_head
from tests.worker.harness.harness import clean_environment
from worker.fairness import events, receipts
from worker.fairness.verify import Worth, make_report, older_verdicts, receipt_verdicts, verdicts
from worker.fairness.verify.public import opened, read_folder

pytestmark = pytest.mark.xdist_group("fairness")


def _drop_first(items: list[Any]) -> list[Any]:
    return items[1:]


def _drop_score(document: Any) -> Any:
    scores = [one for one in document["register"] if one.get("fields", {}).get("kind") == events.SCORE]
    document["register"].remove(scores[0])
    return document


def _swap_names(document: Any) -> Any:
    first, second = document["entries"][:2]
    first["team"], second["team"] = second["team"], first["team"]
    return document


def _swap_lines(text: str) -> str:
    lines = text.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("| 1 |"))
    lines[first] = (
        lines[first].replace("| A |", "| B |")
        if "| A |" in lines[first]
        else lines[first].replace("| B |", "| A |")
    )
    return "\n".join(lines) + "\n"


def _better(text: str) -> str:
    head, first, *rest = text.splitlines()
    cells = first.split(",")
    cells[4] = "99.999"
    return "\n".join([head, ",".join(cells), *rest]) + "\n"


def _add_task(tasks: list[Any]) -> list[Any]:
    return [*tasks, dict(tasks[0], identifier="zeta")]


MANIFEST = ("commitments", 0, "manifest")
CELL = ("cells", "alpha")
HISTORY = "leaderboard/history.jsonl"
LIES: dict[str, tuple[str, Change, str]] = {
    "a task dropped": (REVEAL, to(*MANIFEST, "tasks", value=_drop_first), "dev: commitment"),
    "a task added": (REVEAL, to(*MANIFEST, "tasks", value=_add_task), "dev: commitment"),
    "another salt": (REVEAL, to(*MANIFEST, "tasks", 0, "salt", value="11" * 32), "dev: labels"),
    "another nonce": (
        REVEAL,
        to("commitments", 0, "opening", "nonce", value="11" * 32),
        "dev: commitment",
    ),
    "another key, so other seeds": (REVEAL, to("key", value="22" * 32), "dev: splits"),
    "another number of folds": (REVEAL, to(*MANIFEST, "protocol", "folds", value=5), "dev: commitment"),
    "another protocol announced": (
        "commitment.json",
        to(0, "phases", "dev", "folds", value=200),
        "dev: commitment",
    ),
    "other ids": ("reveal/dev/ids.txt", lambda text: text.replace("img_007", "img_707"), "dev: ids"),
    "other ids for participants": (
        "ids/dev.txt",
        lambda text: text.replace("img_007", "img_707"),
        "dev: ids",
    ),
    "another label": (
        "reveal/dev/labels/alpha__regr.csv",
        lambda text: re.sub("img_003,.*", "img_003,0.125", text),
        "dev: labels",
    ),
    "another score": (
        REVEAL,
        of_event(events.SCORE, to(*CELL, "folds", 0, value=lambda fold: fold + 0.25)),
        "dev: register",
    ),
    "another team": (REVEAL, of_event(events.SUBMISSION, to("team", value="Z")), "dev: register"),
    "other rules": (
        REVEAL,
        of_event(events.PHASE, to("rules", "hidden_teams", value=["A"])),
        "dev: register",
    ),
    "another nonce of an event": (REVEAL, to("register", 0, "nonce", value="33" * 32), "dev: register"),
    "a score dropped": (REVEAL, _drop_score, "dev: boards"),
    "another mean Q": (
        HISTORY,
        to(-1, "changed", 0, "q_mean", value=lambda q: q + 0.01),
        "dev: boards",
    ),
    "another standing by mean Q": (
        HISTORY,
        to(-1, "changed", 0, "rank_by_mean", value=lambda rank: 3 - rank),
        "dev: boards",
    ),
    "another order": (HISTORY, to(0, "changed", value=lambda rows: [*rows, rows[0]]), "dev: boards"),
    "a board dropped": (REVEAL, to("boards", value=_drop_first), "dev: boards"),
    "the last board dropped": (REVEAL, to("boards", value=lambda boards: boards[:-1]), "dev: boards"),
    "a dropped batch of receipts": (receipts.PATH, _drop_first, "dev: register"),
    "another receipt": (
        receipts.PATH,
        to(0, "entries", value=lambda listed: sorted([*listed[1:], "0" * 64])),
        "receipts",
    ),
    "receipts reordered": (receipts.PATH, to(0, "entries", value=lambda listed: listed[::-1]), "receipts"),
    "a line signed by somebody else": (receipts.PATH, to(0, "signature", value="00" * 64), "signatures"),
    "another commitment, put in late": (
        "commitment.json",
        to(0, "commitment", value="44" * 32),
        "dev: commitment",
    ),
    "a commitment from after the scores": (
        "commitment.json",
        to(0, "made_at", value="2100-01-01T00:00:00+00:00"),
        "dev: scores",
    ),
    "a commitment dropped": ("commitment.json", _drop_first, "commitment"),
    "history rewritten": (HISTORY, _drop_first, "dev: boards"),
    "the present board changed": (
        "leaderboard/dev.json",
        to("entries", 0, "q_mean", value=99.0),
        "dev: page",
    ),
    "names swapped on the present board": ("leaderboard/dev.json", _swap_names, "dev: page"),
    "another weight on the page": ("leaderboard/dev.json", to("tasks", 0, "weight", value=0.9), "dev: page"),
    "another table": ("leaderboard/dev.csv", _better, "dev: page"),
    "another README": ("README.md", _swap_lines, "page"),
    "a sentence of the README": (
        "README.md",
        lambda text: text.replace("A team's last scored", "A team's best scored"),
        "page",
    ),
    "another group on the page": (
        "index.html",
        lambda text: text.replace('<td class="num group wide">1<', '<td class="num group wide">2<', 1),
        "page",
    ),
    "a script on the page": (
        "index.html",
        lambda text: text.replace("</body>", "<p>B won</p></body>"),
        "page",
    ),
    "a phase taken off the page": (
        "index.html",
        lambda text: text.replace('class="phase" id="dev"', 'class="phase" hidden id="dev"'),
        "page",
    ),
    "another leader on the badge": (
        "leaderboard/badge.json",
        to("message", value=lambda message: message.replace(": ", ": Z", 1)),
        "page",
    ),
    "another chart": (
        "leaderboard/dev-evolution-dark.svg",
        lambda text: text.replace(">A<", ">Z<").replace(">B<", ">A<").replace(">Z<", ">B<"),
        "dev: page",
    ),
    "another interval": (
        "leaderboard/dev.json",
        to("intervals", "entries", 0, "p_first", value=1.0 / 3),
        "dev: page",
    ),
    "another rule on the page": ("leaderboard/dev.json", to("rules", "selection", value="best"), "dev: page"),
}
MADE_TO_FIT: dict[str, tuple[Change, str]] = {
    "a score": (to("cells", "alpha", "folds", 0, value=lambda fold: fold - 0.25), "dev: boards"),
    "a task that nobody committed to": (
        to("cells", "zeta", value={"version": "00" * 32, "row_set": "00" * 32, "folds": [0.5]}),
        "dev: scores",
    ),
    "another version of a task": (to("cells", "alpha", "version", value="00" * 32), "dev: scores"),
    "another protocol": (to("protocol", value="00" * 32), "dev: scores"),
    "a score from before the commitment": (to("at", value="2001-01-01T00:00:00+00:00"), "dev: scores"),
    "another submission's score": (to("submission", value=999), "dev: facts"),
    "a fold score of 1.7": (to("cells", "alpha", "folds", 0, value=1.7), "dev: possible"),
    "an F1 below zero": (to("cells", "beta", "folds", 0, value=-0.01), "dev: possible"),
    "one fold for all": (to("cells", "alpha", "folds", value=lambda folds: folds[:1]), "dev: possible"),
    "more folds": (to("cells", "alpha", "folds", value=lambda folds: folds * 2), "dev: possible"),
    "failed folds": (
        to("cells", "alpha", "folds", value=lambda folds: [None for _ in folds]),
        "dev: possible",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_every_planted_lie_is_found(fair: Fair, lie: str) -> None:
    """A change to any published value is found by the check that covers it."""
    path, change, check = LIES[lie]
    repository = read_folder(fair.public)
    assert lies(repository) == set()
    assert check in lies(changed(repository, path, change))


@pytest.mark.parametrize("lie", MADE_TO_FIT)
def test_lies_that_were_made_to_fit_are_found(fair: Fair, lie: str) -> None:
    """Even with new receipts and a new chain, a forged score contradicts the commitments or the boards."""
    change, check = MADE_TO_FIT[lie]
    found = lies(forged(fair, read_folder(fair.public), events.SCORE, change))
    assert check in found
    assert not found & {"receipts", "signatures", "commitment", "dev: commitment", "dev: labels"}


def test_missing_files_are_found(fair: Fair) -> None:
    """A missing file is found by every check that needs it."""
    repository = read_folder(fair.public)
    for path, check in (
        ("reveal/dev/labels/alpha__regr.csv", "dev: labels"),
        ("reveal/dev/ids.txt", "dev: reveal"),
        ("leaderboard/dev.json", "page"),
        ("leaderboard/dev.csv", "dev: page"),
        ("README.md", "page"),
        ("index.html", "page"),
        ("leaderboard/dev-evolution-light.svg", "dev: page"),
        ("leaderboard/history.jsonl", "page"),
        ("commitment.json", "commitment"),
    ):
        assert check in lies(with_file(repository, path, None))


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
    git("clone", "-q", "-b", "main", str(fair.harness.board), ".")
    lines = (copy / "leaderboard/history.jsonl").read_text().splitlines()
    (copy / "leaderboard/history.jsonl").write_text("\n".join(lines[1:]) + "\n")
    git("commit", "-qam", "tidy")
    sign_head(copy, fair.signer)
    with opened(str(copy)) as repository, opened(str(fair.harness.board)) as older:
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

"""A stranger with push access cannot make the organizers look like liars: commits without their signature are named and not checked."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.acceptance.fair_challenge import Fair, lies, verify
from tests.acceptance.liar import Git
from tests.worker.harness.commits import forged_commitment, forged_line, sign_head
from worker.challenge.signing import Signer
from worker.fairness import commitments, receipts
from worker.fairness.disclosure import reveal_path
from worker.verify import Status, Verdict, make_report, older_verdicts, timeline, verdicts
from worker.verify.public import opened, read_folder
from worker.verify.report import spoken

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("fairness")]

HISTORY = "leaderboard/history.jsonl"
MALLORY = Signer(b"7" * 32)


@pytest.fixture
def clone(fair: Fair, tmp_path: Path) -> Git:
    """A fresh clone, in which a stranger commits."""
    return Git(tmp_path / "clone", fair.signer, clone_of=fair.board)


def tip_sentences(all_verdicts: Iterable[Verdict], status: Status = Status.CHANGED) -> list[str]:
    """Return what is said about changes by others: by default those that visitors see."""
    return [
        verdict.sentence for verdict in all_verdicts if verdict.check == "tip" and verdict.status is status
    ]


def uncontradicted(clone: Git) -> list[Verdict]:
    """Return everything that is said of a clone, of which nothing may contradict it."""
    with clone.checked() as repository:
        found = list(verdicts(repository))
    assert lies(found) == set()
    return found


def sign_everything(clone: Git) -> None:
    """Forge commitments, log and page, and sign the commit with a key of one's own."""
    forged = forged_commitment(clone.read(commitments.PATH).decode(), MALLORY)
    log = forged_line(clone.read(receipts.PATH).decode(), MALLORY)
    clone.commit({commitments.PATH: forged, receipts.PATH: log, "index.html": b"<p>Mallory won</p>"})
    sign_head(clone.folder, MALLORY)


def swap_teams(clone: Git) -> None:
    """Swap two teams on the page."""
    page = clone.read("index.html")
    for team, other in ((b"A", b"?"), (b"B", b"A"), (b"?", b"B")):
        page = page.replace(b"<bdi>" + team + b"<", b"<bdi>" + other + b"<")
    clone.commit({"index.html": page})


def push_an_older_state(clone: Git) -> None:
    """Commit the files of an older commit; without the key, the signed commit itself cannot be repeated."""
    clone.git("checkout", "-q", "HEAD~2", "--", ".")
    clone.commit({})


def push_much(clone: Git) -> None:
    """Push so many commits that naming each would flood the report."""
    for number in range(22):
        clone.commit({"index.html": str(number).encode()})


def correct_vandalism(clone: Git) -> None:
    """Change append-only files and restore them, so that visitors see what the challenge published."""
    files = {path: clone.read(path) for path in (receipts.PATH, commitments.PATH, HISTORY)}
    clone.commit({**dict.fromkeys(files, b""), HISTORY: files[HISTORY] + b'{"phase":"dev"}\n'})
    clone.commit(files)


def merge_a_branch(clone: Git) -> None:
    """Merge a branch that began at an older state and changes none of the challenge's files."""
    clone.git("checkout", "-qb", "side", "HEAD~2")
    clone.commit({"LICENSE": b"mine"})
    clone.git("checkout", "-q", "main")
    clone.git("merge", "-q", "--no-edit", "side")


def commit_oddities(clone: Git) -> None:
    """Commit without an author or a date, then a path that is no text, and add a branch called HEAD."""
    tree, parent = clone.git("rev-parse", "HEAD^{tree}", "HEAD").split()
    [name] = clone.write(f"tree {tree}\nparent {parent}\n\nlater\n".encode())
    folder = Path(os.fsdecode(os.fsencode(clone.folder) + b"/reveal/\xff"))
    folder.mkdir()
    (folder / "reveal.json").write_bytes(b"{}")
    clone.commit({})
    clone.git("update-ref", "refs/heads/HEAD", f"{name}~2")


def commit(path: str, content: bytes | None) -> Callable[[Git], object]:
    """Return a change of one file."""
    return lambda clone: clone.commit({path: content})


VANDALISM: dict[str, tuple[Callable[[Git], object], str | None]] = {
    "garbage in the commitments": (commit(commitments.PATH, b"garbage"), "commitment.json"),
    "a log that is gone": (commit(receipts.PATH, None), "receipts.jsonl"),
    "everything, signed by a stranger": (sign_everything, "commitment.json, index.html, receipts.jsonl"),
    "two teams swapped on the page": (swap_teams, "index.html"),
    "a page that hides ours": (commit("docs/index.html", b"<p>Mallory won</p>"), "docs/index.html"),
    "a README that hides ours": (commit(".github/README.md", b"Mallory won"), ".github/README.md"),
    "a reveal that is not ours": (commit("reveal/eval/reveal.json", b"{}"), "reveal/eval/reveal.json"),
    "an older state": (push_an_older_state, "README.md"),
    "many commits": (push_much, "and 17 more"),
    "what was corrected": (correct_vandalism, None),
    "a merge that changes nothing": (merge_a_branch, None),
    "what git takes and text does not": (commit_oddities, "reveal/\udcff/reveal.json"),
}
"""What a stranger does, and what the sentence that names it contains; None if visitors see no change."""


@pytest.mark.parametrize("name", VANDALISM)
def test_unsigned_commits_are_named_and_not_checked(clone: Git, name: str) -> None:
    """The last signed commit is checked, and what follows it is named with its hash, author and files if visitors see a change."""
    vandalize, words = VANDALISM[name]
    before = clone.git("rev-parse", "HEAD")
    vandalize(clone)
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.commit == before
        told = list(verdicts(repository))
    assert lies(told) == set()
    sentences = tip_sentences(told)
    assert len(sentences) == (words is not None)
    for sentence in sentences:
        assert f"changed by commit {clone.git('rev-parse', 'HEAD')[:10]} by Mallory" in sentence
        assert str(words) in sentence


def test_command_tells_changes_by_others_from_lies(fair: Fair, clone: Git) -> None:
    """The exit code is 3 if only somebody else has changed what visitors see."""
    for vandalize, code, words in (
        (commit("LICENSE", b"mine"), 0, "Consistent so far"),
        (swap_teams, 3, "Changed by somebody else"),
    ):
        vandalize(clone)
        done = verify(fair, clone.folder, "--no-recompute")
        assert (done.returncode, done.stderr) == (code, "")
        assert words in done.stdout.splitlines()[-1]
    assert f"! index.html: changed by commit {clone.git('rev-parse', 'HEAD')[:10]} by Mallory." in done.stdout


def test_files_that_change_nothing_are_listed(clone: Git) -> None:
    """An organizer may add a license and a workflow. If the challenge has signed a commit with them, they are still not its own."""
    clone.commit({"LICENSE": b"mine", ".github/workflows/check.yml": b"on: push", "404.html": b"gone"})
    for is_signed in (False, True):
        if is_signed:
            sign_head(clone.folder, clone.signer)
        told = uncontradicted(clone)
        assert len(tip_sentences(told)) == (0 if is_signed else 1)
        sentences = "\n".join(tip_sentences(told, Status.BELIEVED))
        assert ".github/workflows/check.yml, LICENSE" in sentences
        assert ("may change what visitors see: 404.html" in sentences) == is_signed


def test_another_page_is_named(clone: Git) -> None:
    """GitHub may be set to serve a branch of this name instead of ours, or to make a page of every Markdown file."""
    clone.git("branch", "gh-pages")
    clone.commit({"404.md": b"Mallory won"})
    found = uncontradicted(clone)
    (changed,), told = tip_sentences(found), tip_sentences(found, Status.BELIEVED)
    assert changed.startswith("404.md: changed by")
    assert "These files are not the worker's, but may change what visitors see: branch gh-pages." in told


def test_a_commit_that_a_forced_push_removed_can_come_back(clone: Git) -> None:
    """Somebody who merges it again does not make the challenge contradict itself, whatever the order of the merge."""
    for number, first in enumerate(("gone", "main")):
        clone.git("checkout", "-q", "-B", "gone", "origin/main")
        clone.git("checkout", "-q", "-B", "main", "origin/main~1")
        clone.git("checkout", "-q", "origin/main", "--", ".")
        clone.git("commit", "-qm", "again", GIT_COMMITTER_DATE="4070908800 +0000")
        sign_head(clone.folder, clone.signer)
        again = clone.git("rev-parse", "HEAD")
        clone.git("checkout", "-q", "-B", f"both{number}", first)
        clone.git("merge", "-q", "--no-edit", "main" if first == "gone" else "gone")
        with clone.checked() as repository:
            assert repository.commit is not None
            assert repository.commit.commit == again
            assert lies(repository) == set()


def test_a_copied_entry_is_no_lie(clone: Git) -> None:
    """What the challenge has signed and a stranger copies into a reveal was not published there."""
    path = reveal_path("dev")
    reveal, entries = clone.read(path), json.loads(clone.read(commitments.PATH))
    clone.commit({path: json.dumps(entries[0]).encode()})
    clone.commit({path: reveal})
    sign_head(clone.folder, clone.signer)
    uncontradicted(clone)


def test_rewritten_history_of_the_repository_is_found(fair: Fair, clone: Git) -> None:
    """A signed commit that shortens an append-only file is named; an older clone shows it, and removed commits."""
    clone.commit({HISTORY: clone.read(HISTORY).partition(b"\n")[2]})
    sign_head(clone.folder, clone.signer)
    with clone.checked() as repository, opened(str(fair.board)) as older:
        found = list(verdicts(repository))
        assert "history" in lies(found)
        sentences = [verdict.sentence for verdict in found if verdict.check == "history"]
        assert any("by neuco-worker published is no longer in it" in sentence for sentence in sentences)
        ahead = [verdict.status for verdict in older_verdicts(repository, older)]
        assert ahead.count(Status.CONTRADICTED) == 1
        assert {verdict.status for verdict in older_verdicts(older, older)} == {Status.CONSISTENT}
    clone.git("reset", "-q", "--hard", "HEAD~2")
    with clone.checked() as repository, opened(str(fair.board)) as older:
        (back,) = older_verdicts(repository, older)
        assert (back.status, "forced the branch back" in back.sentence) == (Status.CHANGED, True)
    clone.git("commit", "-q", "--allow-empty", "-m", "another way")
    sign_head(clone.folder, clone.signer)
    with clone.checked() as repository, opened(str(fair.board)) as older:
        *files, last = older_verdicts(repository, older)
        assert (last.status, "History was rewritten: commit" in last.sentence) == (Status.CONTRADICTED, True)
        assert Status.CONTRADICTED in {verdict.status for verdict in files}
        *others, changed = make_report(repository, [*files, last]).answers
        assert (changed.status, spoken(last) in changed.sentences) == (Status.CONTRADICTED, True)
        assert Status.CONTRADICTED not in {answer.status for answer in others}


def test_a_reveal_is_not_withdrawn(clone: Git) -> None:
    """A signed commit without it is a lie, unless the log says that the state was restored from a backup meanwhile."""
    log = clone.read(receipts.PATH).decode()
    number = len(log.splitlines())
    clone.commit(dict.fromkeys(clone.git("ls-files", "reveal/dev").split()))
    for gap in (None, {"first": number + 1, "last": number}):
        if gap is not None:
            clone.commit({receipts.PATH: forged_line(log, clone.signer, restored=gap)})
        sign_head(clone.folder, clone.signer)
        with clone.checked() as repository:
            (told,) = [
                verdict
                for verdict in timeline.history(repository)
                if "revealed phase dev" in verdict.sentence
            ]
        assert told.status is (Status.BELIEVED if gap else Status.CONTRADICTED)


def log_without(folder: Path, number: int, **changes: object) -> bytes:
    """Return the public log in a folder with changes to one line, or without it."""
    lines = [json.loads(line) for line in (folder / receipts.PATH).read_bytes().splitlines()]
    lines[number : number + 1] = [{**lines[number], **changes}] if changes else []
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def test_only_what_the_key_signed_in_an_older_copy_counts(fair: Fair, clone: Git, tmp_path: Path) -> None:
    """A folder or commit that anybody wrote proves nothing; a signed line that is gone from the repository is a contradiction."""
    copy = tmp_path / "copy"
    shutil.copytree(fair.public, copy)
    forged = {
        receipts.PATH: (log_without(copy, 0, made_at="2020-01-01T00:00:00+00:00"), b"garbage"),
        commitments.PATH: (forged_commitment((copy / commitments.PATH).read_text(), MALLORY),),
        HISTORY: (b"{}\n",),
    }
    with opened(str(fair.board)) as newer:
        honest = [verdict.status for verdict in older_verdicts(newer, read_folder(copy))]
        assert honest == [Status.CONSISTENT, Status.CONSISTENT, Status.BELIEVED, Status.BELIEVED]
        for path, contents in forged.items():
            for content in contents:
                clone.commit({path: content})
                sign_head(clone.folder, MALLORY)
                (copy / path).write_bytes(content)
                with opened(str(clone.folder), lambda _: newer.key) as other:
                    found = [*older_verdicts(newer, read_folder(copy)), *older_verdicts(newer, other)]
                assert Status.CONTRADICTED not in {verdict.status for verdict in found}
                assert any(path in verdict.sentence and "not signed" in verdict.sentence for verdict in found)
        shorter = tmp_path / "shorter"
        shutil.copytree(fair.public, shorter)
        (shorter / receipts.PATH).write_bytes(log_without(shorter, 0))
        found = list(older_verdicts(read_folder(shorter), read_folder(fair.public)))
        assert [verdict.sentence for verdict in found if verdict.status is Status.CONTRADICTED] == [
            "History was rewritten: receipts.jsonl lacks something that the challenge has signed, and the older clone has."
        ]


def begin_with_boards(clone: Git, signer: Signer | None) -> None:
    """Begin another history, in which there are boards before there is a commitment."""
    clone.git("checkout", "-q", "--orphan", "other")
    clone.git("reset", "-q")
    for paths in ("leaderboard", "."):
        clone.git("add", paths)
        clone.git("commit", "-qm", paths)
        if signer is not None:
            sign_head(clone.folder, signer)


def test_a_history_that_begins_anew_is_named(clone: Git) -> None:
    """A repository without a signed commit is neither consistent nor a lie, because anybody can write commits."""
    begin_with_boards(clone, None)
    (sentence,) = [verdict.sentence for verdict in uncontradicted(clone) if verdict.status is Status.CHANGED]
    assert "No commit is signed" in sentence


def test_a_repository_without_commitments_accuses_nobody(clone: Git) -> None:
    """Somebody who may force a push can leave nothing that the challenge has signed."""
    clone.git("checkout", "-q", "--orphan", "other")
    clone.git("rm", "-rfq", ".")
    clone.commit({"index.html": b"<p>Mallory won</p>"})
    clone.git("branch", "-qD", "main")
    told = [verdict.sentence for verdict in uncontradicted(clone) if verdict.status is Status.CHANGED]
    assert any("There is no commitment.json" in sentence for sentence in told)


def test_a_copy_that_nobody_signed_accuses_nobody(clone: Git) -> None:
    """Somebody who may force a push can leave a copy of everything with another page and another log, under a root of their own."""
    clone.git("checkout", "-q", "--orphan", "other")
    clone.commit({"index.html": b"<p>Mallory won</p>", receipts.PATH: b"{}"})
    clone.git("branch", "-qD", "main")
    told = [verdict.check for verdict in uncontradicted(clone) if verdict.status is Status.CHANGED]
    assert {"signed", "page", "receipts"} <= {*told}


def test_boards_before_the_first_commitment_are_a_lie_if_the_key_has_signed_them(clone: Git) -> None:
    """The order of signed commits decides, whatever time or key a commitment claims; a root that a stranger merges does not."""
    begin_with_boards(clone, clone.signer)
    with clone.checked() as repository:
        found = list(verdicts(repository))
    assert lies(found) == {"order"}
    told = tip_sentences(found, Status.BELIEVED)
    assert any(
        "signed with the challenge's key, and have no commitment of this key: commit" in sentence
        for sentence in told
    )
    clone.git("checkout", "-q", "main")
    clone.git("branch", "-qD", "other")
    clone.git("checkout", "-q", "--orphan", "other")
    own = clone.read(commitments.PATH)
    for listed in (json.dumps(json.loads(forged_commitment(own.decode(), MALLORY))[-1:]).encode(), own):
        clone.commit({commitments.PATH: listed})
        sign_head(clone.folder, clone.signer)
    with clone.checked() as repository:
        assert lies(repository) == {"order"}
    clone.git("checkout", "-q", "main")
    clone.git("branch", "-qD", "other")
    begin_with_boards(clone, MALLORY)
    root = clone.git("rev-list", "--max-parents=0", "HEAD")
    clone.git("checkout", "-q", "main")
    parents = ("-p", root, "-p", "HEAD")
    clone.git("reset", "-q", "--hard", clone.git("commit-tree", "HEAD^{tree}", *parents, "-m", "merge"))
    uncontradicted(clone)

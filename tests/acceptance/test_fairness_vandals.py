"""A stranger with push access cannot make the organizers look like liars: commits without their signature are named and not checked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.fair_challenge import REVEAL, Fair, lies, verify
from tests.worker.harness.commits import sign_head
from tests.worker.harness.harness import clean_environment
from worker.fairness import commitments, receipts, signing
from worker.fairness.signing import Signer
from worker.fairness.verify import Worth, older_verdicts, verdicts
from worker.fairness.verify.public import PublicRepository, opened, read_folder

pytestmark = pytest.mark.xdist_group("fairness")

HISTORY = "leaderboard/history.jsonl"
STRANGER = Signer(b"7" * 32)


class Clone:
    """A clone of the public repository in which a stranger called Mallory commits."""

    def __init__(self, fair: Fair, folder: Path) -> None:
        self.folder = folder
        subprocess.run(
            ["git", "clone", "-q", "-b", "main", str(fair.board), str(folder)],
            check=True,
            env=clean_environment(),
        )

    def git(self, *arguments: str, **environment: str) -> str:
        """Run git with additions to its environment, and return what it prints."""
        identity = ("-c", "user.name=Mallory", "-c", "user.email=m@example.org")
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        done = subprocess.run(
            command, check=True, env={**clean_environment(), **environment}, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, bytes | None]) -> str:
        """Commit files, and return the commit's hash."""
        for path, content in files.items():
            place = self.folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True) if content is None else place.write_bytes(content)
        self.git("add", "-A")
        self.git("commit", "-qm", "mine")
        return self.git("rev-parse", "HEAD")

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        return (self.folder / path).read_bytes()

    @contextmanager
    def checked(self) -> Iterator[PublicRepository]:
        """Open the clone as a verifier does."""
        with opened(str(self.folder)) as repository:
            yield repository


@pytest.fixture
def clone(fair: Fair, tmp_path: Path) -> Clone:
    """A fresh clone."""
    return Clone(fair, tmp_path / "clone")


def told(repository: PublicRepository, worth: Worth = Worth.CHANGED) -> list[str]:
    """Return what is said about changes by others: by default those that visitors see."""
    return [one.sentence for one in verdicts(repository) if one.check == "tip" and one.worth is worth]


def stranger_entry(clone: Clone) -> bytes:
    """Return the commitments with one more, signed by a stranger's key."""
    entries = json.loads(clone.read(commitments.PATH))
    body = {**entries[-1], "sequence": len(entries) + 1, "commitment": "66" * 32, "key": STRANGER.public}
    del body["signature"]
    return json.dumps([*entries, {**body, "signature": STRANGER.sign(signing.COMMITMENT, body)}]).encode()


def by_a_stranger(clone: Clone) -> dict[str, bytes]:
    """Return the files that a stranger can publish."""
    files = read_folder(clone.folder).files
    return {**files, commitments.PATH: stranger_entry(clone), "index.html": b"<p>Mallory won</p>"}


def swapped(clone: Clone) -> bytes:
    """Return the page with two teams swapped."""
    page = clone.read("index.html").decode()
    return (
        page.replace("<bdi>A<", "<bdi>?<")
        .replace("<bdi>B<", "<bdi>A<")
        .replace("<bdi>?<", "<bdi>B<")
        .encode()
    )


def chained_line(clone: Clone) -> bytes:
    """Return the log with one more line, chained correctly, which needs no key, but with an invalid signature."""
    log = clone.read(receipts.PATH)
    last = json.loads(log.splitlines()[-1])
    body = {**last, "sequence": last["sequence"] + 1, "previous": last["head"]}
    del body["head"], body["signature"]
    line = {**body, "head": receipts.chained(body), "signature": "00" * 64}
    return log + json.dumps(line).encode() + b"\n"


VANDALISM: dict[str, Callable[[Clone], Mapping[str, bytes | None]]] = {
    "garbage in the log": lambda clone: {receipts.PATH: clone.read(receipts.PATH) + b"garbage\n"},
    "a chained line in the log": lambda clone: {receipts.PATH: chained_line(clone)},
    "a log that is gone": lambda clone: {receipts.PATH: None},
    "garbage in the commitments": lambda _: {commitments.PATH: b"garbage"},
    "a stranger's commitment": lambda clone: {commitments.PATH: stranger_entry(clone)},
    "everything, signed by a stranger": by_a_stranger,
    "a shorter history": lambda _: {HISTORY: b""},
    "another page": lambda _: {"index.html": b"<p>Mallory won</p>"},
    "two teams swapped on the page": lambda clone: {"index.html": swapped(clone)},
    "a page that hides ours": lambda _: {"docs/index.html": b"<p>Mallory won</p>"},
    "a README that hides ours": lambda _: {".github/README.md": b"Mallory won"},
    "a reveal that is not ours": lambda _: {"reveal/eval/reveal.json": b"{}"},
    "another reveal": lambda clone: {REVEAL: clone.read(REVEAL).replace(b"0.", b"1.")},
    "no board": lambda _: {"leaderboard/dev.json": None},
}


@pytest.mark.parametrize("what", VANDALISM)
def test_unsigned_commits_are_named_and_not_checked(clone: Clone, what: str) -> None:
    """The last signed commit is checked, and the one after it is named with its hash, author and files."""
    before = clone.git("rev-parse", "HEAD")
    commit = clone.commit(VANDALISM[what](clone))
    changed = clone.git("diff", "--name-only", before, commit).split()
    if "signed by a stranger" in what:
        sign_head(clone.folder, STRANGER)
        commit = clone.git("rev-parse", "HEAD")
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.hash == before
        assert lies(repository) == set()
        (sentence,) = told(repository)
    assert f"changed by commit {commit[:10]} by Mallory." in sentence
    assert all(path in sentence for path in changed[:5])


def test_command_tells_changes_by_others_from_lies(fair: Fair, clone: Clone) -> None:
    """The exit code is 3 if only somebody else has changed what visitors see."""
    for files, code, words in (
        ({"LICENSE": b"mine"}, 0, "Consistent so far"),
        ({"index.html": swapped(clone)}, 3, "Changed by somebody else"),
    ):
        clone.commit(files)
        done = verify(fair, clone.folder, "--no-recompute")
        assert (done.returncode, done.stderr) == (code, "")
        assert words in done.stdout.splitlines()[-1]
    assert f"! index.html: changed by commit {clone.git('rev-parse', 'HEAD')[:10]} by Mallory." in done.stdout


def test_corrected_vandalism_is_no_contradiction(clone: Clone) -> None:
    """If append-only files were changed and restored, visitors see what the challenge published."""
    files = {path: clone.read(path) for path in (receipts.PATH, commitments.PATH, HISTORY)}
    clone.commit(
        {receipts.PATH: b"", commitments.PATH: b"[]", HISTORY: files[HISTORY] + b'{"phase":"dev"}\n'}
    )
    clone.commit(files)
    with clone.checked() as repository:
        assert lies(repository) == set()
        assert (told(repository), told(repository, Worth.BELIEVED)) == ([], [])


def test_an_older_state_that_is_pushed_again_is_ignored(clone: Clone) -> None:
    """Old files can be pushed again without the key; their commits cannot."""
    tip, earlier = clone.git("rev-parse", "HEAD"), clone.git("rev-parse", "HEAD~2")
    clone.git("checkout", "-q", earlier, "--", ".")
    clone.git("commit", "-qam", "as it was")
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.hash == tip
        assert lies(repository) == set()
        assert len(told(repository)) == 1


def test_files_that_change_nothing_are_listed(fair: Fair, clone: Clone) -> None:
    """An organizer may add a license and a workflow. If the challenge has signed a commit with them, they are still not its own."""
    clone.commit({"LICENSE": b"mine", ".github/workflows/check.yml": b"on: push", "404.html": b"gone"})
    for is_signed in (False, True):
        if is_signed:
            sign_head(clone.folder, fair.signer)
        with clone.checked() as repository:
            assert lies(repository) == set()
            assert len(told(repository)) == (0 if is_signed else 1)
            sentences = told(repository, Worth.BELIEVED)
        assert any(".github/workflows/check.yml, LICENSE" in sentence for sentence in sentences)
        assert (
            any("may change what visitors see: 404.html" in sentence for sentence in sentences) == is_signed
        )


def test_a_merge_of_somebody_elses_branch_is_no_vandalism(clone: Clone) -> None:
    """A branch that started from an older state may be merged if it changes none of the challenge's files."""
    clone.git("checkout", "-qb", "side", "HEAD~2")
    clone.commit({"LICENSE": b"mine"})
    clone.git("checkout", "-q", "main")
    clone.git("merge", "-q", "--no-edit", "side")
    with clone.checked() as repository:
        assert lies(repository) == set()
        assert told(repository) == []


def test_many_commits_are_named_up_to_a_number(clone: Clone) -> None:
    """The report names a limited number of commits and counts the rest, so it cannot be flooded."""
    for number in range(22):
        clone.commit({"index.html": str(number).encode()})
    with clone.checked() as repository:
        assert lies(repository) == set()
        (sentence,) = told(repository)
    assert f"commit {clone.git('rev-parse', 'HEAD')[:10]} by Mallory, " in sentence
    assert "and 17 more" in sentence


def test_a_commit_that_a_forced_push_removed_can_come_back(fair: Fair, clone: Clone) -> None:
    """Somebody who merges it again does not make the challenge contradict itself, whatever the order of the merge."""
    for number, first in enumerate(("gone", "main")):
        clone.git("checkout", "-q", "-B", "gone", "origin/main")
        clone.git("checkout", "-q", "-B", "main", "origin/main~1")
        clone.git("checkout", "-q", "origin/main", "--", ".")
        clone.git("commit", "-qm", "again", GIT_COMMITTER_DATE="4070908800 +0000")
        sign_head(clone.folder, fair.signer)
        again = clone.git("rev-parse", "HEAD")
        clone.git("checkout", "-q", "-B", f"both{number}", first)
        clone.git("merge", "-q", "--no-edit", "main" if first == "gone" else "gone")
        with clone.checked() as repository:
            assert repository.commit is not None
            assert repository.commit.hash == again
            assert lies(repository) == set()


def test_a_repository_without_a_signed_commit_is_named(clone: Clone) -> None:
    """Nothing shows that the challenge published it, so it is neither consistent nor a lie of the organizers."""
    clone.git("checkout", "-q", "--orphan", "other")
    clone.commit({})
    clone.git("branch", "-qD", "main")
    clone.git("branch", "-qm", "main")
    with clone.checked() as repository:
        assert lies(repository) == set()
        (sentence,) = [one.sentence for one in verdicts(repository) if one.worth is Worth.CHANGED]
    assert "No commit is signed" in sentence


def test_rewritten_history_of_the_repository_is_found(fair: Fair, clone: Clone) -> None:
    """A signed commit that shortens an append-only file is named; an older clone shows it, and removed commits."""
    lines = clone.read(HISTORY).splitlines(keepends=True)
    clone.commit({HISTORY: b"".join(lines[1:])})
    with clone.checked() as repository:
        assert "history" not in lies(repository)
    sign_head(clone.folder, fair.signer)
    with clone.checked() as repository, opened(str(fair.board)) as older:
        assert "history" in lies(repository)
        found = [verdict.sentence for verdict in verdicts(repository) if verdict.check == "history"]
        assert any("by neuco-worker published is no longer in it" in sentence for sentence in found)
        ahead = [verdict.worth for verdict in older_verdicts(repository, older)]
        assert ahead.count(Worth.CONTRADICTED) == 1
        assert {verdict.worth for verdict in older_verdicts(older, older)} == {Worth.CONSISTENT}
    clone.git("reset", "-q", "--hard", "HEAD~2")
    clone.git("commit", "-q", "--allow-empty", "-m", "another way")
    with clone.checked() as repository:
        first, *files = older_verdicts(repository, older)
        assert (first.worth, "History was rewritten: commit" in first.sentence) == (Worth.CONTRADICTED, True)
        assert Worth.CONTRADICTED in {verdict.worth for verdict in files}
    copied = list(older_verdicts(older, read_folder(fair.public)))
    assert [verdict.worth for verdict in copied] == [Worth.BELIEVED, *[Worth.CONSISTENT] * 3]


def test_boards_from_before_the_commitment_are_found(clone: Clone) -> None:
    """Boards that were committed before there was a commitment are a contradiction, whatever time the commitment claims."""
    clone.git("checkout", "-q", "--orphan", "other")
    clone.git("reset", "-q")
    for paths in ("leaderboard", "."):
        clone.git("add", paths)
        clone.git("commit", "-qm", paths)
    clone.git("branch", "-qM", "main")
    with clone.checked() as repository:
        assert "order" in lies(repository)

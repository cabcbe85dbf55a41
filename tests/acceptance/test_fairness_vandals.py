"""A stranger with push access cannot make the organizers look like liars: commits without their seal are named and not checked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.acceptance.fair_challenge import REVEAL, Fair, lies, named, resealed
from tests.worker.harness.harness import clean_environment
from worker.fairness import commitments, receipts, seal, succession
from worker.fairness.signing import Signer
from worker.fairness.verify import Worth, verdicts
from worker.fairness.verify.public import PublicRepository, opened, read_folder

pytestmark = pytest.mark.xdist_group("fairness")

HISTORY = "leaderboard/history.jsonl"
STRANGER = Signer(b"7" * 32)


class Clone:
    """A clone of the public repository in which a stranger called Mallory commits."""

    def __init__(self, fair: Fair, folder: Path) -> None:
        self.folder = folder
        subprocess.run(
            ["git", "clone", "-q", "-b", "main", str(fair.harness.board), str(folder)],
            check=True,
            env=clean_environment(),
        )

    def git(self, *arguments: str) -> str:
        """Run git, and return what it prints."""
        identity = ("-c", "user.name=Mallory", "-c", "user.email=m@example.org")
        command = ["git", "-C", str(self.folder), *identity, *arguments]
        done = subprocess.run(command, check=True, env=clean_environment(), capture_output=True, text=True)
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


def told(repository: PublicRepository, check: str = "history") -> list[str]:
    """Return the sentences of a check that are taken on trust."""
    return [
        one.sentence for one in verdicts(repository) if one.check == check and one.worth is Worth.BELIEVED
    ]


def stranger_entry(clone: Clone) -> bytes:
    """Return the commitments with one more, signed by a stranger's key."""
    entries = json.loads(clone.read(commitments.PATH))
    body = {**entries[-1], "sequence": len(entries) + 1, "commitment": "66" * 32, "key": STRANGER.public}
    del body["signature"]
    return json.dumps([*entries, {**body, "signature": STRANGER.sign(succession.COMMITMENT, body)}]).encode()


def sealed_by_a_stranger(clone: Clone) -> dict[str, bytes]:
    """Return the files that a stranger can publish, sealed with the stranger's own key."""
    files = read_folder(clone.folder).files
    forged = {**files, commitments.PATH: stranger_entry(clone), "index.html": b"<p>Mallory won</p>"}
    head = receipts.head(files[receipts.PATH])
    at = datetime(2100, 1, 1, tzinfo=UTC)
    return {**forged, seal.PATH: seal.seal(forged, None, head=head, signer=STRANGER, at=at)}


def chained_line(clone: Clone) -> bytes:
    """Return the log with one more line, chained correctly, which needs no key, but with an invalid signature."""
    log = clone.read(receipts.PATH)
    last = json.loads(log.splitlines()[-1])
    body = {**last, "sequence": last["sequence"] + 1, "previous": last["head"]}
    del body["head"], body["signature"]
    line = {**body, "head": receipts.chained(last["head"], body), "signature": "00" * 64}
    return log + json.dumps(line).encode() + b"\n"


VANDALISM: dict[str, Callable[[Clone], Mapping[str, bytes | None]]] = {
    "garbage in the log": lambda clone: {receipts.PATH: clone.read(receipts.PATH) + b"garbage\n"},
    "a chained line in the log": lambda clone: {receipts.PATH: chained_line(clone)},
    "a log that is gone": lambda clone: {receipts.PATH: None},
    "garbage in the commitments": lambda _: {commitments.PATH: b"garbage"},
    "a stranger's commitment": lambda clone: {commitments.PATH: stranger_entry(clone)},
    "everything sealed by a stranger": sealed_by_a_stranger,
    "a shorter history": lambda _: {HISTORY: b""},
    "another page": lambda _: {"index.html": b"<p>Mallory won</p>"},
    "no seal": lambda _: {seal.PATH: None},
    "another reveal": lambda clone: {REVEAL: clone.read(REVEAL).replace(b"0.", b"1.")},
    "no board": lambda _: {"leaderboard/dev.json": None},
}


@pytest.mark.parametrize("what", VANDALISM)
def test_unsealed_commits_are_named_and_not_checked(clone: Clone, what: str) -> None:
    """The last sealed commit is checked, and the unsealed one after it is named with its hash, author and files."""
    before = clone.git("rev-parse", "HEAD")
    files = VANDALISM[what](clone)
    commit = clone.commit(files)
    changed = clone.git("diff", "--name-only", before, commit).split()
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.hash == before
        assert lies(repository) == set()
        (sentence,) = told(repository)
    assert f"Commit {commit[:10]} by Mallory was not made by the challenge's worker" in sentence
    assert all(path in sentence for path in changed[:5])


def test_corrected_vandalism_is_no_contradiction(clone: Clone) -> None:
    """If append-only files were changed and restored, the commit and its author are named, and nothing is contradicted."""
    files = {path: clone.read(path) for path in (receipts.PATH, commitments.PATH, HISTORY)}
    commit = clone.commit(
        {receipts.PATH: b"", commitments.PATH: b"[]", HISTORY: files[HISTORY] + b'{"phase":"dev"}\n'}
    )
    put_right = clone.commit(files)
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.hash == put_right
        assert lies(repository) == set()
        (sentence,) = told(repository)
    assert f"Commit {commit[:10]} by Mallory changed commitment.json, receipts.jsonl, {HISTORY}" in sentence
    assert "The worker has since restored the files." in sentence


def test_an_older_state_that_is_pushed_again_is_ignored(clone: Clone) -> None:
    """An old sealed state can be pushed again without the key, so only the newest seal counts."""
    tip, earlier = clone.git("rev-parse", "HEAD"), clone.git("rev-parse", "HEAD~2")
    clone.git("checkout", "-q", earlier, "--", ".")
    clone.git("commit", "-qam", "as it was")
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.hash == tip
        assert lies(repository) == set()
        assert len(told(repository)) == 1


def test_files_that_no_seal_names_are_ignored(clone: Clone) -> None:
    """An organizer may add a license and a workflow, and an unsealed reveal is not read."""
    tip = clone.commit(
        {"LICENSE": b"mine", "reveal/eval/reveal.json": b"{}", ".github/workflows/check.yml": b"on: push"}
    )
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.hash == tip
        assert lies(repository) == set()
        assert told(repository) == []
        (sentence,) = told(repository, "seal")
        worth = {named(one): one.worth for one in verdicts(repository)}
    assert "not in the challenge's seal" in sentence
    assert "reveal/eval/reveal.json" in sentence
    assert worth["eval: reveal"] is Worth.NOT_REVEALED


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
        sentences = told(repository)
    assert len(sentences) == 21
    assert "2 other commits" in sentences[-1]


def test_a_sealed_change_of_what_may_only_grow_is_a_lie(fair: Fair, clone: Clone) -> None:
    """A change to an append-only file is a contradiction if it is sealed with the challenge's own key."""
    lines = clone.read(HISTORY).splitlines(keepends=True)
    clone.commit({HISTORY: b"".join(lines[1:])})
    with clone.checked() as repository:
        assert "history" not in lies(repository)
    own = resealed(fair, read_folder(clone.folder))
    clone.commit({seal.PATH: own.files[seal.PATH]})
    with clone.checked() as repository:
        assert "history" in lies(repository)


def test_a_challenge_with_a_key_and_without_a_seal_is_contradicted(clone: Clone) -> None:
    """If a challenge has a key but no commit of its repository has a seal, that is a contradiction."""
    clone.git("checkout", "-q", "--orphan", "other")
    clone.commit({seal.PATH: None})
    clone.git("branch", "-qD", "main")
    clone.git("branch", "-qm", "main")
    with clone.checked() as repository:
        assert "seal" in lies(repository)

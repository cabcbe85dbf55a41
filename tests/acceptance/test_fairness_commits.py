"""Every commit matters: one that is dropped, repeated, moved, merged, made a root, dated again or signed by another key."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from leaderboard.git import with_signature, without_signature
from tests.acceptance.fair_challenge import Fair, lies
from tests.acceptance.liar import Git
from tests.acceptance.test_fairness_vandals import MALLORY
from worker.challenge.signing import Signer
from worker.verify import Status, older_verdicts
from worker.verify.public import PublicRepository, opened

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("fairness")]


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit that can be written again.

    Attributes:
        name: Its name.
        tree: Its files.
        who: Author and committer, with their dates.
        message: Its message.
        key: Signs it; None for no signature.
        merges: The name of a commit that it merges.
        is_root: Whether it comes after no other.
    """

    name: str
    tree: str
    who: str
    message: str
    key: Signer | None
    merges: str | None = None
    is_root: bool = False

    def content(self, before: str | None) -> bytes:
        """Return it without a signature, after another commit."""
        parents = [] if self.is_root else [name for name in (before, self.merges) if name is not None]
        headers = [f"tree {self.tree}", *(f"parent {name}" for name in parents), self.who]
        return "\n".join([*headers, "", self.message]).encode()


def commits_of(clone: Git) -> list[Commit]:
    """Return the commits of a challenge, oldest first."""
    commits = []
    for name in clone.git("rev-list", "--reverse", "HEAD").split():
        content, _ = without_signature(clone.git("cat-file", "commit", name).encode())
        headers, _, message = content.decode().partition("\n\n")
        tree, who = headers.split()[1], headers[headers.index("author ") :]
        commits.append(Commit(name=name, tree=tree, who=who, message=f"{message}\n", key=clone.signer))
    return commits


def write(clone: Git, commits: Sequence[Commit]) -> None:
    """Write commits one after the other, of which the last one is then the newest."""
    contents, names = list[bytes](), list[str]()
    for commit in commits:
        content = commit.content(names[-1] if names else None)
        if commit.key is not None:
            content = with_signature(content, commit.key.sign_commit(content))
        contents.append(content)
        names.append(hashlib.sha1(b"commit %d\0%b" % (len(content), content)).hexdigest())
    assert clone.write(*contents) == names


def dated(commit: Commit, days: int) -> Commit:
    """Return a commit with other dates."""
    who = re.sub(r"> (\d+)", lambda date: f"> {int(date[1]) + days * 24 * 3600}", commit.who)
    return replace(commit, who=who)


Change = Callable[[list[Commit], int], list[Commit]]


def one(change: Callable[[Commit], Commit]) -> Change:
    """Return a change of one commit."""
    return lambda commits, place: [*commits[:place], change(commits[place]), *commits[place + 1 :]]


CHANGES: dict[str, Change] = {
    "dropped": lambda commits, place: [*commits[:place], *commits[place + 1 :]],
    "repeated": lambda commits, place: [*commits[: place + 1], *commits[place:]],
    "moved": lambda commits, place: [
        *commits[:place],
        *reversed(commits[place : place + 2]),
        *commits[place + 2 :],
    ],
    "merged": lambda commits, place: one(lambda commit: replace(commit, merges=commits[-1].name))(
        commits, place
    ),
    "made a root": one(lambda commit: replace(commit, is_root=True)),
    "a year earlier": one(lambda commit: dated(commit, -365)),
    "a year later": one(lambda commit: dated(commit, 365)),
    "not signed": one(lambda commit: replace(commit, key=None)),
    "signed by another key": one(lambda commit: replace(commit, key=MALLORY)),
}
"""What can be done to the commit at a place."""
LACKING = ("dropped", "not signed", "signed by another key")
"""What leaves the newest one out."""


@pytest.fixture
def clone(ended: Fair, tmp_path: Path) -> Git:
    """A fresh clone of the challenge at its end, in which somebody commits."""
    return Git(tmp_path / "clone", ended.signer, clone_of=ended.board)


@pytest.fixture(scope="module")
def commits(ended: Fair, tmp_path_factory: pytest.TempPathFactory) -> list[Commit]:
    """The commits of the challenge at its end."""
    folder = tmp_path_factory.mktemp("commits") / "clone"
    return commits_of(Git(folder, ended.signer, clone_of=ended.board))


@pytest.fixture(scope="module")
def older(ended: Fair) -> Iterator[PublicRepository]:
    """An older clone of the challenge, opened."""
    with opened(str(ended.board)) as repository:
        yield repository


def places(commits: Sequence[Commit]) -> list[int]:
    """Return where commits are changed: the first, the last but one, and the last."""
    return [0, len(commits) - 2, len(commits) - 1]


def checked_without_key(name: str, names: Sequence[str], place: int) -> str | None:
    """Return which commit is the challenge's newest if somebody without its key changes the one at a place."""
    if name == "made a root" and place:
        return None  # nothing that is signed can be reached
    if name == "merged":
        return names[-1]
    return names[place - 1] if place else None


@pytest.mark.parametrize("name", CHANGES)
def test_without_the_key_only_commits_that_are_unchanged_count(
    clone: Git, commits: list[Commit], name: str
) -> None:
    """The newest one that can still be reached is checked, and what was changed is never contradicted."""
    for place in places(commits):
        unsigned = [
            replace(commit, key=None) if commit.key is clone.signer else commit
            for commit in CHANGES[name](commits, place)[place:]
        ]
        write(clone, [*commits[:place], *unsigned])
        with clone.checked() as repository:
            seen, newest = repository.history, repository.commit
            assert newest is not None
            expected = checked_without_key(name, [commit.name for commit in commits], place)
            assert (newest.commit if seen.key else None) == expected, place
            assert lies(repository) == set(), place


@pytest.mark.parametrize("name", CHANGES)
def test_with_the_key_an_older_clone_shows_that_commits_are_others(
    clone: Git, commits: list[Commit], older: PublicRepository, name: str
) -> None:
    """What the files say is what counts; commits may be written again, and their dates are the organizers' words."""
    for place in places(commits):
        last = place == len(commits) - 1
        write(clone, CHANGES[name](commits, place))
        with clone.checked() as repository:
            withdraws = name == "moved" and place == len(commits) - 2
            goes_back = name in ("merged", "moved") and not last
            assert lies(repository) == ({"history"} if goes_back else set()), place
            told = {
                verdict.status
                for verdict in older_verdicts(repository, older)
                if "rewritten" in verdict.sentence or "forced the branch back" in verdict.sentence
            }
            lacking = Status.CHANGED if last and name in LACKING else Status.BELIEVED
            still_there = (
                name == "merged"
                or (last and name in ("repeated", "moved"))
                or (not place and name == "made a root")
            )
            assert told == (set() if still_there else {Status.CONTRADICTED if withdraws else lacking}), place


def test_the_longer_of_two_states_is_the_newest_whatever_their_dates(
    clone: Git, commits: list[Commit]
) -> None:
    """Somebody merges a commit that a forced push had removed; a clock that was set back before decides nothing."""
    *before, last = commits
    write(clone, [*before, dated(last, -365)])
    longer = clone.git("rev-parse", "HEAD")
    write(clone, [*before[:-1], dated(before[-1], 365), replace(last, key=None, merges=longer)])
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.commit == longer

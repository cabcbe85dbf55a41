"""Whose challenge it is: a second key is asked about and never believed, and nothing that git takes counts against the organizers."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.fair_challenge import Fair, copy_of, lies, verify
from tests.acceptance.liar import Git
from tests.acceptance.test_fairness_vandals import MALLORY, clone
from tests.worker.harness.commits import forged_commitment, sign_head
from tests.worker.harness.harness import git
from worker.challenge.signing import fingerprint, openssh
from worker.fairness import commitments
from worker.verify import Status, verdicts
from worker.verify.public import UnclearKey, only_key, opened, read_folder

__all__ = ["clone"]
pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("fairness")]


def begin_another(clone: Git) -> None:
    """Replace the commitments by one of one's own, and sign the commit with the key that it names."""
    forged = json.loads(forged_commitment(clone.read(commitments.PATH).decode(), MALLORY))
    clone.commit({commitments.PATH: json.dumps(forged[-1:]).encode(), "index.html": b"<p>Mallory won</p>"})
    sign_head(clone.folder, MALLORY)


def merge_root(clone: Git, *, first: bool) -> None:
    """Merge a root with a challenge of one's own, as first or second parent, and leave every file as it is."""
    forged = json.loads(forged_commitment(clone.read(commitments.PATH).decode(), MALLORY))
    clone.git("checkout", "-q", "--orphan", "root")
    clone.commit({commitments.PATH: json.dumps(forged[-1:]).encode()})
    sign_head(clone.folder, MALLORY)
    root = clone.git("rev-parse", "HEAD")
    clone.git("checkout", "-q", "main")
    parents = ("-p", root, "-p", "HEAD") if first else ("-p", "HEAD", "-p", root)
    clone.git("reset", "-q", "--hard", clone.git("commit-tree", "HEAD^{tree}", *parents, "-m", "merge"))


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize(
    ("take_over", "name_of"),
    [
        (begin_another, str),
        (partial(merge_root, first=True), fingerprint),
        (partial(merge_root, first=False), openssh),
    ],
    ids=["on top", "a root as first parent", "a root as second parent"],
)
def test_a_second_key_is_asked_about(
    clone: Git, take_over: Callable[[Git], None], name_of: Callable[[str], str], *, goes_on: bool
) -> None:
    """Without a name, both fingerprints are told; with it, the commits of the other key are named and prove nothing."""
    own, tree = clone.git("rev-parse", "HEAD", "HEAD^{tree}").split()
    take_over(clone)
    foreign = clone.git("rev-parse", "HEAD")
    if goes_on:  # the worker pushes on top
        clone.git("reset", "-q", "--hard", clone.git("commit-tree", tree, "-p", foreign, "-m", "again"))
        sign_head(clone.folder, clone.signer)
        own = clone.git("rev-parse", "HEAD")
    fingerprints = {fingerprint(key.public) for key in (clone.signer, MALLORY)}
    with pytest.raises(UnclearKey) as refused, clone.checked():
        pass
    assert refused.value.exit_code == 3
    assert all(shown in refused.value.sentence for shown in fingerprints)
    name = name_of(clone.signer.public)
    with opened(str(clone.folder), lambda keys: only_key(keys, name=name)) as repository:
        assert repository.commit is not None
        assert repository.commit.commit == own
        told = list(verdicts(repository))
    assert lies(told) == set()
    sentences = " ".join(verdict.sentence for verdict in told if verdict.check == "tip")
    assert f"commit {foreign[:10]} by Mallory" in sentences


def test_command_is_told_which_key_it_is(fair: Fair, clone: Git, tmp_path: Path) -> None:
    """The option or a receipt names it; the report begins with it, and a key that has signed nothing there is refused."""
    shown = fingerprint(clone.signer.public)
    stdout = tmp_path / "stdout"
    stdout.write_text(json.dumps(fair.harness.stdout(fair.submissions["A"])))
    merge_root(clone, first=True)
    done = verify(fair, clone.folder, "--no-recompute")
    assert (done.returncode, "2 keys claim this repository; name yours" in done.stderr) == (3, True)
    for options in (("--key", shown), ("--receipt", str(stdout))):
        done = verify(fair, clone.folder, "--no-recompute", *options)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines()[0] == f"Key: {shown}"
    for other in (fingerprint(MALLORY.public), ""):  # such as a variable that nobody has set
        done = verify(fair, fair.public, "--no-recompute", "--key", other)
        assert (done.returncode, "has signed nothing in this repository" in done.stderr) == (3, True)


def odd_commit(clone: Git, *headers: str, message: str = "odd") -> None:
    """Commit the same tree with these headers."""
    lines = [f"tree {clone.git('rev-parse', 'HEAD^{tree}')}", f"parent {clone.git('rev-parse', 'HEAD')}"]
    clone.write(os.fsencode("\n".join([*lines, *headers, "", message])))


def dates(clone: Git) -> None:
    """Commit with dates before 1970, after 9999, and without any."""
    for date in ("-1 +0000", "999999999999999 +9999", "12x", ""):
        odd_commit(clone, f"author A <a> {date}", f"committer A <a> {date}")


def authors(clone: Git) -> None:
    """Commit under names that are no text, and under the worker's own."""
    for name in ("\udcff\udcfe", "\u202eA", "", "neuco-worker", "a\tb"):
        odd_commit(clone, f"author {name} <a> 1 +0000", f"committer {name} <> 1 +0000", "encoding latin-1")


def signatures(clone: Git) -> None:
    """Commit with what others sign with, and with a signature of the challenge's on another commit."""
    own = clone.git("cat-file", "commit", "HEAD").partition("gpgsig ")[2].partition("\n\n")[0]
    for signature in ("-----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----", own, "x"):
        odd_commit(clone, "author A <a> 1 +0000", "committer A <a> 1 +0000", f"gpgsig {signature}")


def references(clone: Git) -> None:
    """Add branches, tags and notes of every odd name, and another default branch in a packed file."""
    for name in ("heads/HEAD", "heads/refs/heads/main", "heads/-x", "heads/\udcff", "tags/main", "notes/x"):
        clone.git("update-ref", f"refs/{name}", "HEAD~1")
    clone.git("tag", "-a", "-m", "x", "files", "HEAD~1")
    clone.git("pack-refs", "--all")


def replaced(clone: Git) -> None:
    """Replace commits, and graft others before them."""
    clone.git("replace", "--graft", "HEAD")
    clone.git("replace", "HEAD~1", clone.git("commit-tree", "HEAD^{tree}", "-m", "x"))
    clone.commit({"LICENSE": b"mine"})
    info = clone.folder / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "grafts").write_text(f"{clone.git('rev-parse', 'HEAD')}\n")


def dependabot(clone: Git) -> None:
    """Merge a branch of a bot, and delete it, as GitHub does."""
    for number in range(2):
        clone.git("checkout", "-qb", f"dependabot/pip/x-{number}")
        clone.commit({"requirements.txt": str(number).encode()})
        clone.git("checkout", "-q", "main")
        clone.git("merge", "-q", "--no-ff", "--no-edit", f"dependabot/pip/x-{number}")
        clone.git("branch", "-qD", f"dependabot/pip/x-{number}")


def unrelated(clone: Git) -> None:
    """Merge the branch of the published files, which the challenge's key has signed, and a root without files, at once."""
    empty = clone.git("commit-tree", clone.git("hash-object", "-t", "tree", "-w", os.devnull), "-m", "x")
    parents = ("-p", empty, "-p", "origin/files", "-p", "HEAD")
    clone.git("reset", "-q", "--hard", clone.git("commit-tree", "HEAD^{tree}", *parents, "-m", "x"))


ODDITIES = (dates, authors, signatures, references, replaced, dependabot, unrelated)


@pytest.mark.parametrize("odd", ODDITIES)
def test_whatever_git_takes_is_harmless(clone: Git, odd: Callable[[Git], None]) -> None:
    """The challenge's own commit is found below it; nothing crashes, and visitors see no change."""
    own = clone.git("rev-parse", "HEAD")
    odd(clone)
    with clone.checked() as repository:
        assert repository.commit is not None
        assert repository.commit.commit == own
        assert {verdict.status for verdict in verdicts(repository)}.isdisjoint(
            {Status.CONTRADICTED, Status.CHANGED}
        )


MAIN = ("--branch=main",)
COPIES: dict[str, tuple[str, ...]] = {
    "shallow": ("--depth=1", *MAIN),
    "single branch": ("--single-branch", *MAIN),
    "mirror": ("--mirror",),
    "line ends of Windows": ("--config", "core.autocrlf=true", *MAIN),
    "another remote": ("--origin", "upstream", *MAIN),
    "without a checkout": ("--no-checkout", *MAIN),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_any_kind_is_consistent(fair: Fair, tmp_path: Path, name: str) -> None:
    """Whatever options somebody has cloned with, the copy verifies, also against the original."""
    copy = copy_of(fair.board.resolve(), tmp_path / "copy", "--no-local", *COPIES[name])
    done = verify(fair, copy, "--no-recompute", "--against", str(fair.board))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_what_a_desktop_leaves_in_a_folder_is_no_lie(fair: Fair, tmp_path: Path) -> None:
    """A file manager hides its own files in the folders that it has shown."""
    folder = tmp_path / "copy"
    shutil.copytree(fair.public, folder)
    for place in ("", "ids", "leaderboard", "reveal", "reveal/dev", "reveal/dev/labels"):
        (folder / place / ".DS_Store").write_bytes(b"\0\0\0\1Bud1\xff")
    (folder / "reveal/dev/labels/._alpha__regr.csv").write_bytes(b"\0\5\x16\7")
    assert lies(read_folder(folder)) == set()


def test_a_shallow_clone_lacks_history_and_nobody_has_rewritten_it(fair: Fair, tmp_path: Path) -> None:
    """What was before the clone begins cannot be checked, and an older clone's commit not found; nothing is said about either."""
    board = fair.board.resolve()
    older = copy_of(board, tmp_path / "older", "--bare")
    git(older, "update-ref", "refs/heads/main", "main~1")
    shallow = copy_of(board, tmp_path / "shallow", "--no-local", "--depth=1", *MAIN)
    done = verify(fair, shallow, "-v", "--no-recompute", "--against", str(older))
    assert (done.returncode, done.stdout.count("? This clone is shallow")) == (0, 4), done.stdout
    assert not re.search("rewritten|removed or changed|changed or removed|in one commit", done.stdout)


def test_a_copy_without_its_files_is_refused(fair: Fair, tmp_path: Path) -> None:
    """Git itself cannot clone it; the message says which repository can be checked."""
    board = copy_of(fair.board, tmp_path / "board", "--bare", "--config", "uploadpack.allowFilter=true")
    copy = copy_of(board.resolve(), tmp_path / "copy", "--no-local", "--filter=blob:none", "--bare")
    done = verify(fair, copy)
    assert (done.returncode, "Name the repository that it was cloned from" in done.stderr) == (2, True)


def test_a_branch_of_files_that_somebody_deleted_is_no_lie(fair: Fair, tmp_path: Path) -> None:
    """The contents are not published now, also in a copy of one branch only, and nobody says that nothing was removed."""
    board = copy_of(fair.board, tmp_path / "board", "--bare")
    git(board, "update-ref", "-d", "refs/heads/files")
    git(board, "gc", "--quiet", "--prune=now")
    copy = copy_of(fair.board.resolve(), tmp_path / "copy", "--no-local", "--single-branch", *MAIN)
    for place in (board, copy):
        done = verify(fair, place)
        assert (done.returncode, done.stderr) == (0, "")
        assert "taken on trust" in done.stdout
        assert "✓ No change by anybody else was found." in done.stdout

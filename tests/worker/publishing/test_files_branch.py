"""The branch of the published files: it follows the signed tree, and is restored when others change or remove it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.leaderboard.harness.git_server import bare, git
from tests.worker.harness.gate import Gate
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.fairness import events
from worker.fairness.disclosure import FILES_PATH
from worker.publishing.pushing import HISTORY
from worker.state import State
from worker.verify import Status, verdicts
from worker.verify.public import opened

pytestmark = pytest.mark.processes

FIRST, SECOND = "aa.0", "bb.0"


def prepare_files(harness: Harness, *names: str) -> None:
    """Let files of the phase dev wait for their branch."""
    for name in names:
        part = harness.state / "published" / "dev" / name.partition(".")[0] / name
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(f"content of {name}")


def revealed(worker: StepWorker) -> None:
    """Record that dev is revealed."""
    with worker.store.write() as tx:
        tx.add_reveal("dev", {})


def branch(harness: Harness, board: Path | None = None) -> dict[str, str]:
    """Return the files of the branch, in the challenge's repository or another one."""
    names = git("ls-tree", "--name-only", "files", at=board or harness.board).split()
    return {name: git("show", f"files:{name}", at=board or harness.board) for name in names}


def named(harness: Harness) -> str:
    """Return the commit that the signed tree names."""
    return str(json.loads(git("show", f"main:{FILES_PATH}", at=harness.board))["commit"])


CONTENTS = {name: f"content of {name}" for name in (FIRST, SECOND)}


def delete(board: Path, clone: Path) -> None:
    """Delete the branch."""
    git("branch", "-D", "files", at=board)


def change(board: Path, clone: Path) -> None:
    """Push a commit that changes one file, removes the other and adds a third."""
    git("clone", "--quiet", "--branch=files", str(board), str(clone), at=board)
    (clone / FIRST).write_text("other")
    (clone / SECOND).unlink()
    (clone / "note").write_text("hello")
    git("add", "--all", at=clone)
    git("commit", "--quiet", "--message=mine", at=clone)
    git("push", "--quiet", "origin", "HEAD:files", at=clone)


def rewrite(board: Path, clone: Path) -> None:
    """Replace the branch by force with a history of its own."""
    git("init", "--quiet", str(clone), at=board)
    git("commit", "--quiet", "--allow-empty", "--message=mine", at=clone)
    git("push", "--quiet", "--force", str(board), "HEAD:files", at=clone)


def test_files_wait_for_the_reveal(harness: Harness, worker: StepWorker) -> None:
    """Before it, nothing is pushed; after it, the branch has the files, and the signed tree names its commit."""
    prepare_files(harness, FIRST, SECOND)
    harness.submit("A", embeddings(1))
    worker.drive()
    assert "files" not in git("branch", "--list", "files", at=harness.board)
    revealed(worker)
    worker.drive()
    assert branch(harness) == CONTENTS
    assert named(harness) == git("rev-parse", "files", at=harness.board).strip()


@pytest.mark.parametrize("others", [delete, change, rewrite])
def test_the_branch_is_restored_at_the_next_push(
    harness: Harness, worker: StepWorker, tmp_path: Path, others: Callable[[Path, Path], None]
) -> None:
    """The organizer is told; the files are there again, those of others stay, and the signed tree names the new commit."""
    prepare_files(harness, FIRST, SECOND)
    revealed(worker)
    worker.drive()
    others(harness.board, tmp_path / "clone")
    harness.submit("A", embeddings(1))
    worker.drive()
    assert CONTENTS.items() <= branch(harness).items()
    assert named(harness) == git("rev-parse", "files", at=harness.board).strip()
    assert worker.alerts() == {"leaderboard.overwritten"}


def test_nobody_gets_a_signature_for_a_page_there(
    harness: Harness, worker: StepWorker, tmp_path: Path
) -> None:
    """Somebody puts the board with another page there, waits for the worker's commit, and makes that the board."""
    harness.submit("A", embeddings(1))
    worker.drive()
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--branch=main", str(harness.board), str(clone), at=harness.board)
    (clone / "index.html").write_text("<p>B wins")
    (clone / HISTORY).unlink()
    git("commit", "--quiet", "--all", "--message=mine", at=clone)
    git("push", "--quiet", "origin", "HEAD:files", at=clone)
    prepare_files(harness, FIRST)
    revealed(worker)
    worker.drive()
    git("fetch", "--quiet", at=clone)
    git("push", "--quiet", "--force", "origin", "origin/files:main", at=clone)
    for is_changed in (True, False):
        with opened(str(harness.board)) as public:
            found = {(verdict.check, verdict.status) for verdict in verdicts(public)}
        assert ("tip", Status.CHANGED) in found or not is_changed
        wrong = {check for check, status in found if status is Status.CONTRADICTED}
        assert wrong <= {"page"}  # which shows the tasks, although no document is revealed here
        harness.submit("B", embeddings(2))
        worker.drive()


def test_a_push_whose_end_was_lost_is_not_somebody_elses(harness: Harness, worker: StepWorker) -> None:
    """Whoever receives the second part is killed after it was accepted; a large part may also take longer than a push may."""
    hook = harness.board / "hooks" / "post-receive"
    hook.write_text(
        '#!/bin/sh\nread before after name\nif test "$name" = refs/heads/files && git cat-file -e $before; then rm $0; kill -9 $PPID; fi\n'
    )
    hook.chmod(0o755)
    prepare_files(harness, FIRST, SECOND)
    revealed(worker)
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: not hook.exists() and worker.states().get(pk) == State.PUBLISHED)
    worker.drive()
    assert branch(harness) == CONTENTS
    assert named(harness) == git("rev-parse", "files", at=harness.board).strip()
    assert worker.alerts() == set()


def test_boards_do_not_wait_for_files_that_cannot_be_pushed(harness: Harness, worker: StepWorker) -> None:
    """The organizer is told, and the files follow once the branch accepts them."""
    hook = harness.board / "hooks" / "update"
    hook.write_text(
        '#!/bin/sh\nif test "$1" = refs/heads/files; then echo protected branch >&2; exit 1; fi\n'
    )
    hook.chmod(0o755)
    prepare_files(harness, FIRST, SECOND)
    revealed(worker)
    pk = harness.submit("A", embeddings(1))
    worker.drive(lambda: worker.states().get(pk) == State.PUBLISHED)
    assert worker.alerts() == {"leaderboard.push_refused"}
    hook.unlink()
    worker.drive(lambda: worker.alerts() == set())
    assert branch(harness) == CONTENTS


@pytest.mark.parametrize("act", ["push", "files"])
def test_a_push_that_a_reload_overtakes_counts_for_its_own_repository(harness: Harness, act: str) -> None:
    """The repository that is named meanwhile gets everything, and nobody is said to have rewritten it or removed its branch."""
    new, gate = harness.folder / "new.git", Gate(f"before call {act}")
    bare(new)
    with harness.worker(checkpoint=gate) as worker:
        worker.drive()
        prepare_files(harness, FIRST, SECOND)
        revealed(worker)
        gate.close()
        harness.submit("A", embeddings(1))
        worker.drive(gate.reached)
        harness.configure({"leaderboard": {"repository": str(new)}})
        worker.reload()
        gate.open()
        worker.drive()
        assert branch(harness, new) == CONTENTS
        assert '"A"' in git("show", "main:leaderboard/dev.json", at=new)
        assert worker.alerts() == set()
        with worker.store.read() as tx:
            assert list(tx.events(kind=events.CHALLENGE)) == []

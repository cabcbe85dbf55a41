"""`challenge apply --new-key`: the old key signs the new one, and nothing after that."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leaderboard.git import without_signature
from tests.leaderboard.harness.git_server import git
from tests.worker.harness.commits import forged_commitment, forged_line, sign_head
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.challenge.configuration import load
from worker.cli import guarded
from worker.fairness import commitments, receipts, signing
from worker.fairness.signing import Signer, is_signed, signer, signing_key
from worker.fairness.verify import Worth, receipt_verdicts
from worker.fairness.verify.public import PublicRepository, opened
from worker.organizer.archiving import read_backup
from worker.sandbox import ManualClock
from worker.state import Store

pytestmark = pytest.mark.xdist_group("new_key")

REASON = "a laptop with a backup was stolen"
NEW_KEY = ("challenge", "apply", "--new-key", "--yes")
THIEF = Signer(b"3" * 32)


@dataclass(frozen=True, kw_only=True)
class Story:
    """A running challenge whose key was replaced after a board and a batch, and two backups, one from before that."""

    harness: Harness
    worker: StepWorker
    old: Signer

    @property
    def key(self) -> Signer:
        """The challenge's key now."""
        return key(self.worker.store)

    @property
    def signed_by(self) -> str | None:
        """The key that has signed the newest commit."""
        commit = git("cat-file", "commit", "main", at=self.harness.board).encode() + b"\n"
        return signing_key(*without_signature(commit))

    @property
    def receipts(self) -> tuple[dict[str, Any], ...]:
        """The receipts of two submissions, from before and after the change."""
        return tuple(self.harness.stdout(pk)["receipt"] for pk in (1001, 1002))


def key(store: Store) -> Signer:
    """Return the key of a challenge."""
    with store.read() as tx:
        return signer(tx)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, cells: Path, fork_server: ForkServer) -> Iterator[Story]:
    """It is played today, because commands use the real clock."""
    changes, clock = {"leaderboard": {"receipts_every": 30}}, ManualClock(datetime.now(UTC))
    folder = tmp_path_factory.mktemp("story")
    with (
        Harness(folder, clock=clock, changes=changes, cells=cells, fork_server=fork_server) as harness,
        harness.worker() as worker,
    ):
        harness.submit("A", embeddings(1))
        worker.drive()
        worker.advance(40)
        harness.decide("challenge", "backup", str(folder / "before.zip"))
        old = key(worker.store)
        message = harness.decide(*NEW_KEY, "--reason", REASON)
        assert key(worker.store).public[:16] in message
        assert "Make a backup now" in message
        harness.decide("challenge", "backup", str(folder / "after.zip"))
        worker.drive()
        harness.submit("B", embeddings(2))
        worker.drive()
        worker.advance(40)
        assert worker.alerts() == set()
        yield Story(harness=harness, worker=worker, old=old)


def test_a_new_key_signs_everything_that_follows(story: Story) -> None:
    """Board, log and receipts use the new key at once; earlier signatures of the old key stay valid, and `verify` gives the reason."""
    old, new, harness = story.old.public, story.key.public, story.harness
    public = harness.published(commitments.PATH)
    assert signing.keys_of(public.encode()) == (old, new)
    assert story.signed_by == new
    lines = [json.loads(line) for line in harness.published(receipts.PATH).splitlines()]
    by_old, by_new = (
        [is_signed(public_key, "batch", line["head"], line["signature"]) for line in lines]
        for public_key in (old, new)
    )
    assert by_old == [not signed for signed in by_new] == sorted(by_old, reverse=True)
    assert set(by_old) == {True, False}
    assert [receipt["key"] for receipt in story.receipts] == [old, new]
    (sentence,) = [verdict.sentence for verdict in harness.verdicts() if verdict.check == "signatures"]
    at = json.loads(public)[-1]["made_at"][:16]
    assert f"The key was replaced on {at} ({REASON}); each key has signed the next one." in sentence


def test_a_worker_from_an_older_backup_cannot_use_the_replaced_key(story: Story, tmp_path: Path) -> None:
    """A backup from before the change cannot continue, because its key can no longer sign; a later one has the new key."""
    folder, board = story.harness.folder, story.harness.board
    before, after = (read_backup(folder / f"{name}.zip", tmp_path / name) for name in ("before", "after"))
    with closing(Store(load(after).database_url)) as store:
        assert key(store) == story.key
    (before.parent / "token").write_text((folder / "token").read_text())
    head = git("rev-parse", "main", at=board)
    assert guarded(["board", "publish", "--config", str(before)]) == 1
    assert git("rev-parse", "main", at=board) == head


def test_a_new_key_that_cannot_be_announced_is_refused(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs a reason, and a key before it. The error has a cure, and nothing is committed."""

    def refused(cure: str, *options: str) -> int:
        assert guarded([*NEW_KEY, *options, "--config", str(harness.path)]) == 2
        assert cure in capsys.readouterr().err
        with closing(harness.store()) as store, store.read() as tx:
            return len(tx.commitments())

    assert refused("Add --reason") == 0
    assert refused("Add --reason", "--reason", "  ") == 0
    assert refused("two steps", "--reason", REASON, "--beacon", "drand 1") == 0
    assert refused("It creates the first key", "--reason", REASON) == 0


FORGERIES: dict[str, Callable[[Story], Mapping[str, bytes]]] = {
    "a line of the log, on a branch": lambda story: {
        receipts.PATH: forged_line(story.harness.published(receipts.PATH), story.old)
    },
    "a commitment": lambda story: {
        commitments.PATH: forged_commitment(story.harness.published(commitments.PATH), story.old)
    },
    "another new key": lambda story: {
        commitments.PATH: forged_commitment(
            story.harness.published(commitments.PATH),
            THIEF,
            succession=story.old.sign(signing.SUCCESSION, THIEF.public),
        )
    },
    "the past": lambda story: {
        commitments.PATH: json.dumps(json.loads(story.harness.published(commitments.PATH))[:1]).encode()
    },
}
"""What a person with write access and the stolen old key can publish."""


@pytest.mark.parametrize("what", FORGERIES)
def test_the_replaced_key_can_sign_nothing(story: Story, tmp_path: Path, what: str) -> None:
    """A thief with write access is treated like any vandal: named and overwritten, without a contradiction."""
    board, worker, clone = story.harness.board, story.worker, tmp_path / "clone"
    own = git("rev-parse", "main", at=board)
    git("clone", "--quiet", "--branch=main", str(board), str(clone), at=board)
    forged = FORGERIES[what](story)
    if "branch" in what:  # from before the change, when the key was valid
        _, changed, *_ = git("log", "--reverse", "--format=%H", "--", commitments.PATH, at=clone).split()
        git("checkout", "--quiet", "-b", "side", f"{changed}~1", at=clone)
        assert len(json.loads((clone / commitments.PATH).read_bytes())) == 1
    for path, content in forged.items():
        (clone / path).write_bytes(content)
    git("commit", "--quiet", "--all", "--message=mine", at=clone)
    sign_head(clone, THIEF if what == "another new key" else story.old)
    if "branch" in what:
        git("merge", "--quiet", "--strategy=ours", "--message=both", "origin/main", at=clone)
    git("push", "--quiet", "origin", "HEAD:main", at=clone)
    assert checked(story.harness) == own
    with worker.store.write() as tx:
        tx.request_publish()
    worker.drive()
    assert worker.alerts() == {"leaderboard.overwritten"}
    assert checked(story.harness) == git("rev-parse", "main", at=board) != own
    assert story.signed_by == story.key.public


def checked(harness: Harness) -> str:
    """Return the commit that a verification checks, which must not find a contradiction."""
    assert harness.contradictions() == []
    with opened(str(harness.board)) as repository:
        assert repository.commit is not None
        return repository.commit.commit


def test_a_receipt_that_the_old_key_has_signed_too_late_proves_nothing(story: Story) -> None:
    """A stolen key cannot be used to frame the organizers; a receipt from before the change remains evidence."""
    genuine, fresh = story.receipts
    with opened(str(story.harness.board)) as repository:
        public = PublicRepository(files=dict(repository.files))

    def worths(receipt: dict[str, Any], public: PublicRepository = public, **options: Any) -> list[Worth]:
        return [verdict.worth for verdict in receipt_verdicts(public, receipt, **options)]

    def forged(**changes: Any) -> dict[str, Any]:
        body = {**genuine, "commitment": "66" * 32, **changes}
        del body["signature"]
        return {**body, "signature": story.old.sign(receipts.RECEIPT, body)}

    # Who looks before the new key was pushed has to wait for it, and not for long.
    listed, log = json.loads(public.files[commitments.PATH]), public.files[receipts.PATH].splitlines(True)
    earlier = PublicRepository(
        files={
            **public.files,
            commitments.PATH: json.dumps(listed[:1]).encode(),
            receipts.PATH: b"".join(log[: fresh["batch"]]),
        }
    )
    last = datetime.fromisoformat(json.loads(log[fresh["batch"] - 1])["made_at"])
    assert worths(fresh, earlier, now=last) == [Worth.NOT_REVEALED]
    assert worths(fresh, earlier, now=last + timedelta(hours=1)) == [Worth.CONTRADICTED]

    newest = json.loads(log[-1])
    assert worths(forged(challenge=listed[-1]["commitment"])) == [Worth.BELIEVED]
    assert worths(forged(batch=newest["sequence"], chain=newest["head"])) == [Worth.BELIEVED]
    assert Worth.CONTRADICTED in worths(forged())
    assert Worth.CONTRADICTED not in worths(genuine)

"""`challenge apply --new-key`: the old key signs the new one, and nothing after that."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from leaderboard.git import without_signature
from tests.leaderboard.harness.git_server import git
from tests.worker.harness.commits import forged_commitment, forged_line, sign_head
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

REASON = "a laptop with a backup was stolen"
NEW_KEY = ("challenge", "apply", "--new-key", "--yes")
THIEF = Signer(b"3" * 32)


@pytest.fixture
def clock() -> ManualClock:
    """It is today, because commands use the real clock."""
    return ManualClock(datetime.now(UTC))


@pytest.fixture
def changes() -> dict[str, Any]:
    """The log gets a line every half minute."""
    return {"leaderboard": {"receipts_every": 30}}


def key(store: Store) -> Signer:
    """Return the key of a challenge."""
    with store.read() as tx:
        current = signer(tx)
    assert current is not None
    return current


def signed_by(harness: Harness) -> str | None:
    """Return the key that has signed the newest commit."""
    commit = git("cat-file", "commit", "main", at=harness.board).encode() + b"\n"
    return signing_key(*without_signature(commit))


def replace_key(harness: Harness, worker: StepWorker) -> Signer:
    """Publish a board and a batch, then replace the key by command while a worker runs; return the old key."""
    harness.submit("A", embeddings(1))
    worker.drive()
    worker.advance(40)
    old = key(worker.store)
    message = harness.decide(*NEW_KEY, "--reason", REASON)
    assert key(worker.store).public[:16] in message
    assert "Make a backup now" in message
    worker.drive()
    return old


def test_a_new_key_signs_everything_that_follows(harness: Harness, worker: StepWorker) -> None:
    """Board, log and receipts use the new key at once; earlier signatures of the old key stay valid, and `verify` gives the reason."""
    old = replace_key(harness, worker)
    new = key(worker.store)
    pk = harness.submit("B", embeddings(2))
    worker.drive()
    worker.advance(40)
    assert worker.alerts() == set()
    public = harness.published(commitments.PATH)
    assert signing.keys_of(public.encode()) == (old.public, new.public)
    assert signed_by(harness) == new.public
    lines = [json.loads(line) for line in harness.published(receipts.PATH).splitlines()]
    by_old = [is_signed(old.public, "batch", line["head"], line["signature"]) for line in lines]
    by_new = [is_signed(new.public, "batch", line["head"], line["signature"]) for line in lines]
    assert by_old == [not one for one in by_new] == sorted(by_old, reverse=True)
    assert set(by_old) == {True, False}
    signers = [harness.stdout(answered)["receipt"]["key"] for answered in (pk - 1, pk)]
    assert signers == [old.public, new.public]
    (sentence,) = [verdict.sentence for verdict in harness.verdicts() if verdict.check == "signatures"]
    at = json.loads(public)[-1]["made_at"][:16]
    assert f"The key was replaced on {at} ({REASON}); each key has signed the next one." in sentence


def test_a_worker_from_an_older_backup_cannot_use_the_replaced_key(
    harness: Harness, worker: StepWorker, tmp_path: Path
) -> None:
    """A backup from before the change cannot continue, because its key can no longer sign; a later one has the new key."""
    worker.drive()
    harness.decide("challenge", "backup", str(tmp_path / "before.zip"))
    replace_key(harness, worker)
    harness.decide("challenge", "backup", str(tmp_path / "after.zip"))
    before, after = (read_backup(tmp_path / f"{name}.zip", tmp_path / name) for name in ("before", "after"))
    with closing(Store(load(after).database_url)) as store:
        assert key(store) == key(worker.store)
    (before.parent / "token").write_text((harness.folder / "token").read_text())
    head = git("rev-parse", "main", at=harness.board)
    assert guarded(["board", "publish", "--config", str(before)]) == 1
    assert git("rev-parse", "main", at=harness.board) == head


def test_options_that_do_not_go_together_are_refused(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error has a sentence and a cure, and nothing is committed."""
    for options, cure in (
        (["--new-key"], "Add --reason"),
        (["--new-key", "--reason", "  "], "Add --reason"),
        (["--new-key", "--reason", REASON, "--beacon", "drand 1"], "two steps"),
        (["--new-key", "--reason", REASON], "It creates the first key"),
    ):
        assert guarded(["challenge", "apply", "--yes", *options, "--config", str(harness.path)]) == 2
        assert cure in capsys.readouterr().err
    with closing(harness.store()) as store, store.read() as tx:
        assert tx.commitments() == []


def test_a_new_key_needs_the_secret_that_was_committed_to(
    harness: Harness, worker: StepWorker, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commitment covers the secret like every other; without the right secret, the key stays."""
    worker.drive()
    place = harness.folder / "challenge.secret"
    for spoil, cure in (
        (lambda: place.write_text("6b" * 32), "Restore the old secret"),
        (place.unlink, "challenge.secret"),
    ):
        spoil()
        assert guarded([*NEW_KEY, "--reason", REASON, "--config", str(harness.path)]) == 2
        assert cure in capsys.readouterr().err
    with worker.store.read() as tx:
        assert len(tx.commitments()) == 1


def forged_log(harness: Harness, old: Signer) -> Mapping[str, bytes]:
    """Return the log with one more line that the old key has signed."""
    return {receipts.PATH: forged_line(harness.published(receipts.PATH), old)}


def forged_list(harness: Harness, signer: Signer, **changes: str) -> Mapping[str, bytes]:
    """Return the list with one more commitment."""
    return {commitments.PATH: forged_commitment(harness.published(commitments.PATH), signer, **changes)}


FORGERIES: dict[str, Callable[[Harness, Signer], Mapping[str, bytes]]] = {
    "a line of the log, on a branch": forged_log,
    "a line of the log": forged_log,
    "a commitment": forged_list,
    "another new key": lambda harness, old: forged_list(
        harness, THIEF, succession=old.sign(signing.SUCCESSION, THIEF.public)
    ),
    "another page": lambda *_: {"index.html": b"<p>Mallory won</p>"},
    "the past": lambda harness, _: {
        commitments.PATH: json.dumps(json.loads(harness.published(commitments.PATH))[:1]).encode()
    },
}
"""What a person with write access and the stolen old key can publish."""


@pytest.mark.slow
def test_the_replaced_key_can_sign_nothing(harness: Harness, worker: StepWorker, tmp_path: Path) -> None:
    """A thief with write access is treated like any vandal: named and overwritten, without a contradiction."""
    old = replace_key(harness, worker)
    for what, forge in FORGERIES.items():
        own, clone = git("rev-parse", "main", at=harness.board), tmp_path / what
        git("clone", "--quiet", "--branch=main", str(harness.board), str(clone), at=harness.board)
        forged = forge(harness, old)
        if "branch" in what:  # from before the change, when the key was valid
            changed = git("log", "--max-count=1", "--format=%H", "--", commitments.PATH, at=clone)
            git("checkout", "--quiet", "-b", "side", f"{changed}~1", at=clone)
            assert len(json.loads((clone / commitments.PATH).read_bytes())) == 1
        for path, content in forged.items():
            (clone / path).write_bytes(content)
        git("commit", "--quiet", "--all", "--message=mine", at=clone)
        sign_head(clone, THIEF if what == "another new key" else old)
        if "branch" in what:
            git("merge", "--quiet", "--strategy=ours", "--message=both", "origin/main", at=clone)
        git("push", "--quiet", "origin", "HEAD:main", at=clone)
        assert checked(harness) == own, what
        with worker.store.write() as tx:
            tx.request_publish()
        worker.drive()
        assert worker.alerts() == {"leaderboard.overwritten"}, what
        assert checked(harness) == git("rev-parse", "main", at=harness.board) != own, what
        assert signed_by(harness) == key(worker.store).public, what


def checked(harness: Harness) -> str:
    """Return the commit that a verification checks, which must not find a contradiction."""
    assert harness.contradictions() == []
    with opened(str(harness.board)) as repository:
        assert repository.commit is not None
        return repository.commit.hash


def test_a_receipt_that_the_old_key_has_signed_too_late_proves_nothing(
    harness: Harness, worker: StepWorker
) -> None:
    """A stolen key cannot be used to frame the organizers; a receipt from before the change remains evidence."""
    old = replace_key(harness, worker)
    pk = harness.submit("B", embeddings(2))
    worker.drive()
    worker.advance(40)
    genuine, fresh = (harness.stdout(answered)["receipt"] for answered in (pk - 1, pk))
    assert (genuine["key"] == old.public, fresh["key"] == old.public) == (True, False)
    with opened(str(harness.board)) as repository:
        public = PublicRepository(files=dict(repository.files))

    def worths(receipt: dict[str, Any], public: PublicRepository = public, **options: Any) -> list[Worth]:
        return [one.worth for one in receipt_verdicts(public, receipt, **options)]

    def forged(**changes: Any) -> dict[str, Any]:
        body = {**genuine, "commitment": "66" * 32, **changes}
        del body["signature"]
        return {**body, "signature": old.sign(receipts.RECEIPT, body)}

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

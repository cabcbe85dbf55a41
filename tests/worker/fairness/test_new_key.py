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
from tests.worker.harness.commits import sign_head
from tests.worker.harness.fork_server import ForkServer
from tests.worker.harness.harness import Harness, StepWorker, embeddings
from worker.challenge.configuration import load
from worker.cli import guarded
from worker.fairness import commitments, receipts, signing
from worker.fairness.commit_signatures import signing_key
from worker.fairness.signing import Signer, is_signed, signer
from worker.fairness.verify import Verdict, Worth, receipt_verdicts, verdicts
from worker.fairness.verify.public import PublicRepository, opened, read_folder
from worker.organizer.archiving import read_backup
from worker.sandbox import ManualClock
from worker.state import Store

REASON = "a laptop with a backup was stolen"
NEW_KEY = ("challenge", "apply", "--new-key", "--yes")
THIEF = Signer(b"3" * 32)


@pytest.fixture
def harness(tmp_path: Path, cells: Path, fork_server: ForkServer) -> Iterator[Harness]:
    """A challenge that begins today, because commands use the real clock."""
    clock, changes = ManualClock(datetime.now(UTC)), {"leaderboard": {"receipts_every": 30}}
    with Harness(tmp_path, clock=clock, cells=cells, changes=changes, fork_server=fork_server) as harness:
        yield harness


def key(store: Store) -> Signer:
    """Return the key of a challenge."""
    with store.read() as tx:
        found = signer(tx)
    assert found is not None
    return found


def shown(harness: Harness, path: str) -> str:
    """Return a published file."""
    return git("show", f"main:{path}", at=harness.board)


def signed_by(harness: Harness) -> str | None:
    """Return the key that has signed the newest commit."""
    commit = git("cat-file", "commit", "main", at=harness.board).encode() + b"\n"
    return signing_key(*without_signature(commit))


def replace_key(harness: Harness, worker: StepWorker) -> Signer:
    """Publish a board and a batch, then replace the key by command while a worker runs; return the old key."""
    harness.submit("A", embeddings(1))
    worker.drive()
    worker.wait(40)
    old = key(worker.store)
    done = harness.command(*NEW_KEY, "--reason", REASON)
    assert done.returncode == 0, done.stderr
    assert key(worker.store).public[:16] in done.stdout
    assert "Make a backup now" in done.stdout
    worker.drive()
    return old


def test_a_new_key_signs_everything_that_follows(
    harness: Harness, worker: StepWorker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Board, log, receipts and backups use the new key at once; earlier signatures of the old key stay valid."""
    old = replace_key(harness, worker)
    new = key(worker.store)
    pk = harness.submit("B", embeddings(2))
    worker.drive()
    worker.wait(40)
    assert worker.alerts() == set()
    assert signing.keys_of(shown(harness, commitments.PATH).encode()) == (old.public, new.public)
    assert signed_by(harness) == new.public
    lines = [json.loads(line) for line in shown(harness, receipts.PATH).splitlines()]
    by = [
        next(one for one in (old, new) if is_signed(one.public, "batch", line["head"], line["signature"]))
        for line in lines
    ]
    assert by == sorted(by, key=(old, new).index)
    assert set(by) == {old, new}
    told = [harness.stdout(pk - 1), harness.stdout(pk)]
    assert [one["receipt"]["key"] for one in told] == [old.public, new.public]
    assert harness.command("challenge", "reveal", "--open", "--yes", "--reason", "a test").returncode == 0
    options = []
    for number, one in enumerate(told):
        (tmp_path / f"{number}.txt").write_text(json.dumps(one))
        options += ["--receipt", str(tmp_path / f"{number}.txt")]
    capsys.readouterr()
    assert guarded(["verify", str(harness.board), *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["verdicts"]
    (sentence,) = [one["sentence"] for one in found if one["check"] == "signatures"]
    at = json.loads(shown(harness, commitments.PATH))[-1]["made_at"][:16]
    assert f"The key was replaced on {at} ({REASON}); each key has signed the next one." in sentence
    mine = [one["sentence"] for one in found if one["check"].startswith("your receipt")]
    assert sum("carries the challenge's signature" in one for one in mine) == 2
    assert sum("counts on the final board at rank" in one for one in mine) == 2


def test_a_worker_from_an_older_backup_cannot_use_the_replaced_key(
    harness: Harness, worker: StepWorker, tmp_path: Path
) -> None:
    """A backup from before the change cannot continue, because its key can no longer sign."""
    worker.drive()
    for name in ("before", "after"):
        if name == "after":
            replace_key(harness, worker)
        done = harness.command("challenge", "backup", str(tmp_path / f"{name}.zip"))
        assert done.returncode == 0, done.stderr
    after = read_backup(tmp_path / "after.zip", tmp_path / "restored")
    with closing(Store(load(after).database_url)) as store:
        assert key(store) == key(worker.store)
    before = read_backup(tmp_path / "before.zip", tmp_path / "older")
    (before.parent / "token").write_text((harness.folder / "token").read_text())
    head = git("rev-parse", "main", at=harness.board)
    assert guarded(["board", "publish", "--config", str(before)]) == 1
    assert git("rev-parse", "main", at=harness.board) == head


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        (["--new-key", "--yes"], "Add --reason"),
        (["--new-key", "--yes", "--reason", "  "], "Add --reason"),
        (["--new-key", "--reason", REASON, "--beacon", "drand 1"], "two steps"),
        (["--new-key", "--yes", "--reason", REASON], "It creates the first key"),
    ],
    ids=[
        "no reason",
        "empty reason",
        "with a beacon",
        "before the first commitment",
    ],
)
def test_options_that_do_not_go_together_are_refused(
    harness: Harness, capsys: pytest.CaptureFixture[str], options: list[str], cure: str
) -> None:
    """The error has a sentence and a cure, and nothing is committed."""
    assert guarded(["challenge", "apply", *options, "--config", str(harness.path)]) == 2
    assert cure in capsys.readouterr().err
    with closing(harness.store()) as store, store.read() as tx:
        assert tx.commitments() == []


@pytest.mark.parametrize(
    ("secret", "told"),
    [(None, "challenge.secret"), ("6b" * 32, "Restore the old secret")],
    ids=["gone", "another"],
)
def test_a_new_key_needs_the_secret_that_was_committed_to(
    harness: Harness,
    worker: StepWorker,
    capsys: pytest.CaptureFixture[str],
    secret: str | None,
    told: str,
) -> None:
    """The commitment covers the secret like every other; without the right secret, the key stays."""
    worker.drive()
    old, place = key(worker.store), harness.folder / "challenge.secret"
    if secret is None:
        place.unlink()
    else:
        place.write_text(secret)
    assert guarded([*NEW_KEY, "--reason", REASON, "--config", str(harness.path)]) == 2
    assert told in capsys.readouterr().err
    assert key(worker.store) == old
    with worker.store.read() as tx:
        assert len(tx.commitments()) == 1


@dataclass(frozen=True)
class Theft:
    """What a person with write access and the stolen old key can publish."""

    board: Path
    old: Signer

    def read(self, path: str) -> bytes:
        """Return a published file."""
        return git("show", f"main:{path}", at=self.board).encode() + b"\n"

    def commitment(self, by: Signer, **more: str) -> bytes:
        """Return the public list with one more commitment."""
        entries = json.loads(self.read(commitments.PATH))
        body = {
            **entries[-1],
            "sequence": len(entries) + 1,
            "commitment": "66" * 32,
            "key": by.public,
            **more,
        }
        del body["signature"]
        signed = {**body, "signature": by.sign(signing.COMMITMENT, body)}
        return json.dumps([*entries, signed]).encode()

    def heir(self) -> bytes:
        """Return the public list with a new key of the thief, signed by the old key."""
        return self.commitment(THIEF, succession=self.old.sign(signing.SUCCESSION, THIEF.public))

    def line(self) -> bytes:
        """Return the log with one more line that the old key has signed."""
        log = self.read(receipts.PATH)
        last = json.loads(log.splitlines()[-1])
        body = {**last, "sequence": last["sequence"] + 1, "previous": last["head"]}
        del body["head"], body["signature"]
        head = receipts.chained(body)
        line = {**body, "head": head, "signature": self.old.sign(receipts.BATCH, head)}
        return log + json.dumps(line).encode() + b"\n"


FORGERIES: dict[str, Callable[[Theft], Mapping[str, bytes]]] = {
    "a commitment": lambda theft: {commitments.PATH: theft.commitment(theft.old)},
    "another new key": lambda theft: {commitments.PATH: theft.heir()},
    "a line of the log": lambda theft: {receipts.PATH: theft.line()},
    "another page": lambda _: {"index.html": b"<p>Mallory won</p>"},
    "the past": lambda theft: {
        commitments.PATH: json.dumps(json.loads(theft.read(commitments.PATH))[:1]).encode()
    },
}


@pytest.mark.parametrize("what", [*FORGERIES, "a line of the log, on a branch from before"])
def test_the_replaced_key_can_sign_nothing(
    harness: Harness, worker: StepWorker, tmp_path: Path, what: str
) -> None:
    """A thief with write access is treated like any vandal: named and overwritten, without a contradiction."""
    old = replace_key(harness, worker)
    own = git("rev-parse", "main", at=harness.board)
    clone, what, branch = tmp_path / "clone", *what.partition(", on ")[::2]
    git("clone", "--quiet", "--branch=main", str(harness.board), str(clone), at=harness.board)
    files = FORGERIES[what](Theft(harness.board, old))
    if branch:
        changed = git("log", "--max-count=1", "--format=%H", "--", commitments.PATH, at=clone)
        git("checkout", "--quiet", "-b", "side", f"{changed}~1", at=clone)
        assert len(json.loads((clone / commitments.PATH).read_bytes())) == 1
    for path, content in files.items():
        (clone / path).write_bytes(content)
    git("commit", "--quiet", "--all", "--message=mine", at=clone)
    sign_head(clone, THIEF if what == "another new key" else old)
    if branch:
        git("merge", "--quiet", "--strategy=ours", "--message=both", "origin/main", at=clone)
    git("push", "--quiet", "origin", "HEAD:main", at=clone)
    assert contradictions(harness.board) == (own, [])
    harness.submit("B", embeddings(2))
    worker.drive(lambda: set(harness.teams()) == {"A", "B"})
    worker.drive()
    assert worker.alerts() == {"leaderboard.overwritten"}
    assert contradictions(harness.board) == (git("rev-parse", "main", at=harness.board), [])
    assert signed_by(harness) == key(worker.store).public


def contradictions(board: Path) -> tuple[str, list[Verdict]]:
    """Return the checked commit and the contradictions."""
    with opened(str(board)) as repository:
        assert repository.commit is not None
        found = [one for one in verdicts(repository) if one.worth is Worth.CONTRADICTED]
        return repository.commit.hash, found


def test_a_receipt_that_the_old_key_has_signed_too_late_proves_nothing(
    harness: Harness, worker: StepWorker, tmp_path: Path
) -> None:
    """A stolen key cannot be used to frame the organizers; a receipt from before the change remains evidence."""
    old = replace_key(harness, worker)
    pk = harness.submit("B", embeddings(2))
    worker.drive()
    worker.wait(40)
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--branch=main", str(harness.board), str(clone), at=harness.board)
    public = read_folder(clone)
    listed, lines = (
        json.loads(public.files[commitments.PATH]),
        [json.loads(line) for line in public.files[receipts.PATH].splitlines()],
    )
    genuine: dict[str, Any] = dict(harness.stdout(1001)["receipt"])
    assert genuine["key"] == old.public

    def forged(**more: Any) -> dict[str, Any]:
        body = {**genuine, "commitment": "66" * 32, **more}
        del body["signature"]
        return {**body, "signature": old.sign(receipts.RECEIPT, body)}

    def told(
        receipt: Mapping[str, Any], public: PublicRepository = public, now: datetime | None = None
    ) -> list[Worth]:
        return [one.worth for one in receipt_verdicts(public, receipt, now=now)]

    # Who looks before the new key was pushed has to wait for it, and not for long.
    fresh: dict[str, Any] = dict(harness.stdout(pk)["receipt"])
    assert fresh["key"] != old.public
    log = public.files[receipts.PATH].splitlines(keepends=True)[: fresh["batch"]]
    earlier = {
        **public.files,
        commitments.PATH: json.dumps(listed[:1]).encode(),
        receipts.PATH: b"".join(log),
    }
    last = datetime.fromisoformat(json.loads(log[-1])["made_at"])
    assert told(fresh, PublicRepository(files=earlier), last) == [Worth.NOT_REVEALED]
    late = last + timedelta(hours=1)
    assert told(fresh, PublicRepository(files=earlier), late) == [Worth.CONTRADICTED]

    assert told(forged(challenge=listed[-1]["commitment"])) == [Worth.BELIEVED]
    assert told(forged(batch=lines[-1]["sequence"], chain=lines[-1]["head"])) == [Worth.BELIEVED]
    assert Worth.CONTRADICTED in told(forged())
    assert Worth.CONTRADICTED not in told(genuine)

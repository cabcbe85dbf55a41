"""A backup contains everything that a challenge needs to continue elsewhere."""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from scoring.documents import read_yaml
from scoring.errors import InfrastructureError, NeucoError
from tests.worker.harness.harness import Harness, StepWorker, embeddings, git
from worker.challenge.configuration import load
from worker.cli import guarded
from worker.fairness import receipts
from worker.fairness.signing import signer
from worker.organizer.archiving import read_backup, write_backup
from worker.organizer.doctor import Level, examine
from worker.organizer.session import open_session
from worker.state import schema


def saved(harness: Harness, folder: Path) -> Path:
    """Back a challenge up; return the archive."""
    archive = folder / "backup.zip"
    with open_session(harness.path) as session:
        write_backup(session, harness.path, archive)
    return archive


@pytest.mark.parametrize("flow", [False, True], ids=["by indentation", "between braces"])
def test_a_backup_is_private_and_restores_everything_but_tokens(
    harness: Harness,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flow: bool,
) -> None:
    """In a folder it is named after challenge and time; only what its layout requires is changed; what is missing is listed."""
    monkeypatch.setenv("HOOK", "https://example.org/hook")
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    board = {"token": "env:GITHUB_TOKEN", "known_hosts": "file:hosts"}
    harness.configure(
        {"evalai": {"token": "file:token"}, "alerts": {"webhook": "env:HOOK"}, "leaderboard": board}
    )
    document = yaml.safe_dump(read_yaml(harness.path.read_text()), default_flow_style=flow)
    document = document.replace("dev_split", "dev_split # as at EvalAI\n")
    harness.path.write_text(f"# Ours since 2025.\n{document}# The end.\n")
    for path in harness.folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    place = tmp_path / "elsewhere"
    for folder in (tmp_path / "backups", place):
        folder.mkdir(mode=0o755)
    assert guarded(["challenge", "backup", str(tmp_path / "backups"), "--config", str(harness.path)]) == 0
    (archive,) = (tmp_path / "backups").iterdir()
    assert re.fullmatch(re.escape(harness.folder.name) + r"-[0-9-]{10}T[0-9-]{8}Z\.zip", archive.name)
    assert archive.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(archive) as members:
        assert {member.external_attr >> 16 & 0o777 for member in members.infolist()} == {0o600}
    capsys.readouterr()
    assert guarded(["challenge", "restore", str(archive), str(place)]) == 0
    assert place.stat().st_mode & 0o777 == 0o700
    first, _, token, git_token, hosts, following = capsys.readouterr().out.splitlines()
    assert first == f"Restored into {place}."
    assert f"evalai.token points to {place}/token, which is empty or cannot be read." in token
    assert "leaderboard.token points to the environment variable GITHUB_TOKEN, which is not set." in git_token
    assert "leaderboard.known_hosts" in hosts
    assert following == f"Next: neuco-worker doctor --config {place}/challenge.yaml"
    text = (place / "challenge.yaml").read_text()
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert comments == [" Ours since 2025.", " as at EvalAI", " The end."]
    configuration = load(place / "challenge.yaml")
    assert configuration.repository_url == load(harness.path).repository_url
    for phase in configuration.phases.values():
        assert configuration.path(phase.tasks).is_relative_to(place)
        assert configuration.path(phase.ids).is_file()


def test_an_older_archive_is_kept(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named and kept, unless the organizer allows replacing it."""
    archive = tmp_path / "backup.zip"
    archive.write_bytes(b"older")
    command = ["challenge", "backup", str(archive), "--config", str(harness.path)]
    assert guarded(command) == 2
    assert f"{archive} exists already." in capsys.readouterr().err
    assert archive.read_bytes() == b"older"
    assert guarded([*command, "--force"]) == 0
    assert read_backup(archive, tmp_path / "elsewhere").exists()


def test_no_backup_is_made_of_a_damaged_database(harness: Harness, tmp_path: Path) -> None:
    """Damage that the schema does not show is found before an older archive is replaced."""
    with closing(harness.store()) as store:
        for _ in range(40):
            with store.write() as tx:
                tx.log("filling", actor="test", now=datetime.now(UTC), text="x" * 3000)
    with (harness.state / "worker.db").open("r+b") as file:
        file.seek(-8192, os.SEEK_END)
        file.write(b"\x0d\xff" * 4096)
    archive = tmp_path / "backup.zip"
    archive.write_bytes(b"older")
    with open_session(harness.path) as session, pytest.raises(InfrastructureError) as told:
        write_backup(session, harness.path, archive, replace=True)
    assert told.value.code == "state.damaged"
    assert [path.name for path in tmp_path.glob("backup*")] == ["backup.zip"]
    assert archive.read_bytes() == b"older"


def test_a_restored_worker_continues_from_what_was_published(harness: Harness, tmp_path: Path) -> None:
    """Later receipts stay valid; submissions answered since are named, and a re-run brings each back."""
    harness.configure({"leaderboard": {"receipts_every": 1000}})
    archive = tmp_path / "backup.zip"
    with harness.worker() as worker:
        harness.submit("A", embeddings(1))
        worker.drive()
        worker.clock.advance(1001)
        worker.drive()
        with open_session(harness.path) as session:
            write_backup(replace(session, now=worker.clock.now()), harness.path, archive)
        worker.clock.advance(10)
        lost = harness.submit("B", embeddings(2))
        worker.drive()
        told = harness.stdout(lost)
        worker.clock.advance(1001)
        worker.drive()
        log = git(harness.board, "show", "main:receipts.jsonl")
        assert len(log.splitlines()) == 2
        assert told["receipt"]["commitment"] in log
    config = read_backup(archive, tmp_path / "elsewhere")
    (config.parent / "token").write_text((harness.folder / "token").read_text())
    harness.folder, before = config.parent, harness.folder
    try:
        with harness.worker() as worker:
            worker.drive()
            assert worker.alerts() == {"restore.answered_since"}
            with worker.store.read() as tx:
                (alert,) = tx.alerts()
            assert str(lost) in alert.text
            again = harness.evalai.rerun(lost)
            worker.drive()
            assert harness.stdout(again)["q_mean"] == told["q_mean"]
            assert worker.alerts() == set()
            worker.clock.advance(1001)
            worker.drive()
    finally:
        harness.folder = before
    assert set(harness.teams()) == {"A", "B"}
    grown = git(harness.board, "show", "main:receipts.jsonl")
    assert grown.startswith(log)
    assert len(grown.splitlines()) == 3
    assert harness.stdout(again)["receipt"]["commitment"] in grown.splitlines()[2]


def test_a_commitment_that_a_restored_worker_does_not_know_is_never_overwritten(
    harness: Harness, worker: StepWorker
) -> None:
    """Nothing is pushed over it: the worker and the doctor tell the organizer, who decides."""

    def examined() -> Level:
        report = examine(harness.path, clock=lambda: datetime.now(UTC), only=["board.history"])
        return next(found.level for found in report.outcomes if found.check.id == "board.history")

    harness.submit("A", embeddings(1))
    worker.drive()
    harness.decide("challenge", "apply", "--new-key", "--reason", "once more")
    worker.drive()
    public = git(harness.board, "show", "main:commitment.json")
    assert examined() is Level.OK
    with worker.store.write() as tx:
        tx._connection.execute(schema.commitments.delete().where(schema.commitments.c.sequence == 2))
    harness.submit("B", embeddings(2))
    worker.drive(lambda: worker.alerts() == {"leaderboard.commitment_unknown"})
    assert git(harness.board, "show", "main:commitment.json") == public
    assert examined() is Level.FAIL
    assert harness.teams() == ["A"]


@pytest.mark.parametrize(
    ("public", "ahead"),
    [
        (b"", False),
        (b"%(one)s\n", False),
        (b"%(one)s\r\n%(two)s", False),
        (b"%(one)s\n%(two)s\n%(three)s\n", True),
        (b"%(one)s\r\n%(two)s\r\n%(three)s", True),
        (b"%(one)s\n%(three)s\n", False),
        (b"%(one)s\n%(two)s\nno log\n", False),
        (b"%(one)s\n%(two)s\n%(bare)s\n", False),
        (b"\xff", False),
    ],
)
def test_only_a_log_that_continues_ours_is_taken_over(harness: Harness, public: bytes, ahead: bool) -> None:
    """Lines that do not continue the chain are ignored, line ends do not matter, and afterwards our log is complete."""
    with closing(harness.store()) as store:
        with store.write() as tx:
            for day in (1, 2, 3):
                receipts.close_batch(tx, made_at=datetime(2026, 1, day, tzinfo=UTC))
            lines = dict(zip((b"one", b"two", b"three"), map(str.encode, tx.batches()), strict=True))
        body = {"previous": json.loads(lines[b"two"])["head"]}
        now = datetime(2026, 1, 4, tzinfo=UTC)
        lines[b"bare"] = json.dumps(body | {"head": receipts.chained(body)}).encode()
        with store.write() as tx:
            tx._connection.execute(schema.batches.delete().where(schema.batches.c.sequence == 3))
            ours, keys = receipts.receipts_file(tx), [signer(tx).public]
            if not ahead:
                receipts.check_growth(public % lines, ours, keys=keys)
                return
            with pytest.raises(receipts.LogIsAhead) as found:
                receipts.check_growth(public % lines, ours, keys=keys)
            assert receipts.take_over(tx, found.value, now=now)
            assert not receipts.take_over(tx, found.value, now=now)  # somebody was quicker
            receipts.check_growth(public % lines, receipts.receipts_file(tx), keys=keys)


@pytest.mark.parametrize(
    ("spoilt", "code"),
    [
        ("no archive", "restore.failed"),
        ("no folder", "restore.failed"),
        ("cut at its beginning", "restore.damaged"),
        ("cut near its end", "restore.damaged"),
        ("another secret", "restore.damaged"),
    ],
)
def test_what_cannot_be_restored_is_named(harness: Harness, tmp_path: Path, spoilt: str, code: str) -> None:
    """A damaged archive is not restored, because other labels or another secret would go unnoticed."""
    archive, place = saved(harness, tmp_path), tmp_path / "elsewhere"
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as members:
        start = members.getinfo("challenge.secret").header_offset
    header = 30 + sum(struct.unpack("<HH", content[start + 26 : start + 30]))  # with name and extra fields
    content[start + header + 2] ^= spoilt == "another secret"
    parts = {"cut at its beginning": content[:100], "cut near its end": content[:-100]}
    archive.write_bytes(parts.get(spoilt, content))
    if spoilt == "no archive":
        archive.unlink()
    if spoilt == "no folder":
        place.write_text("not a folder")
    with pytest.raises(NeucoError) as error:
        read_backup(archive, place / "below")
    assert error.value.code == code
    assert str(archive) in error.value.sentence

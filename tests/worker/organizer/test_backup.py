"""A backup contains everything that a challenge needs to continue elsewhere."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from scoring.errors import NeucoError
from tests.waiting import LIMIT_S
from tests.worker.harness.full_disk import file_size_limit
from tests.worker.harness.harness import KEY, ROOT, Harness, Killed, embeddings, git
from worker.challenge.configuration import load
from worker.challenge.setups import read_secret
from worker.challenge.signing import read_signer
from worker.cli import guarded
from worker.fairness import receipts
from worker.organizer.archiving import CONFIGURATION, DATABASE, read_backup, write_backup
from worker.organizer.session import open_session
from worker.state import RESTORED, LeaderLock, Store, schema


@pytest.mark.processes
def test_a_backup_is_private_and_restores_everything_but_tokens(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder it is named after challenge and time; only what its layout requires, and that it is a copy, is changed."""
    document = harness.path.read_text().replace("dev_split", "dev_split # as at EvalAI")
    document = document.replace("leaderboard:\n", "leaderboard:\n  known_hosts: ../hosts\n")
    harness.path.write_text(f"# Ours since 2025.\n{document}# The end.\n")
    (harness.folder.parent / "hosts").write_text("example.org ssh-ed25519 AAAA\n")
    for path in harness.folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    backups, place = tmp_path / "backups", tmp_path / "elsewhere"
    backups.mkdir()
    place.mkdir(mode=0o755)
    left = tmp_path / f"a.zip.{os.getpid()}.part"
    left.touch(mode=0o644)  # by a backup that was killed, or by somebody else
    assert guarded(["challenge", "backup", str(tmp_path / "a.zip"), "--config", str(harness.path)]) == 0
    assert (tmp_path / "a.zip").stat().st_mode & 0o777 == 0o600
    assert not left.exists()
    assert guarded(["challenge", "backup", str(backups), "--config", str(harness.path)]) == 0
    (archive,) = backups.iterdir()
    assert re.fullmatch(re.escape(harness.folder.name) + r"-[0-9-]{10}T[0-9-]{8}Z\.zip", archive.name)
    assert archive.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(archive) as members:
        assert {member.external_attr >> 16 & 0o777 for member in members.infolist()} == {0o600}
        database = members.extract(DATABASE, tmp_path)
    with closing(Store(f"sqlite:///{database}")) as copy, copy.read() as tx:
        assert tx.fact(RESTORED)  # whoever unpacks it, and however
    capsys.readouterr()
    assert guarded(["challenge", "restore", str(archive), str(place)]) == 0
    assert place.stat().st_mode & 0o777 == 0o700
    first, missing, following = capsys.readouterr().out.splitlines()
    assert first.startswith(f"Restored into {place}. Decisions made since the backup, ")
    assert "no tokens" in missing
    assert following == f"Next: neuco-worker doctor --config {place}/challenge.yaml"
    text = (place / "challenge.yaml").read_text()
    comments = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
    assert comments == [" Ours since 2025.", " as at EvalAI", " The end."]
    configuration = load(place / "challenge.yaml")
    assert configuration.repository_url == load(harness.path).repository_url
    hosts = configuration.secret_path(str(configuration.leaderboard.known_hosts), "leaderboard.known_hosts")
    assert hosts == place / "known_hosts"
    for phase in configuration.phases.values():
        assert configuration.path(phase.tasks).is_relative_to(place)
        assert configuration.path(phase.ids).is_file()


@pytest.mark.processes
def test_two_at_once_write_one_archive(harness: Harness, tmp_path: Path) -> None:
    """Such as cron's and one by hand: each writes a whole one, and none removes the other's."""
    archive = tmp_path / "a.zip"
    with open_session(harness.path) as session:
        (tmp_path / "file").write_bytes(b"x")
        session.files.keep(tmp_path / "file", "0" * 64)
        others = []

        def meanwhile(*_: int) -> None:
            others.append(harness.command("challenge", "backup", str(archive)).returncode)

        write_backup(session, harness.path, archive, replace=True, progress=meanwhile)
    assert others == [0]
    assert [path.name for path in tmp_path.glob("a.zip*")] == ["a.zip"]
    with zipfile.ZipFile(archive) as members:
        assert members.testzip() is None


@pytest.mark.processes
def test_an_old_file_that_is_removed_meanwhile_ends_no_backup(harness: Harness, tmp_path: Path) -> None:
    """A running worker removes files that nothing needs any more; a large backup takes minutes."""
    archive, hashes = tmp_path / "a.zip", {"0" * 64, "1" * 64}
    with open_session(harness.path) as session:
        for name in hashes:
            (tmp_path / "file").write_bytes(b"x")
            session.files.keep(tmp_path / "file", name)

        def remove_all(*_: int) -> None:
            for name in hashes:
                session.files.remove(name)

        write_backup(session, harness.path, archive, progress=remove_all)
    with zipfile.ZipFile(archive) as members:
        assert len(hashes.intersection(Path(name).name for name in members.namelist())) == 1


@pytest.mark.processes
def test_a_linked_task_is_in_a_backup_and_an_editors_lock_is_not(harness: Harness, tmp_path: Path) -> None:
    """A task package may be on another disk; Emacs keeps a link to nowhere next to a file that has unsaved changes."""
    tasks = harness.folder / "tasks" / "dev"
    (tmp_path / "delta" / "data").mkdir(parents=True)
    (tmp_path / "delta" / "data" / "labels.csv").write_text("id,label\n")
    (tasks / "delta").symlink_to(tmp_path / "delta")
    (tasks / ".#alpha__regr.csv").symlink_to("somebody@machine.4711:1764500000")
    with open_session(harness.path) as session:
        write_backup(session, harness.path, tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as members:
        names = {name for name in members.namelist() if name.startswith("tasks/dev/")}
    assert names == {
        f"tasks/dev/{name}"
        for name in ("alpha__regr.csv", "beta__cls.csv", "gamma__regr.csv", "delta/data/labels.csv")
    }


KILLED = """
import os, pathlib, sys
from worker.organizer import archiving, session
from worker.participant.process import end_in_order
end_in_order()
config, archive, number = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
with session.open_session(config) as opened:
    archiving.write_backup(opened, config, archive, progress=lambda *_: os.kill(os.getpid(), number))
"""


def killed(harness: Harness, archive: Path, number: int, *before: str) -> int:
    """Send a signal to a backup that has written everything, and return its exit status."""
    with open_session(harness.path) as session:
        (archive.parent / "file").write_bytes(b"x")
        session.files.keep(archive.parent / "file", "0" * 64)
    command = [*before, sys.executable, "-c", KILLED, harness.path, archive, str(number)]
    return subprocess.run(command, cwd=ROOT, check=False, stdin=subprocess.DEVNULL).returncode


def copies(harness: Harness) -> list[Path]:
    """Return the folders with copies of the database."""
    return [path.parent for path in harness.state.rglob("worker.db") if path.parent != harness.state]


@pytest.mark.processes
def test_nothing_stays_of_a_backup_whose_terminal_is_closed(harness: Harness, tmp_path: Path) -> None:
    """Neither the copy of the database nor half an archive with the secret; after nohup, the backup goes on."""
    archive = tmp_path / "a.zip"
    assert killed(harness, archive, signal.SIGHUP) == 128 + signal.SIGHUP
    assert copies(harness) == [*tmp_path.glob("a.zip*")] == []
    assert killed(harness, archive, signal.SIGHUP, "nohup") == 0
    assert [path.name for path in tmp_path.glob("a.zip*")] == ["a.zip"]


@pytest.mark.processes
def test_a_copy_that_a_killed_backup_leaves_is_removed(harness: Harness, tmp_path: Path) -> None:
    """It holds the whole database. A start of the worker removes it a day later; until then, the backup might still be running."""
    assert killed(harness, tmp_path / "a.zip", signal.SIGKILL) == -signal.SIGKILL
    with suppress(OSError):  # a file system on which an archive has a name from the beginning
        os.close(os.open(tmp_path, os.O_WRONLY | os.O_TMPFILE))
        assert list(tmp_path.glob("a.zip*")) == []
    (left,) = copies(harness)
    with harness.worker():
        assert left.exists()
    os.utime(left, (0, 0))
    with harness.worker():
        assert not left.exists()


@pytest.mark.processes
def test_a_backup_that_cannot_be_written_is_named(harness: Harness, tmp_path: Path) -> None:
    """Its archive is, and not the temporary file, which cannot be removed there either; so is a file that it lacks."""
    (tmp_path / "file").touch()
    archive, secret = tmp_path / "file" / "a.zip", load(harness.path).challenge_secret
    with open_session(harness.path) as session, pytest.raises(NeucoError) as error:
        write_backup(session, harness.path, archive)
    assert error.value.sentence == f"The backup {archive} could not be written: Not a directory."
    secret.unlink()
    with open_session(harness.path) as session, pytest.raises(NeucoError) as error:
        write_backup(session, harness.path, tmp_path / "a.zip")
    assert error.value.sentence.endswith(f"could not be written: {secret}: No such file or directory.")


@pytest.mark.processes
def test_only_a_file_is_replaced(harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link still leads to the disk where the archive belongs; a device stays one."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "latest.zip").symlink_to(tmp_path / "disk" / "a.zip")
    os.mkfifo(tmp_path / "device")
    with open_session(harness.path) as session:
        for flag in (
            os.O_TMPFILE,
            os.O_DIRECTORY,
        ):  # the latter fails like the former where the disk lacks it
            monkeypatch.setattr(os, "O_TMPFILE", flag)
            write_backup(session, harness.path, tmp_path / "latest.zip", replace=True)
        with pytest.raises(NeucoError, match="exists already"):
            write_backup(session, harness.path, tmp_path / "device", replace=True)
    assert (tmp_path / "latest.zip").is_symlink()
    assert [path.name for path in (tmp_path / "disk").iterdir()] == ["a.zip"]
    assert (tmp_path / "device").is_fifo()


@pytest.mark.processes
def test_an_older_archive_is_kept(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The organizer must allow that it is replaced; even then a damaged database, whose schema is intact, does not replace it."""
    archive = tmp_path / "backup.zip"
    archive.write_bytes(b"older")
    command = ["challenge", "backup", str(archive), "--config", str(harness.path)]
    with closing(harness.store()) as store, store.write() as tx:
        for number in range(40):
            tx.set_fact(f"filling {number}", "x" * 3000)
    whole = (harness.state / "worker.db").read_bytes()
    (harness.state / "worker.db").write_bytes(whole[:-8192] + b"\x0d\xff" * 4096)
    for words, status, sentence in (
        (command, 2, "exists already."),
        ([*command, "--force"], 1, "is damaged"),
    ):
        assert guarded(words) == status
        assert sentence in capsys.readouterr().err
        assert [(path.name, path.read_bytes()) for path in tmp_path.glob("backup*")] == [
            ("backup.zip", b"older")
        ]
    (harness.state / "worker.db").write_bytes(whole)
    assert guarded([*command, "--force"]) == 0
    assert read_backup(archive, tmp_path / "elsewhere").exists()


@pytest.mark.processes
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
        answer = harness.stdout(lost)
        worker.clock.advance(1001)
        worker.drive()
        log = git(harness.board, "show", "main:receipts.jsonl")
        assert len(log.splitlines()) == 2
        assert answer["receipt"]["commitment"] in log
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
            assert harness.stdout(again)["q_mean"] == answer["q_mean"]
            assert worker.alerts() == set()
            worker.clock.advance(1001)
            worker.drive()
    finally:
        harness.folder = before
    assert set(harness.teams()) == {"A", "B"}
    grown = git(harness.board, "show", "main:receipts.jsonl")
    assert grown.startswith(log)
    assert len(grown.splitlines()) == 4  # the third says at once that the state was restored
    assert harness.stdout(again)["receipt"]["commitment"] in grown.splitlines()[3]


@pytest.mark.processes
def test_a_backup_has_the_files_that_a_reveal_publishes(harness: Harness, tmp_path: Path) -> None:
    """So a restored worker can push them again when somebody has removed their branch."""
    archive, part = tmp_path / "a.zip", Path("published", "dev", "0" * 64, f"{'0' * 64}.0")
    (harness.state / part).parent.mkdir(parents=True)
    (harness.state / part).write_bytes(b"content")
    with open_session(harness.path) as session:
        write_backup(session, harness.path, archive)
    config = read_backup(archive, tmp_path / "elsewhere")
    assert (load(config).state_dir / part).read_bytes() == b"content"


def test_an_unfinished_restore_is_no_challenge(harness: Harness, tmp_path: Path) -> None:
    """A worker that used it would lack stored files, or share a state that another restore still writes."""
    archive, place, together = tmp_path / "a.zip", tmp_path / "place", Barrier(2)
    with open_session(harness.path) as session:
        (tmp_path / "file").write_bytes(b"x" * 100_000)
        session.files.keep(tmp_path / "file", "0" * 64)
        write_backup(session, harness.path, archive)
    with zipfile.ZipFile(archive) as members:
        largest = max(member.file_size for member in members.infolist())
    with file_size_limit(largest - 1), pytest.raises(NeucoError, match="cannot be restored"):
        read_backup(archive, place)
    assert not (place / CONFIGURATION).exists()

    def restored(_: int) -> bool:
        together.wait(LIMIT_S)
        try:
            return read_backup(archive, tmp_path / "other").is_file()
        except NeucoError:
            return False

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(restored, range(2))) == [False, True]


def test_a_restore_that_is_killed_leaves_no_open_secrets(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are private before there is a configuration, however little follows it."""
    unpack = zipfile.ZipFile.extractall

    def killed(*arguments: Any) -> None:
        unpack(*arguments)
        raise Killed

    with open_session(harness.path) as session:
        write_backup(session, harness.path, tmp_path / "a.zip")
    monkeypatch.setattr(zipfile.ZipFile, "extractall", killed)
    with pytest.raises(Killed):
        read_backup(tmp_path / "a.zip", tmp_path / "place")
    restored = load(tmp_path / "place" / CONFIGURATION)
    assert read_secret(restored) == read_secret(load(harness.path))
    assert read_signer(restored) == read_signer(load(harness.path))


def test_a_dump_is_not_recorded_while_a_worker_runs(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    """It remembers the state before the dump; so it is to be stopped first."""
    with harness.worker() as worker:
        worker.drive()
    words = ["challenge", "restore", "--dump", "--config", str(harness.path)]
    with closing(LeaderLock(harness.state)) as lock:
        assert lock.take()
        assert guarded(words) == 1
    assert "Stop that worker first" in capsys.readouterr().err
    with closing(harness.store()) as store:
        with store.read() as tx:
            assert tx.fact(RESTORED) is None
        assert guarded(words) == 0
        with store.read() as tx:
            assert tx.fact(RESTORED) is not None


def test_only_a_log_that_continues_ours_is_taken_over(tmp_path: Path) -> None:
    """Lines that do not continue the chain are ignored, line ends do not matter, and afterwards our log is complete.

    Bytes that are no text, which others may have added, hide no line before them.
    """
    now = datetime(2026, 1, 4, tzinfo=UTC)
    with closing(Store(f"sqlite:///{tmp_path / 'worker.db'}")) as store, store.write() as tx:
        for day in (1, 2, 3):
            receipts.close_batch(tx, KEY, made_at=now.replace(day=day))
        first, second, third = map(str.encode, tx.batches())
        body = {"previous": json.loads(second)["head"]}
        bare = json.dumps(body | {"head": receipts.chained(body)}).encode()
        tx._connection.execute(schema.batches.delete().where(schema.batches.c.sequence == 3))
        ours, key = receipts.receipts_file(tx) or b"", KEY.public
        own = ([], [first], [first, second])
        for lines in (*own, [first, third], [first, second, b"no log"], [first, second, bare], [b"\xff"]):
            assert receipts.continued(b"\n".join(lines), ours, key=key) == ours
        for end, *added in ((b"\n", b"\xff"), (b"\r\n",)):
            public = end.join((first, second, third, *added))
            log = receipts.continued(public, ours, key=key)
            assert log.splitlines() == [first, second, third]
        assert receipts.take_over(tx, log, now=now) == 1
        assert receipts.receipts_file(tx) == log
        assert receipts.take_over(tx, log, now=now) == 0
        assert receipts.continued(public, log, key=key) == log
        receipts.close_batch(tx, KEY, made_at=now.replace(day=4))
        receipts.close_batch(tx, KEY, made_at=now.replace(day=5))  # by a reveal, after the comparison
        assert receipts.take_over(tx, log, now=now) == 0
        receipts.close_batch(tx, KEY, made_at=now.replace(day=6))
        *_, line = receipts.read_log(receipts.receipts_file(tx) or b"")
        assert line.restored is not None
        assert (line.sequence, line.restored.first, line.restored.last) == (6, 6, 5)


@pytest.mark.processes
def test_what_cannot_be_restored_is_named(harness: Harness, tmp_path: Path) -> None:
    """A damaged archive is not restored, because other labels or another secret would go unnoticed."""
    archive, file, pipe = tmp_path / "backup.zip", tmp_path / "file", tmp_path / "pipe"
    file.touch()
    os.mkfifo(pipe)
    with open_session(harness.path) as session:
        write_backup(session, harness.path, archive)
    with zipfile.ZipFile(archive) as members:
        place = members.getinfo("challenge.secret").header_offset + 68  # in its packed content
    content = archive.read_bytes()
    spoilt = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as members:
        for name in ("challenge.yaml", "signing.key", DATABASE):  # without the secret
            members.writestr(name, "")
    directory = content.index(b"PK\1\2")
    encrypted = content[: directory + 8] + b"\1" + content[directory + 9 :]
    for number, (written, target, code) in enumerate(
        (
            (content, file / "below", "restore.failed"),
            (content[:100], tmp_path, "restore.damaged"),
            (content[:-100], tmp_path, "restore.damaged"),
            (spoilt, tmp_path, "restore.damaged"),
            (other.getvalue(), tmp_path, "restore.damaged"),
            (encrypted, tmp_path, "restore.damaged"),
            (None, tmp_path, "restore.failed"),
        )
    ):
        archive.unlink() if written is None else archive.write_bytes(written)
        with pytest.raises(NeucoError) as error:
            read_backup(archive, target / str(number))
        assert error.value.code == code
        assert str(archive) in error.value.sentence
    with pytest.raises(NeucoError, match="it is not a file"):
        read_backup(pipe, tmp_path / "new")

"""Backup and restore of a challenge: database, stored files, configuration, secret, signing key, tasks and id lists."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from scoring.errors import InfrastructureError, OrganizerError
from scoring.inputs.archives import DAMAGE
from worker.challenge.configuration import Configuration
from worker.challenge.secrets import KEY_FILE, SECRET_FILE
from worker.challenge.setups import has_scores
from worker.challenge.signing import HOME
from worker.fairness.published import BEHIND
from worker.organizer.configuration_text import with_values
from worker.organizer.session import OrganizerSession
from worker.publishing import files_branch
from worker.runtime.storage import OF_COMMAND
from worker.state import LOG_UNSEEN, RESTORED, Store, Transaction
from worker.state.database import SINCE_BACKUP, damaged, typed

CONFIGURATION, DATABASE, HOSTS_FILE = "challenge.yaml", "state/worker.db", "known_hosts"


def write_backup(
    session: OrganizerSession,
    config: Path,
    archive: Path,
    *,
    replace: bool = False,
    progress: Callable[[int, int], object] = lambda _, __: None,
) -> int:
    """Write everything that a challenge needs to continue elsewhere; return the archive's size in bytes.

    The database is copied with SQLite's own backup, so a daemon may be running. The copy says that it is one, so that no worker that uses
    it, however it was unpacked, takes it for complete. The archive is written with mode 0600, and gets its name when it is complete.

    Args:
        session: The challenge.
        config: Its configuration file.
        archive: The archive's path.
        replace: Whether an existing archive may be replaced.
        progress: Called with the number of stored files added since the last call, and the total.

    Raises:
        OrganizerError: If the state is not SQLite (a database server has its own tools), or the archive exists already.
        InfrastructureError: If the disk fails, the files of a phase without scores are missing, or the database is damaged.
    """
    archive = Path(os.path.realpath(archive))  # a link to another disk stays
    if archive.exists() and not (replace and archive.is_file()):
        raise OrganizerError(
            f"{archive} exists already.",
            hint="Choose another file name, or a folder, where each archive gets its own name. Or add --force to replace this one.",
            code="backup.exists",
        )
    configuration = session.configuration
    database = configuration.database_file
    if database is None:
        raise OrganizerError(
            "The state is on a database server, which this command cannot copy.",
            hint="Back it up with pg_dump, and copy the configuration, the secret, the signing key, the label files, the id lists and"
            f" files/ and published/ in {configuration.state_dir} yourself. After pg_restore, run `neuco-worker challenge restore --dump`.",
            code="backup.server",
        )
    temporary = archive.with_name(f"{archive.name}.{os.getpid()}.part")  # another command may write it too
    try:
        # A start of the worker removes what is left here of a command that was killed.
        with (
            typed(database),
            tempfile.TemporaryDirectory(prefix=OF_COMMAND, dir=session.files.temporary("")) as folder,
        ):
            copy = _copied_database(database, Path(folder), now=session.now)
            temporary.unlink(missing_ok=True)  # a file that is there already would keep its mode
            with os.fdopen(_opened(temporary), "wb") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
                    target.writestr(CONFIGURATION, _rewritten(configuration, config))
                    for path, name in _members(session, copy):
                        _add(target, path, name)
                    stored = [*session.files.stored(), *files_branch.prepared(configuration)]
                    for path in stored:
                        with contextlib.suppress(FileNotFoundError):  # the worker may remove an old one
                            _add(target, path, str("state" / path.relative_to(configuration.state_dir)))
                        progress(1, len(stored))
                file.flush()
                if os.fstat(file.fileno()).st_nlink == 0:  # it has no name yet
                    # Python follows the link in /proc only if a folder is given, which an absolute path ignores.
                    os.link(f"/proc/self/fd/{file.fileno()}", temporary, src_dir_fd=file.fileno())
        temporary.replace(archive)
    except OSError as error:
        is_source = error.filename and Path(error.filename) not in (temporary, temporary.parent)
        source = f"{error.filename}: " if is_source else ""
        raise InfrastructureError(
            f"The backup {archive} could not be written: {source}{error.strerror}.",
            hint="Check the free space and the permissions there.",
            code="backup.failed",
        ) from None
    finally:
        with contextlib.suppress(OSError):  # on a read-only file system, although nothing was written
            temporary.unlink()
    return archive.stat().st_size


def _opened(path: Path) -> int:
    """Open a new file without a name, so that nothing of it stays if the command is killed; with its name where the disk lacks this."""
    try:
        return os.open(path.parent, os.O_WRONLY | os.O_TMPFILE, 0o600)
    except OSError:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _copied_database(database: Path, folder: Path, *, now: datetime) -> Path:
    """Copy the database into a folder, checked and marked as a copy, and return its path."""
    copy = folder / "worker.db"
    with (
        contextlib.closing(sqlite3.connect(database)) as source,
        contextlib.closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
        (verdict,) = target.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise damaged(database, " ".join(verdict.split()))
    with contextlib.closing(Store(f"sqlite:///{copy}")) as store, store.write() as tx:
        mark_restored(tx, now.isoformat())
    return copy


def _add(target: zipfile.ZipFile, path: Path, name: str) -> None:
    """Add a file to an archive; only the owner can read what another program unpacks."""
    with path.open("rb") as content, target.open(name, "w", force_zip64=True) as member:
        shutil.copyfileobj(content, member)


def _members(session: OrganizerSession, database: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of an archive, besides the stored submissions, with their names in it.

    A phase with scores can do without its tasks and ids, because its record is in the database.
    """
    configuration = session.configuration
    yield database, DATABASE
    yield configuration.challenge_secret, SECRET_FILE
    yield configuration.signing_key, KEY_FILE
    if (hosts := configuration.leaderboard.known_hosts) is not None:
        with contextlib.suppress(OrganizerError):  # the doctor asks for a file that is missing
            yield configuration.secret_path(hosts, "leaderboard.known_hosts"), HOSTS_FILE
    for codename, phase in configuration.phases.items():
        with session.store.read() as tx:
            suffices = has_scores(tx, codename)
        for reference, name in ((phase.tasks, f"tasks/{codename}"), (phase.ids, f"ids/{codename}.txt")):
            source = configuration.path(reference)
            if source.is_dir():  # a task may be a link to a folder; an editor's lock is a link to nothing
                paths = [path for task in source.iterdir() for path in (task, *task.rglob("*"))]
                yield from (
                    (path, str(Path(name, path.relative_to(source)))) for path in paths if path.is_file()
                )
            elif source.exists() or not suffices:
                yield source, name


def _rewritten(configuration: Configuration, config: Path) -> str:
    """Return the configuration with its paths changed to the archive's layout."""
    values: dict[tuple[str, ...], str] = {
        ("leaderboard", "repository"): configuration.repository_url,
        ("challenge", "secret"): f"./{SECRET_FILE}",
        ("challenge", "signing_key"): f"./{KEY_FILE}",
        ("state",): f"sqlite:///./{DATABASE}",
    }
    if configuration.leaderboard.known_hosts is not None:
        values["leaderboard", "known_hosts"] = f"file:{HOSTS_FILE}"
    for name in configuration.phases:
        values["phases", name, "tasks"] = f"./tasks/{name}"
        values["phases", name, "ids"] = f"./ids/{name}.txt"
    return with_values(config.read_text(encoding="utf-8-sig"), values)


def mark_restored(tx: Transaction, until: str) -> None:
    """Note that a state was restored from a backup, so that the worker looks for what EvalAI and the repository have received since then.

    Args:
        tx: The state.
        until: The latest time up to which the state can be complete, ISO 8601; used only if the state has no time of a last listing.
    """
    tx.set_fact(RESTORED, tx.fact("reconciled_at") or until)
    tx.set_fact(LOG_UNSEEN, "true")
    tx.set_fact(BEHIND, None)
    tx.set_fact(HOME, None)
    tx.set_fact("reconciled_at", None)  # what the next comparison finds answered was answered since


def read_backup(archive: Path, directory: Path) -> Path:
    """Unpack a backup into an empty folder, and return its configuration file.

    Raises:
        OrganizerError: If the archive is not a backup, or the folder is not empty.
        InfrastructureError: If the archive cannot be read, or the folder cannot be written to.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise OrganizerError(
            f"{directory} is not an empty folder.",
            hint="Name the archive first, and then a new folder.",
            code="restore.not_empty",
        )
    try:
        if archive.exists() and not archive.is_file():
            raise OSError(errno.ESPIPE, "it is not a file")
        with zipfile.ZipFile(archive) as source:
            for name in (DATABASE, SECRET_FILE, KEY_FILE):
                source.getinfo(name)
            directory.mkdir(parents=True, exist_ok=True)
            directory.chmod(0o700)
            (directory / DATABASE).parent.mkdir()  # of two that begin at the same moment, one fails here
            for name in (SECRET_FILE, KEY_FILE):
                (directory / name).touch(0o600)  # a file that is there already keeps its mode
            # Only plain files, and only inside the folder; nothing takes it for a challenge before the configuration is there.
            source.extractall(directory, sorted(source.namelist(), key=lambda name: name == CONFIGURATION))
    except DAMAGE:
        raise OrganizerError(
            f"{archive} is not a backup of a challenge, or is damaged.",
            hint=f"Use another backup. {SINCE_BACKUP}",
            code="restore.damaged",
        ) from None
    except OSError as error:
        raise InfrastructureError(
            f"{archive} cannot be restored into {directory}: {error.strerror}.",
            hint="Check both paths, their permissions and the free space in the folder. Then restore into another empty folder.",
            code="restore.failed",
        ) from None
    return directory / CONFIGURATION

"""Backup and restore of a challenge: database, stored files, configuration, secret, tasks and id lists."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from scoring.errors import InfrastructureError, OrganizerError
from worker.challenge.configuration import Configuration
from worker.challenge.setups import has_scores
from worker.organizer.configuration_text import with_values
from worker.organizer.session import OrganizerSession
from worker.state import LOG_UNSEEN, RESTORED, Store, Transaction
from worker.state.store import SINCE_BACKUP, damaged, failure

FORMAT = 1
MANIFEST = "neuco-worker-backup.json"
CONFIGURATION = "challenge.yaml"
KNOWN_HOSTS = "known_hosts"
BLOCK_BYTES = 1 << 20
_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)


def named(archive: Path, config: Path, *, now: datetime) -> Path:
    """Return the archive's path; for a folder, add a name made of the challenge's folder and the time."""
    if not archive.is_dir():
        return archive
    name = config.resolve().parent.name or "challenge"
    return archive / f"{name}-{now:%Y-%m-%dT%H-%M-%SZ}.tar.gz"


def write_backup(
    session: OrganizerSession,
    config: Path,
    archive: Path,
    *,
    replace: bool = False,
    progress: Callable[[int, int], object] = lambda _, __: None,
) -> int:
    """Write everything that a challenge needs to continue elsewhere; return the archive's size in bytes.

    The database is copied with SQLite's own backup, so a daemon may be running. The archive is written with mode 0600 under another name,
    and moved to its place when it is complete.

    Args:
        session: The challenge.
        config: Its configuration file.
        archive: The archive's path.
        replace: Whether an existing archive may be replaced.
        progress: Called with the number of stored files added since the last call, and the total.

    Raises:
        OrganizerError: If the state is not SQLite (a database server has its own tools), if pinned host keys are configured but missing, or
            if the archive exists already.
        InfrastructureError: If the disk fails, the files of a phase without scores are missing, or the database is damaged.
    """
    if archive.exists() and not replace:
        raise OrganizerError(
            f"{archive} exists already.",
            cure="Choose another file name, or a folder, where each archive gets its own name. Or add --force to replace this one.",
            code="backup.exists",
        )
    configuration = session.configuration
    database = configuration.database_file
    if database is None:
        raise OrganizerError(
            "The state is on a database server, which this command cannot copy.",
            cure="Back it up with pg_dump, and copy the configuration, the secret, the label files, the id lists and the folder"
            f" files/ in {configuration.state_dir} yourself. After pg_restore, run `neuco-worker challenge restore --dump`.",
            code="backup.server",
        )
    temporary = archive.with_name(archive.name + ".part")
    try:
        with tempfile.TemporaryDirectory(dir=configuration.state_dir) as folder:
            copy = _copied_database(database, Path(folder))
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with (
                os.fdopen(handle, "wb") as file,
                tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as tar,
            ):
                _fill(partial(tar.add, filter=_private), session, config, copy, progress)
        temporary.replace(archive)
    except sqlite3.Error as error:
        raise failure(error, database, str(error)) from error
    except OSError as error:
        raise InfrastructureError(
            f"The backup {archive} could not be written: {error.strerror}.",
            cure="Check the free space and the permissions there.",
            code="backup.failed",
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
    return archive.stat().st_size


def _copied_database(database: Path, folder: Path) -> Path:
    """Copy the database into a folder, checked, and return the copy."""
    copy = folder / "worker.db"
    with (
        contextlib.closing(sqlite3.connect(database)) as source,
        contextlib.closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
        (found,) = target.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise damaged(database, " ".join(found.split()))
    return copy


def _private(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Let only the owner read what another program unpacks."""
    member.mode = 0o700 if member.isdir() else 0o600
    return member


def _fill(
    add: Callable[[Path, str], None],
    session: OrganizerSession,
    config: Path,
    database: Path,
    progress: Callable[[int, int], object],
) -> None:
    """Add everything to an archive; generated texts are first written next to the copied database."""
    configuration = session.configuration
    manifest = database.with_name(MANIFEST)
    manifest.write_text(json.dumps({"format": FORMAT, "made_at": session.now.isoformat()}))
    add(manifest, MANIFEST)
    rewritten = database.with_name(CONFIGURATION)
    rewritten.write_text(_rewritten(configuration, config), encoding="utf-8")
    add(rewritten, CONFIGURATION)
    add(database, "state/worker.db")
    add(configuration.path(configuration.challenge.secret), "challenge.secret")
    for name in configuration.phases:
        _add_files(add, session, name)
    if (hosts := _known_hosts(configuration)) is not None:
        add(hosts, KNOWN_HOSTS)
    total = sum(1 for _ in session.files.stored())
    for path in session.files.stored():
        progress(0, total)
        add(path, f"state/files/{path.parent.name}/{path.name}")
        progress(1, total)


def _add_files(add: Callable[[Path, str], None], session: OrganizerSession, codename: str) -> None:
    """Add a phase's tasks and ids; a phase with scores can do without them, because its record is in the database."""
    configuration = session.configuration
    phase = configuration.phases[codename]
    with session.store.read() as tx:
        suffices = has_scores(tx, codename)
    for path, name in ((phase.tasks, f"tasks/{codename}"), (phase.ids, f"ids/{codename}.txt")):
        if not suffices or configuration.path(path).exists():
            add(configuration.path(path), name)


def _known_hosts(configuration: Configuration) -> Path | None:
    """Return the file with the pinned host keys; they are public, and the restored worker needs them to push."""
    reference = configuration.leaderboard.known_hosts
    if reference is None or reference.startswith("credential:"):
        return None  # like all credentials, it is provided by systemd on the new machine
    return configuration.secret_path(reference, "leaderboard.known_hosts")


def _rewritten(configuration: Configuration, config: Path) -> str:
    """Return the configuration with its paths changed to the archive's layout."""
    values: dict[tuple[str, ...], str] = {("leaderboard", "repository"): configuration.repository_url}
    if str(configuration.challenge.secret) != "challenge.secret":
        values["challenge", "secret"] = "./challenge.secret"
    for name in configuration.phases:
        values["phases", name, "tasks"] = f"./tasks/{name}"
        values["phases", name, "ids"] = f"./ids/{name}.txt"
    if configuration.state != "sqlite:///./state/worker.db":
        values["state",] = "sqlite:///./state/worker.db"
    if _known_hosts(configuration) is not None:
        values["leaderboard", "known_hosts"] = f"file:{KNOWN_HOSTS}"
    return with_values(config.read_text(encoding="utf-8-sig"), values)


def missing_secrets(configuration: Configuration) -> list[str]:
    """Return what to do about each token and key that a configuration refers to but that is missing; no backup contains them."""
    missing = []
    for key, reference in configuration.references().items():
        kind, _, name = reference.partition(":")
        if kind == "credential":
            missing.append(f"{key}: hand it over with `neuco-challenge NAME credential {name}`.")
        elif kind == "env" and not os.environ.get(name):
            missing.append(f"{key}: set the environment variable {name}.")
        elif kind == "file" and not (place := configuration.path(Path(name).expanduser())).is_file():
            missing.append(f"{key}: write it to {place}, readable by the worker's user alone.")
    return missing


def _unpack(tar: tarfile.TarFile, directory: Path) -> None:
    """Write the files of an archive, but only plain files, and only inside the folder.

    This is done by hand, because Debian 12's Python (3.11.2) has no extraction filters yet.
    """
    for member in tar:
        target = (directory / member.name).resolve()
        if not target.is_relative_to(directory.resolve()) or not (member.isfile() or member.isdir()):
            raise KeyError(member.name)
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True, mode=0o700)
            continue
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        content = tar.extractfile(member)
        if content is None:
            raise KeyError(member.name)
        with content, os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            shutil.copyfileobj(content, file)


def mark_restored(tx: Transaction, until: str) -> None:
    """Note that a state was restored from a backup, so that the worker looks for what EvalAI and the repository have received since then.

    Args:
        tx: The state.
        until: The latest time up to which the state can be complete, ISO 8601; used only if the state has no time of a last listing.
    """
    tx.set_fact(RESTORED, tx.fact("reconciled_at") or until)
    tx.set_fact(LOG_UNSEEN, "true")


def read_backup(archive: Path, directory: Path) -> Path:
    """Unpack a backup into an empty folder, and return its configuration file.

    Raises:
        OrganizerError: If the archive is not a backup, or the folder is not empty.
        InfrastructureError: If the archive cannot be read, or the folder cannot be written to.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise OrganizerError(
            f"{directory} is not empty.", cure="Name a new folder.", code="restore.not_empty"
        )
    try:
        with gzip.open(archive) as file, tarfile.open(fileobj=file, mode="r:") as tar:
            manifest = tar.extractfile(MANIFEST)
            if manifest is None or json.load(manifest).get("format") != FORMAT:
                raise KeyError(MANIFEST)
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            _unpack(tar, directory)
            while file.read(BLOCK_BYTES):  # to the end, where the checksum is
                pass
    except FileNotFoundError:
        raise OrganizerError(
            f"{archive} does not exist.", cure="Name the file that the backup wrote.", code="restore.missing"
        ) from None
    except (*_DAMAGE, KeyError, ValueError, FileExistsError):
        raise OrganizerError(
            f"{archive} is not a backup of a challenge, or is damaged.",
            cure=f"Use another backup. {SINCE_BACKUP}",
            code="restore.damaged",
        ) from None
    except OSError as error:
        raise InfrastructureError(
            f"{archive} cannot be restored into {directory}: {error.strerror}.",
            cure="Check the permissions of both and the free space in the folder. Then restore into another empty folder.",
            code="restore.failed",
        ) from None
    (directory / "challenge.secret").chmod(0o600)
    store = Store(f"sqlite:///{directory / 'state' / 'worker.db'}")
    with store.write() as tx:
        made_at = json.loads((directory / MANIFEST).read_text())["made_at"]
        mark_restored(tx, made_at)
    store.close()
    (directory / MANIFEST).unlink()
    return directory / CONFIGURATION

"""A challenge as a service of this machine; ``neuco-challenge NAME adopt`` calls :func:`install`.

In the copied configuration, secrets become systemd's credentials (``credential:NAME``), and the state moves to the service's own folder;
everything else, including comments, stays.

The units let a service write only to its own folder and to /srv, and hide home folders from it. The doctor looks for other places that the
configuration names.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scoring.errors import NeucoError, OrganizerError
from scoring.files import write_files
from worker.challenge.configuration import Configuration, load
from worker.challenge.secrets import KEY_FILE, SECRET_FILE
from worker.challenge.signing import HOME
from worker.organizer.configuration_text import with_values
from worker.state import Store

UNITS = Path("etc/systemd/system")
SHARED = Path("/srv")
# Only compared; no file is made there.
HIDDEN = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108
_OPENED = re.compile(r"^(ReadWritePaths|BindPaths|BindReadOnlyPaths)=(.*)$", re.MULTILINE)


CREDENTIALS = {
    "evalai.token": "evalai.token",
    "leaderboard.token": "git.token",
    "leaderboard.ssh_key": "ssh_key",
    "alerts.webhook": "alerts.webhook",
}
"""The credential of the unit for each key that refers to a secret."""


def install(source: Path, folder: Path, database: Path) -> None:
    """Copy the secrets to which the configuration in ``source`` refers, and write it, changed, into ``folder``.

    Args:
        source: The folder in which the challenge was made.
        folder: The folder of the configuration, tasks and ids now, with the folder ``credentials``.
        database: The service's SQLite file.

    Raises:
        OrganizerError: If the configuration is wrong, or its state, tasks or ids are not in the new folder.
    """
    given, path = source / "challenge.yaml", folder / "challenge.yaml"
    old = load(given)
    kept, copied = old.database_file, (source / "state/worker.db").resolve()
    if kept not in (None, copied) and kept.exists():  # the service would begin with an empty one
        raise OrganizerError(
            f"The state {kept} was not copied.",
            hint=f"The command copies only {copied.parent}. Stop the worker, move the folder {kept.parent} there, name its database"
            f" worker.db, write state: sqlite:///./state/worker.db into {given}, and adopt the challenge again.",
            code="adopt.missing",
        )
    values: dict[tuple[str, ...], str] = {
        ("challenge", "secret"): f"credential:{SECRET_FILE}",
        ("challenge", "signing_key"): f"credential:{KEY_FILE}",
        ("leaderboard", "repository"): old.repository_url,
    }
    for key, reference in old.references().items():
        name = CREDENTIALS[key]
        values[tuple(key.split("."))] = f"credential:{name}"
        try:
            if key == "leaderboard.ssh_key":
                secret = old.secret_path(reference, key).read_bytes()
            else:
                secret = f"{old.secret(reference, key).get_secret_value()}\n".encode()
        except (OrganizerError, OSError):
            continue  # one that is missing here (a variable that is not set) is reported later
        (folder / "credentials" / name).write_bytes(secret)
    if old.leaderboard.known_hosts is not None:
        shutil.copy(
            old.secret_path(old.leaderboard.known_hosts, "leaderboard.known_hosts"), folder / "known_hosts"
        )
        values["leaderboard", "known_hosts"] = "file:known_hosts"
    if old.database_file is not None:
        values["state",] = f"sqlite:///{database}"
        if database.exists():
            with closing(Store(f"sqlite:///{database}")) as store, store.write() as tx:
                tx.set_fact(HOME, None)
    # As a whole, because the adoption is not repeated once it is there.
    write_files(folder, {path.name: with_values(given.read_text(encoding="utf-8-sig"), values).encode()})
    new = load(path)
    for place in (new.path(place) for phase in new.phases.values() for place in (phase.tasks, phase.ids)):
        if not place.exists():
            raise OrganizerError(
                f"{place} was not copied.",
                hint="The command copies only tasks/ and ids/. Copy this file by hand, or use an absolute path.",
                code="adopt.missing",
            )


def unreachable(path: Path, configuration: Configuration) -> Iterator[tuple[str, Path, bool]]:
    """Yield what a service's configuration names and its units do not open: key, place, and whether it is written to or only read.

    Nothing is yielded for a configuration that is not in the folder of an installed service, on this machine or below another root folder.

    Args:
        path: The configuration file.
        configuration: Its content.
    """
    folder, root = path.resolve().parent, Path(*path.resolve().parts[:-4])
    units = root / UNITS
    if folder.parent != root / "etc/neuco-worker" or not (units / "neuco-worker@.service").is_file():
        return
    own, opened = [Path("/var/lib/neuco-worker", folder.name), SHARED], defaultdict[str, list[Path]](list)
    for file in units.glob(f"neuco-worker*@{folder.name}.service.d/*.conf"):
        for kind, words in _OPENED.findall(file.read_text(encoding="utf-8")):
            opened[kind] += [Path(word.strip('"-+').partition(":")[0]) for word in words.split()]
    for key, named, written in _named(configuration):
        place = Path("/") / named.relative_to(root) if named.is_relative_to(root) else named
        hidden = _within(place, HIDDEN)
        reached = opened["BindPaths"] + ([] if written else opened["BindReadOnlyPaths"])
        reached += [] if hidden else own + opened["ReadWritePaths"]
        if (written or hidden) and not _within(place, reached):
            yield key, place, written


def _named(configuration: Configuration) -> Iterator[tuple[str, Path, bool]]:
    """Yield key, path, and whether it is written to, of each place that a configuration names."""
    yield "state", configuration.state_dir, True
    repository = configuration.repository_url
    if repository.startswith(("/", "file://")):
        yield "leaderboard.repository", Path(unquote(urlsplit(repository).path)), True
    for name, phase in configuration.phases.items():
        yield f"phases.{name}.tasks", configuration.path(phase.tasks), False
        yield f"phases.{name}.ids", configuration.path(phase.ids), False
    files = configuration.references()
    files["leaderboard.known_hosts"] = configuration.leaderboard.known_hosts or ""
    for key, reference in files.items():
        if reference.startswith("file:"):
            yield key, configuration.path(Path(reference.removeprefix("file:"))), False


def _within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def main(arguments: list[str]) -> int:
    """Run as a separate program, with the arguments of :func:`install`."""
    try:
        install(*(Path(name).resolve() for name in arguments))
    except NeucoError as error:
        sys.stderr.write(f"neuco-worker: {error.message}\n")
        return error.exit_code
    except OSError as error:
        sys.stderr.write(f"neuco-worker: {error.filename or 'A file'} cannot be used: {error.strerror}.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A challenge as a service of this machine; ``adopt`` and ``paths`` of ``deploy/neuco-challenge`` call this.

In the copied configuration, secrets become systemd's credentials (``credential:NAME``), and paths become those that the service may write
to; everything else, including comments, stays.

A unit restricts its service: it may write only to its own folders and sees no home folder. A configuration may name other places, such as
a repository on this machine. ``paths`` writes these into a drop-in of the units; the doctor compares the two.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scoring.errors import NeucoError, OrganizerError
from worker.challenge.configuration import Configuration, load
from worker.organizer.configuration_text import with_values

TEMPLATES = ("neuco-worker@.service", "neuco-worker-once@.service")
DROP_IN = "50-paths.conf"
HOMES = (Path("/home"), Path("/root"), Path("/run/user"))
# Only compared; no file is made there.
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108


CREDENTIALS = {
    "evalai.token": "evalai.token",
    "leaderboard.token": "git.token",
    "leaderboard.ssh_key": "ssh_key",
    "alerts.webhook": "alerts.webhook",
}
"""The credential of the unit for each key that refers to a secret."""


def install(source: Path, folder: Path, database: Path) -> None:
    """Rewrite the configuration that was copied from ``source`` to ``folder``, and copy the secrets to which it refers.

    Args:
        source: The folder in which the challenge was made.
        folder: The folder of the configuration, tasks and ids now, with the folder ``credentials``.
        database: The service's SQLite file.

    Raises:
        OrganizerError: If the configuration is wrong, or names files that were not copied.
    """
    path = folder / "challenge.yaml"
    old = load(source / "challenge.yaml")
    values: dict[tuple[str, ...], str] = {("challenge", "secret"): "credential:challenge.secret"}
    for key, reference in old.references().items():
        name = CREDENTIALS[key]
        _copy_secret(old, reference, key, folder / "credentials" / name)
        values[tuple(key.split("."))] = f"credential:{name}"
    if old.leaderboard.known_hosts is not None:
        shutil.copy(
            old.secret_path(old.leaderboard.known_hosts, "leaderboard.known_hosts"), folder / "known_hosts"
        )
        values["leaderboard", "known_hosts"] = "file:known_hosts"
    if old.repository_url != old.leaderboard.repository:
        values["leaderboard", "repository"] = old.repository_url
    if old.database_file is not None:
        values["state",] = f"sqlite:///{database}"
    path.write_text(with_values(path.read_text(encoding="utf-8-sig"), values), encoding="utf-8")
    new = load(path)
    lost = [
        str(place)
        for phase in new.phases.values()
        for place in (new.path(phase.tasks), new.path(phase.ids))
        if not place.exists()
    ]
    if lost:
        raise OrganizerError(
            f"{lost[0]} was not copied.",
            cure="The command copies only tasks/ and ids/. Copy this file by hand, or use an absolute path.",
            code="adopt.missing",
        )


def _copy_secret(old: Configuration, reference: str, key: str, target: Path) -> None:
    """Copy the secret to which a reference points; one that is missing here (a variable that is not set) is reported later."""
    if reference.startswith("credential:") and "CREDENTIALS_DIRECTORY" not in os.environ:
        return
    try:
        if key == "leaderboard.ssh_key":
            secret = old.secret_path(reference, key).read_text(encoding="utf-8")
        else:
            secret = old.secret(reference, key).get_secret_value() + "\n"
    except (OrganizerError, OSError):
        return
    target.write_text(secret, encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A folder or file outside the service's own that a configuration names.

    Attributes:
        key: The key that names it.
        path: Its path, as the service sees it.
        written: Whether it is written to, or only read.
    """

    key: str
    path: Path
    written: bool


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One challenge as a service of this machine.

    Attributes:
        name: Its name, the instance of the units.
        root: `/`, or the root folder of an image.
    """

    name: str
    root: Path

    @property
    def configuration(self) -> Path:
        """Its configuration file."""
        return self.root / "etc/neuco-worker" / self.name / "challenge.yaml"

    def units(self) -> list[Path]:
        """Return the installed templates of its units."""
        folder = self.root / "etc/systemd/system"
        return [folder / template for template in TEMPLATES if (folder / template).is_file()]

    def drop_ins(self, template: Path) -> Path:
        """Return the folder of the drop-ins of a template for this challenge alone."""
        return template.with_name(template.name.replace("@", f"@{self.name}") + ".d")

    def seen(self, path: Path) -> Path:
        """Return a path as the service sees it, without the root folder of an image."""
        return Path("/") / path.relative_to(self.root) if path.is_relative_to(self.root) else path


def instance_of(configuration: Path) -> Instance | None:
    """Return the service to which a configuration file belongs; None if it is not in a service's folder."""
    path = configuration.resolve()
    folders = path.parents
    if len(folders) < 4:  # <root>/etc/neuco-worker/<name>
        return None
    instance = Instance(name=folders[0].name, root=folders[3])
    return instance if path == instance.configuration else None


def places(configuration: Configuration, instance: Instance) -> list[Place]:
    """Return the places outside the service's own folders that a configuration makes it read or write."""
    own = {Path("/var/lib/neuco-worker") / instance.name, Path("/var/cache/neuco-worker")}
    readable = own | {Path("/etc/neuco-worker") / instance.name}
    named = [
        Place(key=key, path=instance.seen(path), written=written)
        for key, path, written in _named(configuration)
    ]
    return [place for place in named if not _within(place.path, own if place.written else readable)]


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


def drop_in(named: Iterable[Place], instance: Instance) -> str:
    """Return the lines that the units need in addition to their own; empty if there are none.

    Raises:
        OrganizerError: If a place cannot be opened for a service.
    """
    lines = []
    for place in named:
        check(place)
        # The dash lets the service start without the place, because the service itself reports better what is missing.
        quoted = '"-' + str(place.path).replace("%", "%%") + '"'
        if _within(place.path, HOMES):
            lines.append(f"{'BindPaths' if place.written else 'BindReadOnlyPaths'}={quoted}")
        elif place.written:
            lines.append(f"ReadWritePaths={quoted}")
    if not lines:
        return ""
    homes = ["ProtectHome=tmpfs"] if any(line.startswith("Bind") for line in lines) else []
    head = f"# Written by `neuco-challenge {instance.name} paths` from challenge.yaml: run it again after a change there."
    return "\n".join([head, "[Service]", *homes, *dict.fromkeys(lines)]) + "\n"


def check(place: Place) -> None:
    """Check that a place can be opened for a service.

    Raises:
        OrganizerError: If it cannot.
    """
    if _within(place.path, TEMPORARY):
        raise OrganizerError(
            f"{place.key} names {place.path}, but the service has its own /tmp.",
            cure="Move it, for example to /srv, and correct the key.",
            code="adopt.temporary",
        )
    if not str(place.path).isprintable() or re.search(r"[\\\"':]", str(place.path)):
        raise OrganizerError(
            f"{place.key} names a path with quotation marks, a backslash or a colon, which a systemd unit cannot contain.",
            cure="Rename the folder and correct the key.",
            code="adopt.path",
        )


def not_open(configuration: Configuration, instance: Instance) -> list[Place]:
    """Return the places that the configuration names, if the drop-in of a unit is not the one that :func:`open_places` would write.

    Raises:
        OrganizerError: If a place cannot be opened for a service.
    """
    named = places(configuration, instance)
    text = drop_in(named, instance)
    files = [instance.drop_ins(template) / DROP_IN for template in instance.units()]
    is_open = all((file.read_text(encoding="utf-8") if file.is_file() else "") == text for file in files)
    return [] if is_open else named


def open_places(instance: Instance) -> list[Place]:
    """Let a challenge's units use the places that its configuration names, and no longer those that it has stopped naming.

    Raises:
        OrganizerError: If the configuration is wrong, or names a place that cannot be opened.
    """
    configuration = load(instance.configuration)
    named = places(configuration, instance)
    text = drop_in(named, instance)
    if not configuration.state_dir.exists():  # the service cannot make it outside its own folders
        configuration.state_dir.mkdir(parents=True, mode=0o700)
        owner = instance.configuration.stat()
        os.chown(configuration.state_dir, owner.st_uid, owner.st_gid)
    for template in instance.units():
        folder = instance.drop_ins(template)
        if text:
            folder.mkdir(exist_ok=True, mode=0o755)
            (folder / DROP_IN).write_text(text, encoding="utf-8")
            (folder / DROP_IN).chmod(0o644)
        else:
            (folder / DROP_IN).unlink(missing_ok=True)
    return named


def main(arguments: list[str]) -> int:
    """Run as a separate program: ``adopt SOURCE FOLDER DATABASE`` (see :func:`install`) or ``paths CONFIGURATION``."""
    task, *names = arguments
    paths = [Path(name) for name in names]
    try:
        if task == "adopt":
            install(*(path.resolve() for path in paths))
            return 0
        instance = instance_of(paths[0])
        if instance is None:
            raise OrganizerError(
                f"No service uses {paths[0]}.",
                cure="Adopt the configuration first: sudo neuco-challenge NAME adopt DIR.",
                code="adopt.missing",
            )
        for place in open_places(instance):
            sys.stdout.write(f"{place.key}: {place.path} ({'written' if place.written else 'read'})\n")
    except NeucoError as error:
        sys.stderr.write(f"neuco-worker: {error.message}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

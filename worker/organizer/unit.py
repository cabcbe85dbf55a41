"""The systemd units that run a challenge: which places they must open for it, and which ones they do.

A unit restricts its service: it may write only to its own folders and sees no home folder. A configuration may name other places, such as
a repository on this machine. ``neuco-challenge NAME paths`` writes these into a drop-in of the units; the doctor compares the two.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scoring.errors import NeucoError, OrganizerError
from worker.challenge.configuration import Configuration, load

TEMPLATES = ("neuco-worker@.service", "neuco-worker-once@.service")
DROP_IN = "50-paths.conf"
HOMES = (Path("/home"), Path("/root"), Path("/run/user"))
# Only compared; no file is made there.
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108  # nosec B108


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
    writable = (Path("/var/lib/neuco-worker") / instance.name, Path("/var/cache/neuco-worker"))
    readable = (*writable, Path("/etc/neuco-worker") / instance.name)
    written = [
        Place(key=key, path=instance.seen(path), written=True) for key, path in _written(configuration)
    ]
    read = [Place(key=key, path=instance.seen(path), written=False) for key, path in _read(configuration)]
    return [
        *(place for place in written if not _within(place.path, writable)),
        *(place for place in read if not _within(place.path, readable)),
    ]


def _written(configuration: Configuration) -> Iterator[tuple[str, Path]]:
    yield "state", configuration.state_dir
    repository = configuration.repository_url
    if repository.startswith("/"):
        yield "leaderboard.repository", Path(repository)
    elif repository.startswith("file://"):
        yield "leaderboard.repository", Path(unquote(urlsplit(repository).path))
    if configuration.metrics.textfile is not None:
        yield "metrics.textfile", configuration.path(configuration.metrics.textfile).parent


def _read(configuration: Configuration) -> Iterator[tuple[str, Path]]:
    for name, phase in configuration.phases.items():
        yield f"phases.{name}.tasks", configuration.path(phase.tasks)
        yield f"phases.{name}.ids", configuration.path(phase.ids)
    references = configuration.references()
    if configuration.leaderboard.known_hosts is not None:
        references["leaderboard.known_hosts"] = configuration.leaderboard.known_hosts
    for key, reference in references.items():
        if reference.startswith("file:"):
            yield key, configuration.path(Path(reference.removeprefix("file:")))


def _within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def drop_in(found: Iterable[Place], instance: Instance) -> str:
    """Return the lines that the units need in addition to their own; empty if there are none.

    Raises:
        OrganizerError: If a place cannot be opened for a service.
    """
    lines = []
    for place in found:
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
    found = places(configuration, instance)
    text = drop_in(found, instance)
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
    return found


def main(arguments: list[str]) -> int:
    """Run as a separate program, with the configuration file of a service of this machine as its argument."""
    try:
        path = Path(arguments[0])
        instance = instance_of(path)
        if instance is None:
            raise OrganizerError(
                f"No service uses {path}.",
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

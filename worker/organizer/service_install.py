"""Install a challenge folder as a service of this machine: ``neuco-challenge NAME adopt DIR`` calls this, see ``deploy/``.

In the copied configuration, secrets become systemd's credentials (``credential:NAME``), and paths become those that the service may write
to; everything else, including comments, stays.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from scoring.errors import NeucoError, OrganizerError
from worker.challenge.configuration import Configuration, load
from worker.organizer.configuration_text import with_values

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


def main(arguments: list[str]) -> int:
    """Run as a separate program, with the folders and the database as arguments of :func:`install`."""
    try:
        install(*(Path(argument).resolve() for argument in arguments))
    except NeucoError as error:
        sys.stderr.write(f"neuco-worker: {error.message}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

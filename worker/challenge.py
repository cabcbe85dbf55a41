"""The challenge as loaded from its files: per phase ids, tasks, protocol and key.

Labels are read to check them and then dropped: the daemon holds only what tasks are called and what their versions are. The child that
evaluates reads the labels again and compares.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scoring.errors import OrganizerError
from scoring.identifiers import read_ids
from scoring.protocol import Protocol, ids_hash
from scoring.seeds import phase_key, secret_commitment
from scoring.tasks import load_tasks
from worker.configuration import Configuration, Phase
from worker.secrets import read_challenge_secret


@dataclass(frozen=True, kw_only=True, repr=False)
class PhaseSetup:
    """One phase, ready to score. Its repr shows nothing: it holds a key and hidden names.

    Attributes:
        codename: EvalAI phase codename.
        settings: Its section of the configuration.
        ids: Public ids, sorted by their UTF-8 bytes.
        protocol: What decides a score.
        key: Phase key, from which seeds derive.
        tasks: Task identifier to version.
        row_sets: Task identifier to row-set hash.
    """

    codename: str
    settings: Phase
    ids: tuple[str, ...]
    protocol: Protocol
    key: bytes
    tasks: Mapping[str, str]
    row_sets: Mapping[str, str]

    def is_recorded(self, record: Mapping[str, Any]) -> bool:
        """Tell whether a phase's record, what its scores so far stand on, names these tasks and this protocol."""
        return (record["protocol_hash"], record["tasks"]) == (self.protocol.hash, dict(self.tasks))


def tasks_changed(codename: str) -> OrganizerError:
    """Make the error for files that are not those that a phase's scores stand on."""
    return OrganizerError(
        f"Tasks or protocol of phase {codename} are not those that the scores so far stand on.",
        cure="Put them back, or take the change up with `neuco-worker challenge rescore`.",
        code="tasks.changed",
    )


def load_phase(configuration: Configuration, codename: str, secret: bytes) -> PhaseSetup:
    """Read one phase's id list and tasks.

    Raises:
        OrganizerError: If a file is missing or wrong, with its cure.
    """
    settings = configuration.phases[codename]
    ids = read_ids(configuration.path(settings.ids))
    tasks = load_tasks(configuration.path(settings.tasks), ids)
    key = phase_key(secret, codename)
    beacon = read_beacon(configuration)
    if beacon is not None:
        key = mixed_key(key, beacon)
    return PhaseSetup(
        codename=codename,
        settings=settings,
        ids=ids,
        protocol=Protocol(
            phase=codename,
            folds=settings.folds,
            embedding_dim=configuration.submission.embedding_dim,
            ids_hash=ids_hash(ids),
            secret_commitment=secret_commitment(key),
            recipe=configuration.scoring.recipe(),
        ),
        key=key,
        tasks={task.name: task.version for task in tasks},
        row_sets={task.name: task.row_set for task in tasks},
    )


def beacon_path(configuration: Configuration) -> Path:
    """Return where the public value stands that is mixed into the phase keys, if one was chosen.

    Beside the secret; beside the configuration when systemd hands the secret over, because nothing can be written there.
    """
    if str(configuration.challenge.secret).startswith("credential:"):
        return configuration.path(Path("./challenge.secret.beacon"))
    secret = configuration.path(configuration.challenge.secret)
    return secret.with_name(secret.name + ".beacon")


def read_beacon(configuration: Configuration) -> str | None:
    """Read the public value, fixed after the commitment, that no organizer could choose; None if there is none."""
    path = beacon_path(configuration)
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def mixed_key(key: bytes, beacon: str) -> bytes:
    """Mix a public value into a phase key: HMAC-SHA256(key, value)."""
    return hmac.new(key, beacon.encode(), hashlib.sha256).digest()


def load_challenge(configuration: Configuration) -> dict[str, PhaseSetup]:
    """Read all phases, in the order of the configuration.

    Raises:
        OrganizerError: As :func:`load_phase` and :func:`worker.secrets.read_challenge_secret`.
    """
    secret = read_challenge_secret(configuration.path(configuration.challenge.secret))
    return {codename: load_phase(configuration, codename, secret) for codename in configuration.phases}

"""The challenge as loaded from its files: per phase ids, tasks, protocol and key.

Labels are read to check them and then dropped: the daemon holds only what tasks are called and what their versions are. The child that
evaluates reads the labels again and compares.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scoring.errors import OrganizerError
from scoring.identifiers import read_ids
from scoring.protocol import Protocol, ids_hash
from scoring.seeds import phase_key, secret_commitment
from scoring.tasks import load_tasks
from worker.configuration import Configuration, Phase
from worker.runtime.limits import check_memory
from worker.secrets import read_challenge_secret
from worker.state import Store, Transaction


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


def is_overtaken(tx: Transaction, setup: PhaseSetup) -> bool:
    """Tell whether a phase's scores stand on other tasks or another protocol than these.

    Somebody changed the files and has not rescored yet, or has rescored and we read the files before.
    """
    record = tx.phase_record(setup.codename)
    return record is not None and not setup.is_recorded(record) and tx.has_cells(setup.codename)


def tasks_changed(codename: str, *, elsewhere: bool = False) -> OrganizerError:
    """Make the error for files that are not those that a phase's scores stand on; the right ones may be on another machine."""
    back = "Copy them here from the machine that has the right ones" if elsewhere else "Put them back"
    return OrganizerError(
        f"Tasks or protocol of phase {codename} are not those that the scores so far stand on.",
        cure=f"{back}, or take the change up with `neuco-worker challenge rescore`.",
        code="tasks.changed",
    )


def tasks_edited(codename: str) -> OrganizerError:
    """Make the error for label files that were edited between two readings."""
    return OrganizerError(
        f"The label files of phase {codename} changed in this very moment.",
        cure="Run it again when nobody edits them.",
        code="tasks.edited",
    )


def load_phase(
    configuration: Configuration, codename: str, secret: bytes, beacon: str | None = None
) -> PhaseSetup:
    """Read one phase's id list and tasks.

    Args:
        configuration: The checked configuration.
        codename: Of the phase.
        secret: The challenge's.
        beacon: The public value that is mixed into the phase's key, if the challenge has one.

    Raises:
        OrganizerError: If a file is missing or wrong, or no good file could be read within the memory limit, with its cure.
    """
    settings = configuration.phases[codename]
    ids = read_ids(configuration.path(settings.ids))
    limits = configuration.submission
    check_memory(limits.memory_gigabytes, phase=codename, rows=len(ids), columns=limits.embedding_dim)
    tasks = load_tasks(configuration.path(settings.tasks), ids)
    key = split_key(secret, codename, beacon)
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


def split_key(secret: bytes, codename: str, beacon: str | None) -> bytes:
    """Return the key from which a phase's seeds derive."""
    return mixed_key(phase_key(secret, codename), beacon)


def mixed_key(key: bytes, beacon: str | None) -> bytes:
    """Mix a public value into a phase key, if there is one: HMAC-SHA256(key, value)."""
    if beacon is None:
        return key
    return hmac.new(key, beacon.encode(), hashlib.sha256).digest()


def load_challenge(configuration: Configuration, beacon: str | None = None) -> dict[str, PhaseSetup]:
    """Read all phases, in the order of the configuration, as :func:`load_phase` does.

    Raises:
        OrganizerError: As :func:`load_phase` and :func:`worker.secrets.read_challenge_secret`.
    """
    secret = read_challenge_secret(configuration.path(configuration.challenge.secret))
    return {
        codename: load_phase(configuration, codename, secret, beacon) for codename in configuration.phases
    }


def read_challenge(configuration: Configuration, store: Store) -> dict[str, PhaseSetup]:
    """Read all phases as they are scored: with the beacon that the state knows of.

    Raises:
        OrganizerError: As :func:`load_challenge`.
    """
    with store.read() as tx:
        beacon = tx.beacon()
    return load_challenge(configuration, beacon)

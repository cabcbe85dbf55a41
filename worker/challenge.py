"""The challenge as loaded from its files: per phase ids, tasks, protocol and key.

Labels are read to check them and then dropped: the daemon holds only what tasks are called and what their versions are. The child that
evaluates reads the labels again and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


def load_phase(configuration: Configuration, codename: str, secret: bytes) -> PhaseSetup:
    """Read one phase's id list and tasks.

    Raises:
        OrganizerError: If a file is missing or wrong, with its cure.
    """
    settings = configuration.phases[codename]
    ids = read_ids(configuration.path(settings.ids))
    tasks = load_tasks(configuration.path(settings.tasks), ids)
    key = phase_key(secret, codename)
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


def load_challenge(configuration: Configuration) -> dict[str, PhaseSetup]:
    """Read all phases, in the order of the configuration.

    Raises:
        OrganizerError: As :func:`load_phase` and :func:`worker.secrets.read_challenge_secret`.
    """
    secret = read_challenge_secret(configuration.path(configuration.challenge.secret))
    return {codename: load_phase(configuration, codename, secret) for codename in configuration.phases}

"""A phase as its files and the configuration are now, from which a record is made.

Files are read only when a phase is recorded, and to find out how they differ from the record.
"""

from __future__ import annotations

import hashlib

from leaderboard.ranking import REPLICATES
from scoring.inputs.identifiers import read_ids
from scoring.protocol import Protocol, ids_hash
from scoring.randomness import secret_commitment
from scoring.tasks import load_tasks
from worker.challenge.configuration import Configuration
from worker.challenge.keys import split_key
from worker.challenge.records import PhaseRecord, PhaseRules
from worker.challenge.secrets import read_challenge_secret
from worker.challenge.setups import PhaseSetup
from worker.runtime.limits import check_memory


def read_secret(configuration: Configuration) -> bytes:
    """Read the challenge's secret.

    Raises:
        OrganizerError: As :func:`worker.challenge.secrets.read_challenge_secret`.
    """
    return read_challenge_secret(configuration.path(configuration.challenge.secret))


def read_phase(
    configuration: Configuration, codename: str, secret: bytes, beacon: str | None = None
) -> PhaseSetup:
    """Read one phase's id list and tasks, and the settings that are recorded with them.

    Args:
        configuration: The checked configuration.
        codename: The phase.
        secret: The challenge's secret.
        beacon: The public value that is mixed into the phase's key, if the challenge has one.

    Raises:
        OrganizerError: If a file is missing or wrong, or a valid file could not be read within the memory limit; with the cure.
    """
    settings = configuration.phases[codename]
    # Computed before the files are read, so that an edit during the reading shows up as a difference.
    files = fingerprint(configuration, codename)
    ids = read_ids(configuration.path(settings.ids))
    limits, columns = configuration.submission, configuration.submission.embedding_dim
    check_memory(limits.memory_gigabytes, phase=codename, rows=len(ids), columns=columns)
    key = split_key(secret, codename, beacon)
    record = PhaseRecord(
        ids=ids,
        tasks=load_tasks(configuration.path(settings.tasks), ids),
        protocol=Protocol(
            phase=codename,
            folds=settings.folds,
            embedding_dim=configuration.submission.embedding_dim,
            ids_hash=ids_hash(ids),
            secret_commitment=secret_commitment(key),
            recipe=configuration.scoring.recipe(),
        ),
        engine=configuration.scoring.engine,
        rules=rules_of(configuration, codename),
    )
    return PhaseSetup(record=record, key=key, files=files)


def read_phases(configuration: Configuration) -> dict[str, PhaseSetup]:
    """Read all phases, in the order of the configuration, as :func:`read_phase` does."""
    secret = read_secret(configuration)
    return {codename: read_phase(configuration, codename, secret) for codename in configuration.phases}


def rules_of(configuration: Configuration, codename: str) -> PhaseRules:
    """Return the settings that decide a phase's board, as they are in the configuration now."""
    leaderboard, settings = configuration.leaderboard, configuration.phases[codename]
    return PhaseRules(
        selection=settings.selection,
        visibility=settings.visibility,
        eligible_if_scored_in=settings.eligible_if_scored_in,
        baselines=tuple(sorted(set(leaderboard.baselines))),
        baselines_weigh=leaderboard.baselines_weigh,
        ghost_task=leaderboard.ghost_task,
        decimals=leaderboard.decimals,
        hidden_teams=tuple(sorted(set(leaderboard.hidden_teams))),
        ladder_step=settings.ladder_step if settings.selection == "ladder" else None,
        shown=settings.shown,
        replicates=REPLICATES,
    )


def fingerprint(configuration: Configuration, codename: str) -> str | None:
    """Hash the bytes of a phase's id list and task files; None if they cannot be read.

    Equal fingerprints mean equal contents and cost a hundredth of parsing the files. Different ones may just mean another notation of the
    same rows.
    """
    settings = configuration.phases[codename]
    folder = configuration.path(settings.tasks)
    digest = hashlib.sha256()
    try:
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in (configuration.path(settings.ids), *paths):
            name = "" if path == configuration.path(settings.ids) else str(path.relative_to(folder))
            for part in (name.encode(errors="surrogateescape"), hashlib.sha256(path.read_bytes()).digest()):
                digest.update(len(part).to_bytes(8, "big") + part)
    except OSError:
        return None
    return digest.hexdigest()

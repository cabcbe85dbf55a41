"""A phase as its files and the configuration are now: a record is made from it, or compared with it.

Files are read only when a phase is recorded, and to find out how they differ from the record.

No task is named, because the output of `status` may be read where hidden tasks must not be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from scoring.errors import OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.protocol import Protocol, ids_hash
from scoring.randomness import secret_commitment
from scoring.tasks import load_tasks
from worker.challenge.configuration import Configuration
from worker.challenge.records import PhaseRecord
from worker.challenge.secrets import SECRET, public_value, read_bytes, split_key
from worker.challenge.setups import OTHER_SPLITS, PhaseSetup, has_scores, recorded
from worker.runtime.storage import check_memory
from worker.state import Transaction


def read_secret(configuration: Configuration) -> bytes:
    """Read the challenge's secret.

    Raises:
        OrganizerError: As :func:`worker.challenge.secrets.read_bytes`.
    """
    return read_bytes(configuration.challenge_secret, SECRET)


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
        OrganizerError: If a file is missing or wrong, or a valid file could not be read within the memory limit; with the hint.
    """
    settings = configuration.phases[codename]
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
        rules=settings.rules,
    )
    return PhaseSetup(record=record, key=key)


def read_phases(configuration: Configuration) -> dict[str, PhaseSetup]:
    """Read all phases, in the order of the configuration, as :func:`read_phase` does."""
    secret = read_secret(configuration)
    return {codename: read_phase(configuration, codename, secret) for codename in configuration.phases}


@dataclass(frozen=True, kw_only=True)
class RecordDifference:
    """A difference from the record.

    Attributes:
        phase: Codename.
        sentence: What differs.
        hint: How to apply the difference.
    """

    phase: str
    sentence: str
    hint: str


def all_differences(
    tx: Transaction, configuration: Configuration, secret: bytes
) -> Iterator[RecordDifference]:
    """Yield the differences of all phases."""
    for codename in configuration.phases:
        yield from differences(tx, configuration, codename, secret)
    yield from removed(tx, configuration)


def removed(tx: Transaction, configuration: Configuration) -> Iterator[RecordDifference]:
    """Yield the phases with scores that the configuration lacks."""
    for codename in tx.phases():
        if codename not in configuration.phases and has_scores(tx, codename):
            yield RecordDifference(
                phase=codename,
                sentence=f"Phase {codename} has scores, but is not in the configuration. Its board is not shown, and cannot be revealed.",
                hint="Write it under `phases` again.",
            )


def differences(
    tx: Transaction, configuration: Configuration, codename: str, secret: bytes
) -> Iterator[RecordDifference]:
    """Yield the differences between a phase's record and its files and settings; nothing if it has no record or is closed."""
    row = tx.phase_record(codename)
    if row is None or row.closed_at is not None:
        return
    record, differing = recorded(tx, codename), dict[str, bool]()
    sentence = f"Phase {codename} is scored as it was recorded. Since then, {{}}."
    try:
        fresh = read_phase(configuration, codename, secret).record
        differing = {
            "its id list": fresh.protocol.ids_hash != record.protocol.ids_hash,
            "its tasks or their labels": fresh.versions != record.versions,
        }
    except OrganizerError as error:
        yield RecordDifference(
            phase=codename,
            sentence=sentence.format(f"its files have become unreadable ({error.code})"),
            hint="Restore or correct the files; `neuco-worker doctor` says what is wrong.",
        )
    differing |= _settings(tx, configuration, record, secret)
    if changed := [name for name, differs in differing.items() if differs]:
        yield RecordDifference(
            phase=codename,
            sentence=sentence.format(f"{', '.join(changed)} changed"),
            hint="The next start or reload applies the change."
            if not has_scores(tx, codename)
            else OTHER_SPLITS
            if SECRET in changed
            else "To apply the change, run: neuco-worker challenge apply --reason TEXT",
        )


def _settings(
    tx: Transaction, configuration: Configuration, record: PhaseRecord, secret: bytes
) -> dict[str, bool]:
    """Return the keys that decide a score, and whether they have changed; and the changed ones that decide a board."""
    protocol, codename, scoring = record.protocol, record.codename, configuration.scoring
    key = split_key(secret, codename, public_value(tx.public_commitments(), codename))
    recipe, recorded_recipe = asdict(scoring.recipe()), asdict(protocol.recipe)
    rules = record.rules.changed(configuration.phases[codename].rules)
    return {
        f"phases.{codename}.folds": configuration.phases[codename].folds != protocol.folds,
        "submission.embedding_dim": configuration.submission.embedding_dim != protocol.embedding_dim,
        SECRET: secret_commitment(key) != protocol.secret_commitment,
        **{f"scoring.{name}": value != recorded_recipe[name] for name, value in recipe.items()},
        "scoring.engine": scoring.engine != record.engine,
        **{f"phases.{codename}.{name}": True for name in rules},
    }

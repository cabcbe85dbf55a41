"""A phase that is ready to score, as it is recorded or as its files and the configuration are now, and how the two differ.

Files are read only when a phase is recorded, and to find out how they differ from the record.

No task is named, because the output of `status` may be read where hidden tasks must not be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from scoring.errors import InfrastructureError, OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.protocol import Protocol, ids_hash
from scoring.randomness import secret_commitment
from scoring.tasks import load_tasks
from worker.challenge.configuration import Configuration
from worker.challenge.records import PhaseRecord, kept
from worker.challenge.secrets import SECRET, public_value, read_bytes, split_key
from worker.runtime.storage import check_memory
from worker.state import Transaction

OTHER_SPLITS = "Restore the old secret. If it is lost, `neuco-worker challenge apply` scores everything again with the new one."


@dataclass(frozen=True, kw_only=True, repr=False)
class PhaseSetup:
    """One phase that is ready to score. Its repr shows nothing, because it contains a key and hidden labels.

    Attributes:
        record: The tasks, the protocol and the rules.
        key: The phase key, from which seeds derive.
    """

    record: PhaseRecord
    key: bytes


def has_scores(tx: Transaction, codename: str) -> bool:
    """Return whether anything in a phase was scored since it was first recorded."""
    return tx.phase_record(codename) is not None and tx.has_cells(codename)


def read_record(tx: Transaction, codename: str, *, anew: bool = False) -> PhaseRecord | None:
    """Return the current record of a phase, None if it has none yet; ``anew`` also checks that it is stored as it was read before.

    Raises:
        InfrastructureError: If the record is damaged.
    """
    row = tx.phase_record(codename)
    return None if row is None else kept(row.record, tx.record, anew=anew)


def intact_record(tx: Transaction, codename: str) -> PhaseRecord | None:
    """Return the current record of a phase, None if it has none yet, or if it is damaged: then what depends on it waits for its repair."""
    try:
        return read_record(tx, codename)
    except InfrastructureError:
        return None


def recorded(tx: Transaction, codename: str) -> PhaseRecord:
    """Return the current record of a phase.

    Raises:
        OrganizerError: If the phase is not recorded.
        InfrastructureError: If the record is damaged.
    """
    record = read_record(tx, codename)
    if record is None:
        raise not_recorded(codename)
    return record


def open_phase(tx: Transaction, codename: str, secret: bytes) -> PhaseSetup:
    """Return a recorded phase with its key.

    Raises:
        OrganizerError: If the phase is not recorded, or the secret is not the one of its record.
        InfrastructureError: If the record is damaged.
    """
    record = recorded(tx, codename)
    key = split_key(secret, codename, public_value(tx.public_commitments(), codename))
    if secret_commitment(key) != record.protocol.secret_commitment:
        raise OrganizerError(
            f"The challenge's secret is not the one that phase {codename} was recorded with.",
            hint=OTHER_SPLITS,
            code="secret.changed",
        )
    return PhaseSetup(record=record, key=key)


def alert_key(codename: str) -> str:
    """Return the key of the alert that a phase's record is damaged."""
    return f"record:{codename}"


def not_recorded(codename: str) -> OrganizerError:
    """Return the error for a new phase."""
    return OrganizerError(
        f"Phase {codename} has not begun: the worker has not recorded it yet.",
        hint="Start or reload the worker, then run the command again.",
        code="phase.not_recorded",
    )


def put_on_record(tx: Transaction, record: PhaseRecord) -> None:
    """Make a record a phase's current one; earlier records are kept, because earlier commitments refer to them."""
    tx.add_record(record.hash, record.packed)
    tx.record_phase(
        record.codename, record=record.hash, protocol_hash=record.protocol.hash, tasks=record.versions
    )
    tx.resolve_alert(alert_key(record.codename))


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

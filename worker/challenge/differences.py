"""Differences between a phase's record and its files and settings, and how to apply them.

No task is named, because the output of `status` may be read where hidden tasks must not be known.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from scoring.errors import OrganizerError
from scoring.randomness import secret_commitment
from worker.challenge.configuration import Configuration
from worker.challenge.files import fingerprint, read_phase, rules_of
from worker.challenge.keys import public_value, split_key
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import has_scores, recorded
from worker.state import Transaction

DOCTOR = "neuco-worker doctor"
APPLY = "neuco-worker challenge apply --reason TEXT"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference from the record.

    Attributes:
        phase: Codename.
        sentence: What differs.
        cure: How to apply the difference.
    """

    phase: str
    sentence: str
    cure: str

    @property
    def text(self) -> str:
        """Both sentences, as the log has them."""
        return f"{self.sentence} {self.cure}"


def differences(
    tx: Transaction, configuration: Configuration, codename: str, secret: bytes
) -> tuple[Difference, ...]:
    """Return the differences between a phase's record and its files and settings; nothing if it has no record or is frozen."""
    row = tx.phase_record(codename)
    if row is None or row.frozen_at is not None:
        return ()
    record = recorded(tx, codename)
    changed = [*_settings(tx, configuration, record, secret), *_rules(configuration, record)]
    differing: list[tuple[str, str]] = []
    try:
        changed = [*_files(tx, configuration, record, secret), *changed]
    except OrganizerError as error:
        unreadable = f"its files have become unreadable ({error.code})"
        differing.append((unreadable, f"Restore or correct the files; `{DOCTOR}` says what is wrong."))
    if changed:
        scored = has_scores(tx, codename)
        cure = (
            f"To apply the change, run: {APPLY}" if scored else "The next start or reload applies the change."
        )
        differing.append((f"{', '.join(changed)} changed", cure))
    return tuple(
        Difference(
            phase=codename,
            sentence=f"Phase {codename} is scored as it was recorded. Since then, {sentence}.",
            cure=cure,
        )
        for sentence, cure in differing
    )


def _files(tx: Transaction, configuration: Configuration, record: PhaseRecord, secret: bytes) -> list[str]:
    """Return which files differ; they are parsed only if their bytes differ from those that were recorded.

    Raises:
        OrganizerError: If they cannot be read.
    """
    recorded_files = tx.record_files(record.hash)
    if recorded_files is not None and fingerprint(configuration, record.codename) == recorded_files:
        return []
    fresh = read_phase(configuration, record.codename, secret).record
    differing = {
        "its id list": fresh.protocol.ids_hash != record.protocol.ids_hash,
        "its tasks or their labels": fresh.versions != record.versions,
    }
    return [name for name, differs in differing.items() if differs]


def _settings(tx: Transaction, configuration: Configuration, record: PhaseRecord, secret: bytes) -> list[str]:
    """Return the changed keys that decide a score."""
    protocol, codename, scoring = record.protocol, record.codename, configuration.scoring
    key = split_key(secret, codename, public_value(tx.public_commitments(), codename))
    configured = {
        f"phases.{codename}.folds": configuration.phases[codename].folds,
        "submission.embedding_dim": configuration.submission.embedding_dim,
        "challenge.secret": secret_commitment(key),
        **{f"scoring.{name}": value for name, value in asdict(scoring.recipe()).items()},
        "scoring.engine": scoring.engine,
    }
    then = {
        f"phases.{codename}.folds": protocol.folds,
        "submission.embedding_dim": protocol.embedding_dim,
        "challenge.secret": protocol.secret_commitment,
        **{f"scoring.{name}": value for name, value in asdict(protocol.recipe).items()},
        "scoring.engine": record.engine,
    }
    return [name for name, value in configured.items() if then[name] != value]


def _rules(configuration: Configuration, record: PhaseRecord) -> list[str]:
    """Return the changed keys that decide a board."""
    phase, of_phase = record.codename, type(configuration.phases[record.codename]).model_fields
    changed = record.rules.changed(rules_of(configuration, phase))
    return [f"phases.{phase}.{name}" if name in of_phase else f"leaderboard.{name}" for name in changed]

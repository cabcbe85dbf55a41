"""The documents of a commitment: its public entry, and what it hides of each phase.

The entry has the hash of each phase's manifest, which contains a nonce. So it shows neither the number of tasks nor their names, binds all
of them, and one phase can be opened without another. The entry's own hash, which receipts name, covers all of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from leaderboard.documents import Document, Number, Positive
from scoring.documents import canonical
from scoring.inputs.tables import LabelRow
from scoring.protocol import Protocol, Recipe
from scoring.tasks import TaskType
from worker.challenge.records import PhaseRecord
from worker.fairness.documents import NONCE_BYTES, Hash, Moment, Signature, digest
from worker.fairness.drand import Chain


class AnnouncedRecipe(Document):
    """How probes are trained and scored; :class:`scoring.protocol.Recipe` describes the fields."""

    epochs: Positive
    batch_size: Positive
    learning_rate: Annotated[float, Field(gt=0)]
    test_size: Annotated[float, Field(gt=0, lt=1)]
    standardize_embeddings: bool
    normalize_labels: bool
    epsilon: Annotated[float, Field(gt=0)]
    max_failed_folds: Number


class AnnouncedPhase(Document):
    """What is public of a phase from the start: its protocol without the hash of its key, and the hash of its manifest.

    :class:`scoring.protocol.Protocol` describes the other fields.
    """

    folds: Positive
    embedding_dim: Positive
    ids_hash: Hash
    recipe: AnnouncedRecipe
    derivation: Positive
    manifest: Hash


class CommittedTask(Document):
    """A hidden task.

    Attributes:
        identifier: Its name.
        type: Regression or binary classification; challenges score no other types.
        package: The version number of its package; 1 for a label file.
        version: The hash of its rows and of that number, which is a key of its scores.
        salt: Makes the hash of its labels unguessable.
        labels: That hash.
    """

    identifier: str
    type: Literal["regr", "cls"]
    package: Positive
    version: Hash
    salt: Hash
    labels: Hash

    @property
    def file(self) -> str:
        """The name of its published label file."""
        return f"{self.identifier}__{self.type}.csv"


class Manifest(Document):
    """What is hidden of a phase until its reveal: its tasks, and the hash of the key of its splits."""

    nonce: Hash
    secret_commitment: Hash
    tasks: list[CommittedTask]

    @property
    def hash(self) -> str:
        """The hash that commits to it."""
        return digest("phase", canonical(self.to_json()))

    @property
    def versions(self) -> dict[str, str]:
        """Task to version."""
        return {task.identifier: task.version for task in self.tasks}


class AnnouncedRound(Document):
    """A round of drand whose value will be mixed into a phase's splits."""

    chain: Chain
    round: Positive

    @property
    def at(self) -> datetime:
        """When it is made."""
        return self.chain.made_at(self.round)


class CommitmentBody(Document):
    """A public entry of the list of commitments, as it is signed.

    Attributes:
        format: The format of everything that the challenge publishes.
        sequence: Its number.
        made_at: When it was made.
        reason: Why.
        draws: Phase to the round of drand that is announced for it here.
        drawn: Phase to the signature of its announced round, whose value is mixed in from here on.
        publish_files: Whose files are published of phases that are new here.
        receipts_every: Seconds between two lines of the log. The first entry's counts.
        access: Who knows the hidden tasks, in the organizers' words. The first entry's counts.
        phases: Phase to what is public of it.
        software: The program that made it.
        key: The challenge's key.
    """

    format: Literal[1]
    sequence: Positive
    made_at: Moment
    reason: str
    draws: dict[str, AnnouncedRound]
    drawn: dict[str, Annotated[str, Field(pattern="^[0-9a-f]{96}$")]]
    publish_files: Annotated[str, Field(pattern=r"^(baselines|top:[1-9][0-9]*)$")]
    receipts_every: Annotated[float, Field(gt=0, le=86400)]
    access: str
    phases: dict[str, AnnouncedPhase]
    software: str
    key: Hash


class Commitment(CommitmentBody):
    """A public entry of the list of commitments; ``commitment`` is the hash of everything else that is signed."""

    commitment: Hash
    signature: Signature


def commitment_of(body: Mapping[str, Any]) -> str:
    """Return the hash of an entry, without its signature."""
    return digest("commitment", canonical(dict(body)))


def announce(record: PhaseRecord) -> tuple[AnnouncedPhase, Manifest]:
    """Describe one phase: what is public of it, and the rest, with new random salts for its labels."""
    tasks = []
    for task in record.tasks:
        salt = secrets.token_bytes(NONCE_BYTES)
        tasks.append(
            CommittedTask(
                identifier=task.name,
                type="cls" if task.type is TaskType.CLASSIFICATION else "regr",
                package=task.package,
                version=task.version,
                salt=salt.hex(),
                labels=labels_hash(task.rows, salt),
            )
        )
    protocol = asdict(record.protocol)
    del protocol["phase"]
    manifest = Manifest(
        nonce=secrets.token_hex(NONCE_BYTES),
        secret_commitment=protocol.pop("secret_commitment"),
        tasks=tasks,
    )
    return AnnouncedPhase.model_validate({**protocol, "manifest": manifest.hash}), manifest


def protocol_of(phase: str, announced: AnnouncedPhase, manifest: Manifest) -> Protocol:
    """Return the whole protocol of a phase."""
    fields = {**dict(announced), "recipe": Recipe(**dict(announced.recipe))}
    del fields["manifest"]
    return Protocol(phase=phase, secret_commitment=manifest.secret_commitment, **fields)


def labels_hash(rows: Iterable[LabelRow], salt: bytes) -> str:
    """Hash a task's ids, labels and groups with a random salt, without which a few labels could be guessed and compared."""
    parsed = [[row.identifier, float(row.label), *([row.group] if row.group else [])] for row in rows]
    return digest("labels", salt, canonical(parsed))


def covers(promised: tuple[AnnouncedPhase, Manifest] | None, record: PhaseRecord) -> bool:
    """Return whether a commitment describes a phase's record."""
    if promised is None:
        return False
    return record.scores_as(protocol_of(record.codename, *promised).hash, promised[1].versions)

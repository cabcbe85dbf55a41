"""The documents of a commitment: its public entry, complete descriptions of phases, and the hashes that bind them without showing them.

One hash covers 32 random bytes and, for each phase, the hash of its manifest with a nonce. So it shows neither the number of tasks nor
their names, binds all of them, and one phase can be opened without another.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from scoring.protocol import Protocol, Recipe
from scoring.tasks import TaskType
from worker.challenge.canonical import NONCE_BYTES, canonical, digest
from worker.challenge.records import PhaseRecord
from worker.fairness.documents import Count, Document, Hash, Moment, Number, Signature
from worker.fairness.drand import Chain


class AnnouncedRecipe(Document):
    """How probes are trained and scored; :class:`scoring.protocol.Recipe` describes the fields."""

    probe: Literal["linear"]
    epochs: Count
    batch_size: Count
    learning_rate: Annotated[float, Field(gt=0)]
    test_size: Annotated[float, Field(gt=0, lt=1)]
    standardize_embeddings: bool
    normalize_labels: bool
    epsilon: Annotated[float, Field(gt=0)]
    max_failed_folds: Number


class AnnouncedProtocol(Document):
    """The part of a phase's protocol that is public from the start; :class:`scoring.protocol.Protocol` describes the fields."""

    phase: str
    folds: Count
    embedding_dim: Count
    ids_hash: Hash
    recipe: AnnouncedRecipe
    derivation: Count


class CommittedProtocol(AnnouncedProtocol):
    """A phase's whole protocol."""

    secret_commitment: Hash

    @property
    def announced(self) -> AnnouncedProtocol:
        """The part that is public from the start."""
        return AnnouncedProtocol.model_validate(self.model_dump(exclude={"secret_commitment"}))

    @property
    def protocol(self) -> Protocol:
        """The protocol by which scores are computed."""
        return Protocol(**{**dict(self), "recipe": Recipe(**dict(self.recipe))})


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
    package: Count
    version: Hash
    salt: Hash
    labels: Hash

    @property
    def file(self) -> str:
        """The name of its published label file."""
        return f"{self.identifier}__{self.type}.csv"


class Manifest(Document):
    """The tasks and the protocol of a phase."""

    phase: str
    nonce: Hash
    protocol: CommittedProtocol
    protocol_hash: Hash
    tasks: list[CommittedTask]

    @property
    def versions(self) -> dict[str, str]:
        """Task to version."""
        return {task.identifier: task.version for task in self.tasks}


class AnnouncedValue(Document):
    """The name of a public value that will be mixed into a phase's splits.

    Attributes:
        source: Who will publish it, in words.
        at: When it will be published.
        round: Its number at drand; None for another source.
        chain: drand's chain; None for another source.
    """

    source: str
    at: Moment
    round: Count | None
    chain: Chain | None


class MixedValue(Document):
    """A public value that is mixed into a phase's splits, with drand's round and signature if it has them."""

    value: Annotated[str, Field(min_length=1)]
    round: Count | None
    signature: Annotated[str, Field(pattern="^[0-9a-f]{96}$")] | None


class CommitmentBody(Document):
    """A public entry of the list of commitments, as it is signed.

    Attributes:
        format: The format of everything that the challenge publishes.
        sequence: Its number.
        made_at: When it was made.
        reason: Why.
        commitment: The one hash that binds secret, tasks and protocols.
        draws: Phase to the value that is announced for it here.
        drawn: Phase to the value that is mixed in from here on.
        publish_files: Whose files are published of phases that are new here.
        receipts_every: Seconds between two lines of the log. The first entry's counts.
        phases: Phase to its protocol.
        software: The program that made it.
        key: The challenge's key from here on.
        succession: The signature of that key by the one before it, if it is new.
    """

    format: Literal[1]
    sequence: Count
    made_at: Moment
    reason: str
    commitment: Hash
    draws: dict[str, AnnouncedValue]
    drawn: dict[str, MixedValue]
    publish_files: Annotated[str, Field(pattern=r"^(baselines|top:[1-9][0-9]*|all)$")]
    receipts_every: Annotated[float, Field(gt=0, le=86400)]
    phases: dict[str, AnnouncedProtocol]
    software: str
    key: Hash
    succession: Signature | None


class Commitment(CommitmentBody):
    """A public entry of the list of commitments."""

    signature: Signature


class Opening(Document):
    """What opens a commitment.

    Attributes:
        nonce: Makes it unguessable.
        secret: The hash of the challenge's secret.
        phases: Phase to the hash of its manifest.
    """

    nonce: Hash
    secret: Hash
    phases: dict[str, Hash]


def phase_manifest(record: PhaseRecord) -> Manifest:
    """Describe one phase completely, with new random salts for its labels."""
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
                labels=labels_hash(zip(task.ids, task.labels, strict=True), salt),
            )
        )
    return Manifest(
        phase=record.codename,
        nonce=secrets.token_hex(NONCE_BYTES),
        protocol=CommittedProtocol.model_validate(asdict(record.protocol)),
        protocol_hash=record.protocol.hash,
        tasks=tasks,
    )


def labels_hash(rows: Iterable[tuple[str, float]], salt: bytes) -> str:
    """Hash a task's ids and labels with a random salt, without which a few labels could be guessed and compared."""
    parsed = [[identifier, float(label)] for identifier, label in rows]
    return digest("labels", salt, canonical(parsed))


def phase_commitment(manifest: Manifest) -> str:
    """Hash one phase's manifest with its nonce."""
    body = manifest.model_dump(mode="json", exclude={"nonce"})
    return digest("phase", bytes.fromhex(manifest.nonce), canonical(body))


def opening(secret: bytes, manifests: Mapping[str, Manifest]) -> Opening:
    """Return what opens a commitment: nonce, the secret's hash, one hash per phase."""
    return Opening(
        nonce=secrets.token_hex(NONCE_BYTES),
        secret=digest("secret", secret),
        phases={name: phase_commitment(manifest) for name, manifest in manifests.items()},
    )


def commitment_of(opened: Opening) -> str:
    """Return the one public hash."""
    body = {"secret": opened.secret, "phases": opened.phases}
    return digest("commitment", bytes.fromhex(opened.nonce), canonical(body))


def covers(manifest: Manifest | None, record: PhaseRecord) -> bool:
    """Return whether a manifest describes a phase's record."""
    if manifest is None:
        return False
    return record.scores_as(manifest.protocol_hash, manifest.versions)

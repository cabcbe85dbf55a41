"""Manifests: complete descriptions of phases, and the hashes that bind them without showing them.

One hash covers 32 random bytes and, for each phase, the hash of its manifest with a nonce. So it shows neither the number of tasks nor
their names, binds all of them, and one phase can be opened without another.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from worker.challenge.canonical import canonical
from worker.challenge.records import PhaseRecord
from worker.fairness.hashing import NONCE_BYTES, digest


def phase_manifest(record: PhaseRecord) -> dict[str, Any]:
    """Describe one phase completely, with new random salts for its labels."""
    tasks = []
    for task in record.tasks:
        salt = secrets.token_bytes(NONCE_BYTES)
        tasks.append(
            {
                "identifier": task.name,
                "type": task.type.value,
                "version": task.version,
                "salt": salt.hex(),
                "labels": labels_hash(zip(task.ids, task.labels, strict=True), salt),
            }
        )
    return {
        "phase": record.codename,
        "nonce": secrets.token_hex(NONCE_BYTES),
        "protocol": asdict(record.protocol),
        "protocol_hash": record.protocol.hash,
        "tasks": tasks,
    }


def labels_hash(rows: Iterable[tuple[str, float]], salt: bytes) -> str:
    """Hash a task's ids and labels with a random salt, without which a few labels could be guessed and compared."""
    parsed = [[identifier, float(label)] for identifier, label in rows]
    return digest("labels", salt, canonical(parsed))


def phase_commitment(manifest: Mapping[str, Any]) -> str:
    """Hash one phase's manifest with its nonce."""
    body = {key: value for key, value in manifest.items() if key != "nonce"}
    return digest("phase", bytes.fromhex(manifest["nonce"]), canonical(body))


def opening(secret: bytes, manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what opens a commitment: nonce, the secret's hash, one hash per phase."""
    return {
        "nonce": secrets.token_hex(NONCE_BYTES),
        "secret": digest("secret", secret),
        "phases": {name: phase_commitment(manifest) for name, manifest in manifests.items()},
    }


def commitment_of(opened: Mapping[str, Any]) -> str:
    """Return the one public hash."""
    body = {"secret": opened["secret"], "phases": opened["phases"]}
    return digest("commitment", bytes.fromhex(opened["nonce"]), canonical(body))


def announced_protocol(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a phase's protocol that is public from the start."""
    return {key: value for key, value in protocol.items() if key != "secret_commitment"}


def covers(manifest: Mapping[str, Any] | None, record: PhaseRecord) -> bool:
    """Return whether a manifest describes a phase's record."""
    if manifest is None:
        return False
    versions = {task["identifier"]: task["version"] for task in manifest["tasks"]}
    return record.scores_as(manifest["protocol_hash"], versions)

"""The hashes of everything that is committed to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from scoring.tasks import Task
from worker.challenge.canonical import canonical

NONCE_BYTES = 32


def digest(domain: str, *parts: bytes) -> str:
    """Hash length-prefixed parts under a domain, so that no two kinds of commitment have the same input; SHA-256 in hex."""
    result = hashlib.sha256()
    for part in (f"neuco-worker/{domain}".encode(), *parts):
        result.update(len(part).to_bytes(8, "big") + part)
    return result.hexdigest()


def label_rows(task: Task) -> bytes:
    """Write a task's parsed rows; files that parse to the same rows give the same text."""
    return canonical(
        [[identifier, float(label)] for identifier, label in zip(task.ids, task.labels, strict=True)]
    )


def labels_hash(task: Task, salt: bytes) -> str:
    """Hash a task's labels with a random salt, without which a few labels could be guessed and compared."""
    return digest("labels", salt, label_rows(task))


def is_prefix(earlier: Iterable[Any], later: Iterable[Any]) -> bool:
    """Return whether a list has only grown."""
    first, second = list(earlier), list(later)
    return second[: len(first)] == first

"""Receipts: every scored submission is committed to, in a public log that cannot be changed without a trace.

The log holds hashes alone, in batches of a fixed cadence that are filled up with random ones: it shows neither when a private submission
was scored nor that there was one. The participant gets the nonce, and with it the power to prove what was promised.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scoring.errors import InfrastructureError
from worker.fairness.canonical import NONCE_BYTES, canonical, digest
from worker.state import Transaction

PATH = "receipts.jsonl"
FORMAT = 1
SMALLEST_BATCH = 16
GENESIS = "0" * 64


def make_record(
    *,
    submission: int,
    phase: str,
    content_hash: str,
    protocol_hash: str,
    cells: Sequence[Mapping[str, Any]],
    scored_at: datetime,
) -> dict[str, Any]:
    """Describe what was scored: everything that a later reveal must agree with."""
    return {
        "submission": submission,
        "phase": phase,
        "content_hash": content_hash,
        "protocol_hash": protocol_hash,
        "scored_at": scored_at.isoformat(),
        "cells": {
            cell["task"]: {"version": cell["version"], "folds": [_finite(score) for score in cell["folds"]]}
            for cell in cells
        },
    }


def _finite(score: float) -> float | None:
    return score if score == score else None  # noqa: PLR0124 - NaN is the one value that differs from itself


def commitment_of(record: Mapping[str, Any], nonce: bytes) -> str:
    """Commit to a record under its nonce."""
    return digest("receipt", nonce, canonical(record))


def issue(tx: Transaction, record: Mapping[str, Any]) -> dict[str, str]:
    """Make a receipt durable and return what its participant is told."""
    nonce = secrets.token_bytes(NONCE_BYTES)
    commitment = commitment_of(record, nonce)
    tx.add_receipt(int(record["submission"]), commitment, nonce.hex(), json.dumps(record))
    entries = tx.commitments()
    lines = tx.batches()
    return {
        "nonce": nonce.hex(),
        "commitment": commitment,
        "challenge": entries[-1][0]["commitment"] if entries else "",
        "chain": json.loads(lines[-1])["head"] if lines else GENESIS,
    }


def due_at(begun_at: datetime, batches: int, every_s: float) -> datetime:
    """Return when the next batch is due: multiples of the cadence after the first commitment, whatever happened."""
    return begun_at + timedelta(seconds=every_s * (batches + 1))


def chained(previous: str, body: Mapping[str, Any]) -> str:
    """Return the head of the chain after a batch."""
    return digest("chain", bytes.fromhex(previous), canonical(body))


def close_batch(tx: Transaction, *, made_at: datetime) -> None:
    """Put all open receipts into one batch of a size that tells little, in an order that tells nothing."""
    lines = tx.batches()
    previous = json.loads(lines[-1])["head"] if lines else GENESIS
    commitments = tx.open_receipts()
    size = SMALLEST_BATCH
    while size < len(commitments):
        size *= 2
    filling = [secrets.token_hex(32) for _ in range(size - len(commitments))]
    body = {
        "format": FORMAT,
        "sequence": len(lines) + 1,
        "made_at": made_at.isoformat(timespec="seconds"),
        "previous": previous,
        "receipts": sorted([*commitments, *filling]),
    }
    line = json.dumps({**body, "head": chained(previous, body)})
    tx.add_batch(len(lines) + 1, line, commitments)


class LogIsAhead(InfrastructureError):
    """The public log has lines that we do not know: a backup was restored, or another worker closed a batch meanwhile.

    Args:
        lines: Of the public log.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__(
            "The public log of receipts is ahead of this state.",
            cure="Its lines are taken over, and the push is tried again.",
            code="leaderboard.log_ahead",
        )
        self.lines = tuple(lines)


def check_growth(public: bytes | None, ours: bytes | None) -> None:
    """Check that our log goes on from the public one, which must never lose a line: participants hold receipts in it.

    Raises:
        LogIsAhead: If it does not. What is no log at all is not believed, and raises nothing.
    """
    try:
        lines = (public or b"").decode().splitlines()
        if (ours or b"").decode().splitlines()[: len(lines)] == lines:
            return
        heads = [GENESIS]
        for line in lines:
            body = json.loads(line)
            head = body.pop("head")
            if body["previous"] != heads[-1] or head != chained(heads[-1], body):
                return
            heads.append(head)
    except (ValueError, LookupError, TypeError, AttributeError):
        return
    raise LogIsAhead(lines)


def take_over(tx: Transaction, lines: Sequence[str]) -> None:
    """Go on from the public log: what we closed beside it is open again and goes into the next batch."""
    ours = tx.batches()
    common = 0
    while common < min(len(ours), len(lines)) and ours[common] == lines[common]:
        common += 1
    tx.drop_batches(after=common)
    waiting = set(tx.open_receipts())
    for sequence, line in enumerate(lines[common:], common + 1):
        tx.add_batch(sequence, line, sorted(waiting.intersection(json.loads(line)["receipts"])))


def receipts_file(tx: Transaction) -> bytes | None:
    """Write the public log: one line per batch."""
    lines = tx.batches()
    return "".join(f"{line}\n" for line in lines).encode() if lines else None

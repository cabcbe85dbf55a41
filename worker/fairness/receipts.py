"""Receipts: every scored submission is committed to, in a public log that cannot be changed without a trace.

The log holds hashes alone, in batches of a fixed cadence that are filled up with random ones: it shows neither when a private submission
was scored nor that there was one. The participant gets the nonce, and with it the power to prove what was promised.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scoring.errors import InfrastructureError
from worker.challenge.canonical import canonical
from worker.fairness.canonical import NONCE_BYTES, digest
from worker.state import CellRow, Transaction

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
    cells: Sequence[CellRow],
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
            cell.task: {"version": cell.version, "folds": [_finite(score) for score in cell.folds]}
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


def due_at(begun_at: datetime, last_at: datetime | None, every_s: float) -> datetime:
    """Return when the next batch is due: at the first multiple of the cadence after the last one, counted from the first commitment.

    So neither a pause nor another cadence leaves batches to be made up for: the next one carries all open receipts.
    """
    passed_s = 0.0 if last_at is None else (last_at - begun_at).total_seconds()
    return begun_at + timedelta(seconds=every_s * (max(0, math.floor(passed_s / every_s)) + 1))


def chained(previous: str, body: Mapping[str, Any]) -> str:
    """Return the head of the chain after a batch."""
    return digest("chain", bytes.fromhex(previous), canonical(body))


def made_at(line: str) -> datetime:
    """Return the time on a batch."""
    return datetime.fromisoformat(json.loads(line)["made_at"])


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
    """The public log goes on from ours.

    The state comes from an older backup.

    Args:
        lines: What ours lacks.
        after: How many lines ours has.
    """

    def __init__(self, lines: Sequence[str], after: int) -> None:
        super().__init__(
            "The public log of receipts is ahead of what was about to be pushed.",
            cure="What the state lacks of it is taken over, and the push is made anew.",
            code="leaderboard.log_ahead",
        )
        self.lines = tuple(lines)
        self.after = after


def check_growth(public: bytes | None, ours: bytes | None) -> None:
    """Check that our log lacks nothing of the public one: participants hold receipts in it.

    Raises:
        LogIsAhead: If it does. What does not go on from ours in one chain is not believed, and raises nothing.
    """
    try:
        lines = (public or b"").decode().splitlines()
        known = (ours or b"").decode().splitlines()
        head = json.loads(known[-1])["head"] if known else GENESIS
        missing = lines[len(known) :]
        if lines[: len(known)] != known:
            return
        for number, line in enumerate(missing, len(known) + 1):
            body = json.loads(line)
            said = body.pop("head")
            whole = (body["format"], body["sequence"]) == (FORMAT, number) and set(body["receipts"])
            if not whole or body["previous"] != head or said != chained(head, body):
                return
            head = said
    except (ValueError, LookupError, TypeError, AttributeError):
        return
    if missing:
        raise LogIsAhead(missing, len(known))


def take_over(tx: Transaction, log: LogIsAhead) -> bool:
    """Go on from what the public log has more than ours.

    Returns:
        False, and nothing changes, if the state is not as short as that log was compared with: it was read before somebody went on.
    """
    if len(tx.batches()) != log.after:
        return False
    waiting = set(tx.open_receipts())
    for sequence, line in enumerate(log.lines, log.after + 1):
        tx.add_batch(sequence, line, sorted(waiting.intersection(json.loads(line)["receipts"])))
    return True


def receipts_file(tx: Transaction) -> bytes | None:
    """Write the public log: one line per batch."""
    lines = tx.batches()
    return "".join(f"{line}\n" for line in lines).encode() if lines else None

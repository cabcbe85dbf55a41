"""The public log, which commits to every event of the register, and the receipts with which participants find their own events in it.

The log contains only hashes, chained and signed, in batches at fixed intervals that are padded with filler entries. So it shows neither
when something happened nor how often.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scoring.errors import InfrastructureError
from worker.challenge.canonical import canonical
from worker.fairness import events
from worker.fairness.hashing import NONCE_BYTES, digest
from worker.fairness.ladder import ShownValue
from worker.fairness.published_format import FORMAT
from worker.fairness.register import note
from worker.fairness.signing import is_signed, signer
from worker.state import LOG_UNSEEN, Transaction

PATH = "receipts.jsonl"
SMALLEST_BATCH = 32
LONGEST_CADENCE_S = 86400.0
BATCH, RECEIPT = "batch", "receipt"  # kinds of signed documents
GENESIS = "0" * 64
_GAP = "restored_lines"  # what the next line says about lines that a restored state lacks


def issue(
    tx: Transaction, *, submission: int, score: ShownValue, nonce: str, commitment: str
) -> dict[str, Any]:
    """Return the signed receipt of a registered score, with the value that its participant is shown.

    With the nonce, the participant can open what was registered, and so prove it. The signature makes the receipt evidence by itself.

    Args:
        tx: The transaction that registers the score.
        submission: EvalAI's number.
        score: The score as its participant is shown it.
        nonce: Opens the commitment.
        commitment: Commits to the event; the next batch publishes it.
    """
    entries, (number, line) = tx.public_commitments(), tx.last_batch()
    key = signer(tx)
    receipt = {
        "format": FORMAT,
        "submission": submission,
        "q_mean": score.value,
        "counts": score.counts,
        "nonce": nonce,
        "commitment": commitment,
        "challenge": entries[-1]["commitment"],
        "batch": number,
        "chain": head_of(line),
        "key": key.public,
    }
    return {**receipt, "signature": key.sign(RECEIPT, receipt)}


def is_genuine(receipt: Mapping[str, Any]) -> bool:
    """Return whether a receipt's signature belongs to the key that it names."""
    body = {name: value for name, value in receipt.items() if name != "signature"}
    return is_signed(str(receipt.get("key")), RECEIPT, body, receipt.get("signature"))


def due_at(begun_at: datetime, last_at: datetime | None, every_s: float) -> datetime:
    """Return when the next batch is due: at the first multiple of the interval after the last batch, counted from the first commitment.

    So after a pause, or with another interval, no missed batches need to be made: the next one contains all open receipts.
    """
    passed_s = 0.0 if last_at is None else (last_at - begun_at).total_seconds()
    return begun_at + timedelta(seconds=every_s * (max(0, math.floor(passed_s / every_s)) + 1))


def chained(previous: str, body: Mapping[str, Any]) -> str:
    """Return the hash of the chain after a batch."""
    return digest("chain", bytes.fromhex(previous), canonical(body))


def made_at(document: Mapping[str, Any]) -> datetime:
    """Return the time on a line of the log, a commitment or a board."""
    return datetime.fromisoformat(document["made_at"])


def head_of(line: str | None) -> str:
    """Return the hash of the chain after a line, or at its beginning."""
    return GENESIS if line is None else str(json.loads(line)["head"])


def head(log: bytes | None) -> str:
    """Return the hash of the chain after the whole log."""
    lines = (log or b"").decode().splitlines()
    return head_of(lines[-1] if lines else None)


def cadence(line: Mapping[str, Any]) -> float:
    """Return the seconds after which a line says that the next one is due; at most a day."""
    return min(LONGEST_CADENCE_S, float(line["every"]))


def filler(key: bytes, number: int) -> str:
    """Return one of a line's filler entries; only the line's key can distinguish them from commitments."""
    return digest("filler", key, number.to_bytes(8, "big"))


def lost_lines(chain: Iterable[Mapping[str, Any]]) -> frozenset[int]:
    """Return the log lines that a restored state did not know, whose entries may be impossible to open."""
    lines = list(chain)
    said = (line["restored"] for line in lines if line["restored"] is not None)
    return frozenset(
        number
        for one in said
        for number in range(max(1, int(one["first"])), min(len(lines), int(one["last"])) + 1)
    )


def seconds_to_next(last: str | None, configured_s: float) -> float:
    """Return after how many seconds the next batch follows the last line: as that line has announced, or sooner.

    So a batch is not overdue only because the configuration has changed.

    Args:
        last: The last line of the log, if there is one.
        configured_s: The configured interval, which the next line announces.
    """
    return configured_s if last is None else min(configured_s, cadence(json.loads(last)))


def close_batch(tx: Transaction, *, made_at: datetime, every_s: float) -> None:
    """Put everything that was registered into one batch, padded and sorted so that it reveals little.

    Args:
        tx: The transaction.
        made_at: The time, in public.
        every_s: The interval to the next batch, in seconds.
    """
    commitments, restored = tx.open_events(), json.loads(tx.fact(_GAP) or "null")
    tx.set_fact(_GAP, None)
    number, last = tx.last_batch()
    size = SMALLEST_BATCH
    while size < len(commitments):
        size *= 2
    key = secrets.token_bytes(NONCE_BYTES)
    filling = [filler(key, number) for number in range(size - len(commitments))]
    body = {
        "format": FORMAT,
        "sequence": number + 1,
        "made_at": made_at.isoformat(timespec="seconds"),
        "every": every_s,
        "restored": restored,
        "previous": head_of(last),
        "entries": sorted([*commitments, *filling]),
    }
    reached = chained(str(body["previous"]), body)
    line = {**body, "head": reached, "signature": signer(tx).sign(BATCH, reached)}
    tx.add_batch(number + 1, json.dumps(line), commitments, fillers=key.hex())


class LogIsAhead(InfrastructureError):
    """The public log continues beyond ours, because the state comes from an older backup.

    Args:
        lines: The lines that ours lacks.
        after: Number of lines that ours has.
    """

    def __init__(self, lines: Sequence[str], after: int) -> None:
        super().__init__(
            "The public log of receipts has lines that this state lacks.",
            cure="The worker copies these lines into its state and pushes again.",
            code="leaderboard.log_ahead",
        )
        self.lines = tuple(lines)
        self.after = after


def check_growth(public: bytes | None, ours: bytes | None, *, keys: Sequence[str]) -> None:
    """Check that our log lacks nothing of the public one, in which participants have receipts.

    Args:
        public: The log in the repository.
        ours: The log in the state.
        keys: The challenge's keys, the newest last. A line that it has not signed was added by somebody else.

    Raises:
        LogIsAhead: If lines are missing. Lines that do not continue our chain are ignored.
    """
    try:
        lines = (public or b"").decode().splitlines()
    except ValueError:
        return
    known = (ours or b"").decode().splitlines()
    if lines[: len(known)] == known and (missing := list(_going_on(lines, known, keys))):
        raise LogIsAhead(missing, len(known))


def _going_on(lines: Sequence[str], known: Sequence[str], keys: Sequence[str]) -> Iterator[str]:
    """Yield the lines that continue known ones in one chain, up to the first that does not."""
    reached = head_of(known[-1] if known else None)
    for number, line in enumerate(lines[len(known) :], len(known) + 1):
        try:
            body = json.loads(line)
            said, signature = body.pop("head"), body.pop("signature")
            whole = body["sequence"] == number and body["entries"] and body["previous"] == reached
            if not whole or said != chained(reached, body) or not is_signed(keys[-1], BATCH, said, signature):
                return
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return
        reached = said
        yield line


def take_over(tx: Transaction, log: LogIsAhead, *, now: datetime) -> bool:
    """Continue our log with the additional lines of the public log.

    Returns:
        False, with nothing changed, if the state's log has grown since it was compared with the public log.
    """
    if tx.last_batch()[0] != log.after:
        return False
    waiting = set(tx.open_events())
    for sequence, line in enumerate(log.lines, log.after + 1):
        tx.add_batch(sequence, line, sorted(waiting.intersection(json.loads(line)["entries"])))
    _tell_restored(tx, log.after + 1, log.after + len(log.lines), now=now)
    return True


def went_on(tx: Transaction, *, now: datetime) -> None:
    """Record that a restored state now has the whole public log; note the restore, even if the log had no more lines."""
    if tx.fact(LOG_UNSEEN) is None:
        return
    if tx.fact(_GAP) is None:
        number, _ = tx.last_batch()
        _tell_restored(tx, number + 1, number, now=now)
    tx.set_fact(LOG_UNSEEN, None)


def _tell_restored(tx: Transaction, first: int, last: int, *, now: datetime) -> None:
    """Let the next line and the register say what may be lost: some lines, and what was due in the next one."""
    before = json.loads(tx.fact(_GAP) or "{}")  # from an earlier restore that no line has reported yet
    tx.set_fact(_GAP, json.dumps({"first": min(first, before.get("first", first)), "last": last}))
    lines = f"; that concerns lines {first} to {last} of the log" if first <= last else ""
    text = f"the state was restored from a backup, and what was registered after that was made is lost{lines}"
    note(tx, events.RESTORED, text, now=now, first=first, last=last)


def receipts_file(tx: Transaction) -> bytes | None:
    """Write the public log: one line per batch."""
    lines = tx.batches()
    return "".join(f"{line}\n" for line in lines).encode() if lines else None

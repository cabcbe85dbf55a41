"""The public log, which commits to every event of the register, and the receipts with which participants find their own events in it.

The log contains only hashes, chained and signed, in batches at fixed intervals that are padded with filler entries. So it shows neither
when something happened nor how often.
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from leaderboard.documents import Document, Number, Positive
from scoring.documents import canonical
from worker.challenge.signing import Signer, is_signed
from worker.fairness import events
from worker.fairness.documents import FORMAT, NONCE_BYTES, Hash, Malformed, Moment, Signature, digest, read
from worker.fairness.manifests import Commitment
from worker.fairness.membership import ShownValue
from worker.fairness.register import note
from worker.state import LOG_UNSEEN, Transaction

PATH = "receipts.jsonl"
SMALLEST_BATCH = 32
BATCH, RECEIPT = "batch", "receipt"  # kinds of signed documents
GENESIS = "0" * 64
_GAP = "restored_lines"  # what the next line says about lines that a restored state lacks


class Gap(Document):
    """The lines that a restored state lacks; none if the last one is before the first."""

    first: Positive
    last: Number


def _sorted(entries: list[str]) -> list[str]:
    if entries != sorted(set(entries)):
        raise ValueError("the entries are not sorted, or one is repeated")
    return entries


class LineBody(Document):
    """A batch of the log, as it is chained.

    Attributes:
        format: The format of everything that the challenge publishes.
        sequence: Its number.
        made_at: When it was made.
        restored: What is lost if the state was restored from a backup before it was made.
        previous: The hash of the chain before it.
        entries: Commitments to events, and filler entries, sorted.
    """

    format: Literal[1]
    sequence: Positive
    made_at: Moment
    restored: Gap | None
    previous: Hash
    entries: Annotated[list[Hash], Field(min_length=SMALLEST_BATCH), AfterValidator(_sorted)]


class Line(LineBody):
    """A signed line of the log; ``head`` is the hash of the chain after it."""

    head: Hash
    signature: Signature

    @property
    def is_chained(self) -> bool:
        """Whether its hash is the one of its content."""
        return self.head == chained(self.model_dump(mode="json", exclude={"head", "signature"}))


class ReceiptBody(Document):
    """What a participant holds, as it is signed; :func:`issue` describes the fields."""

    format: Literal[1]
    submission: Number
    q_mean: float | None
    counts: bool | None
    nonce: Hash
    commitment: Hash
    challenge: Hash
    batch: Number
    chain: Hash
    key: Hash


class Receipt(ReceiptBody):
    """A signed receipt."""

    signature: Signature

    @property
    def is_genuine(self) -> bool:
        """Whether its signature belongs to the key that it names."""
        body = self.model_dump(mode="json", exclude={"signature"})
        return is_signed(self.key, RECEIPT, body, self.signature)


def issue(
    tx: Transaction, signer: Signer, *, submission: int, score: ShownValue, nonce: str, commitment: str
) -> dict[str, Any]:
    """Return the signed receipt of a registered score, with the value that its participant is shown.

    With the nonce, the participant can open what was registered, and so prove it. The signature makes the receipt evidence by itself.

    Args:
        tx: The transaction that registers the score.
        signer: The challenge's key.
        submission: EvalAI's number.
        score: The score as its participant is shown it.
        nonce: Opens the commitment.
        commitment: Commits to the event; the next batch publishes it.
    """
    entries, (number, line) = tx.public_commitments(), tx.last_batch()
    receipt = ReceiptBody(
        format=FORMAT,
        submission=submission,
        q_mean=score.value,
        counts=score.counts,
        nonce=nonce,
        commitment=commitment,
        challenge=entries[-1]["commitment"],
        batch=number,
        chain=head_of(line),
        key=signer.public,
    ).to_json()
    return {**receipt, "signature": signer.sign(RECEIPT, receipt)}


def is_due(tx: Transaction, now: datetime) -> bool:
    """Return whether the next batch is due: at the first multiple of the interval after the last batch, from the first commitment on.

    So after a pause, no missed batches need to be made: the next one contains all open receipts. It is due even if there are none. While a
    restored state may lack lines of the public log, none is due, because it would fork the log; then one is due at once, to say so. Once
    everything is revealed, only what happens is published.
    """
    entries = tx.public_commitments()
    if not entries or tx.fact(LOG_UNSEEN):
        return False
    if tx.fact(_GAP):
        return True
    first, last_at = Commitment.model_validate(entries[0]), logged_at(tx)
    begun_at, every = first.made_at, cadence([first])
    passed = timedelta() if last_at is None else last_at - begun_at
    if now < begun_at + every * (max(0, passed // every) + 1):
        return False
    return bool(tx.open_events()) or not set(tx.phases()) <= set(tx.revealed())


def logged_at(tx: Transaction) -> datetime | None:
    """Return when the newest line was made."""
    _, last = tx.last_batch()
    return None if last is None else _made_at(last)


@lru_cache(maxsize=1)
def _made_at(line: str) -> datetime:
    """Read the time of a line, which each step needs."""
    return read(Line, line, PATH).made_at


def chained(body: Mapping[str, Any]) -> str:
    """Return the hash of the chain after a batch."""
    return digest("chain", bytes.fromhex(body["previous"]), canonical(body))


def cadence(entries: Sequence[Commitment]) -> timedelta:
    """Return the interval between two lines of the log, which the first commitment announces."""
    return timedelta(seconds=entries[0].receipts_every)


def read_log(content: bytes) -> list[Line]:
    """Return the lines of a log.

    Raises:
        Malformed: If one of them is not exactly a line.
    """
    return [read(Line, line, f"{PATH}, line {number}") for number, line in enumerate(io.BytesIO(content), 1)]


def head_of(line: str | None) -> str:
    """Return the hash of the chain after a line, or at its beginning."""
    return GENESIS if line is None else str(json.loads(line)["head"])


def filler(key: bytes, number: int) -> str:
    """Return one of a line's filler entries; only the line's key can distinguish them from commitments."""
    return digest("filler", key, number.to_bytes(8, "big"))


def lost_lines(chain: Sequence[Line]) -> frozenset[int]:
    """Return the log lines that a restored state did not know, whose entries may be impossible to open."""
    gaps = (line.restored for line in chain if line.restored is not None)
    return frozenset(number for gap in gaps for number in range(gap.first, min(len(chain), gap.last) + 1))


def close_batch(tx: Transaction, signer: Signer, *, made_at: datetime) -> None:
    """Put everything that was registered into one batch, padded and sorted so that it reveals little; its time is public."""
    commitments, gap = tx.open_events(), tx.fact(_GAP)
    restored = None if gap is None else read(Gap, gap, _GAP)
    tx.set_fact(_GAP, None)
    number, last = tx.last_batch()
    size = SMALLEST_BATCH
    while size < len(commitments):
        size *= 2
    key = secrets.token_bytes(NONCE_BYTES)
    filling = [filler(key, number) for number in range(size - len(commitments))]
    body = LineBody(
        format=FORMAT,
        sequence=number + 1,
        made_at=made_at.replace(microsecond=0),
        restored=restored,
        previous=head_of(last),
        entries=sorted([*commitments, *filling]),
    ).to_json()
    reached = chained(body)
    line = {**body, "head": reached, "signature": signer.sign(BATCH, reached)}
    tx.add_batch(number + 1, json.dumps(line), commitments, fillers=key.hex())


def continued(public: bytes, ours: bytes, *, key: str) -> bytes:
    """Return our log as the public one goes on, in which participants have receipts; lines of ours that it does not have then give way.

    Args:
        public: The log in the repository. Lines that do not continue our chain are ignored.
        ours: The log in the state.
        key: The challenge's key. A line that it has not signed was added by somebody else.
    """
    lines, own = public.decode(errors="replace").splitlines(), ours.decode().splitlines()
    both = own[: _in_common(lines, own)]
    missing = list(_continuation(lines, both, key))
    return _text([*both, *missing]) if missing else ours


def _in_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return with how many equal lines two logs begin."""
    pairs = zip(one, other, strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _continuation(lines: Sequence[str], own_lines: Sequence[str], key: str) -> Iterator[str]:
    """Yield the lines that continue known ones in one chain, up to the first that does not."""
    reached = head_of(own_lines[-1] if own_lines else None)
    for number, line in enumerate(lines[len(own_lines) :], len(own_lines) + 1):
        try:
            following = read(Line, line, PATH)
        except Malformed:
            return
        follows = (following.sequence, following.previous) == (number, reached) and following.is_chained
        if not follows or not is_signed(key, BATCH, following.head, following.signature):
            return
        reached = following.head
        yield line


def take_over(tx: Transaction, log: bytes, *, now: datetime) -> int:
    """Let a restored state's log go on as :func:`continued` says, and note the restore; return the number of lines that it lacked."""
    lines = log.decode().splitlines()
    both = _in_common(lines, tx.batches())
    lacking = lines[both:]
    if lacking:
        tx.remove_batches(both)
        waiting = set(tx.open_events())
        for sequence, line in enumerate(lacking, both + 1):
            tx.add_batch(sequence, line, sorted(waiting.intersection(json.loads(line)["entries"])))
    last, _ = tx.last_batch()  # a reveal may have closed a batch since the comparison
    _tell_restored(tx, last - len(lacking) + 1, last, now=now)
    tx.set_fact(LOG_UNSEEN, None)
    return len(lacking)


def _tell_restored(tx: Transaction, first: int, last: int, *, now: datetime) -> None:
    """Let the next line and the register say what may be lost: some lines, and what was due in the next one."""
    before = tx.document(_GAP)  # from an earlier restore that no line has reported yet
    tx.set_fact(_GAP, json.dumps({"first": min(first, before.get("first", first)), "last": last}))
    lines = f"; that concerns lines {first} to {last} of the log" if first <= last else ""
    text = f"the state was restored from a backup, and what was registered after that was made is lost{lines}"
    note(tx, events.RESTORED, text, now=now)


def receipts_file(tx: Transaction) -> bytes | None:
    """Write the public log: one line per batch."""
    return _text(tx.batches()) or None


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()

"""Participants as witnesses: a signed receipt, checked against the log, the register and the final board."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from worker.fairness import events, receipts, signing
from worker.fairness.documents import Malformed, read
from worker.fairness.events import ScoreEvent
from worker.fairness.membership import AFTER_THE_CLOSE
from worker.fairness.receipts import Line, Receipt
from worker.fairness.signing import is_signed
from worker.fairness.verify.decisions import counting
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.registered import CADENCES
from worker.fairness.verify.revealed import (
    RevealedPhase,
    phases,
    public_commitments,
    public_log,
    read_reveals,
)
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted, not_revealed

RECEIPT = "your receipt"


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The revealed entry of a receipt, which has its scores."""

    phase: str
    submission: int
    content_hash: str


def entry_of(repository: PublicRepository, receipt: Mapping[str, Any]) -> Scored | None:
    """Return the revealed entry to which a receipt belongs; None if there is none, or it cannot be read."""
    for phase in read_reveals(repository).phases.values():
        for commitment, event in phase.events:
            if commitment == receipt.get("commitment") and isinstance(event, ScoreEvent):
                return Scored(phase=phase.name, submission=event.submission, content_hash=event.content)
    return None


def receipt_verdicts(
    repository: PublicRepository,
    receipt: Mapping[str, Any],
    told: float | None = None,
    *,
    check: str = RECEIPT,
    now: datetime | None = None,
) -> Iterator[Verdict]:
    """Check what a participant was shown against the repository, and report whether the submission counts.

    Args:
        repository: The public files.
        receipt: The receipt in the stdout that EvalAI showed.
        told: Mean Q in the same stdout.
        check: Name of the verdicts.
        now: The time, after which a batch may be overdue.
    """
    try:
        genuine = read(Receipt, json.dumps(receipt), check)
    except (Malformed, TypeError, RecursionError):
        genuine = None
    if genuine is None or not genuine.is_genuine or (told is not None and told != genuine.q_mean):
        yield believed(check, "This receipt was changed after it was signed: it proves nothing.")
        return
    yield from _claims(repository, genuine, check=check, now=now or datetime.now(UTC))


def _claims(
    repository: PublicRepository, receipt: Receipt, *, check: str, now: datetime
) -> Iterator[Verdict]:
    entries = public_commitments(repository)
    if not entries:
        yield contradicted(check, "There are no commitments with which the receipt could be compared.")
        return
    lines = public_log(repository)
    waits = len(lines) <= receipt.batch and not _is_overdue(lines, entries, now=now)
    named = receipt.challenge in {entry["commitment"] for entry in entries}
    if receipt.key not in signing.keys_in(entries):
        yield (
            not_revealed(
                check,
                "Neither the key that signed your receipt nor the commitment that it names has been published. If the challenge"
                " has a new key, both will be published before the next batch of receipts.",
            )
            if waits and not named
            else contradicted(check, "The key that signed your receipt is not one of this challenge.")
        )
        return
    if _is_of_a_replaced_key(receipt, entries, lines):
        yield believed(
            check,
            (
                "Your receipt names something newer than the key that signed it, which had been replaced by then: it is"
                " a forgery, and proves nothing."
            ),
        )
        return
    yield consistent(check, "Your receipt carries the challenge's signature.")
    if not named:
        yield (
            not_revealed(
                check,
                "The commitment in your receipt has not been published yet; it will be before the next batch of receipts.",
            )
            if waits
            else contradicted(
                check, "The commitment in your receipt is not in the repository: history was rewritten."
            )
        )
    revealed = list(read_reveals(repository).phases.values())
    yield _in_the_log(receipt, lines, check, waits=waits)
    hidden = set(phases(repository)) - {phase.name for phase in revealed}
    opened = list(_on_the_board(receipt, revealed, check))
    yield from opened or [_nowhere(receipt, lines, check, hidden=hidden)]


def _is_of_a_replaced_key(
    receipt: Receipt, entries: Sequence[Mapping[str, Any]], chain: Sequence[Line]
) -> bool:
    """Return whether a receipt names a commitment or line signed by a later key than its own: then somebody else made the receipt.

    Any other receipt remains evidence, whatever is said about its key. Otherwise the organizers could use a new key to discredit receipts.
    """
    keys = signing.keys_in(entries)
    later = keys[keys.index(receipt.key) + 1 :]
    named = next((entry for entry in entries if entry["commitment"] == receipt.challenge), {})
    if named.get("key") in later:
        return True
    signed = chain[receipt.batch - 1 : receipt.batch] if receipt.batch else ()
    return any(is_signed(key, receipts.BATCH, line.head, line.signature) for line in signed for key in later)


def _in_the_log(
    receipt: Receipt,
    chain: Sequence[Line],
    check: str,
    *,
    waits: bool,
) -> Verdict:
    """Look for a receipt's entry in the log.

    Args:
        receipt: The receipt.
        chain: The log.
        check: Name of the verdict.
        waits: Whether its line is not published yet, but not overdue either.
    """
    place = receipt.batch
    if waits and place > len(chain):  # the worker answers before it has pushed the closed batch
        return not_revealed(
            check, f"Your receipt names line {place} of the public log, which is not public yet."
        )
    reached = chain[place - 1].head if 0 < place <= len(chain) else receipts.GENESIS
    if place > len(chain) or reached != receipt.chain:
        if _is_restored(chain, place):
            told = "according to the log, the state was restored from a backup then"
            return believed(check, f"Line {place}, which your receipt names, was lost: {told}.")
        return contradicted(check, "The public log was changed after you were answered.")
    found = [line for line in chain if receipt.commitment in line.entries]
    if found and (found[0].sequence == place + 1 or place + 1 in receipts.lost_lines(chain)):
        return consistent(check, f"Line {found[0].sequence} of the public log commits to your score.")
    if _may_be_lost(receipt, chain):
        return believed(
            check,
            f"Your score is not in line {place + 1} of the public log, where it belongs: according to the log, the state"
            " was restored from a backup then.",
        )
    if len(chain) > place:
        return contradicted(
            check, f"Your score is not in line {place + 1} of the public log, where it belongs."
        )
    if waits:
        return not_revealed(
            check, "Your score is not in the public log yet; it will come with the next batch."
        )
    return contradicted(
        check, "Your score is not in the public log, and the batch that should hold it is overdue."
    )


def _is_overdue(chain: Sequence[Line], entries: Sequence[Mapping[str, Any]], *, now: datetime) -> bool:
    """Return whether the line after the last one is overdue; the first line follows the beginning of the challenge."""
    since = chain[-1].made_at if chain else receipts.made_at(entries[0])
    return now > since + CADENCES * receipts.cadence(entries)


def _may_be_lost(receipt: Receipt, chain: Sequence[Line]) -> bool:
    """Return whether what opens a score may be lost because the state was restored from a backup."""
    place = receipt.batch
    return (
        place + 1 in receipts.lost_lines(chain)
        or _is_restored(chain, place + 1)
        or (_is_restored(chain, place) and chain[place - 1].head != receipt.chain)
    )


def _is_restored(chain: Sequence[Line], number: int) -> bool:
    """Return whether a line says that the state was restored from a backup before it was made."""
    return 0 < number <= len(chain) and chain[number - 1].restored is not None


def _nowhere(receipt: Receipt, chain: Sequence[Line], check: str, *, hidden: Collection[str]) -> Verdict:
    """Return the verdict on a receipt without a revealed entry."""
    if _may_be_lost(receipt, chain):
        return believed(
            check,
            "The key that opens your score in the log was lost when the state was restored from a backup. Your receipt"
            f" proves that submission {receipt.submission} was {_scored(receipt)}. If no later submission of your"
            " team counts instead, show it to the organizers.",
        )
    if (receipt.q_mean, receipt.counts) == (AFTER_THE_CLOSE.value, AFTER_THE_CLOSE.counts):
        return believed(
            check,
            "Your answer says that the phase was closed before your file was scored, so your submission does not count. It was registered"
            " after the reveal.",
        )
    if hidden:
        return not_revealed(check, "Your score belongs to a phase that has not been revealed yet.")
    return contradicted(check, "Every phase has been revealed, but your score is in none of them.")


def _scored(receipt: Receipt) -> str:
    return "scored" if receipt.q_mean is None else f"scored {receipt.q_mean}"


def _on_the_board(receipt: Receipt, revealed: Sequence[RevealedPhase], check: str) -> Iterator[Verdict]:
    for phase in revealed:
        for (_, opening), (commitment, event) in zip(phase.each_opening(), phase.events, strict=True):
            if commitment != receipt.commitment:
                continue
            if not isinstance(event, ScoreEvent):
                yield _closed(phase, opening, bytes.fromhex(receipt.nonce), check)
            elif (event.submission, event.q_mean, event.counts) != (
                receipt.submission,
                receipt.q_mean,
                receipt.counts,
            ):
                told = "the score that was revealed for you is not the one in your receipt"
                yield phase.contradicted(check, told)
            else:
                yield counting(phase, event.entry, check)
            return


def _closed(phase: RevealedPhase, opening: Mapping[str, Any], nonce: bytes, check: str) -> Verdict:
    """Open the closed part of a score with its owner's nonce: it must be private, or the organizers' own."""
    if _is_true(opening, "own", nonce):
        return phase.consistent(check, "your submission is a trial by the organizers: it is on no board")
    if _is_true(opening, "public_at_first", nonce):
        return phase.contradicted(
            check, "your submission was public when it was scored, but was revealed as private"
        )
    return phase.consistent(
        check, "your submission is private, and was revealed as private: it is on no board"
    )


def _is_true(opening: Mapping[str, Any], field: str, nonce: bytes) -> bool:
    return bool(opening["hidden"].get(field) == events.field_hash(field, True, events.salt(nonce, field)))

"""Participants as witnesses: a signed receipt, checked against the log, the register and the final board."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from worker.fairness import events, receipts, succession
from worker.fairness.events import ScoreEvent
from worker.fairness.ladder import AFTER_THE_CLOSE
from worker.fairness.signing import is_signed
from worker.fairness.verify.counting import counting
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.registered import CADENCES
from worker.fairness.verify.revealed import (
    UNREADABLE,
    RevealedPhase,
    phases,
    public_commitments,
    read_phase,
    revealed_phases,
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
    for name in revealed_phases(repository):
        try:
            for commitment, event in read_phase(repository, name).events:
                if commitment == receipt.get("commitment") and isinstance(event, ScoreEvent):
                    return Scored(phase=name, submission=event.submission, content_hash=event.content)
        except UNREADABLE:
            continue
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
    if not receipts.is_genuine(receipt) or (told is not None and told != receipt["q_mean"]):
        yield believed(check, "This receipt was changed after it was signed: it proves nothing.")
        return
    try:
        yield from _claims(repository, receipt, check=check, now=now or datetime.now(UTC))
    except UNREADABLE as error:
        yield contradicted(
            check, f"What the receipt has to be compared with cannot be read ({type(error).__name__})."
        )


def _claims(
    repository: PublicRepository, receipt: Mapping[str, Any], *, check: str, now: datetime
) -> Iterator[Verdict]:
    entries = public_commitments(repository)
    lines = list(repository.lines(receipts.PATH))
    waits = len(lines) <= int(receipt["batch"]) and not _is_overdue(
        lines, begun_at=receipts.made_at(entries[0]), now=now
    )
    named = receipt["challenge"] in {entry.get("commitment") for entry in entries}
    if str(receipt["key"]) not in succession.keys_in(entries):
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
    revealed = [read_phase(repository, name) for name in revealed_phases(repository)]
    yield _in_the_log(receipt, lines, check, waits=waits)
    hidden = set(phases(repository)) - {phase.name for phase in revealed}
    opened = list(_on_the_board(receipt, revealed, check))
    yield from opened or [_nowhere(receipt, lines, check, hidden=hidden)]


def _is_of_a_replaced_key(
    receipt: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], chain: Sequence[Mapping[str, Any]]
) -> bool:
    """Return whether a receipt names a commitment or line signed by a later key than its own: then somebody else made the receipt.

    Any other receipt remains evidence, whatever is said about its key. Otherwise the organizers could use a new key to discredit receipts.
    """
    keys = succession.keys_in(entries)
    later = keys[keys.index(str(receipt["key"])) + 1 :]
    named = next((entry for entry in entries if entry.get("commitment") == receipt["challenge"]), {})
    if named.get("key") in later:
        return True
    place = int(receipt["batch"])
    line = chain[place - 1] if 0 < place <= len(chain) else {}
    return any(is_signed(key, receipts.BATCH, line.get("head"), line.get("signature")) for key in later)


def _in_the_log(
    receipt: Mapping[str, Any],
    chain: Sequence[Mapping[str, Any]],
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
    place = int(receipt["batch"])
    if waits and place > len(chain):  # the worker answers before it has pushed the closed batch
        return not_revealed(
            check, f"Your receipt names line {place} of the public log, which is not public yet."
        )
    reached = str(chain[place - 1]["head"]) if 0 < place <= len(chain) else receipts.GENESIS
    if place > len(chain) or reached != receipt["chain"]:
        if _is_restored(chain, place):
            told = "according to the log, the state was restored from a backup then"
            return believed(check, f"Line {place}, which your receipt names, was lost: {told}.")
        return contradicted(check, "The public log was changed after you were answered.")
    found = [line for line in chain if receipt["commitment"] in line["entries"]]
    if found and (found[0]["sequence"] == place + 1 or place + 1 in receipts.lost_lines(chain)):
        return consistent(check, f"Line {found[0]['sequence']} of the public log commits to your score.")
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


def _is_overdue(chain: Sequence[Mapping[str, Any]], *, begun_at: datetime, now: datetime) -> bool:
    """Return whether the line after the last one is overdue; the first line follows the beginning of the challenge."""
    since = receipts.made_at(chain[-1]) if chain else begun_at
    every_s = receipts.cadence(chain[-1]) if chain else receipts.LONGEST_CADENCE_S
    return now > since + CADENCES * timedelta(seconds=every_s)


def _may_be_lost(receipt: Mapping[str, Any], chain: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether what opens a score may be lost because the state was restored from a backup."""
    place = int(receipt["batch"])
    return (
        place + 1 in receipts.lost_lines(chain)
        or _is_restored(chain, place + 1)
        or (_is_restored(chain, place) and chain[place - 1]["head"] != receipt["chain"])
    )


def _is_restored(chain: Sequence[Mapping[str, Any]], number: int) -> bool:
    """Return whether a line says that the state was restored from a backup before it was made."""
    return 0 < number <= len(chain) and chain[number - 1]["restored"] is not None


def _nowhere(
    receipt: Mapping[str, Any], chain: Sequence[Mapping[str, Any]], check: str, *, hidden: Collection[str]
) -> Verdict:
    """Return the verdict on a receipt without a revealed entry."""
    if _may_be_lost(receipt, chain):
        return believed(
            check,
            "The key that opens your score in the log was lost when the state was restored from a backup. Your receipt"
            f" proves that submission {receipt['submission']} was {_scored(receipt)}. If no later submission of your"
            " team counts instead, show it to the organizers.",
        )
    if (receipt["q_mean"], receipt["counts"]) == (AFTER_THE_CLOSE.value, AFTER_THE_CLOSE.counts):
        return believed(
            check,
            "Your answer says that the phase was closed before your file was scored, so your submission does not count. It was registered"
            " after the reveal.",
        )
    if hidden:
        return not_revealed(check, "Your score belongs to a phase that has not been revealed yet.")
    return contradicted(check, "Every phase has been revealed, but your score is in none of them.")


def _scored(receipt: Mapping[str, Any]) -> str:
    return "scored" if receipt["q_mean"] is None else f"scored {receipt['q_mean']}"


def _on_the_board(
    receipt: Mapping[str, Any], revealed: Sequence[RevealedPhase], check: str
) -> Iterator[Verdict]:
    for phase in revealed:
        for opening, (commitment, event) in zip(phase.each_opening(), phase.events, strict=True):
            if commitment != receipt["commitment"]:
                continue
            if not isinstance(event, ScoreEvent):
                yield _closed(phase, opening, bytes.fromhex(receipt["nonce"]), check)
            elif (event.submission, event.q_mean, event.counts) != _told(receipt):
                told = "the score that was revealed for you is not the one in your receipt"
                yield phase.contradicted(check, told)
            else:
                yield counting(phase, event.entry, check)
            return


def _told(document: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return what a receipt says: the submission, the value and, if the Ladder selects, whether it counts."""
    return document["submission"], document["q_mean"], document["counts"]


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

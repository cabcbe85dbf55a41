"""Participants as witnesses: compare what they were shown with the repository."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scoring.quality import mean_quality
from worker.fairness import receipts
from worker.fairness.verify.claims import claims
from worker.fairness.verify.ledger import listed
from worker.fairness.verify.places import place
from worker.fairness.verify.public import PublicRepository
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
            for entry in read_phase(repository, name).entries:
                if entry["commitment"] == receipt.get("commitment"):
                    return Scored(
                        phase=name,
                        submission=int(entry["submission"]),
                        content_hash=str(entry["record"]["content_hash"]),
                    )
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
    if receipt.get("format") == receipts.FORMAT:
        try:
            yield from claims(repository, receipt, told, check=check, now=now or datetime.now(UTC))
        except UNREADABLE as error:
            yield contradicted(
                check, f"What the receipt has to be compared with cannot be read ({type(error).__name__})."
            )
        return
    entries = public_commitments(repository)
    if entries and entries[0].get("format") == receipts.FORMAT:
        yield believed(
            check, "This receipt is not signed, and this challenge signs all of them: it proves nothing."
        )
    else:
        yield from _earlier(repository, receipt, told, check)


def _earlier(
    repository: PublicRepository, receipt: Mapping[str, Any], told: float | None, check: str
) -> Iterator[Verdict]:
    """Check a receipt of format 1."""
    entries = public_commitments(repository)
    challenges = {str(entry.get("commitment")) for entry in entries}
    lines = list(repository.lines(receipts.PATH))
    if str(receipt.get("challenge")) in challenges:
        yield consistent(check, "The commitment in your receipt is in the repository.")
    else:
        yield contradicted(
            check, "The commitment in your receipt is not in the repository: history was rewritten."
        )
    if str(receipt.get("chain")) in {receipts.GENESIS, *(str(line.get("head")) for line in lines)}:
        yield consistent(
            check, "The public log still contains everything that was in it when you were answered."
        )
    else:
        yield contradicted(check, "The public log was changed after you were answered.")
    if str(receipt.get("commitment")) in listed(lines):
        yield consistent(check, "Your score's receipt is in the log.")
    else:
        yield not_revealed(check, _not_listed(receipt, lines))
    revealed = revealed_phases(repository)
    found = False
    for name in revealed:
        try:
            for verdict in _of_phase(read_phase(repository, name), receipt, told, check):
                found = True
                yield verdict
        except UNREADABLE:
            found = True
            yield contradicted(check, "The revealed scores cannot be read.", phase=name)
    if not found:
        yield _nowhere([name for name in phases(repository) if name not in revealed], check)


def _not_listed(receipt: Mapping[str, Any], lines: list[dict[str, Any]]) -> str:
    """Return the sentence that a receipt is not in the log, with the number of batches published since it was given."""
    heads = [receipts.GENESIS, *(str(line.get("head")) for line in lines)]
    chain = str(receipt.get("chain"))
    since = len(heads) - 1 - heads.index(chain) if chain in heads else 0
    if not since:
        return "Your score's receipt is not in the log yet; it will come with the next batch."
    return (
        f"Your score's receipt is not in the log, although {since} batches have been added since you were answered."
        " It should have been in the first of them, unless the organizers had to restore a backup: ask them."
    )


def _nowhere(hidden: list[str], check: str) -> Verdict:
    """Return the verdict on a receipt without a revealed entry."""
    if hidden:
        return not_revealed(
            check,
            f"No revealed entry has your receipt, and phase {', '.join(hidden)} has not been revealed: whether your"
            " submission counts is not known yet.",
        )
    return believed(
        check,
        "No revealed entry has your receipt: your submission was never on a board. Either it was private, or another"
        " one of your team counted from the start; this format does not show which, so that is taken on trust.",
    )


def _of_phase(
    phase: RevealedPhase, receipt: Mapping[str, Any], told: float | None, check: str
) -> Iterator[Verdict]:
    """Compare the revealed scores with those in a receipt, and find the entry's place; nothing if no entry matches."""
    for entry in phase.entries:
        if entry["commitment"] == receipt.get("commitment"):
            yield _promised(phase, entry, receipt, told, check)
            yield place(phase, entry, check)
            return


def _promised(
    phase: RevealedPhase, entry: Mapping[str, Any], receipt: Mapping[str, Any], told: float | None, check: str
) -> Verdict:
    """Compare the revealed scores of an entry with those in its receipt."""
    record = entry["record"]
    if receipts.commitment_of(record, bytes.fromhex(str(receipt.get("nonce")))) != entry["commitment"]:
        return phase.contradicted(
            check, "the scores that were revealed for you are not those in your receipt"
        )
    # A shown value keeps its decimals, whatever the rules are later.
    decimals = min([phase.rules.decimals, *(one.rules_then(phase.rules).decimals for one in phase.boards)])
    rounding = 0.5 * 10.0**-decimals + 1e-9
    q_mean = mean_quality(list(phase.quality_of(record).values()))
    if told is not None and not math.isclose(q_mean, told, rel_tol=0, abs_tol=rounding):
        return phase.contradicted(
            check, "the mean Q that was posted for you does not follow from your scores"
        )
    return phase.consistent(check, "the scores that were revealed for you are those in your receipt")

"""Participants are the witnesses: what they were told, against what stands in the repository."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from scoring.quality import mean_quality
from worker.fairness import commitments, receipts
from worker.fairness.verify.ledger import listed
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import UNREADABLE, RevealedPhase, read_phase, revealed_phases
from worker.fairness.verify.verdict import Verdict, consistent, contradicted, not_revealed


def receipt_verdicts(
    repository: PublicRepository, receipt: Mapping[str, Any], told: float | None = None
) -> Iterator[Verdict]:
    """Check what a participant was told against the repository: participants are the witnesses.

    Args:
        repository: The public files.
        receipt: The receipt in the stdout that EvalAI showed.
        told: Mean Q in the same stdout.
    """
    try:
        entries = list(repository.json(commitments.PATH))
        challenges = {entry.get("commitment") for entry in entries}
    except UNREADABLE:
        challenges = set()
    lines = list(repository.lines(receipts.PATH))
    if receipt.get("challenge") in challenges:
        yield consistent("your receipt", "The commitment in your receipt is in the repository.")
    else:
        yield contradicted(
            "your receipt", "The commitment in your receipt is not in the repository: history was rewritten."
        )
    if receipt.get("chain") in {receipts.GENESIS, *(str(line.get("head")) for line in lines)}:
        yield consistent(
            "your receipt", "The log of receipts still contains all that was in it when you were answered."
        )
    else:
        yield contradicted("your receipt", "The log of receipts was changed after you were answered.")
    if receipt.get("commitment") in listed(lines):
        yield consistent("your receipt", "Your score's receipt is in the log.")
    else:
        yield not_revealed(
            "your receipt", "Your score's receipt is not in the log yet; it comes with the next batch."
        )
    for name in revealed_phases(repository):
        try:
            verdict = _promised(read_phase(repository, name), receipt, told)
        except UNREADABLE:
            verdict = contradicted("your receipt", "The revealed scores cannot be read.", phase=name)
        if verdict is not None:
            yield verdict


def _promised(phase: RevealedPhase, receipt: Mapping[str, Any], told: float | None) -> Verdict | None:
    """Compare the revealed scores with those that a receipt promised; None if none of them claim to be its."""
    for entry in phase.entries:
        if entry["commitment"] != receipt.get("commitment"):
            continue
        record = entry["record"]
        if receipts.commitment_of(record, bytes.fromhex(str(receipt.get("nonce")))) != entry["commitment"]:
            return contradicted(
                "your receipt",
                "The scores that were revealed for you are not those in your receipt.",
                phase=phase.name,
            )
        values = list(phase.quality_of(record).values())
        # What was told keeps its decimals, whatever the rules became afterwards.
        decimals = min(
            [phase.rules.decimals, *(one.rules_then(phase.rules).decimals for one in phase.boards)]
        )
        rounding = 0.5 * 10.0**-decimals + 1e-9
        if told is not None and not math.isclose(mean_quality(values), told, rel_tol=0, abs_tol=rounding):
            return contradicted(
                "your receipt",
                "The mean Q that you were told does not follow from your scores.",
                phase=phase.name,
            )
        return consistent(
            "your receipt",
            "The scores that were revealed for you are those that your receipt promised.",
            phase=phase.name,
        )
    return None

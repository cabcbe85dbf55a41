"""Checks of the public log: files that may only grow, the chain of receipts, and the receipts that participants kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from scoring.quality import mean_quality, quality
from scoring.scorecard import folds_from_json
from worker.fairness import commitments, receipts
from worker.fairness.canonical import is_prefix
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import UNREADABLE, RevealedPhase, read_phase, revealed_phases
from worker.fairness.verify.verdict import Verdict, false, true, unknown

HISTORY = "leaderboard/history.jsonl"
GROWING = (commitments.PATH, receipts.PATH, HISTORY)
CLOCK_SLACK = timedelta(minutes=5)  # a clock may be set back between a commitment and the first score


def history(repository: PublicRepository) -> Iterator[Verdict]:
    """Check that the files that may only grow did."""
    if not repository.with_history:
        yield unknown(
            "history",
            "This is a plain folder: whether its files were changed later can only be seen in the repository.",
        )
        return
    for path in GROWING:
        contents = repository.versions.get(path, [])
        if path == commitments.PATH:
            versions = [json.loads(content) if content else [] for content in contents]
            grew = all(is_prefix(earlier, later) for earlier, later in pairwise(versions))
        else:
            grew = all(later.startswith(earlier) for earlier, later in pairwise(contents))
        if grew:
            yield true("history", f"{path} only ever grew (versions: {len(contents)}).")
        else:
            yield false(
                "history",
                f"{path} was changed after it was published: an earlier version says something else.",
            )


def chain(lines: list[dict[str, Any]]) -> Verdict:
    """Check that the log of receipts is unbroken."""
    previous = receipts.GENESIS
    for number, line in enumerate(lines, start=1):
        body = {key: value for key, value in line.items() if key != "head"}
        try:
            intact = (
                line["sequence"] == number
                and line["previous"] == previous
                and line["head"] == receipts.chained(previous, body)
            )
        except UNREADABLE:
            intact = False
        if not intact:
            return false(
                "receipts",
                f"The chain of receipts is broken at line {number}: something was changed, dropped or reordered.",
            )
        previous = line["head"]
    if not lines:
        return unknown("receipts", "No receipts have been published yet.")
    return true("receipts", f"The chain of receipts is unbroken (batches: {len(lines)}).")


def listed(lines: list[dict[str, Any]]) -> frozenset[str]:
    """Return all receipts of the public log."""
    batches = (line.get("receipts") for line in lines)
    return frozenset(str(receipt) for batch in batches if isinstance(batch, list) for receipt in batch)


def scores(phase: RevealedPhase) -> Verdict:
    """Check that every score was committed to when it was made, and made on tasks that were committed to before."""
    published = listed(phase.chain)
    for entry in phase.entries:
        record, submission = entry["record"], entry["submission"]
        commitment = receipts.commitment_of(record, bytes.fromhex(entry["nonce"]))
        if commitment != entry["commitment"] or commitment not in published:
            return phase.false(
                "scores", f"the scores of submission {submission} have no receipt in the public log"
            )
        if record["submission"] != submission or record["phase"] != phase.name:
            return phase.false("scores", f"the receipt of submission {submission} is another submission's")
        versions = {task: cell["version"] for task, cell in record["cells"].items()}
        moments = [
            promise.made_at
            for promise in phase.promises
            if promise.manifest is not None
            and promise.manifest["protocol_hash"] == record["protocol_hash"]
            and {task["identifier"]: task["version"] for task in promise.manifest["tasks"]} == versions
        ]
        if not moments:
            return phase.false(
                "scores",
                f"submission {submission} was scored on tasks, or by a protocol, that nobody committed to",
            )
        if datetime.fromisoformat(record["scored_at"]) < min(moments) - CLOCK_SLACK:
            return phase.false(
                "scores",
                f"submission {submission} was scored before anybody committed to the tasks that it was scored on",
            )
    return phase.true(
        "scores",
        f"the scores of all {len(phase.entries)} entries have a receipt in the public log "
        "and were made on tasks that were committed to before",
    )


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
        yield true("your receipt", "The commitment in your receipt is in the repository.")
    else:
        yield false(
            "your receipt", "The commitment in your receipt is not in the repository: history was rewritten."
        )
    if receipt.get("chain") in {receipts.GENESIS, *(str(line.get("head")) for line in lines)}:
        yield true(
            "your receipt", "The log of receipts still contains all that was in it when you were answered."
        )
    else:
        yield false("your receipt", "The log of receipts was changed after you were answered.")
    if receipt.get("commitment") in listed(lines):
        yield true("your receipt", "Your score's receipt is in the log.")
    else:
        yield unknown(
            "your receipt", "Your score's receipt is not in the log yet; it comes with the next batch."
        )
    for name in revealed_phases(repository):
        try:
            verdict = _promised(read_phase(repository, name), receipt, told)
        except UNREADABLE:
            verdict = false("your receipt", f"Phase {name}: the revealed scores cannot be read.")
        if verdict is not None:
            yield verdict


def _promised(phase: RevealedPhase, receipt: Mapping[str, Any], told: float | None) -> Verdict | None:
    """Compare the revealed scores with those that a receipt promised; None if none of them claim to be its."""
    for entry in phase.entries:
        if entry["commitment"] != receipt.get("commitment"):
            continue
        record = entry["record"]
        if receipts.commitment_of(record, bytes.fromhex(str(receipt.get("nonce")))) != entry["commitment"]:
            return false(
                "your receipt",
                f"Phase {phase.name}: the scores that were revealed for you are not those in your receipt.",
            )
        epsilon = phase.epsilon_of(record)
        values = [quality(folds_from_json(cell["folds"]), epsilon).q for cell in record["cells"].values()]
        # What was told keeps its decimals, whatever the rules became afterwards.
        decimals = min(
            [phase.rules.decimals, *(one.rules_then(phase.rules).decimals for one in phase.boards)]
        )
        rounding = 0.5 * 10.0**-decimals + 1e-9
        if told is not None and not math.isclose(mean_quality(values), told, rel_tol=0, abs_tol=rounding):
            return false(
                "your receipt",
                f"Phase {phase.name}: the mean Q that you were told does not follow from your scores.",
            )
        return true(
            "your receipt",
            f"Phase {phase.name}: the scores that were revealed for you are those that your receipt promised.",
        )
    return None

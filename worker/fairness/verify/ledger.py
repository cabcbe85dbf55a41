"""Checks of the public log: the files that may only grow, the chain of receipts, and a receipt for every score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

from scoring.printable import all_of, count_of
from worker.fairness import receipts, signing
from worker.fairness.documents import Malformed
from worker.fairness.receipts import Line
from worker.fairness.signing import is_signed
from worker.fairness.verify.growth import GROWING
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import RevealedPhase
from worker.fairness.verify.verdict import (
    Verdict,
    believed,
    consistent,
    contradicted,
    not_revealed,
)

CLOCK_SLACK = timedelta(minutes=5)  # a clock may be set back between a commitment and the first score
A_DAY = timedelta(days=1)  # by which the clock of whoever verifies may be behind


def history(repository: PublicRepository) -> Iterator[Verdict]:
    """Check that the files that may only grow have only grown."""
    seen = repository.history
    if seen is None:
        yield believed(
            "history",
            (
                "This is a plain folder without history, so it is taken on trust that its files were not changed later. Check"
                " a clone of the repository instead."
            ),
        )
        return
    yield believed(
        "clocks",
        "It is taken on trust that this history was published during the challenge, and that the organizers' clocks were"
        " right. A receipt or a clone from that time can contradict it (--receipt, --against).",
    )
    if not seen.whole:
        yield believed("history", "This clone is shallow: commits from before it begins cannot be checked.")
    # In a repository without a signed commit, nothing shows who has removed something.
    signed = [
        (path, step) for (path, _), step in seen.growth.signed if seen.key and step.commit in seen.commits
    ]
    for path in GROWING:
        if (step := seen.growth.dropped.get(path)) is not None:
            yield contradicted(
                "history",
                f"{path} was changed after it was published: what commit {step.commit[:10]} by {step.author} published is no longer"
                " in it, or was changed.",
            )
        elif (step := dict(signed).get(path)) is not None:
            yield contradicted(
                "history",
                f"{path}: commit {step.commit[:10]} by {step.author} published something that the challenge's key has signed, and"
                " that is no longer in it.",
            )
        else:
            yield consistent(
                "history", f"{path}: nothing in it was removed or changed after it was published."
            )


def order(repository: PublicRepository) -> Verdict | None:
    """Check that no board was pushed before the first commitment; None if there is no history to check."""
    seen = repository.history
    if seen is None or not seen.whole:
        return None
    if number := len(seen.growth.uncommitted.splitlines()):
        return contradicted(
            "order", f"{count_of(number, 'board was', 'boards were')} pushed before the first commitment."
        )
    return consistent("order", "The first commitment was pushed before any board, or with the first one.")


def log(repository: PublicRepository, lines: list[Line], now: datetime) -> Verdict:
    """Check that the log of receipts is unbroken, and that its times never go back or lie in the future."""
    if not lines and repository.files.get(receipts.PATH):
        return contradicted("receipts", f"{_malformed_line(repository.files[receipts.PATH])}.")
    previous, last = receipts.GENESIS, datetime.min.replace(tzinfo=UTC)
    for number, line in enumerate(lines, start=1):
        if line.sequence != number or line.previous != previous or not line.is_chained:
            return contradicted(
                "receipts",
                f"The public log is broken at line {number}: something was changed, dropped or reordered.",
            )
        if line.restored is not None and line.restored.last != number - 1:
            return contradicted(
                "receipts",
                f"Line {number} of the public log reports lines as lost that are not those right before it.",
            )
        if number > 1 and line.made_at < last - CLOCK_SLACK:
            return contradicted(
                "receipts", f"Line {number} of the public log is dated earlier than the line before it."
            )
        previous, last = line.head, line.made_at
    if not lines:
        return not_revealed("receipts", "No receipts have been published yet.")
    if last > now + A_DAY:
        return contradicted("receipts", f"Line {len(lines)} of the public log is dated in the future.")
    restored = "".join(
        f" According to line {line.sequence}, the state was restored from a backup: what was registered after that backup is lost."
        for line in lines
        if line.restored is not None
    )
    return consistent("receipts", f"The public log is unbroken (batches: {len(lines)}).{restored}")


def _malformed_line(content: bytes) -> str:
    try:
        receipts.read_log(content)
    except Malformed as fault:
        return str(fault)
    return "It has no line"


def scores(phase: RevealedPhase) -> Verdict:
    """Check that every score was made on tasks and by a protocol with an earlier commitment."""
    for record in chain.from_iterable(phase.records.values()):
        submission = record.submission
        moments = [
            promise.made_at
            for promise in phase.promises
            if promise.manifest is not None
            and (promise.manifest.protocol_hash, promise.manifest.versions)
            == (record.protocol, record.versions)
        ]
        if not moments:
            return phase.contradicted(
                "scores",
                f"submission {submission} was scored on tasks or by a protocol without a commitment",
            )
        if record.at < min(moments) - CLOCK_SLACK:
            return phase.contradicted(
                "scores",
                f"submission {submission} was scored before there was a commitment to its tasks",
            )
    if not phase.records:
        return phase.consistent("scores", "no score is open")
    return phase.consistent(
        "scores",
        f"the scores of {all_of(len(phase.records), 'entry', 'entries')} were made after a commitment to their tasks",
    )


def signatures(entries: Sequence[Mapping[str, Any]], chain: Sequence[Line]) -> Iterator[Verdict]:
    """Check that commitments and batches are signed, each with the challenge's key of its time; report when the key was replaced."""
    keys: list[str] = []
    changes = []
    for entry in entries:
        key = signing.key_of(entry, keys)
        if key is None:
            yield contradicted(
                "signatures",
                f"Commitment {entry['sequence']} is signed neither with the key that the challenge had then nor with"
                " one signed by that key.",
            )
            return
        if key not in keys:
            keys.append(key)
            changes.append(f"on {entry['made_at'][:16]} ({entry['reason']})")
    if (wrong := _first_unsigned(chain, keys)) is not None:
        yield contradicted(
            "signatures",
            f"Line {wrong.sequence} of the public log is not signed with the key that the challenge had then.",
        )
        return
    replaced = "; ".join(changes[1:])
    told = f" The key was replaced {replaced}; each key has signed the next one." if replaced else ""
    yield consistent("signatures", f"Commitments and log are signed with the challenge's key.{told}")


def _first_unsigned(chain: Sequence[Line], keys: Sequence[str]) -> Line | None:
    """Return the first line that no key has signed; a replaced key must not sign a line after its successor has signed one."""
    left = list(keys)
    for line in chain:
        while left and not is_signed(left[0], receipts.BATCH, line.head, line.signature):
            left.pop(0)
        if not left:
            return line
    return None

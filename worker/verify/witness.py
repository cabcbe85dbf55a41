"""Participants as witnesses: a signed receipt, checked against the log, the register and the final board."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from scoring.documents import UNREADABLE
from worker.challenge.signing import fingerprint
from worker.fairness import events, receipts
from worker.fairness.decisions import minute
from worker.fairness.documents import read
from worker.fairness.events import ClosedEvent, ScoreEvent
from worker.fairness.receipts import Line, Receipt
from worker.participant.challenge import MISSED
from worker.verify.decisions import AS_A_TRIAL, counting
from worker.verify.public import PublicRepository
from worker.verify.revealed import RevealedPhase, each_opening, read_reveals
from worker.verify.verdict import (
    CheckEnded,
    Status,
    Verdict,
    believed,
    consistent,
    contradicted,
    judged,
    not_revealed,
    require,
)

RECEIPT = "your receipt"


def entry_of(repository: PublicRepository, receipt: Mapping[str, Any]) -> ScoreEvent | None:
    """Return the revealed entry to which a receipt belongs; None if there is none, or it cannot be read."""
    named = (
        event
        for phase in read_reveals(repository).phases.values()
        for commitment, event in phase.events
        if commitment == receipt.get("commitment")
    )
    return next((event for event in named if isinstance(event, ScoreEvent)), None)


def key_in(claimed: Mapping[str, Any]) -> str | None:
    """Return the key that has signed a receipt; None if it is not genuine."""
    try:
        receipt = read(Receipt, json.dumps(claimed), RECEIPT)
        return receipt.key if receipt.is_genuine else None
    except UNREADABLE:
        return None


def receipt_verdicts(
    repository: PublicRepository,
    receipt: Mapping[str, Any],
    shown_value: float | None = None,
    *,
    check: str = RECEIPT,
    now: datetime | None = None,
) -> Iterator[Verdict]:
    """Check what a participant was shown against the repository, and report whether the submission counts.

    Args:
        repository: The public files.
        receipt: The receipt in the stdout that EvalAI showed.
        shown_value: Mean Q in the same stdout.
        check: Name of the verdicts.
        now: The time, after which a batch may be overdue.
    """
    return judged(check, _claims, repository, receipt, shown_value, now or datetime.now(UTC))


def _claims(
    repository: PublicRepository, claimed: Mapping[str, Any], shown_value: float | None, now: datetime
) -> Iterator[Verdict]:
    if key_in(claimed) is None:
        raise CheckEnded("this receipt was changed after it was signed: it proves nothing", Status.BELIEVED)
    receipt = Receipt.model_validate(claimed)
    entries, log = repository.commitments, repository.log
    require(entries, "there are no commitments with which the receipt could be compared")
    since = log[-1].made_at if log else entries[0].made_at  # the first line follows the beginning
    overdue_at = since + MISSED * receipts.cadence(entries)
    waits = len(log) <= receipt.batch and now <= overdue_at
    named = receipt.challenge in {entry.commitment for entry in entries}
    if repository.key not in (None, receipt.key):
        raise CheckEnded(
            f"your receipt was signed with another key ({fingerprint(receipt.key)}) than this challenge's, so it proves nothing about it."
            " Compare both with the fingerprint that the organizers have told",
            Status.CHANGED,
        )
    yield consistent("your receipt carries the challenge's signature")
    if shown_value not in (None, receipt.q_mean):
        yield believed(
            f"mean Q {shown_value}, which stands next to your receipt, is not the one that was signed: it proves nothing"
        )
    if repository.is_copy and len(log) <= receipt.batch:
        raise CheckEnded(
            "this copy of the repository is too old, or your answer too new: check the repository at its address",
            Status.NOT_REVEALED,
        )
    if not named and waits:
        yield not_revealed(
            "the commitment in your receipt has not been published yet; it will be before the next batch of receipts"
        )
    elif not named:
        yield contradicted("the commitment in your receipt is not in the repository: history was rewritten")
    yield _in_the_log(receipt, log, waits=waits)
    phases = read_reveals(repository).phases
    for phase in phases.values():
        if receipt.commitment in {commitment for commitment, _ in phase.events}:
            yield from judged("", _on_the_board, receipt, phase, now, phase=phase.name)
            return
    yield _nowhere(receipt, log, hidden=waits or phases.keys() != set(repository.phases))


def _in_the_log(receipt: Receipt, log: Sequence[Line], *, waits: bool) -> Verdict:
    """Look for a receipt's entry in the log.

    Args:
        receipt: The receipt.
        log: The log.
        waits: Whether its line is not published yet, but not overdue either.
    """
    place = receipt.batch
    if waits and place > len(log):  # the worker answers before it has pushed the closed batch
        return not_revealed(f"your receipt names line {place} of the public log, which is not public yet")
    reached = log[place - 1].head if 0 < place <= len(log) else receipts.GENESIS
    restored = "according to the log, the state was restored from a backup then"
    if place > len(log) or reached != receipt.chain:
        if _is_restored(log, place):
            return believed(f"line {place}, which your receipt names, was lost: {restored}")
        return contradicted("the public log was changed after you were answered")
    line = next((line for line in log if receipt.commitment in line.entries), None)
    if line is not None and (line.sequence == place + 1 or place + 1 in receipts.lost_lines(log)):
        return consistent(f"line {line.sequence} of the public log commits to your score")
    missing = f"your score is not in line {place + 1} of the public log, where it belongs"
    if _may_be_lost(receipt, log):
        return believed(f"{missing}: {restored}")
    if len(log) > place:
        return contradicted(missing)
    if waits:
        return not_revealed("your score is not in the public log yet; it will come with the next batch")
    return contradicted("your score is not in the public log, and the batch that should hold it is overdue")


def _may_be_lost(receipt: Receipt, log: Sequence[Line]) -> bool:
    """Return whether what opens a score may be lost because the state was restored from a backup."""
    place = receipt.batch
    return (
        place + 1 in receipts.lost_lines(log)
        or _is_restored(log, place + 1)
        or (_is_restored(log, place) and log[place - 1].head != receipt.chain)
    )


def _is_restored(log: Sequence[Line], number: int) -> bool:
    """Return whether a line says that the state was restored from a backup before it was made."""
    return 0 < number <= len(log) and log[number - 1].restored is not None


def _nowhere(receipt: Receipt, log: Sequence[Line], *, hidden: bool) -> Verdict:
    """Return the verdict on a receipt without a revealed entry; ``hidden`` says whether more is to be revealed."""
    if _may_be_lost(receipt, log):
        scored = "scored" if receipt.q_mean is None else f"scored {receipt.q_mean}"
        return believed(
            "the key that opens your score in the log was lost when the state was restored from a backup. Your receipt proves that"
            f" submission {receipt.submission} was {scored}. If neither that one nor a later one of your team counts, show it to"
            " the organizers"
        )
    if hidden:
        return not_revealed("your score has not been revealed yet")
    return contradicted("every phase has been revealed, but your score is in none of them")


def _on_the_board(receipt: Receipt, phase: RevealedPhase, now: datetime) -> Verdict:
    """Return what became of a submission whose score was opened."""
    repository, revealed_at = phase.repository, phase.document.revealed_at
    openings = zip(each_opening(repository, phase.document), phase.events, strict=True)
    opening, event = next(
        (opening, event) for (_, opening), (commitment, event) in openings if commitment == receipt.commitment
    )
    # The rest of a closed score opens with its owner's nonce: it must be private, or the organizers' own.
    nonce = bytes.fromhex(receipt.nonce)
    for name in ("submission", "q_mean", "counts"):
        told, is_open = getattr(receipt, name), isinstance(event, ScoreEvent)
        require(
            getattr(event, name) == told if is_open else _is(opening, name, told, nonce),
            "the score that was revealed for you is not the one in your receipt",
        )
    if isinstance(event, ScoreEvent):
        return counting(phase, event.entry)
    if _is(opening, "own", True, nonce):
        teams = {
            facts.team_key: facts.team
            for history in phase.replay.submissions.values()
            for facts in history.events
            if facts.answered
            and not facts.own  # before its author was known, the organizers' own was taken for a participant's
        }
        rival = [name for key, name in teams.items() if _is(opening, "team_key", key, nonce)]
        require(
            not rival,
            f"your submission was registered as a trial by the organizers, although team {', '.join(map(str, rival))} sent it, which has"
            " submissions of its own",
        )
        return believed(AS_A_TRIAL)
    if not _is(opening, "public_at_first", False, nonce):
        overdue_at = revealed_at + MISSED * receipts.cadence(repository.commitments)
        require(
            repository.is_copy or now <= overdue_at,
            "your submission was revealed as private, but was not registered as private",
        )
        return not_revealed(  # the next push opens it
            f"according to the reveal of {minute(revealed_at)}, your submission had not been answered by then. If it had been, that is"
            " false; otherwise check the repository at its address again later"
        )
    ranked = {
        row.team_key: other.name
        for other in read_reveals(repository).phases.values()
        if phase.name in {decided.rules.eligible_if_scored_in for decided in other.replay.decisions.events}
        for board in other.boards[-1:]
        for row in board.standings
    }
    competes = [name for key, name in ranked.items() if _is(opening, "team_key", key, nonce)]
    is_shown = isinstance(event, ClosedEvent) and event.entry in phase.replay.qualifying
    require(
        is_shown or not competes,
        f"because of your submission, your team may compete in phase {', '.join(competes)}; the reveal hides whose submission it is",
    )
    return consistent("your submission is private, and was revealed as private: it is on no board")


def _is(opening: Mapping[str, Any], field: str, value: object, nonce: bytes) -> bool:
    """Return whether a hidden field of an opening has a value."""
    return bool(opening["hidden"].get(field) == events.field_hash(field, value, events.salt(nonce, field)))

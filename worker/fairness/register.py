"""The register: every fact that decides a board becomes a committed event when it is first seen and whenever it changes.

A board is made from the facts of one moment, which are registered in the same transaction. So every board can be recomputed from the
events, and if an entry was dropped, hidden or removed, the register shows when.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import lru_cache
from typing import Any

from scoring.engines import KERNEL_ENGINES
from scoring.errors import InfrastructureError
from scoring.quality import mean_quality, shown
from scoring.scorecard import folds_to_json
from worker.challenge.canonical import canonical
from worker.challenge.records import PhaseRecord
from worker.challenge.setups import read_record
from worker.fairness import events, pseudonyms
from worker.fairness.hashing import NONCE_BYTES, digest
from worker.fairness.ladder import ShownValue
from worker.state import COUNTED, CellRow, State, SubmissionRow, Transaction

ROWS = 4096  # in the cache of hashes of facts
ENTRY_BYTES = 16  # of a submission's pseudonym, which is random because numbers could be guessed


def register(tx: Transaction, now: datetime, *, reason: str = "") -> datetime:
    """Register what has changed since the last call.

    Args:
        tx: The transaction that changed it, or that reads it for a board.
        now: The time.
        reason: Why, in the words of the person who decided it. All events registered by this call get it, so earlier changes must be
            registered before the decision.

    Returns:
        The time of the new events, which is later than that of all earlier ones, and which a board made from these facts carries.
    """
    at = tx.attestation_time(now)
    records = {name: record for name in tx.phases() if (record := _record(tx, name)) is not None}
    _register_phases(tx, records, at, reason)
    _register_submissions(tx, records, at, reason)
    return at


def register_score(
    tx: Transaction,
    row: SubmissionRow,
    *,
    protocol: str,
    cells: Sequence[CellRow],
    score: ShownValue,
    now: datetime,
) -> tuple[str, str]:
    """Register a submission's scores; return the nonce and the commitment, which its participant gets.

    Args:
        tx: The transaction that stores the answer.
        row: The submission.
        protocol: Hash of the protocol.
        cells: Its cells, one for each task.
        score: The score as its participant is shown it.
        now: The time.
    """
    at = tx.attestation_time(now)
    entry = _register_submission(tx, row, at)
    return _score_event(tx, row, entry, protocol=protocol, cells=cells, score=score, at=at)


def note(tx: Transaction, what: str, text: str, *, now: datetime, **more: Any) -> None:
    """Register an event of the whole challenge."""
    at = tx.attestation_time(now)
    fields = {
        "kind": events.CHALLENGE,
        "phase": None,
        "at": at.isoformat(),
        "what": what,
        "text": text,
        **more,
    }
    _add(tx, "challenge", fields, fields)


def _record(tx: Transaction, phase: str) -> PhaseRecord | None:
    """Return a phase's record; None if it is damaged, so that nothing of the phase is registered until it is repaired."""
    try:
        return read_record(tx, phase)
    except InfrastructureError:
        return None


def _register_phases(tx: Transaction, records: Mapping[str, PhaseRecord], at: datetime, reason: str) -> None:
    latest = tx.latest_facts(events.PHASE)
    for name, record in records.items():
        row = tx.phase_record(name)
        if row is None:
            continue
        facts = {
            "record": row.record,
            "protocol": row.protocol_hash,
            "tasks": dict(row.tasks),
            "rules": _listed(asdict(record.rules)),
            "chosen": {str(team): submission for team, submission in tx.choices(name).items()},
            "frozen_at": None if row.frozen_at is None else row.frozen_at.isoformat(),
        }
        subject = f"phase {name}"
        if latest.get(subject) == _hashed(facts):
            continue
        head = {"kind": events.PHASE, "phase": name, "at": at.isoformat()}
        _add(tx, subject, {**head, **facts, "reason": reason}, facts)


def _register_submissions(
    tx: Transaction, records: Mapping[str, PhaseRecord], at: datetime, reason: str
) -> None:
    latest, scored = tx.latest_facts(events.SUBMISSION), tx.latest_facts(events.SCORE)
    bases = {name: (record.protocol.hash, record.versions) for name, record in records.items()}
    removed = pseudonyms.pseudonyms(tx)
    for row in tx.submissions():
        subject = subject_of(row)
        if row.phase is None or (row.file_hash is None and subject not in latest):
            continue  # a submission whose file never arrived is not registered
        if latest.get(subject) != _hash_of_facts(row, removed.get(row.team_key or 0)):
            _register_submission(tx, row, at, reason)
        basis = bases.get(row.phase)
        if basis is None or not _has_answer(row):
            continue
        if scored.get(subject) != stands_on(row.content_hash, *basis):
            _register_late(tx, row, records[row.phase], at)


def _register_late(tx: Transaction, row: SubmissionRow, record: PhaseRecord, at: datetime) -> None:
    """Register a score that came with another submission of equal content."""
    cells = tx.row(row.content_hash or "", record.protocol.hash, record.versions)
    if len(cells) == len(record.versions) and row.q_mean is not None:
        score = ShownValue(value=shown(row.q_mean, record.rules.decimals))
        if row.answer is not None and _q_mean(cells) == row.q_mean:
            answer = json.loads(row.answer)
            score = ShownValue(value=answer["value"], counts=answer["counts"])
        entry = _register_submission(tx, row, at)
        _score_event(tx, row, entry, protocol=record.protocol.hash, cells=cells, score=score, at=at)


def _q_mean(cells: Sequence[CellRow]) -> float:
    return mean_quality([cell.q for cell in cells if cell.q is not None])


def _register_submission(tx: Transaction, row: SubmissionRow, at: datetime, reason: str = "") -> str:
    """Register a submission's facts, if they have changed; return its pseudonym."""
    before = tx.latest_event(events.SUBMISSION, subject_of(row))
    facts = submission_facts(row, pseudonyms.pseudonyms(tx).get(row.team_key or 0))
    if before is not None:
        # A stored file may be missing until it is fetched again; the submission still refers to that file.
        facts |= {name: facts[name] or before.fields[name] for name in ("file", "content")}
        if before.facts == _hashed(facts):
            return str(before.fields["entry"])
    entry = secrets.token_hex(ENTRY_BYTES) if before is None else str(before.fields["entry"])
    head = {"kind": events.SUBMISSION, "phase": row.phase, "at": at.isoformat(), "entry": entry}
    _add(tx, subject_of(row), {**head, **facts, "reason": reason}, facts)
    return entry


def submission_facts(row: SubmissionRow, pseudonym: str | None = None) -> dict[str, Any]:
    """Return what decides, besides its scores, whether and how a submission is on a board.

    Args:
        row: The submission.
        pseudonym: The team's pseudonym, if its name was removed.
    """
    return {
        "submission": row.pk,
        "team_key": row.team_key,
        "team": pseudonym or row.team,
        "method": None if pseudonym else row.method,
        "submitted_at": None if row.submitted_at is None else row.submitted_at.isoformat(),
        "file": row.file_hash,
        "content": row.content_hash,
        "public_at_first": row.public_at_first,
        "public_now": row.public_now,
        "baseline": row.baseline,
        "own": row.own,
        "answered": _has_answer(row) and row.posted is not None,
        "refused": row.state in (State.REJECTED, State.FAILED),
        "cancelled": row.remote_status == "cancelled" and row.superseded_by is None,
        "deleted": row.deleted,
        "flagged": row.flagged,
        "removed": row.excluded,
        "superseded_by": row.superseded_by,
    }


def _has_answer(row: SubmissionRow) -> bool:
    return row.state in COUNTED | {State.SCORED}


@lru_cache(maxsize=ROWS)
def _hash_of_facts(row: SubmissionRow, pseudonym: str | None) -> str:
    """Hash the facts about a submission; unchanged ones are cached, because every publish cycle looks at all of them."""
    return _hashed(submission_facts(row, pseudonym))


def stands_on(content: str | None, protocol: str, versions: Mapping[str, str]) -> str:
    """Hash what a score was made from; a submission has a score on the present tasks if its newest event has this hash."""
    return _hashed({"content": content, "protocol": protocol, "tasks": dict(versions)})


def _score_event(
    tx: Transaction,
    row: SubmissionRow,
    entry: str,
    *,
    protocol: str,
    cells: Sequence[CellRow],
    score: ShownValue,
    at: datetime,
) -> tuple[str, str]:
    fields = {
        "kind": events.SCORE,
        "phase": row.phase,
        "at": at.isoformat(),
        "entry": entry,
        "submission": row.pk,
        "team_key": row.team_key,
        "team": pseudonyms.pseudonyms(tx).get(row.team_key or 0, row.team),
        "public_at_first": row.public_at_first,
        "own": row.own,
        "file": row.file_hash,
        "content": cells[0].content_hash,
        "protocol": protocol,
        "cells": {
            cell.task: {
                "version": cell.version,
                "row_set": cell.row_set,
                "folds": folds_to_json(cell.folds),
            }
            for cell in cells
        },
        "q_mean": score.value,
        "counts": score.counts,
        "engines": sorted({cell.engine for cell in cells} - KERNEL_ENGINES),  # `verify` uses the kernel
    }
    facts = stands_on(cells[0].content_hash, protocol, {cell.task: cell.version for cell in cells})
    return _add(tx, subject_of(row), fields, facts)


def _add(
    tx: Transaction, subject: str, fields: Mapping[str, Any], facts: Mapping[str, Any] | str
) -> tuple[str, str]:
    nonce = secrets.token_bytes(NONCE_BYTES)
    commitment = events.commitment_of(fields, nonce)
    tx.add_event(
        subject=subject,
        facts=facts if isinstance(facts, str) else _hashed(facts),
        fields=fields,
        nonce=nonce.hex(),
        commitment=commitment,
    )
    return nonce.hex(), commitment


def _hashed(facts: Mapping[str, Any]) -> str:
    return digest("facts", canonical(dict(facts)))


def subject_of(row: SubmissionRow) -> str:
    """Return the name of a submission in the register."""
    return f"submission {row.pk}"


def _listed(rules: Mapping[str, Any]) -> dict[str, Any]:
    """Return rules as JSON would return them, with lists instead of tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in rules.items()}

"""What EvalAI shows of a submission now, compared with what was seen first.

Its team can write nearly everything there, and so can others. So a difference changes nothing: the organizer is told, and may follow it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from scoring.printable import printable
from worker.evalai import Submission
from worker.state import State, SubmissionRow, Transaction

FOLLOWED = frozenset({"deleted", "cancelled", "public", "method", "project_url", "publication_url"})
"""The differences that `challenge follow` takes over."""
LABELS = {
    "author": "author (user number)",
    "phase": "phase (number)",
    "project_url": "link to the code",
    "publication_url": "link to the paper",
}
FILE_PLACE = re.compile(r"(?:/challenge_(\d+)/phase_(\d+))?/submission_(\d+)/")
"""Where a file's address names challenge, phase and submission; older addresses name only the last."""
ELSEWHERE = "another challenge's"  # in place of a phase's number
CODE = "facts.changed"
GIVEN_UP = "submission.given_up"
TIMED_OUT = "submission.timed_out"
FAILS_AFTER = timedelta(hours=2)  # EvalAI may then fail what waits
GIVES_UP_AFTER = timedelta(days=14)  # EvalAI's maintenance then cancels what waits
EARLIER = "earlier"  # why a submission is not scored: it had ended at EvalAI before this state saw it
FOLLOW = " To take over what EvalAI shows now, run `neuco-worker challenge follow {pk} --reason TEXT`."
NOT_FOLLOWED = (
    "The worker goes on with what it saw first. If this submission is to be withdrawn, or its team did not send it, run `neuco-worker"
    " challenge disqualify` with its number and the reason."
)
STOPPED = "The worker has stopped scoring it. To have it scored and answered after all, run `neuco-worker challenge retry {pk}`."
REPLACED = " To send the worker's answer to EvalAI again, run `neuco-worker challenge retry {pk}`."


def path(address: str | None) -> str:
    """Return a file's address without its signature."""
    return (address or "").split("?", 1)[0]


def shown(facts: Submission) -> str:
    """Return what EvalAI shows of a submission, as it is stored."""
    now = {
        "status": facts.status,
        "cancelled": facts.status == "cancelled",
        "deleted": facts.ignored,
        "flagged": facts.is_flagged,
        "baseline": facts.is_baseline,
        "team": facts.team_pk,
        "team_name": facts.team_name,
        "author": facts.created_by,
        "phase": facts.phase_pk,
        "file": path(facts.input_file),
        "public": facts.is_public,
        "method": facts.method_name,
        "project_url": facts.project_url,
        "publication_url": facts.publication_url,
        "answer": answer_files(facts),
    }
    return json.dumps(now, sort_keys=True)


def answer_files(facts: Submission) -> str:
    """Return the addresses of an answer's files, which EvalAI renames whenever somebody writes them."""
    return " ".join(map(path, (facts.stdout_file, facts.stderr_file, facts.result_file)))


def runs(tx: Transaction, row: SubmissionRow) -> list[SubmissionRow]:
    """Return a submission with all that repeat it and the one that it repeats, oldest first: they name the same file."""
    if row.team_key is None:
        return [row]  # nothing is known of it yet
    first = first_run(row)
    return [other for other in tx.submissions(team=row.team_key) if first_run(other) == first]


def first_run(facts: Submission | SubmissionRow) -> int:
    """Return which submission was sent with the file that one has, known by the file's path, which nobody can forge."""
    place = FILE_PLACE.search(facts.input_file or "")
    return facts.pk if place is None else int(place[3])


def waited(row: SubmissionRow, now: datetime) -> timedelta:
    """Return how long EvalAI has shown a submission, perhaps to no worker; of a re-run, it only tells when the first run was sent."""
    return now - (row.first_seen_at if row.is_rerun else row.submitted_at or row.first_seen_at)


def timed_out(row: SubmissionRow, now: datetime) -> bool:
    """Return whether EvalAI shows an unanswered submission as failed that has waited for so long that EvalAI may have given it up."""
    return row.posted is None and waited(row, now) >= FAILS_AFTER and row.remote_status == "failed"


def differences(row: SubmissionRow) -> dict[str, tuple[Any, Any]]:
    """Return what EvalAI shows otherwise than at first sight: what was seen first, and what EvalAI shows now."""
    now = row.at_evalai
    first = {
        "cancelled": False,
        "deleted": False,
        "flagged": False,
        "baseline": False,
        "team": row.team_key,
        "author": row.created_by,
        "phase": row.phase_pk,
        "file": path(row.input_file),
        "public": row.public,
        "method": row.method,
        "project_url": row.project_url,
        "publication_url": row.publication_url,
        "answer": row.answer_files or now.get("answer"),
    }
    settled = {"baseline"} if row.own else set()  # EvalAI lists hosts' submissions only with this mark
    if now.get("author") is None:
        settled.add("author")  # it was not said
    if row.insisted or row.excluded is not None or row.hold == EARLIER:
        settled |= {"cancelled", "deleted"}
    if row.superseded_by is not None:
        settled.add("cancelled")  # as EvalAI does with what is run again
    return {
        name: (value, now[name])
        for name, value in first.items()
        if name in now and name not in settled and now[name] != value
    }


def followed(row: SubmissionRow) -> dict[str, tuple[Any, Any]]:
    """Return the differences that `challenge follow` takes over."""
    return {name: values for name, values in differences(row).items() if name in FOLLOWED}


def tell(tx: Transaction, pk: int, *, now: datetime) -> None:
    """Raise an alert about a submission that EvalAI shows otherwise than at first sight; resolve it once nothing differs."""
    row, key = tx.known(pk), f"changed:{pk}"
    found = {} if row.state is State.SUPERSEDED else differences(row)
    if row.hold == GIVEN_UP:
        found.pop("cancelled", None)  # one alert tells of all of these
    if not found:
        tx.resolve_alert(key)
        return
    if not found.keys().isdisjoint(("team", "phase")):
        tx.note(pk, moved=True)
    advice = STOPPED.format(pk=pk) if row.state is State.CANCELLED else NOT_FOLLOWED
    if "answer" in found:
        advice += REPLACED.format(pk=pk)
    if not FOLLOWED.isdisjoint(found):
        advice += FOLLOW.format(pk=pk)
    text = f"Submission {pk} of team {printable(row.team or '')!r} was changed at EvalAI: {described(row, found)}. {advice}"
    tx.raise_alert(key, CODE, text, now=now)


def described(row: SubmissionRow, found: Mapping[str, tuple[Any, Any]]) -> str:
    """Describe differences in words."""
    return "; ".join(_sentence(row, name, *values) for name, values in found.items())


def _sentence(row: SubmissionRow, name: str, first: object, now: object) -> str:
    match name:
        case "cancelled" | "deleted" | "flagged":
            return f"it was {name.replace('cancelled', 'canceled')}"
        case "baseline":
            return "it was marked as a baseline"
        case "answer":
            return "its answer was replaced"
        case "public":
            return f"it was {'public and is now private' if first else 'private and is now public'}"
        case "team":
            return f"team {row.team!r} (number {first}) became team {row.at_evalai.get('team_name')!r} (number {now})"
        case _:
            return f"{LABELS.get(name, name)} {first or 'none'!r} became {now or 'none'!r}"

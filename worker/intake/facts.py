"""Update rows and states from what EvalAI says about submissions.

The database decides. What EvalAI says is recorded when a submission is first seen. A later change is told (see
:mod:`worker.intake.changes`), and decides nothing but this: a submission that is not answered yet is not scored while it is cancelled or
deleted. Its team, and anybody with a challenge of their own, can write every status; so an answer that is not ours is replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from scoring.printable import count_of, name_some
from worker.evalai import Message, Submission
from worker.fetching import uploads
from worker.intake import changes, holds, names
from worker.state import (
    ACTIVE,
    ANSWERED,
    COUNTED,
    DECIDED,
    RESTORED,
    UNSCORED,
    State,
    SubmissionRow,
    Transaction,
)

ANSWERED_REMOTELY = frozenset({"finished", "failed"})
PORTION = 200  # submissions to compare with the database at a time

INHERITED = (
    *("phase_pk", "phase", "team_key", "team", "submitted_at", "input_file", "public_at_first", "public"),
    *("created_by", "by_host", "by_member", "method", "project_url", "publication_url"),
    *("hold", "hold_reason", "excluded"),
)
"""What a re-run has from the submission that it repeats."""


def take_message(tx: Transaction, message: Message, *, now: datetime) -> bool:
    """Store the submission of a queue message; return whether the message may be deleted.

    A message only names a submission; facts come from EvalAI's answers. A message for a failed or cancelled submission may mean that a host
    resumed it, and the first one comes once the file is stored, so EvalAI is asked again. A message for an upload under way means that the
    file has changed, also that of its re-runs.
    """
    row = tx.add(message.submission_pk, now=now)
    taken = [uploads.take_message(tx, run) for run in changes.runs(tx, row)]  # each run learns of it
    if not all(taken):
        return False
    tx.note(row.pk, messaged_at=now, message_phase=row.message_phase or message.sent_to)
    if row.state in (State.FAILED, State.CANCELLED) or row.input_file is None:
        tx.note(row.pk, read_at=None)
    return True


def take_facts(
    tx: Transaction,
    facts: Submission,
    *,
    challenge: int,
    phases: Mapping[int, str],
    asked_at: datetime,
    now: datetime,
) -> None:
    """Compare what EvalAI says of a submission with the database, and update the database.

    Args:
        tx: An open write transaction.
        facts: EvalAI's answer.
        challenge: Our challenge's pk.
        phases: Phase pk to codename, for the phases that the configuration names.
        asked_at: When EvalAI was asked.
        now: The time.
    """
    row = tx.add(facts.pk, now=now)
    if row.submitted_at not in (None, facts.submitted_at):  # nobody can write this time
        _leave_another(tx, row, facts, asked_at=asked_at, now=now)
        return
    if row.state is State.SUPERSEDED:
        return
    if row.evalai_shows is None:
        record_first_sight(tx, row, facts, challenge=challenge, phases=phases)
        tx.resolve_alert(f"hold:{facts.pk}")  # it is hidden no more
    else:  # what may change: whether the configuration has the phase, and the signature of the file's address
        tx.note(facts.pk, phase=phases.get(row.phase_pk or 0))
        _keep_address(tx, row.input_file, facts)
    tx.note(facts.pk, evalai_shows=changes.shown(facts), read_at=asked_at)
    if row.state in ANSWERED | {State.CANCELLED}:  # nothing else is tried
        tx.note(facts.pk, tries=0, not_before=None)
    fresh = _record_sender(tx, tx.known(facts.pk), facts, now=now)
    if fresh.state in ANSWERED:
        away = row.at_evalai.get("phase") == changes.ELSEWHERE
        _follow_answered(tx, fresh, facts, away=away, now=now)
    elif fresh.state is State.CANCELLED:
        _follow_cancelled(tx, fresh, facts)
    else:
        _follow_open(tx, fresh, facts, challenge=challenge, now=now)
    changes.tell(tx, facts.pk, now=now)


def _leave_another(
    tx: Transaction, row: SubmissionRow, facts: Submission, *, asked_at: datetime, now: datetime
) -> None:
    """Take nothing from a submission with the number of an earlier one, and send it no answer; EvalAI lacks the earlier one."""
    tx.note(row.pk, read_at=asked_at)
    if row.state in DECIDED and row.posted is not None:  # its changed answer stays here
        tx.move(row.pk, row.state, State.FAILED if row.state is State.REJECTED else State.POSTED)
    elif row.state in ACTIVE | UNSCORED:
        cancel(tx, row)
    if _is_gone(facts):
        return
    text = (
        f"EvalAI has given the number {row.pk} to another submission, sent on {facts.submitted_at:%Y-%m-%d %H:%M:%S} UTC; this worker knows"
        f" one of {row.submitted_at:%Y-%m-%d %H:%M:%S} by it. So EvalAI was set up again, or restored from a backup. The new submission is"
        " neither scored nor answered. Ask its team to send it again; a challenge that was made anew needs a new folder."
    )
    tx.raise_alert(f"another:{row.pk}", "evalai.challenge_differs", text, now=now, happened=True)


def follow_absence(tx: Transaction, row: SubmissionRow, *, elsewhere: bool, now: datetime) -> None:
    """Follow that EvalAI does not show a submission: it is scored no further, unless somebody has moved it to another challenge.

    One that EvalAI has never shown is another challenge's: participants can send a message about any submission.
    """
    known = row.evalai_shows is not None
    if known:
        shows = row.showing(phase=changes.ELSEWHERE) if elsewhere else row.showing(deleted=True)
        tx.note(row.pk, evalai_shows=shows)
    unanswered = row.state in UNSCORED or (row.state in DECIDED and row.posted is None)
    if unanswered and not (known and elsewhere):
        cancel(tx, row)
    changes.tell(tx, row.pk, now=now)


def unlisted(tx: Transaction, listed: Collection[int], *, since: datetime) -> list[int]:
    """Return the submissions, oldest first, that a listing of the whole challenge, begun since then, lacks without a known reason."""
    lacking = list(tx.numbers(ACTIVE | ANSWERED).difference(listed))
    portions = (lacking[start : start + PORTION] for start in range(0, len(lacking), PORTION))
    return sorted(
        row.pk
        for portion in portions
        for row in tx.get_many(portion).values()
        if row.read_at is not None and row.read_at < since
        if not row.at_evalai.get("deleted") and row.at_evalai.get("phase") != changes.ELSEWHERE
    )


def record_first_sight(
    tx: Transaction, row: SubmissionRow, facts: Submission, *, challenge: int, phases: Mapping[int, str]
) -> None:
    """Record the facts that anybody may edit later at EvalAI, because only their first values count.

    The phase is that of the queue's message or of the file's folder: EvalAI wrote both when the submission was sent. A re-run has the facts
    of the submission that it repeats. If that one was never seen, it was run again in another challenge, and its facts could be anybody's.
    """
    earlier = repeated(tx, facts)
    if earlier is not None and earlier.evalai_shows is not None:
        tx.note(facts.pk, **{name: getattr(earlier, name) for name in INHERITED})
        _keep_address(tx, earlier.input_file, facts)
    else:
        folder = changes.FILE_PLACE.search(facts.input_file or "")
        in_folder = folder is not None and folder[1] == str(challenge)
        phase_pk = row.message_phase or (
            int(folder[2]) if folder is not None and in_folder else facts.phase_pk
        )
        tx.note(
            facts.pk,
            phase_pk=phase_pk,
            phase=phases.get(phase_pk),
            team_key=facts.team_pk,
            submitted_at=facts.submitted_at,
            input_file=facts.input_file,
            public_at_first=facts.is_public,
            public=facts.is_public,
            method=facts.method_name,
            project_url=facts.project_url,
            publication_url=facts.publication_url,
        )
        if folder is not None and int(folder[3]) != facts.pk:  # nobody knows who sent what it repeats
            tx.note(facts.pk, hold=holds.OTHER_CHALLENGE)
    link_rerun(tx, facts)


def _record_sender(tx: Transaction, row: SubmissionRow, facts: Submission, *, now: datetime) -> SubmissionRow:
    """Record the author that EvalAI showed first, and the name that the submission's team has now; return the submission's row."""
    if facts.team_pk == row.team_key and tx.name_team(facts.team_pk, facts.team_name):
        names.compare(tx, now=now)
        if row.team is not None:
            tx.request_publish()  # the team was renamed, with all its rows
    if row.created_by is None and facts.created_by is not None:
        tx.note(row.pk, created_by=facts.created_by)
    return tx.known(row.pk)


def _keep_address(tx: Transaction, first: str | None, facts: Submission) -> None:
    """Record the address of a file that was seen first, with its present signature."""
    if facts.input_file and changes.path(first) in ("", changes.path(facts.input_file)):
        tx.note(facts.pk, input_file=facts.input_file)


def tell_of_earlier(tx: Transaction, *, now: datetime) -> None:
    """Tell of submissions that were answered before this state saw them: before the first start, or after the backup that was restored.

    EvalAI shows their answers, but the database has no scores for them.
    """
    lost = [
        row.pk
        for row in tx.submissions([State.CANCELLED])
        if row.hold == changes.EARLIER
        and row.phase is not None
        and row.remote_status in ANSWERED_REMOTELY
        and row.superseded_by is None
    ]
    named = name_some([str(pk) for pk in sorted(lost)], 20)
    since = (
        "before this worker first compared the challenge with its state"
        if tx.fact(RESTORED) is None
        else "after the backup that this worker was restored from"
    )
    text = (
        f"{count_of(len(lost), 'submission was', 'submissions were')} answered at EvalAI {since}: {named}. The state lacks what was"
        " answered, so the board does not show it. `neuco-worker challenge retry NUMBER` scores a submission and answers it again; the same"
        " secret gives the same result."
    )
    tx.set_alert("restored", "restore.answered_since", text if lost else None, now=now)


def is_unchanged(row: SubmissionRow, facts: Submission, *, challenge: int, phases: Mapping[int, str]) -> bool:
    """Return whether a submission that waits or has ended is unchanged, except for a fresh signature of its file's address.

    If so, at most the time of the reading must be recorded. A listing covers the whole challenge: thousands have ended, and before a
    deadline a thousand wait. ``read_at`` is missing if another look is needed.
    """
    waits = row.state in (State.ACKNOWLEDGED, State.FETCHED) and row.hold is None
    return (
        (row.state not in ACTIVE or (waits and holds.disagreement(row, challenge=challenge) is None))
        and row.read_at is not None
        and row.evalai_shows == changes.shown(facts)
        and changes.path(row.input_file) == changes.path(facts.input_file)
        and row.phase == phases.get(row.phase_pk or 0)
    )


def _follow_cancelled(tx: Transaction, row: SubmissionRow, facts: Submission) -> None:
    """Take up a submission again that is not cancelled or deleted any more, unless it had ended earlier, or is another challenge's."""
    ended = facts.status in ANSWERED_REMOTELY and row.hold == changes.EARLIER
    if not (_is_gone(facts) or ended or row.hold == holds.OTHER_CHALLENGE):
        tx.move(row.pk, State.CANCELLED, State.ACKNOWLEDGED, running_at=None, answer=None)


def _follow_open(
    tx: Transaction, row: SubmissionRow, facts: Submission, *, challenge: int, now: datetime
) -> None:
    """Update a submission that still needs an answer."""
    again = row.posted is not None and row.answer is not None
    if again and row.phase is not None and not row.disputed:
        return  # an answer is sent again, or a rescore has changed it: either replaces what is there
    gone = _is_gone(facts) and not (row.insisted or again)
    answered = facts.status in ANSWERED_REMOTELY and not row.insisted
    foreign = answered and row.posted is None and row.sent_at is None  # else it may be ours
    earlier = tx.fact("reconciled_at") is None or row.phase is None
    if gone or (foreign and earlier):
        cancel(tx, row)
        if gone and row.hold == holds.NUMBER_USED:
            return  # it waits again once it is there again
        if earlier and (foreign or tx.fact(RESTORED) is None):
            tx.note(
                row.pk, hold=changes.EARLIER, hold_reason="it had ended at EvalAI before this worker saw it"
            )
        elif facts.status == "cancelled" and changes.waited(row, now) >= changes.GIVES_UP_AFTER:
            tx.note(
                row.pk,
                hold=changes.GIVEN_UP,
                hold_reason="EvalAI cancelled it, perhaps because it had waited for 14 days",
            )
        return
    if foreign and not changes.timed_out(row, now):
        text = (
            f"Submission {row.pk} was set to {facts.status!r} at EvalAI before this worker answered it. The worker goes on, and its answer"
            " replaces that one. Check whether a second worker is running; otherwise somebody has written to EvalAI."
        )
        tx.raise_alert(f"elsewhere:{row.pk}", "submission.answered_elsewhere", text, now=now)
    fault = holds.disagreement(row, challenge=challenge)
    if fault is not None:
        if fault.code == holds.OTHER_CHALLENGE:
            cancel(tx, row)  # so that no close waits for it
        holds.hold(tx, row, fault, now=now)
        return
    if row.disputed:
        tx.note(row.pk, hold=None, hold_reason=None)
        tx.resolve_alert(f"hold:{row.pk}")
    if row.state is State.RECEIVED:
        tx.move(row.pk, State.RECEIVED, State.ACKNOWLEDGED)


def _is_gone(facts: Submission) -> bool:
    return facts.ignored or facts.status == "cancelled"


def _follow_answered(
    tx: Transaction, row: SubmissionRow, facts: Submission, *, away: bool, now: datetime
) -> None:
    """Update an answered submission that somebody may have reset at EvalAI, or answered while it was away in another challenge."""
    unread = row.answer_files is None and away
    if row.answer_files is None:
        tx.note(row.pk, answer_files=changes.answer_files(facts))
    expected = "failed" if row.state is State.FAILED else "finished"
    if not unread and (facts.status in (expected, "cancelled") or facts.ignored):
        tx.resolve_alert(f"set-back:{row.pk}")
        return
    if row.state is State.FAILED and facts.status == "resuming":
        tx.move(row.pk, State.FAILED, State.ACKNOWLEDGED, running_at=None, answer=None, file_hash=None)
        return
    if row.reposts > 0 and not unread:
        text = (
            f"Submission {row.pk} was reset to {facts.status!r} at EvalAI again after the worker had posted its result twice. The"
            f" worker does not post it a third time. To have it posted again, run `neuco-worker challenge retry {row.pk}`."
        )
        tx.raise_alert(f"set-back:{row.pk}", "submission.set_back", text, now=now)
        return
    again = State.REJECTED if expected == "failed" else State.SCORED
    tx.move(row.pk, row.state, again, reposts=1, decided_at=now)


def repeated(tx: Transaction, facts: Submission) -> SubmissionRow | None:
    """Return the submission of which this one is a re-run (new pk, same file)."""
    first = changes.first_run(facts)
    return tx.get(first) if first < facts.pk else None


def link_rerun(tx: Transaction, facts: Submission) -> None:
    """Link a re-run to the submission that it repeats, and to its newest other re-run.

    In a listing, all re-runs are linked before anything else is processed. Then the old submission, which EvalAI cancelled, is known to be
    superseded, whatever the order.
    """
    first = repeated(tx, facts)
    if first is None or _is_gone(facts):
        return
    before = first.superseded_by or first.pk
    newest = max(before, facts.pk)
    for pk in {first.pk, before, facts.pk} - {newest}:
        tx.note(pk, superseded_by=newest)


def cancel(tx: Transaction, row: SubmissionRow) -> None:
    """End a submission that needs no answer any more."""
    tx.move(row.pk, row.state, State.SUPERSEDED if row.superseded_by is not None else State.CANCELLED)


def supersede_older(tx: Transaction, pk: int) -> None:
    """Retire the earlier runs of a submission that was answered, or itself, if a later run was answered before it."""
    rows = changes.runs(tx, tx.known(pk))
    newest = max((row.pk for row in rows if row.state in COUNTED), default=pk)
    for row in rows:
        again = row.superseded_by is not None and row.state in (State.FAILED, State.CANCELLED)
        if row.pk < newest and (again or row.state in COUNTED):
            tx.move(row.pk, row.state, State.SUPERSEDED, superseded_by=newest)
            tx.resolve_alert(f"changed:{row.pk}")

"""Applying: the files and settings of phases take the place of what is recorded.

Until a phase has its first score, it is recorded again and committed to. After that, changed rules of the board are recorded, and changed
tasks or a changed protocol need a rescore.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scoring.printable import count_of
from worker.challenge.differences import differences
from worker.challenge.files import read_secret, rules_of
from worker.challenge.setups import read_record
from worker.fairness import draws
from worker.fairness.recording import has_begun, name_draw, record_rules
from worker.organizer.committing import commit
from worker.organizer.rescoring import RescorePlan, estimate, make_plan
from worker.organizer.session import OrganizerSession
from worker.state import Transaction


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is to be applied to one phase.

    Attributes:
        phase: Codename.
        differing: What differs between its files and settings and its record, in sentences.
        begun: Whether something was scored in it.
        rules: Names of the board's rules that differ.
        plan: The rescore, if one is due.
    """

    phase: str
    differing: tuple[str, ...] = ()
    begun: bool
    rules: tuple[str, ...] = ()
    plan: RescorePlan | None = None

    @property
    def due(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.differing or self.rules or self.plan)


def read_change(session: OrganizerSession, codename: str) -> Change:
    """Compare a phase's files and settings with its record; nothing is changed.

    Raises:
        OrganizerError: If there is no such phase, or its files cannot be read.
    """
    session.check_phase(codename)
    configuration, secret = session.configuration, read_secret(session.configuration)
    with session.store.read() as tx:
        row, record = tx.phase_record(codename), read_record(tx, codename)
        if not has_begun(tx, codename):
            differing = [found.sentence for found in differences(tx, configuration, codename, secret)]
            if row is None:
                differing.append(f"Phase {codename} has no commitment yet.")
            elif _draw_differs(session, tx, codename):
                differing.append(f"Phase {codename}: fairness.beacon names another source.")
            return Change(phase=codename, begun=False, differing=tuple(differing))
        frozen = row is not None and row.frozen_at is not None
        open_rules = record is not None and not frozen
        changed = record.rules.changed(rules_of(configuration, codename)) if record and open_rules else ()
    plan = make_plan(session, session.phase(codename))
    complete = plan.recorded and not plan.missing
    return Change(phase=codename, begun=True, rules=changed, plan=None if complete else plan)


def consequences(session: OrganizerSession, change: Change) -> Iterator[str]:
    """Yield what is different in a phase and what follows, in sentences."""
    name = change.phase
    yield from change.differing
    if change.differing:
        yield f"{name}: a new commitment is made, which is published. Nothing has been scored in the phase yet."
    if change.rules:
        yield f"{name}: the next board uses the new {', '.join(change.rules)}. Scores stay."
    plan = change.plan
    if plan is not None:
        cells = sum(len(row.tasks) for row in plan.missing)
        yield (
            f"{name}: new or changed tasks: {len(plan.added)}; dropped tasks: {len(plan.dropped)};"
            f" scores to compute: {cells}, for {count_of(len(plan.missing), 'submission')} ({_cost(session, plan)})."
        )
        if plan.changed:
            yield f"{name}: all answers and the board change; a new commitment is made, with the reason."
        if gone := sum(row.file_hash is None for row in plan.missing):
            yield f"{name}: the files of {count_of(gone, 'submission')} are no longer stored; they are first fetched from EvalAI again."
        with session.store.read() as tx:
            if plan.changed and name in tx.reveals():
                yield f"{name} has been revealed: its next board will show the new tasks to everyone."


def _cost(session: OrganizerSession, plan: RescorePlan) -> str:
    seconds = estimate(session, plan)
    if seconds is None:
        return "this takes an unknown time"
    scoring_s, posting_s = seconds
    posting = f", and posting the answers about {posting_s:.0f} s" if posting_s else ""
    return f"this takes about {scoring_s:.0f} s{posting}"


def commit_to_changes(session: OrganizerSession, changes: Sequence[Change], *, reason: str) -> str | None:
    """Make one commitment to the changed phases in which nothing was scored; return it, or None if there is no such phase.

    Raises:
        OrganizerError: As :func:`worker.organizer.committing.commit`.
    """
    fresh = [change.phase for change in changes if change.differing]
    public = commit(session, fresh, reason=reason) if fresh else None
    return None if public is None else str(public["commitment"])


def apply_rules(session: OrganizerSession, change: Change, *, reason: str) -> None:
    """Record the changed rules of the board of a phase.

    Raises:
        NeucoError: As :func:`worker.fairness.recording.record_rules`.
    """
    with session.store.write() as tx:
        record_rules(
            tx, session.configuration, change.phase, actor=session.actor, reason=reason, now=session.now
        )


def _draw_differs(session: OrganizerSession, tx: Transaction, codename: str) -> bool:
    """Return whether a phase that nothing was scored in was committed to another source of the public value than is configured."""
    entries = tx.public_commitments()
    latest = next((draw for entry in reversed(entries) if (draw := draws.named(entry, codename))), None)
    configured = name_draw(session.configuration, session.now)
    return (latest.source if latest else None) != (configured["source"] if configured else None)

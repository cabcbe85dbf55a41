"""Applying: the files and settings of phases take the place of what is recorded, with a commitment to them.

Until a phase has its first score, it is recorded again and committed to. After that, changed rules of the board are recorded, and changed
tasks or a changed protocol need a rescore.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from leaderboard import Shown
from scoring.errors import OrganizerError
from scoring.printable import count_of
from worker.challenge.files import differences, read_secret
from worker.challenge.setups import has_scores, put_on_record, recorded
from worker.challenge.signing import signer
from worker.fairness import commitments
from worker.fairness.recording import name_draw
from worker.organizer.decisions import decided
from worker.organizer.rescoring import RescorePlan, expected_s, make_plan
from worker.organizer.session import OrganizerSession


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is to be applied to one phase.

    Attributes:
        phase: Codename.
        differing: What differs between its files and settings and its record, in sentences.
        rules: Names of the board's rules that differ.
        plan: The rescore, if one is due.
    """

    phase: str
    differing: tuple[str, ...] = ()
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
        row = tx.phase_record(codename)
        if row is None:
            return Change(phase=codename, differing=(f"Phase {codename} has no commitment yet.",))
        if row.closed_at is None and not has_scores(tx, codename):
            found = differences(tx, configuration, codename, secret)
            return Change(phase=codename, differing=tuple(difference.sentence for difference in found))
        rules = configuration.phases[codename].rules
        changed = () if row.closed_at else recorded(tx, codename).rules.changed(rules)
    plan = make_plan(session, session.phase(codename))
    complete = plan.recorded and not plan.missing
    return Change(phase=codename, rules=changed, plan=None if complete else plan)


def consequences(session: OrganizerSession, change: Change) -> Iterator[str]:
    """Yield what is different in a phase and what follows, in sentences."""
    name, plan = change.phase, change.plan
    yield from change.differing
    if change.differing:
        yield f"{name}: a new commitment is made, which is published. Nothing has been scored in the phase yet."
    if change.rules:
        yield f"{name}: the next board uses the new {', '.join(change.rules)}. Scores stay."
    if plan is None:
        return
    seconds = expected_s(session, plan)
    cost = "an unknown time" if seconds is None else f"about {seconds:.0f} s"
    yield (
        f"{name}: new or changed tasks: {plan.added}; dropped tasks: {plan.dropped};"
        f" scores to compute: {sum(len(row.tasks) for row in plan.missing)},"
        f" for {count_of(len(plan.missing), 'submission')} (this takes {cost})."
    )
    if plan.changed:
        yield f"{name}: all answers and the board change; a new commitment is made, with the reason."
    if gone := sum(not row.files for row in plan.missing):
        yield f"{name}: the files of {count_of(gone, 'submission')} are no longer stored, so this stops before it changes anything."
    with session.store.read() as tx:
        if plan.changed and name in tx.reveals():
            yield f"{name} has been revealed: its next board will show the new tasks to everyone."


def commit_to_changes(session: OrganizerSession, changes: Sequence[Change], *, reason: str) -> str | None:
    """Record the changed phases without scores as their files are, make one commitment to them and have that published.

    Returns the commitment; None if there is no such phase.

    Raises:
        OrganizerError: If their files cannot be read.
    """
    fresh = [session.phase(change.phase) for change in changes if change.differing]
    if not fresh:
        return None
    secret, configuration = read_secret(session.configuration), session.configuration
    with session.store.write() as tx:
        public = commitments.begin(
            tx,
            signer(tx, configuration),
            secret,
            fresh,
            reason=reason,
            now=session.now,
            draw=name_draw(configuration, session.now),
            publish_files=configuration.fairness.publish_files,
            receipts_every=configuration.leaderboard.receipts_every,
            access=configuration.fairness.access,
        )
        if public is None:
            return None
        tx.request_publish()
    return str(public["commitment"])


def apply_rules(session: OrganizerSession, change: Change, *, reason: str) -> None:
    """Record the changed rules of the board of a phase, unless it was closed meanwhile.

    Raises:
        OrganizerError: If they withhold values that were already shown.
        InfrastructureError: If the phase's record is damaged.
    """
    phase, rules = change.phase, session.configuration.phases[change.phase].rules
    with session.store.write() as tx:
        before, row = recorded(tx, phase), tx.phase_record(phase)
        changed = before.rules.changed(rules)
        if "shown" in changed and rules.shown is Shown.AT_END and has_scores(tx, phase):
            raise OrganizerError(
                f"Values of phase {phase} were already shown, so they cannot be withheld now.",
                cure=f"Set phases.{phase}.shown: at_once.",
                code="config.shown_already",
            )
        if row is None or row.closed_at is not None:
            return
        with decided(session, tx, reason):
            put_on_record(tx, replace(before, rules=rules))

"""Applying: the files and settings of phases take the place of what is recorded, with a commitment to them.

Until a phase has its first score, it is recorded again and committed to. After that, changed rules of the board are recorded, and changed
tasks or a changed protocol need a rescore. Its scores are computed before anything changes, so that it is known who would move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from leaderboard import PhaseRules, Shown
from leaderboard.ranking import from_json
from leaderboard.rendering import public_rows
from scoring.errors import OrganizerError
from scoring.printable import count_of, name_some
from scoring.tasks import Task
from worker.challenge.setups import differences, has_scores, put_on_record, read_secret, recorded
from worker.challenge.signing import signer
from worker.fairness import commitments
from worker.fairness.recording import name_draw
from worker.fairness.register import RegisterReplay, withholds
from worker.organizer.board_by_hand import SHOWS_VALUES
from worker.organizer.decisions import decided
from worker.organizer.rescoring import RescorePlan, check_files, expected_s, make_plan
from worker.organizer.session import OrganizerSession, check_clock
from worker.publishing.boards import BoardHistory, begin_cycle, make_boards


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is to be applied to one phase.

    Attributes:
        phase: Codename.
        differing: What differs between its files and settings and its record, in sentences.
        tasks: Which of its tasks differ, and how.
        rules: Names of the board's rules that differ.
        rules_before: The board's rules as they are recorded; None before the first score.
        plan: The rescore, if one is due.
    """

    phase: str
    differing: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    rules_before: PhaseRules | None = None
    plan: RescorePlan | None = None

    @property
    def renews(self) -> bool:
        """Whether the phase is recorded anew, because nothing was scored on the record that differs."""
        return bool(self.differing) and self.rules_before is None

    @property
    def due(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.renews or self.rules or self.plan)


def read_change(session: OrganizerSession, codename: str) -> Change:
    """Compare a phase's files and settings with its record; nothing is changed.

    Raises:
        OrganizerError: If there is no such phase, its files cannot be read, a stored file is gone that would have to be scored, or values
            would be withheld that were already shown.
    """
    session.check_phase(codename)
    configuration, secret = session.configuration, read_secret(session.configuration)
    with session.store.read() as tx:
        row = tx.phase_record(codename)
        if row is None:
            return Change(phase=codename, differing=(f"Phase {codename} has no commitment yet.",))
        before = recorded(tx, codename)
        found = tuple(found.sentence for found in differences(tx, configuration, codename, secret))
        if row.closed_at is None and not has_scores(tx, codename):
            tasks = task_changes(before.tasks, session.phase(codename).record.tasks) if found else ()
            return Change(phase=codename, differing=found, tasks=tuple(tasks))
        rules = configuration.phases[codename].rules
        changed = () if row.closed_at else before.rules.changed(rules)
    if "shown" in changed and rules.shown is Shown.AT_END:
        raise OrganizerError(
            f"Values of phase {codename} were already shown, so they cannot be withheld now.",
            hint=f"Set phases.{codename}.shown: at_once.",
            code="config.shown_already",
        )
    plan = make_plan(session, session.phase(codename))
    check_files(plan.missing)
    return Change(
        phase=codename,
        differing=found,
        tasks=tuple(task_changes(before.tasks, plan.setup.record.tasks)),
        rules=changed,
        rules_before=before.rules,
        plan=plan if plan.due else None,
    )


def task_changes(before: Sequence[Task], after: Sequence[Task]) -> Iterator[str]:
    """Yield which tasks are new, dropped or changed, and how many labels differ; no label is shown."""
    old, new = ({task.name: task for task in tasks} for tasks in (before, after))
    for name in sorted(old.keys() | new.keys()):
        if name not in old:
            yield f"{name} is new, with {count_of(len(new[name].ids), 'label')}"
        elif name not in new:
            yield f"{name} is dropped"
        elif old[name].version != new[name].version:
            was, now = (
                dict(zip(task.ids, task.labels.tolist(), strict=True)) for task in (old[name], new[name])
            )
            differ = sum(was[key] != now[key] for key in was.keys() & now.keys())
            yield (
                f"{name}: {differ:,} of {len(was.keys() & now.keys()):,} labels differ, {len(now.keys() - was.keys()):,} added,"
                f" {len(was.keys() - now.keys()):,} removed"
                + (", other groups" * (old[name].row_set != new[name].row_set and was.keys() == now.keys()))
                + (f", version {new[name].package}" * (old[name].package != new[name].package))
            )


class _TakenBack(Exception):
    """Ends a transaction that changes nothing."""


def moves(session: OrganizerSession, change: Change) -> str:
    """Return who would have another rank on the next board; empty if none would be made, because the phase is closed or shows no values.

    The change is made and the board's content read in a transaction that is taken back. What is still to be scored must have been.
    """
    name, rules = change.phase, session.configuration.phases[change.phase].rules
    cycle = before = None
    with suppress(_TakenBack), session.store.write() as tx:
        record = recorded(tx, name) if change.plan is None else change.plan.setup.record
        put_on_record(tx, replace(record, rules=rules))
        before, sign = tx.newest_board(name), signer(tx, session.configuration)
        cycle = begin_cycle(
            tx,
            sign,
            session.configuration,
            [name],
            BoardHistory(),
            replay=RegisterReplay(),
            now=session.clock(),
        )
        raise _TakenBack
    if cycle is None or before is None or name not in cycle.snapshots:
        return ""
    boards = [from_json(before), *make_boards(cycle).new]
    was, now = (
        {row.team: row.shown_rank for row in public_rows(board, board.rounding)}
        for board in (boards[0], boards[-1])
    )
    moved = [
        f"{team} from {was.get(team, '–')} to {now.get(team, '–')}"
        for team in {**now, **was}
        if was.get(team) != now.get(team)
    ]
    return f"{name}: {name_some(moved, 20)}." if moved else f"{name}: no rank changes."


def consequences(session: OrganizerSession, change: Change) -> Iterator[str]:
    """Yield what is different in a phase and what follows, in sentences."""
    name, plan = change.phase, change.plan
    yield from change.differing
    if change.tasks:
        yield f"{name}: {'; '.join(change.tasks)}."
    if change.renews:
        yield f"{name}: a new commitment is made, which is published. Nothing has been scored in the phase yet."
    if change.rules:
        yield f"{name}: the next board uses the new {', '.join(change.rules)}. Scores stay."
    if "shown" in change.rules:
        with session.store.read() as tx:
            withheld = withholds(tx, name)
        if withheld:
            yield f"{name}: {SHOWS_VALUES}"
    if plan is None:
        return
    seconds = expected_s(session, plan)
    cost = "an unknown time" if seconds is None else f"about {seconds:.0f} s"
    yield (
        f"{name}: scores to compute: {sum(len(row.tasks) for row in plan.missing)},"
        f" for {count_of(len(plan.missing), 'submission')} (this takes {cost})."
    )
    if plan.changed:
        closed = session.is_closed(name)
        what = "all answers, but not the closed board," if closed else "all answers and the board"
        yield f"{name}: {what} change; a new commitment is made, with the reason."
    with session.store.read() as tx:
        if plan.changed and name in tx.revealed():
            yield f"{name} has been revealed: its new tasks and labels are published with the next board."


def commit_to_changes(session: OrganizerSession, changes: Sequence[Change], *, reason: str) -> str | None:
    """Record the changed phases without scores as their files are, make one commitment to them and have that published.

    Returns the commitment; None if there is no such phase.

    Raises:
        OrganizerError: If their files cannot be read, or something was scored in one of them meanwhile.
    """
    fresh = [session.phase(change.phase) for change in changes if change.renews]
    if not fresh:
        return None
    secret, configuration = read_secret(session.configuration), session.configuration
    with session.store.write() as tx:
        check_clock(tx)
        for setup in fresh:
            if has_scores(tx, setup.record.codename):
                raise OrganizerError(
                    f"A submission to phase {setup.record.codename} was scored meanwhile, so its changes need a rescore. Nothing was done.",
                    hint="Run the command again.",
                    code="apply.scored_meanwhile",
                )
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
        tx.request_publish()
    return None if public is None else str(public["commitment"])


def apply_rules(session: OrganizerSession, change: Change, *, reason: str) -> None:
    """Record the changed rules of the board of a phase, unless it was closed meanwhile.

    Raises:
        OrganizerError: If another command has recorded other rules meanwhile.
        InfrastructureError: If the phase's record is damaged.
    """
    phase, rules = change.phase, session.configuration.phases[change.phase].rules
    with session.store.write() as tx:
        before, row = recorded(tx, phase), tx.phase_record(phase)
        if row is None or row.closed_at is not None:
            return
        if before.rules not in (change.rules_before, rules):
            raise OrganizerError(
                f"Another command has changed the rules of phase {phase} meanwhile. They stay as that command left them.",
                hint="Check the configuration, and run the command again.",
                code="apply.changed_meanwhile",
            )
        with decided(session, tx, reason):
            put_on_record(tx, replace(before, rules=rules))

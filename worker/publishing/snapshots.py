"""Snapshots: everything in the database that decides a phase's board."""

from __future__ import annotations

from leaderboard import Entry, PhaseSnapshot
from worker.challenge.configuration import Configuration
from worker.challenge.files import rules_of
from worker.challenge.records import PhaseRules
from worker.challenge.setups import read_record
from worker.fairness import commitments
from worker.state import COUNTED, State, SubmissionRow, Transaction


def snapshot(tx: Transaction, configuration: Configuration, codename: str) -> PhaseSnapshot:
    """Read everything that decides one phase's board now.

    Tasks, protocol and rules are those of the phase's record, so a board follows a rescore in the moment in which the answers do.
    """
    record = tx.phase_record(codename)
    tasks = {} if record is None else record.tasks
    matrix = {} if record is None else tx.matrix(record.protocol_hash)
    rules, epsilon = rules_and_epsilon(tx, configuration, codename)
    eligible = _eligible_teams(tx, rules.eligible_if_scored_in)
    entries, row_sets = [], {}
    for row in _standing(tx, codename):
        cells = matrix.get(row.content_hash or "", {})
        scores = {task: cells[task, version] for task, version in tasks.items() if (task, version) in cells}
        if not scores or len(scores) != len(tasks) or row.submitted_at is None or row.team_key is None:
            continue  # a row with a missing cell has no rank and no number
        baseline = row.baseline or (row.own and row.method in rules.baselines)
        if row.own and not baseline:
            continue  # a trial of the organizers, which EvalAI's leaderboard leaves out too
        row_sets = {task: cell.row_set for task, cell in scores.items()}  # the same in every row
        public = row.public_now if rules.visibility == "current" else row.public_at_first
        entries.append(
            Entry(
                submission=row.pk,
                team_key=row.team_key,
                team=row.team or "",
                # A participant's stays one row under the team's name, whoever marked it at EvalAI.
                method=(row.method or "") if row.own or not baseline else "",
                submitted_at=row.submitted_at,
                public=bool(public),
                baseline=baseline,
                scores={task: cell.folds for task, cell in scores.items()},
                eligible=eligible is None or row.team_key in eligible,
                content_hash=row.content_hash or "",
                seconds=sum(cell.seconds for cell in scores.values()),
            )
        )
    return PhaseSnapshot(
        codename=codename,
        title=codename,
        rules=rules.for_board(epsilon=epsilon, chosen=tx.choices(codename)),
        row_sets=row_sets,
        entries=tuple(entries),
    )


def rules_and_epsilon(
    tx: Transaction, configuration: Configuration, codename: str
) -> tuple[PhaseRules, float]:
    """Return a phase's rules and its epsilon; those of the configuration as long as it is not on record."""
    record = read_record(tx, codename)
    if record is None:
        row = tx.phase_record(codename)
        manifests = (private["manifests"].get(codename) for _, private in tx.commitments())
        epsilon = None if row is None else commitments.committed_epsilon(manifests, row.protocol_hash)
        return rules_of(configuration, codename), epsilon or configuration.scoring.epsilon
    return record.rules, record.protocol.recipe.epsilon


def _standing(tx: Transaction, phase: str) -> list[SubmissionRow]:
    """Return the submissions that EvalAI has an answer of and that nothing takes off the board; one that is answered anew stays."""
    found = tx.submissions(COUNTED | {State.SCORED}, phase=phase)
    return [row for row in found if row.posted is not None and stands(row)]


def stands(row: SubmissionRow) -> bool:
    """Tell whether nothing takes a scored submission off the board; a re-run keeps the old one until the new one is answered."""
    cancelled = row.remote_status == "cancelled" and row.superseded_by is None
    return not (cancelled or row.deleted or row.flagged or row.excluded is not None)


def _eligible_teams(tx: Transaction, phase: str | None) -> frozenset[int] | None:
    if phase is None:
        return None
    return frozenset(row.team_key for row in _standing(tx, phase) if row.team_key)

"""Snapshots: everything in the database that decides a phase's board."""

from __future__ import annotations

from leaderboard import Method, PhaseSnapshot
from worker.challenge.configuration import Configuration
from worker.challenge.files import rules_of
from worker.challenge.records import PhaseRules
from worker.challenge.setups import read_record
from worker.evaluation.shown_values import counting
from worker.fairness import membership
from worker.fairness.pseudonyms import pseudonyms
from worker.fairness.register import submission_facts
from worker.state import COUNTED, State, Transaction


def snapshot(tx: Transaction, configuration: Configuration, codename: str) -> PhaseSnapshot:
    """Read everything that decides one phase's board now.

    Tasks, protocol and rules are those of the phase's record, so that a rescore changes the board and the answers at the same moment.
    """
    record = read_record(tx, codename)
    tasks = {} if record is None else record.versions
    matrix = {} if record is None else tx.matrix(record.protocol.hash)
    rules, epsilon = rules_and_epsilon(tx, configuration, codename)
    eligible = _eligible_teams(tx, rules.eligible_if_scored_in)
    entries, row_sets, removed = [], {}, pseudonyms(tx)
    climbed = None if record is None else counting(tx, record)
    for row in tx.submissions(COUNTED | {State.SCORED}, phase=codename):
        cells = matrix.get(row.content_hash or "", {})
        scored = {task: cells[task, version] for task, version in tasks.items() if (task, version) in cells}
        if not scored or len(scored) != len(tasks):
            continue  # a row with a missing cell has neither a rank nor a value
        found = membership.entry(
            submission_facts(row, removed.get(row.team_key or 0)),
            rules,
            {task: cell.folds for task, cell in scored.items()},
            eligible=eligible is None or row.team_key in eligible,
            climbed=climbed is None or row.pk in climbed,
            seconds=sum(cell.seconds for cell in scored.values()),
            engines=frozenset(cell.engine for cell in scored.values()),
        )
        if found is not None:
            entries.append(found)
            row_sets = {task: cell.row_set for task, cell in scored.items()}  # the same in every row
    return PhaseSnapshot(
        codename=codename,
        title=codename,
        rules=rules.for_board(epsilon=epsilon, chosen=tx.choices(codename)),
        row_sets=row_sets,
        entries=tuple(entries),
    )


def methods(tx: Transaction, codename: str) -> dict[int, Method]:
    """Return what participants say of a phase's submissions, by submission pk, as far as it may be shown.

    A submission that is private now is left out, even if the phase's rules keep its value on the board, and so are those of a team whose
    name was removed.
    """
    removed = pseudonyms(tx)
    return {
        row.pk: Method(
            name=row.method or "",
            project_url=row.project_url or "",
            publication_url=row.publication_url or "",
        )
        for row in tx.submissions(COUNTED | {State.SCORED}, phase=codename)
        if row.public_now and row.team_key not in removed
    }


def rules_and_epsilon(
    tx: Transaction, configuration: Configuration, codename: str
) -> tuple[PhaseRules, float]:
    """Return a phase's rules and its epsilon; those of the configuration until the phase is recorded."""
    record = read_record(tx, codename)
    if record is None:
        return rules_of(configuration, codename), configuration.scoring.epsilon
    return record.rules, record.protocol.recipe.epsilon


def _eligible_teams(tx: Transaction, phase: str | None) -> frozenset[int] | None:
    if phase is None:
        return None
    found = tx.submissions(COUNTED | {State.SCORED}, phase=phase)
    return frozenset(
        row.team_key for row in found if row.team_key and membership.stands(submission_facts(row))
    )

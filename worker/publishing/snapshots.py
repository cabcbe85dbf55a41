"""Snapshots: everything in the database that decides a phase's board."""

from __future__ import annotations

from leaderboard import Entry, PhaseSnapshot
from worker.challenge.configuration import Configuration
from worker.challenge.files import rules_of
from worker.challenge.records import PhaseRules
from worker.challenge.setups import read_record
from worker.fairness import commitments
from worker.state import COUNTED, State, Tracked, Transaction


def snapshot(tx: Transaction, configuration: Configuration, codename: str) -> PhaseSnapshot:
    """Read everything that decides one phase's board now.

    Tasks, protocol and rules are those of the phase's record, so a board follows a rescore in the moment in which the answers do.
    """
    record = tx.phase_record(codename)
    tasks = {} if record is None else record["tasks"]
    matrix = {} if record is None else tx.matrix(record["protocol_hash"])
    rules, epsilon = rules_and_epsilon(tx, configuration, codename)
    eligible = _eligible_teams(tx, rules.eligible_if_scored_in)
    entries, row_sets = [], {}
    for known in _standing(tx, codename):
        cells = matrix.get(known.content_hash or "", {})
        scores = {task: cells[task, version] for task, version in tasks.items() if (task, version) in cells}
        if not scores or len(scores) != len(tasks) or known.submitted_at is None or known.team_key is None:
            continue  # a row with a missing cell has no rank and no number
        baseline = known.baseline or (known.own and known.method in rules.baselines)
        if known.own and not baseline:
            continue  # a trial of the organizers, which EvalAI's leaderboard leaves out too
        row_sets = {task: cell["row_set"] for task, cell in scores.items()}  # the same in every row
        public = known.public_now if rules.visibility == "current" else known.public_at_first
        entries.append(
            Entry(
                submission=known.pk,
                team_key=known.team_key,
                team=known.team or "",
                # A participant's stays one row under the team's name, whoever marked it at EvalAI.
                method=(known.method or "") if known.own or not baseline else "",
                submitted_at=known.submitted_at,
                public=bool(public),
                baseline=baseline,
                scores={task: cell["folds"] for task, cell in scores.items()},
                eligible=eligible is None or known.team_key in eligible,
                content_hash=known.content_hash or "",
                seconds=sum(cell["seconds"] for cell in scores.values()),
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
        epsilon = None if row is None else commitments.committed_epsilon(manifests, row["protocol_hash"])
        return rules_of(configuration, codename), epsilon or configuration.scoring.epsilon
    return record.rules, record.protocol.recipe.epsilon


def _standing(tx: Transaction, phase: str) -> list[Tracked]:
    """Return the submissions that EvalAI has an answer of and that nothing takes off the board; one that is answered anew stays."""
    found = tx.submissions(COUNTED | {State.SCORED}, phase=phase)
    return [known for known in found if known.posted is not None and stands(known)]


def stands(known: Tracked) -> bool:
    """Tell whether nothing takes a scored submission off the board; a re-run keeps the old one until the new one is answered."""
    cancelled = known.remote_status == "cancelled" and known.superseded_by is None
    return not (cancelled or known.deleted or known.flagged or known.excluded is not None)


def _eligible_teams(tx: Transaction, phase: str | None) -> frozenset[int] | None:
    if phase is None:
        return None
    return frozenset(known.team_key for known in _standing(tx, phase) if known.team_key)

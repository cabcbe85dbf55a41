"""Snapshots: everything in the database and the configuration that decides a phase's board."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from leaderboard.snapshot import Entry, PhaseSnapshot, Rules, Selection
from worker.configuration import Configuration
from worker.fairness import commitments
from worker.state import Tracked, Transaction
from worker.states import COUNTED, State


def snapshot(tx: Transaction, configuration: Configuration, codename: str) -> PhaseSnapshot:
    """Read everything that decides one phase's board now.

    Tasks and protocol are those that the answers at EvalAI stand on, as the database has them: files may be in an editor, and a machine may
    have old ones. So a board follows a rescore in the moment in which the answers do.
    """
    leaderboard, settings = configuration.leaderboard, configuration.phases[codename]
    record = tx.phase_record(codename)
    tasks = {} if record is None else record["tasks"]
    matrix = {} if record is None else tx.matrix(record["protocol_hash"])
    eligible = _eligible_teams(tx, settings.eligible_if_scored_in)
    entries, row_sets = [], {}
    for known in _standing(tx, codename):
        cells = matrix.get(known.content_hash or "", {})
        scores = {task: cells[task, version] for task, version in tasks.items() if (task, version) in cells}
        if not scores or len(scores) != len(tasks) or known.submitted_at is None or known.team_key is None:
            continue  # a row with a missing cell has no rank and no number
        baseline = known.baseline or (known.own and known.method in leaderboard.baselines)
        if known.own and not baseline:
            continue  # a trial of the organizers, which EvalAI's leaderboard leaves out too
        row_sets = {task: cell["row_set"] for task, cell in scores.items()}  # the same in every row
        public = known.public_now if settings.visibility == "current" else known.public_at_first
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
    rules = make_rules(configuration, codename, chosen=tx.choices(codename))
    if record is not None:
        manifests = (private["manifests"].get(codename) for _, private in tx.commitments())
        epsilon = commitments.committed_epsilon(manifests, record["protocol_hash"])
        rules = rules if epsilon is None else replace(rules, epsilon=epsilon)
    return PhaseSnapshot(
        codename=codename,
        title=codename,
        rules=rules,
        row_sets=row_sets,
        entries=tuple(entries),
    )


def make_rules(configuration: Configuration, phase: str, *, chosen: Mapping[int, int]) -> Rules:
    """Return the organizer's settings that decide a phase's board."""
    leaderboard, settings = configuration.leaderboard, configuration.phases[phase]
    return Rules(
        selection=Selection(settings.selection),
        epsilon=configuration.scoring.epsilon,
        baselines_weigh=leaderboard.baselines_weigh,
        ghost_task=leaderboard.ghost_task,
        decimals=leaderboard.decimals,
        hidden_teams=frozenset(leaderboard.hidden_teams),
        chosen=chosen,
        visibility=settings.visibility,
        eligible_if_scored_in=settings.eligible_if_scored_in,
    )


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

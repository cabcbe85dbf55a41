"""Snapshots: everything in the database and the configuration that decides a phase's board."""

from __future__ import annotations

from collections.abc import Mapping

from leaderboard.snapshot import Entry, PhaseSnapshot, Rules, Selection
from worker.challenge import PhaseSetup, tasks_changed
from worker.configuration import Configuration
from worker.state import Tracked, Transaction
from worker.states import COUNTED, State


def is_overtaken(tx: Transaction, setup: PhaseSetup) -> bool:
    """Tell whether a phase's scores stand on other tasks or another protocol than these.

    Somebody changed the files and has not rescored yet, or has rescored and we read the files before. A board of such a phase would lack
    every row, or show numbers that EvalAI no longer shows.
    """
    record = tx.phase_record(setup.codename)
    return record is not None and not setup.is_recorded(record) and tx.has_cells(setup.codename)


def current_snapshot(tx: Transaction, configuration: Configuration, setup: PhaseSetup) -> PhaseSnapshot:
    """Read as :func:`snapshot`, for a person who asks.

    Raises:
        OrganizerError: If the scores stand on other tasks or another protocol than the files.
    """
    if is_overtaken(tx, setup):
        raise tasks_changed(setup.codename)
    return snapshot(tx, configuration, setup)


def snapshot(tx: Transaction, configuration: Configuration, setup: PhaseSetup) -> PhaseSnapshot:
    """Read everything that decides one phase's board now."""
    leaderboard, settings = configuration.leaderboard, setup.settings
    matrix = tx.matrix(setup.protocol.hash)
    eligible = _eligible_teams(tx, settings.eligible_if_scored_in)
    entries = []
    for known in _standing(tx, setup.codename):
        cells = matrix.get(known.content_hash or "", {})
        scores = {
            task: cells[task, version]["folds"]
            for task, version in setup.tasks.items()
            if (task, version) in cells
        }
        if len(scores) != len(setup.tasks) or known.submitted_at is None or known.team_key is None:
            continue  # a row with a missing cell has no rank and no number
        public = known.public_now if settings.visibility == "current" else known.public_at_first
        entries.append(
            Entry(
                submission=known.pk,
                team_key=known.team_key,
                team=known.team or "",
                method=known.method or "",
                submitted_at=known.submitted_at,
                public=bool(public),
                baseline=known.baseline
                or known.team in leaderboard.baselines
                or known.method in leaderboard.baselines,
                scores=scores,
                eligible=eligible is None or known.team_key in eligible,
                content_hash=known.content_hash or "",
                seconds=sum(cells[task, version]["seconds"] for task, version in setup.tasks.items()),
            )
        )
    return PhaseSnapshot(
        codename=setup.codename,
        title=setup.codename,
        rules=make_rules(configuration, setup.codename, chosen=tx.choices(setup.codename)),
        row_sets=dict(setup.row_sets),
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

"""The organizer-only figures that a board keeps, and their shape.

``Board.private`` is this JSON-ready document::

    {"rules": {"baselines_weigh", "decimals", "ghost_task"},
     "schema": 1, "fingerprint": hex, "tasks": [task], "weights": {task: w}, "replicates": R,
     "rows": [{"submission", "team_key", "method", "q": {task: Q}, "weighted_rank", "task_ranks": {task: rank},
               "q_interval": [low, high] | null, "rank_interval": [low, high], "p_first", "p_top3",
               "swap_with_next": share | null,
               "mean_rank", "borda", "iqm", "rank_by": {"mean_rank", "borda", "iqm"}}],   in board order
     "tau": {"mean_rank": tau | null, "borda", "iqm"},
     "leave_one_out": [{"submission": left out, "flips": [[ahead, behind]]}]}     submissions' pks; only those that flip something

Anything in it may tell how many tasks there are, so nothing of it leaves before the reveal, except what the organizer releases early.
``intervals``: q_interval, rank_interval, p_first, p_top3 and swap_with_next. ``stable_views``: mean_rank, borda and iqm with their
ranks, tau and leave_one_out (a mean rank such as 3.25 gives the number of tasks away, which ``doctor`` says).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import replace

from leaderboard.assessment import Assessment
from leaderboard.selection import Contender
from leaderboard.snapshot import PhaseSnapshot, RowKey, Rules

SCHEMA = 1
KEPT_RULES = ("baselines_weigh", "decimals", "ghost_task")
DIGITS = 6  # of resampled figures; more would be noise of the resampling


def figures(assessment: Assessment, fingerprint: str) -> dict[str, object]:
    """Return a board's private figures."""
    tasks, ranking, views = assessment.tasks, assessment.ranking, assessment.views
    pks = [contender.entry.submission for contender in assessment.contenders]
    return {
        "schema": SCHEMA,
        "fingerprint": fingerprint,
        "tasks": list(tasks),
        "weights": dict(zip(tasks, ranking.weights, strict=True)),
        "replicates": assessment.uncertainty.replicates,
        "rows": [_row(assessment, index) for index in range(len(pks))],
        "tau": {view.name: view.tau for view in views},
        "leave_one_out": [
            {
                "submission": pks[left.entry],
                "flips": [[pks[ahead], pks[behind]] for ahead, behind in left.flips],
            }
            for left in assessment.left_out
            if left.flips
        ],
    }


def kept_rules(rules: Rules) -> dict[str, object]:
    """Return what a board keeps of the rules that it was made by: they may be changed while a challenge runs."""
    return {name: getattr(rules, name) for name in KEPT_RULES}


def rules_then(private: Mapping[str, object], rules: Rules) -> Rules:
    """Return the rules by which a board was made; today's for what it did not keep."""
    kept = private.get("rules")
    if not isinstance(kept, Mapping):
        return rules
    return replace(rules, **{name: kept[name] for name in KEPT_RULES if name in kept})


def _row(assessment: Assessment, index: int) -> dict[str, object]:
    tasks, ranking, luck = assessment.tasks, assessment.ranking, assessment.uncertainty
    contender = assessment.contenders[index]
    team_key, method = contender.key
    interval = luck.q_intervals[index]
    last = index + 1 == len(assessment.contenders)
    return {
        "submission": contender.entry.submission,
        "team_key": team_key,
        "method": method,
        "q": dict(zip(tasks, assessment.quality[index].tolist(), strict=True)),
        "weighted_rank": ranking.weighted_ranks[index],
        "task_ranks": dict(zip(tasks, ranking.task_ranks[index], strict=True)),
        "q_interval": None if interval is None else [round(end, DIGITS) for end in interval],
        "rank_interval": list(luck.rank_intervals[index]),
        "p_first": luck.p_first[index],
        "p_top3": luck.p_top3[index],
        "swap_with_next": None if last else float(luck.beats[index + 1, index]),
        **{view.name: view.scores[index] for view in assessment.views},
        "rank_by": {view.name: view.ranks[index] for view in assessment.views},
    }


def quality_scores(private: Mapping[str, object]) -> dict[RowKey, dict[str, float]]:
    """Read each row's per-task quality scores back from a board's private figures; empty if it has none."""
    rows = private.get("rows")
    if not isinstance(rows, list):
        return {}
    return {(int(row["team_key"]), str(row["method"])): dict(row["q"]) for row in rows}


def task_weights(private: Mapping[str, object]) -> dict[str, float]:
    """Read the task weights back from a board's private figures; empty if it has none."""
    weights = private.get("weights")
    return dict(weights) if isinstance(weights, dict) else {}


def fingerprint(phase: PhaseSnapshot, contenders: tuple[Contender, ...], replicates: int) -> str:
    """Hash everything that decides a board, so that an unchanged phase is recognised without being ranked again."""
    digest = hashlib.sha256()

    def add(*values: object) -> None:
        text = repr(values).encode("utf-8", "backslashreplace")
        digest.update(len(text).to_bytes(8, "big") + text)

    rules = phase.rules
    add(
        SCHEMA,
        phase.codename,
        replicates,
        rules.epsilon,
        rules.baselines_weigh,
        rules.ghost_task,
        rules.decimals,
    )
    add(sorted(phase.row_sets.items()))
    for contender in contenders:
        entry = contender.entry
        add(contender.key, contender.name, entry.submission, entry.baseline, entry.eligible)
        add(contender.submissions, contender.last_submitted_at.timestamp(), entry.submitted_at.timestamp())
        for task in sorted(phase.row_sets):
            folds = entry.scores[task]
            digest.update(struct.pack(f"<q{len(folds)}d", len(folds), *folds))
    return digest.hexdigest()

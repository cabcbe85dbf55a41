"""Ceiled scores, and the tree of groups that tasks belong to (after Brain-Score).

A ceiled score says how much of what can be explained was explained: the score over the ceiling of its task. A group's score is the mean of
what lies directly in it, tasks and groups alike, so a group with many tasks does not outweigh its neighbours one level up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ROOT = ""


@dataclass(frozen=True, kw_only=True)
class TaskPlace:
    """The place of a task in the tree of groups.

    Attributes:
        identifier: The task.
        parent: Its group, ``land/forest`` for a group in a group; empty for none.
        ceiling: The score that a perfect model reaches, or None.
    """

    identifier: str
    parent: str = ROOT
    ceiling: float | None = None


@dataclass(frozen=True, kw_only=True)
class GroupScore:
    """One group of the tree.

    Attributes:
        group: Its path; empty for the root, which holds everything.
        depth: Of nesting, 0 for the root.
        tasks: Tasks in it and in its groups, sorted.
        score: Mean of what lies directly in it.
        ceiled: The same of ceiled scores; None unless every task has a ceiling.
    """

    group: str
    depth: int
    tasks: tuple[str, ...]
    score: float
    ceiled: float | None


def ceiled(score: float, ceiling: float | None) -> float | None:
    """Return the score as a share of its ceiling, None without a ceiling."""
    return None if ceiling is None else score / ceiling


def group_scores(scores: Mapping[str, float], places: Sequence[TaskPlace]) -> tuple[GroupScore, ...]:
    """Sum scores up by group, from the root down, groups in order of their names.

    Args:
        scores: A score for each task, such as the mean over its folds or its Q.
        places: Of tasks; a task without a place lies in the root. Places of other tasks are passed over.
    """
    known = {place.identifier: place for place in places}
    standing = {task: known.get(task, TaskPlace(identifier=task)) for task in scores}
    groups = {ROOT}
    for place in standing.values():
        parts = [part for part in place.parent.split("/") if part]
        groups.update("/".join(parts[:length]) for length in range(1, len(parts) + 1))
    reached = {task: ceiled(score, standing[task].ceiling) for task, score in scores.items()}
    plain: dict[str, float] = {}
    shares: dict[str, float | None] = {}
    for group in sorted(groups, key=_depth, reverse=True):  # inner ones first
        inside = [task for task, place in standing.items() if place.parent.strip("/") == group]
        below = [other for other in plain if other and _above(other) == group]
        plain[group] = _mean([*(scores[task] for task in inside), *(plain[other] for other in below)])
        parts_ceiled = [*(reached[task] for task in inside), *(shares[other] for other in below)]
        usable = [value for value in parts_ceiled if value is not None]
        shares[group] = _mean(usable) if len(usable) == len(parts_ceiled) and usable else None
    return tuple(
        GroupScore(
            group=group,
            depth=_depth(group),
            tasks=tuple(sorted(task for task, place in standing.items() if _within(place.parent, group))),
            score=plain[group],
            ceiled=shares[group],
        )
        for group in sorted(groups, key=lambda group: group.split("/"))
    )


def _depth(group: str) -> int:
    return group.count("/") + 1 if group else 0


def _above(group: str) -> str:
    return group.rpartition("/")[0]


def _within(parent: str, group: str) -> bool:
    return not group or parent == group or parent.startswith(group + "/")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan

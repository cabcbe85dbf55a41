"""Ceiled scores, and the tree of groups that tasks belong to (after Brain-Score).

A ceiled score is a task's score divided by its ceiling: how much of the explainable variation was explained. A group's score is the mean of
its direct members, tasks and groups alike, so a group with many tasks does not outweigh its siblings.
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
        group: Its path; empty for the root.
        depth: Depth of nesting, 0 for the root.
        tasks: Tasks in it and in its groups, sorted.
        score: Mean over its direct members.
        ceiled: Mean of their ceiled scores; None unless every task has a ceiling.
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
    """Return the scores of all groups, from the root down, sorted by name.

    Args:
        scores: A score per task, such as its mean over the folds or its Q.
        places: Places of tasks; a task without a place is in the root, and places of tasks without a score are ignored.
    """
    by_identifier = {place.identifier: place for place in places}
    standing = {task: by_identifier.get(task, TaskPlace(identifier=task)) for task in scores}
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

"""Ceiled scores, and the tree of groups that tasks belong to (after Brain-Score).

A ceiled score is a task's score divided by its ceiling: how much of the explainable variation was explained. A group's score is the mean of
its direct members, tasks and groups alike, so a group with many tasks does not outweigh its siblings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scoring.metrics import mean_quality
from scoring.tasks.packages import TaskPackage

ROOT = ""


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


def group_scores(scores: Mapping[str, float], packages: Sequence[TaskPackage]) -> tuple[GroupScore, ...]:
    """Return the scores of all groups, from the root down, sorted by name.

    Args:
        scores: A score per task, such as its mean over the folds or its Q.
        packages: Packages of tasks; a task without a package is in the root, and packages of tasks without a score are ignored.
    """
    ceilings = {package.identifier: package.ceiling for package in packages}
    shares = {task: ceiled(score, ceilings.get(task)) for task, score in scores.items()}
    parents = {package.identifier: package.parent for package in packages}
    parents = {task: parents.get(task, ROOT) for task in scores}
    names = {ROOT}
    for parent in parents.values():
        parts = parent.split("/")
        names.update("/".join(parts[:length]) for length in range(1, len(parts) + 1))
    groups: dict[str, GroupScore] = {}
    for name in sorted(names, key=_depth, reverse=True):  # inner ones first
        inside = [task for task, parent in parents.items() if parent == name]
        below = [group for group in groups.values() if group.group.rpartition("/")[0] == name]
        ceiled_scores = [*(shares[task] for task in inside), *(group.ceiled for group in below)]
        usable = [score for score in ceiled_scores if score is not None]
        groups[name] = GroupScore(
            group=name,
            depth=_depth(name),
            tasks=tuple(sorted([*inside, *(task for group in below for task in group.tasks)])),
            score=mean_quality([*(scores[task] for task in inside), *(group.score for group in below)]),
            ceiled=mean_quality(usable) if usable and len(usable) == len(ceiled_scores) else None,
        )
    return tuple(groups[name] for name in sorted(groups, key=lambda name: name.split("/")))


def _depth(group: str) -> int:
    return group.count("/") + 1 if group else 0

"""Hidden tasks: label files, citable task packages, and the groups of tasks."""

from scoring.tasks.blocks import blocks
from scoring.tasks.hierarchy import ceiled, group_scores
from scoring.tasks.packages import NAME, TaskPackage, is_package, read_package
from scoring.tasks.tasks import (
    CHALLENGE_TYPES,
    MINIMUM_ROWS,
    Task,
    TaskType,
    check_groups,
    check_sizes,
    label_rows,
    load_task,
    load_tasks,
    make_task,
    task_sources,
    task_version,
    typed,
)

__all__ = [
    "CHALLENGE_TYPES",
    "MINIMUM_ROWS",
    "NAME",
    "Task",
    "TaskPackage",
    "TaskType",
    "blocks",
    "ceiled",
    "check_groups",
    "check_sizes",
    "group_scores",
    "is_package",
    "label_rows",
    "load_task",
    "load_tasks",
    "make_task",
    "packages",
    "read_package",
    "task_sources",
    "task_version",
    "typed",
]

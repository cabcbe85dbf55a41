"""Hidden tasks: label files, citable task packages, and the groups of tasks."""

from scoring.tasks.hierarchy import TaskPlace, ceiled, group_scores
from scoring.tasks.packages import (
    BASELINE_KEYS,
    KEYS,
    NAME,
    TaskPackage,
    find_packages,
    is_package,
    read_package,
)
from scoring.tasks.tasks import (
    MINIMUM_ROWS,
    Task,
    TaskType,
    label_rows,
    load_task,
    load_tasks,
    make_task,
    task_sources,
)

__all__ = [
    "BASELINE_KEYS",
    "KEYS",
    "MINIMUM_ROWS",
    "NAME",
    "Task",
    "TaskPackage",
    "TaskPlace",
    "TaskType",
    "ceiled",
    "find_packages",
    "group_scores",
    "is_package",
    "label_rows",
    "load_task",
    "load_tasks",
    "make_task",
    "read_package",
    "task_sources",
]

"""Hidden tasks: label files, citable task packages, and the groups of tasks.

``packages`` loads pydantic, so it is imported only if there are packages.
"""

from scoring.tasks.hierarchy import TaskPlace, ceiled, group_scores
from scoring.tasks.packages import NAME, is_package
from scoring.tasks.tasks import (
    MINIMUM_ROWS,
    Task,
    TaskType,
    label_rows,
    load_task,
    load_tasks,
    make_task,
    task_sources,
    task_version,
)

__all__ = [
    "MINIMUM_ROWS",
    "NAME",
    "Task",
    "TaskPlace",
    "TaskType",
    "ceiled",
    "group_scores",
    "is_package",
    "label_rows",
    "load_task",
    "load_tasks",
    "make_task",
    "packages",
    "task_sources",
    "task_version",
]

"""Task packages: a hidden task with what makes it citable, comparable and testable (after Brain-Score's benchmarks).

A package is a folder with ``task.yaml`` and a label file. It belongs in the tasks folder, next to plain label files and other packages, and
is scored as they are. It adds a description, a citation and expected scores, which ``task check`` tests.

A task's score cells are keyed by its version. Version 1 of a package has the key of the plain label file with the same rows, so turning a
label file into a package needs no re-scoring. Each later version has its own key even if no label changed, so a new version gets new cells,
and the old cells stay.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationInfo, field_validator

from scoring.documents import checked, not_a_switch, read_yaml_file, whole
from scoring.protocol import LEAST_RATE, MOST_RATE, MOST_REPEATS

DESCRIPTION = "task.yaml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")  # of a task


def is_package(path: Path) -> bool:
    """Return whether a path is a task package."""
    return (path / DESCRIPTION).is_file()


GROUP = r"^([A-Za-z0-9][A-Za-z0-9 _.-]*(/[A-Za-z0-9][A-Za-z0-9 _.-]*)*)?$"


FILE = "the name of a file in the package"


def _inside(name: object, info: ValidationInfo) -> Path:
    """Return the path of a file in the package."""
    folder: Path = (info.context or {})["folder"]
    path = folder / str(name)
    if ".." in path.parts or not path.is_relative_to(folder) or not path.is_file():
        raise ValueError(FILE)
    return path


File = Annotated[Path, BeforeValidator(_inside)]
Line = Annotated[str, StringConstraints(strip_whitespace=True), BeforeValidator(lambda value: value or "")]
Count = Annotated[int, Field(ge=1, strict=True, description="a whole number of at least 1")]


class Baseline(BaseModel, extra="forbid", frozen=True):
    """Embeddings that come with a package, and the score that they must reach.

    Attributes:
        embeddings: File next to ``task.yaml``.
        score: Expected mean score over the folds; None if it is not known yet.
        tolerance: Allowed difference between the measured and the expected score.
        folds: Number of random splits.
        epochs: Passes over the training part.
        batch_size: Rows per step.
        learning_rate: Learning rate of the optimizer.
    """

    embeddings: File = Field("baseline.csv", validate_default=True, description=FILE)
    score: float | None = Field(None, allow_inf_nan=False, description="a number")
    tolerance: float = Field(1e-4, ge=0, allow_inf_nan=False, description="a number of at least 0")
    folds: int = whole(10, MOST_REPEATS, strict=True)
    epochs: int = whole(20, MOST_REPEATS, strict=True)
    batch_size: int = whole(64, MOST_REPEATS, strict=True)
    learning_rate: float = Field(
        0.001, ge=LEAST_RATE, le=MOST_RATE, description=f"a number from {LEAST_RATE:g} to {MOST_RATE:,.0f}"
    )
    _numbers = field_validator("score", "tolerance", "learning_rate", mode="before")(not_a_switch)


class TaskPackage(BaseModel, extra="forbid", frozen=True):
    """The content of ``task.yaml``.

    Attributes:
        identifier: Name of the task; the folder may have another name.
        version: Increased when the labels change, or anything else that changes scores.
        type: ``regr`` or ``cls``; in the standalone benchmark also ``multiclass`` and ``multilabel``.
        description: One sentence that says what is predicted.
        bibtex: The citation.
        licence: Licence of the labels.
        parent: The task's group, ``land/forest`` for a nested one; empty for none.
        ceiling: The score that a perfect model reaches, given the noise of the labels, or None.
        labels: Label file.
        dataset: Name of the data that the samples come from.
        baseline: The package's baseline, or None.
    """

    identifier: str = Field(
        pattern="^" + NAME.pattern.replace(r"\Z", "$"), description="letters, digits, '_', '-' and '.'"
    )
    version: Count
    type: str = Field(min_length=1, description="a type such as regr or cls")
    description: Line = ""
    bibtex: Line = ""
    licence: Line = ""
    parent: Line = Field("", pattern=GROUP, description="the name of a group, such as land/forest")
    ceiling: float | None = Field(None, gt=0, le=1, description="a number above 0 and at most 1")
    labels: File = Field("labels.csv", validate_default=True, description=FILE)
    dataset: Line = ""
    _ceiling = field_validator("ceiling", mode="before")(not_a_switch)
    baseline: Baseline | None = Field(None, description="keys with values, such as embeddings and score")


def read_package(folder: Path) -> TaskPackage:
    """Read and check ``task.yaml``, without reading the labels.

    Raises:
        OrganizerError: If it cannot be read, lacks a key, or has an invalid value.
    """
    path = folder / DESCRIPTION
    document = read_yaml_file(
        path, code="package.unreadable", hint="`neuco-worker task new` makes one to start from."
    )
    return checked(
        TaskPackage,
        document if isinstance(document, dict) else {},
        place=str(path),
        code="package.bad_value",
        context={"folder": folder},
    )

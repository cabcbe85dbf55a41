"""Task packages: a hidden task with what makes it citable, comparable and testable (after Brain-Score's benchmarks).

A package is a folder with ``task.yaml`` and a label file. It belongs in the tasks folder, next to plain label files and other packages, and
is scored as they are. It adds a description, a citation and expected scores, which ``task check`` tests.

A task's score cells are keyed by its version. Version 1 of a package has the key of the plain label file with the same rows, so turning a
label file into a package needs no re-scoring. Each later version has its own key even if no label changed, so a new version gets new cells,
and the old cells stay.

``task.yaml`` is checked without pydantic, which every scoring process would have to import. Models would be no shorter, because files must
be looked up in the package, a number may be a text, and each key has its own error message.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from scoring.errors import OrganizerError
from scoring.inputs.documents import read_yaml

DESCRIPTION = "task.yaml"
ESTIMATE = "estimate"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")  # of a task
GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.-]*(/[A-Za-z0-9][A-Za-z0-9 _.-]*)*\Z")


@dataclass(frozen=True, kw_only=True)
class Baseline:
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

    embeddings: Path
    score: float | None
    tolerance: float = 1e-4
    folds: int = 10
    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 0.001


@dataclass(frozen=True, kw_only=True)
class TaskPackage:
    """The content of ``task.yaml``.

    Attributes:
        identifier: Name of the task; the folder may have another name.
        version: Increased when the labels change, or anything else that changes scores.
        type: ``regr`` or ``cls``; in the standalone benchmark also ``multiclass`` and ``multilabel``.
        description: One sentence that says what is predicted.
        bibtex: The citation.
        licence: Licence of the labels.
        parent: The task's group, ``land/forest`` for a nested one; empty for none.
        ceiling: The score that a perfect model reaches, given the noise of the labels: a number, ``estimate`` (from ``repeats``), or None.
        labels: Label file.
        repeats: File with repeated measurements of the labels (columns id,label; an id may occur several times), or None.
        dataset: Name of the data that the samples come from.
        fingerprint: First digits of the labels' hash, which reveal a change without a new version; empty for none.
        baseline: The package's baseline, or None.
    """

    identifier: str
    version: int
    type: str
    description: str = ""
    bibtex: str = ""
    licence: str = ""
    parent: str = ""
    ceiling: float | str | None = None
    labels: Path
    repeats: Path | None = None
    dataset: str = ""
    fingerprint: str = ""
    baseline: Baseline | None = None


KEYS = tuple(field.name for field in fields(TaskPackage))
BASELINE_KEYS = tuple(field.name for field in fields(Baseline))


def is_package(path: Path) -> bool:
    """Return whether a path is a task package."""
    return (path / DESCRIPTION).is_file()


def read_package(folder: Path) -> TaskPackage:
    """Read and check ``task.yaml``, without reading the labels.

    Raises:
        OrganizerError: If it cannot be read, lacks a key, or has an invalid value.
    """
    document = _document(folder / DESCRIPTION)
    _known(document, KEYS, folder)
    kind = _text(document, "type", folder)
    identifier = _text(document, "identifier", folder)
    if not NAME.match(identifier):
        raise wrong_value(folder, "identifier", identifier, "letters, digits, '_', '-' and '.'")
    parent = _text(document, "parent", folder, "")
    if parent and not GROUP.match(parent):
        raise wrong_value(folder, "parent", parent, "the name of a group, such as land/forest")
    return TaskPackage(
        identifier=identifier,
        version=_whole(document, "version", folder),
        type=kind,
        labels=_file(document, "labels", folder, "labels.csv"),
        description=_text(document, "description", folder, ""),
        bibtex=_text(document, "bibtex", folder, ""),
        licence=_text(document, "licence", folder, ""),
        parent=parent,
        ceiling=_ceiling(document, folder),
        repeats=None if document.get("repeats") is None else _file(document, "repeats", folder, ""),
        dataset=_text(document, "dataset", folder, ""),
        fingerprint=_text(document, "fingerprint", folder, ""),
        baseline=_baseline(document.get("baseline"), folder),
    )


def find_packages(folder: Path) -> tuple[TaskPackage, ...]:
    """Read the packages of a tasks folder, sorted by identifier; plain label files are skipped."""
    found = (
        [read_package(path) for path in sorted(folder.iterdir()) if is_package(path)]
        if folder.is_dir()
        else []
    )
    return tuple(sorted(found, key=lambda package: package.identifier))


def _document(path: Path) -> dict[str, Any]:
    import yaml

    try:
        document = read_yaml(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise OrganizerError(
            f"{path} cannot be read as YAML.",
            cure="Correct it, or create one to start from with `neuco-worker task new`.",
            code="package.unreadable",
        ) from error
    if not isinstance(document, dict):
        raise OrganizerError(
            f"{path} does not contain keys with values.",
            cure="Write identifier, version and type.",
            code="package.empty",
        )
    return {str(key): value for key, value in document.items()}


def _known(document: Mapping[str, Any], keys: tuple[str, ...], folder: Path) -> None:
    from difflib import get_close_matches

    for key in document:
        if key not in keys:
            near = get_close_matches(key, keys, n=1)
            raise OrganizerError(
                f"{folder / DESCRIPTION} has the unknown key {key!r}.",
                cure=f"Did you mean {near[0]}?" if near else f"It may have: {', '.join(keys)}.",
                code="package.unknown_key",
            )


def _text(document: Mapping[str, Any], key: str, folder: Path, default: str | None = None) -> str:
    value = document.get(key)
    if (value is None or value == "") and default is not None:
        return default
    if not isinstance(value, str) or not value.strip():
        raise wrong_value(folder, key, value, "text")
    return value.strip()


def _whole(document: Mapping[str, Any], key: str, folder: Path, default: int | None = None) -> int:
    value = document.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong_value(folder, key, value, "a whole number of at least 1")
    return value


def _number(document: Mapping[str, Any], key: str, folder: Path, default: float) -> float:
    value = document.get(key, default)
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise wrong_value(folder, key, value, "a number")
    return number


def _file(document: Mapping[str, Any], key: str, folder: Path, default: str) -> Path:
    name = document.get(key, default)
    if not isinstance(name, str) or not name or Path(name).is_absolute() or ".." in Path(name).parts:
        raise wrong_value(folder, key, name, "the name of a file in the package")
    path = folder / name
    if not path.is_file():
        raise OrganizerError(
            f"{folder / DESCRIPTION} names {name} as its {key}, which does not exist.",
            cure="Add the file to the package, or correct the name.",
            code="package.missing_file",
        )
    return path


def _ceiling(document: Mapping[str, Any], folder: Path) -> float | str | None:
    value = document.get("ceiling")
    if value is None:
        return None
    if value == ESTIMATE:
        if document.get("repeats") is None:
            raise OrganizerError(
                f"{folder / DESCRIPTION} has ceiling: {ESTIMATE}, but no repeats (a file with repeated measurements).",
                cure="Add repeats, or write a number as the ceiling.",
                code="package.no_repeats",
            )
        return ESTIMATE
    number = _number(document, "ceiling", folder, math.nan)
    if not 0 < number <= 1:
        raise wrong_value(
            folder, "ceiling", value, "a number greater than 0 and at most 1, or the word estimate"
        )
    return number


def _baseline(document: object, folder: Path) -> Baseline | None:
    if document is None:
        return None
    if not isinstance(document, dict):
        raise wrong_value(folder, "baseline", document, "keys with values, such as embeddings and score")
    document = {str(key): value for key, value in document.items()}
    _known(document, BASELINE_KEYS, folder)
    tolerance = _number(document, "tolerance", folder, Baseline.tolerance)
    if tolerance < 0:
        raise wrong_value(folder, "baseline.tolerance", tolerance, "0 or greater")
    return Baseline(
        embeddings=_file(document, "embeddings", folder, "baseline.csv"),
        score=None if document.get("score") is None else _number(document, "score", folder, math.nan),
        tolerance=tolerance,
        folds=_whole(document, "folds", folder, Baseline.folds),
        epochs=_whole(document, "epochs", folder, Baseline.epochs),
        batch_size=_whole(document, "batch_size", folder, Baseline.batch_size),
        learning_rate=_number(document, "learning_rate", folder, Baseline.learning_rate),
    )


def wrong_value(folder: Path, key: str, value: object, expected: str) -> OrganizerError:
    """Return the error about a value of ``task.yaml``."""
    return OrganizerError(
        f"{key} in {folder / DESCRIPTION} is {str(value)[:60]!r}, but must be {expected}.",
        cure="Correct it; docs/kin.md describes task packages.",
        code="package.bad_value",
    )

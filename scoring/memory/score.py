"""``scoring.score``: score files, or what is in memory, by the rules and with the numbers of ``neuco-worker score``."""

from __future__ import annotations

import operator
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from scoring.documents import checked, expanded
from scoring.errors import MissingFile, NeucoError, WrongType, WrongValue, python_errors
from scoring.inputs.embeddings import without_suffix
from scoring.memory.containers import is_dictionary, is_path
from scoring.memory.given import (
    GivenEmbeddings,
    GivenTask,
    given_embeddings,
    given_tasks,
    index_of,
    with_ids,
)
from scoring.memory.groups import GivenGroups, given_groups, refuse_column, take_column, with_groups
from scoring.memory.kinds import decide, split_name
from scoring.memory.pairing import as_text, excluded_rows, pair
from scoring.memory.result import Result
from scoring.neuco_bench.configuration import SAMPLE, StandaloneSettings, parameters_of, parse_settings
from scoring.neuco_bench.labels import (
    LabeledTask,
    Labels,
    id_names,
    names_a_folder,
    read_annotations,
    remarks,
)
from scoring.neuco_bench.material import Material, chosen_tasks, join_material, read_material
from scoring.neuco_bench.reading import take_embeddings
from scoring.neuco_bench.run import SEED, score_run
from scoring.probes import PROBES
from scoring.probes.probe import probe_class
from scoring.progress import progress_bar
from scoring.protocol import MOST_NUMBERS, MOST_REPEATS

ADDRESS = re.compile(r"[a-z][a-z0-9+]+://", re.IGNORECASE)
PYTHON_NAMES = {
    "k_folds": "folds",
    "probe_type": "probe",
    "n_splits": "folds",
    "random_state": "seed",
    "n_jobs": "threads",
}


def score(
    embeddings: Any,
    labels: Any,
    probe: str = "linear",
    *,
    folds: int = SAMPLE["k_folds"],
    seed: int = SEED,
    threads: int | None = None,
    progress: bool = True,
    id_column: str | None = None,
    groups: Any = None,
    exclude: Iterable[Any] = (),
    task_filter: Sequence[str] | None = None,
    embedding_dim: int | None = None,
    standardize_embeddings: bool = True,
    normalize_labels: bool = True,
    enable_plots: bool = False,
    store_probes: bool = False,
    **params: Any,
) -> Any:
    """Score embeddings on tasks, and return a ``Result``; with seed 42, the numbers are NeuCo-Bench's.

    Pairing. If both sides have ids (an index that was set, a column ``id``, the keys of a dictionary, a file), rows are joined by id.
    If one side has none (an array, a list, the index 0 to n - 1 of pandas), rows are paired by position, and their numbers must agree;
    next to an array, an index has no meaning. What could be meant in both ways is refused.

    Types. Two numbers or booleans are two classes, the greater one positive. Texts and pandas' categories are several classes. A table of
    zeros and ones is several labels. Other numbers are a regression; a note says so if they are few whole numbers. A name decides
    otherwise: ``digit__multiclass``, ``__regr``, ``__cls``, ``__multilabel``. Only None, NaN and pandas' NA are missing; "NA" is a class.
    Dates, and as many classes as half of the samples, are refused. The result shows type and notes.

    Args:
        embeddings: A file, or a folder of Parquet parts; a table (pandas, polars, pyarrow, xarray); a dictionary of ids and vectors; or an
            array or tensor, n x N. In a table, the dimensions are the columns named by numbers; if there are none, all except the id.
            A dictionary of names and any of these gives a dictionary of names and results.
        labels: A file ``<task>__<type>.csv`` or a folder of such files; a table with a column per task; a dictionary of tasks and labels,
            or of ids and labels; a series; or an array.
        probe: Name of the probe, one of :data:`scoring.probes.PROBES`.
        folds: Number of random splits.
        seed: Seed of splits and training.
        threads: Folds trained at the same time; None takes all cores.
        progress: Whether progress is shown at a terminal or in a notebook.
        id_column: Name of the column with the ids, if it is not ``id``.
        groups: The group of each sample, such as its tile or scene, if neighbours are alike: a group is in one part of a split, whole. An
            array, a series, a dictionary of ids and groups, or the name of a column. Label files have them in their column ``group``.
        exclude: Ids to leave out.
        task_filter: Names of the tasks to score; None takes all.
        embedding_dim: Dimension to which narrower embeddings are padded with zeros.
        standardize_embeddings: Whether embeddings are scaled by one mean and one standard deviation.
        normalize_labels: Whether the labels of a regression are scaled to [0, 1].
        enable_plots: Whether ``result.save`` draws plots.
        store_probes: Whether it writes a probe of each task, trained on all samples.
        params: The probe's parameters, such as ``epochs=20``.

    Raises:
        ValueError: If embeddings, labels or arguments cannot be used; the message says what was seen, and what helps.
        TypeError: If they are of a type that cannot be used.
        FileNotFoundError: If a file is missing.
        ModuleNotFoundError: If the probe needs a library that is not installed.
    """
    with python_errors():
        options = {
            "task_filter": None
            if task_filter is None
            else [str(name) for name in _listed("task_filter", task_filter)],
            "embedding_dim": embedding_dim
            if embedding_dim is None
            else _whole("embedding_dim", embedding_dim, 1, MOST_NUMBERS),
            "standardize_embeddings": standardize_embeddings,
            "normalize_labels": normalize_labels,
            "enable_plots": enable_plots,
            "store_probes": store_probes,
        }
        settings = _settings(probe, _whole("folds", folds, 1, MOST_REPEATS), options, params)
        seed = _whole("seed", seed, 0, 2**32 - 1)
        threads = None if threads is None else _whole("threads", threads, 1)
        left_out = _listed("exclude", () if exclude is None else exclude)
        excluded = frozenset(without_suffix(as_text(identifier)) for identifier in left_out)
        column = None if id_column is None else str(id_column)
    named = embeddings if _are_several(embeddings) else {"": embeddings}
    labels, groups = kept(labels), kept(groups)
    results = {}
    for name, given in named.items():
        with _told_of(name), python_errors():
            material = _material(given, labels, settings, id_column=column, groups=groups, excluded=excluded)
            title = f"Scoring {name}".strip()
            with progress_bar(title, "folds", Console(stderr=True, quiet=not progress)) as advance:
                report = score_run(material, settings, seed=seed, threads=threads, progress=advance)
        for warning in report.warnings:
            warnings.warn(f"{name}: {warning}" if name else warning, stacklevel=2)
        results[str(name)] = Result(report=report, settings=settings)
    return results if named is embeddings else results[""]


def kept(value: Any) -> Any:
    """Return a value that can be read again: a list of what an iterator yields, also in a dictionary."""
    if is_dictionary(value):
        return {key: [*item] if isinstance(item, Iterator) else item for key, item in value.items()}
    return [*value] if isinstance(value, Iterator) else value


def _are_several(value: Any) -> bool:
    """Return whether a value is a dictionary of names and embeddings, not of ids and vectors."""
    if not is_dictionary(value) or not value or not {"ids", *id_names(None)}.isdisjoint(value):
        return False
    return all(map(_are_rows, value.values()))


def _are_rows(value: Any) -> bool:
    shape: tuple[int, ...] = getattr(value, "shape", ())
    return is_path(value) or isinstance(value, Mapping) or (len(shape) == 2 and shape[0] > 1)


@contextmanager
def _told_of(name: object) -> Iterator[None]:
    """Let an error say which of several embeddings it is about."""
    try:
        yield
    except NeucoError as error:
        if name:
            error.add_note(f"This is about the embeddings {name!s}.")
        raise


def _whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise WrongType(
            f"The argument {name} is {value!r:.60}, not a whole number.",
            hint="Correct it.",
            code="score.argument",
        ) from None
    if number < least or (most is not None and number > most):
        limits = f"from {least} to {most:,}" if most is not None else f"of at least {least}"
        raise WrongValue(
            f"The argument {name} is {number}, not a whole number {limits}.",
            hint="Correct it.",
            code="score.argument",
        )
    return number


def _of_python(value: Any) -> Any:
    """Return an argument as values of Python, which the results repeat as JSON: a list for an array, a series, a range or an iterator."""
    if isinstance(value, Mapping):
        return {key: _of_python(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [*map(_of_python, value)]
    return value


def _settings(
    probe: str, folds: int, options: Mapping[str, Any], params: Mapping[str, Any]
) -> StandaloneSettings:
    """Check the arguments, in their own words."""
    if not isinstance(probe, str) or probe not in PROBES:
        raise WrongValue(
            f"The argument probe is {probe!r:.60}, not the name of a probe.",
            hint=f"Use one of: {', '.join(PROBES)}.",
            code="score.argument",
        )
    model = probe_class(probe).parameters
    values, options = _of_python(params), _of_python(options)
    parameters = parameters_of(probe)
    for name in values.keys() - {*parameters}:
        known = [*(score.__kwdefaults__ or {}), *parameters]
        near = [PYTHON_NAMES[name]] if name in PYTHON_NAMES else get_close_matches(name, known, n=1)
        raise WrongType(
            f"There is no argument {name!r} for the probe {probe}.",
            hint=f"Did you mean {near[0]}?" if near else f"Its parameters are: {', '.join(parameters)}.",
            code="score.argument",
        )
    usual = SAMPLE["probe_params"] if probe == "linear" else {}
    given = {name: value for name, value in {**usual, **values}.items() if value is not None}
    checked(model, given, place="", code="score.argument")
    document = {**SAMPLE, "k_folds": folds, "probe_type": probe, "probe_params": given, **options}
    return parse_settings({name: value for name, value in document.items() if value is not None}, place="")


def _listed(name: str, values: Any) -> list[Any]:
    """Return an argument that is a list; of tasks, one name will do."""
    if isinstance(values, str) and name == "task_filter":
        return [values]
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise WrongType(
            f"The argument {name} is {values!r:.60}, not a list.",
            hint="Give a list of texts.",
            code="score.argument",
        )
    return [*values]


def _material(
    embeddings: Any,
    labels: Any,
    settings: StandaloneSettings,
    *,
    id_column: str | None,
    groups: Any,
    excluded: frozenset[str],
) -> Material:
    """Read what the caller gave, and pair it."""
    embeddings, labels, groups = _without_groups(embeddings, labels, groups, id_column)
    source = (
        _existing(embeddings, "embeddings")
        if is_path(embeddings)
        else given_embeddings(embeddings, id_column)
    )
    given = None if isinstance(source, Path) else source
    sides = [] if given is None else [(given.rows, tuple(index_of(given.rows)))]
    if is_path(labels):
        read = read_annotations(_existing(labels, "labels"), id_column)
        notes = [] if given is None else _check_ids(given, read)
        paired = set[str]()
    else:
        tasks = given_tasks(labels, id_column)
        if groups is None:
            refuse_column([task.name for task in tasks])
        read, notes, named = _labeled(tasks, given)
        sides += [(task.rows, names) for task, names in zip(tasks, named, strict=True)]
        paired = {name for names in named for name in names}
        if given is not None and not given.rows.are_named:
            excluded = excluded_rows(excluded, sides)
    if groups is not None:
        read, paired_how = with_groups(read, groups, sides)
        notes += paired_how
    chosen_tasks(read, settings)  # before much is read
    if isinstance(source, Path):
        return read_material(source, read, settings, excluded=excluded, id_column=id_column, notes=notes)
    wanted = {identifier for task in read.tasks for identifier in task.ids}
    found = take_embeddings(
        tuple(index_of(source.rows)),
        source.table,
        wanted,
        embedding_dim=settings.embedding_dim,
        exclude=excluded | (paired - wanted),  # rows without a label are told as such
        extra=source.extra,
    )
    return join_material(read, found, settings, excluded=excluded, notes=notes, labeled="any task labels")


def _without_groups(
    embeddings: Any, labels: Any, groups: Any, id_column: str | None
) -> tuple[Any, Any, GivenGroups | None]:
    """Take groups that are a column out of its table."""
    if not isinstance(groups, str):
        return embeddings, labels, None if groups is None else given_groups(groups)
    found, tables = [], []
    for value, name in ((embeddings, "embeddings"), (labels, "labels")):
        is_other = is_path(value) or (is_dictionary(value) and groups not in value)
        table = value if is_other else with_ids(value, name, id_column)
        table, column = take_column(table, name, groups, id_column)
        tables.append(table)
        found += [column] if column else []
    if len(found) != 1:
        raise WrongValue(
            f"{'Both tables have' if found else 'There is no table with'} a column {groups!r}.",
            hint="Give the groups themselves: an array, a Series or a dictionary of ids and groups.",
            code="score.groups",
        )
    return tables[0], tables[1], found[0]


def _existing(path: str | PathLike[str], name: str) -> Path:
    try:
        exists = bool(str(path)) and expanded(path).exists()
    except OSError as error:  # such as a whole text in place of a path, which is too long for one
        raise MissingFile(
            f"The {name} cannot be found at {str(path)[:60]!r}: {error.strerror}.",
            hint="Give the path of a file that you may read; of a text, what pandas reads from it.",
            code="score.missing_file",
        ) from None
    if not exists:
        is_address = ADDRESS.match(str(path))
        raise MissingFile(
            f"The {name} {path} do not exist.",
            hint="Download them first, and give the path."
            if is_address
            else f"Check the path; the current folder is {Path.cwd()}.",
            code="score.missing_file",
        )
    return expanded(path)


def _check_ids(given: GivenEmbeddings, labels: Labels) -> list[str]:
    """Refuse embeddings without ids for label files, which have some, unless these are the numbers of the rows in their order.

    Returns:
        A note if the numbers could begin at 1.
    """
    if given.rows.are_named:
        return []
    place = {str(row): row for row in range(given.rows.count)}
    for task in labels.tasks:
        rows = [place.get(identifier, -1) for identifier in task.ids]
        if -1 in rows or rows != sorted(rows):
            raise WrongValue(
                f"The embeddings have no ids, but the label file of the task {task.name} has.",
                hint="Give the ids, too: a dictionary of ids and vectors, {'ids': ids, 'embeddings': embeddings}, or a DataFrame"
                " with ids as its index.",
                code="score.no_ids",
            )
    if any("0" in task.ids for task in labels.tasks):
        return []
    return ["The ids of the label files were taken as numbers of rows, of which the first is 0."]


def _labeled(
    tasks: Sequence[GivenTask], embeddings: GivenEmbeddings | None
) -> tuple[Labels, list[str], list[tuple[str, ...]]]:
    """Pair the labels of all tasks with embeddings, and decide what is predicted; return labels, notes, and the ids of each task's rows."""
    names = None if embeddings is None else [*index_of(embeddings.rows)]
    done, warned, notes, named = [], list[str](), [], list[tuple[str, ...]]()
    for task in tasks:
        name, declared = split_name(task.name)
        if not name.strip() or not names_a_folder(name):
            raise WrongValue(
                f"The task {name!r} cannot have this name.",
                hint="Use a name in UTF-8 without slashes.",
                code="score.task",
            )
        if embeddings is None:
            if task.rows.ids is None or task.rows.is_numbered:
                raise WrongValue(
                    f"The labels of the task {name} have no ids, but the embeddings are a file, which has.",
                    hint="Give a table with a column id, or with the ids as its index; an index that counts from 0 could be positions,"
                    " so make it text: labels.set_axis(labels.index.astype(str)).",
                    code="score.no_ids",
                )
            ids = task.rows.ids
        else:
            rows, note = pair(embeddings.rows, task.rows, name)
            notes += [note] if note else []
            ids = tuple(
                names[row] if row >= 0 else task.rows.ids[place]  # type: ignore[index]
                for place, row in enumerate(rows.tolist())
            )
        named.append(ids)
        kind, labeled = decide(name, task.values, declared)
        notes += [kind.note] if kind.note else []
        ids = tuple(identifier for identifier, is_labeled in zip(ids, labeled, strict=True) if is_labeled)
        warned += remarks(name, ids, missing=int((~labeled).sum()))
        done.append(LabeledTask(name=name, kind=kind.kind, ids=ids, labels=kind.labels, classes=kind.classes))
    if not done:
        raise WrongValue("There are no tasks in the labels.", hint="Give at least one.", code="score.labels")
    if repeated := [name for name, count in Counter(task.name for task in done).items() if count > 1]:
        raise WrongValue(
            f"Two tasks are called {repeated[0]}.", hint="Give each a name of its own.", code="score.task"
        )
    ordered = tuple(sorted(done, key=lambda task: task.name))
    return Labels(tasks=ordered, packages=(), warnings=tuple(warned)), notes, named

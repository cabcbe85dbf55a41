"""``neuco-worker task …``: make, check and list task packages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scoring.errors import OrganizerError
from scoring.printable import printable, printable_lines
from worker.cli.commands import Commands
from worker.cli.options import JsonOption

if TYPE_CHECKING:
    from scoring.neuco_bench.expectations import PackageCheck
    from scoring.tasks import TaskPackage

task = Commands(name="task", help="Make, check and list task packages.")

TYPES = ("regr", "cls", "multiclass", "multilabel")
METRICS = {"regr": "r2", "cls": "f1", "multiclass": "macro_f1", "multilabel": "macro_f1"}
TEMPLATE = """\
identifier: {identifier}        # name of the task; letters, digits, '_', '-' and '.'
version: 1              # increase it when labels or settings change; then only this task is scored again
type: {type}              # regr (a number, R2) or cls (two classes, F1); only for `score`: multiclass, multilabel
description: ""         # what is predicted, in a sentence
dataset: ""             # where the samples come from
bibtex: ""              # what to cite
licence: ""             # of the labels
parent: ""              # group of tasks, such as land/forest
ceiling: null           # best score that the noise of the labels permits: a number, or estimate (needs repeats)
labels: labels.csv      # columns id,label
repeats: null           # file of repeated labels (columns id,label), for an estimated ceiling
fingerprint: {fingerprint}  # of the labels; `task check` notices if they change without a new version
baseline: null          # shipped embeddings and the score they must give:
#  embeddings: baseline.csv
#  folds: 10
#  epochs: 20
#  score: null          # `task check` prints it; enter it here
#  tolerance: 0.0001
"""


@task.command()
def new(
    folder: Annotated[Path, typer.Argument(help="Folder to make; its name becomes the task's name.")],
    *,
    labels: Annotated[
        Path,
        typer.Option(help="Label file to start from, such as canopy__regr.csv.", exists=True, dir_okay=False),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="regr or cls (for `score`, also multiclass or multilabel); by default, what follows __ in the label file's name.",
        ),
    ] = None,
) -> None:
    """Make a task package from a label file, with a task.yaml to fill in.

    Example: neuco-worker task new tasks/canopy --labels canopy__regr.csv
    """
    from scoring.neuco_bench.expectations import fingerprint
    from scoring.neuco_bench.labels import read_labels
    from scoring.tasks import NAME

    chosen = kind or labels.stem.rpartition("__")[2]
    if chosen not in TYPES:
        raise OrganizerError(
            f"{chosen!r} is not a task type.",
            cure=f"Set --type to one of: {', '.join(TYPES)}.",
            code="task.bad_type",
        )
    if not NAME.match(folder.name):
        raise OrganizerError(
            f"A task cannot be named {folder.name!r}.",
            cure="Use letters, digits, '_', '-' and '.' for the folder.",
            code="task.bad_name",
        )
    if folder.exists():
        raise OrganizerError(f"{folder} exists already.", cure="Choose another folder.", code="task.exists")
    read, _ = read_labels(labels, folder.name, chosen)
    folder.mkdir(parents=True)
    (folder / "labels.csv").write_bytes(labels.read_bytes())
    text = TEMPLATE.format(identifier=folder.name, type=chosen, fingerprint=f'"{fingerprint(read)}"')
    (folder / "task.yaml").write_text(text, "utf-8")
    print(f"Made {folder}. Fill in {folder / 'task.yaml'}, then run: neuco-worker task check {folder}")


@task.command()
def check(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Task packages, label files, or folders with such tasks.", exists=True),
    ],
    *,
    ids: Annotated[Path | None, typer.Option(help="The phase's public id list, one id per line.")] = None,
    folds: Annotated[
        int, typer.Option(help="Number of random splits that the challenge will use.", min=1)
    ] = 40,
    json_output: JsonOption = False,
) -> None:
    """Check tasks: labels, splits, ceiling (the best score that noise permits), and the baseline's score. Exits with 1 if a check fails.

    Example: neuco-worker task check tasks/canopy --ids ids/dev.txt --folds 200
    """
    from scoring.inputs.identifiers import read_ids
    from scoring.neuco_bench.expectations import check_file, check_package
    from scoring.tasks import is_package, read_package

    public_ids = None if ids is None else read_ids(ids)
    sources = [source for path in paths for source in (_sources(path) if path.is_dir() else [path])]
    checks = [
        check_package(read_package(source), public_ids, folds=folds)
        if is_package(source)
        else check_file(source, public_ids, folds=folds)
        for source in sources
    ]
    if json_output:
        print(
            json.dumps(
                {"passed": all(done.passed for done in checks), "tasks": [_document(done) for done in checks]}
            )
        )
    else:
        for done in checks:
            print(printable(done.identifier))
            for finding in done.findings:
                print(
                    f"  {'ok   ' if finding.passed else 'WRONG'} {finding.check}: {printable_lines(finding.sentence)}"
                )
    if not all(done.passed for done in checks):
        raise typer.Exit(1)


@task.command("list")
def list_tasks(
    folders: Annotated[list[Path], typer.Argument(help="Folders with tasks.", exists=True, file_okay=False)],
    *,
    json_output: JsonOption = False,
) -> None:
    """List tasks (packages and plain label files) with what is known about each.

    With --json, the list is a registry as in NeuroBench: dataset, input shape, classes, metric, baseline.

    Example: neuco-worker task list tasks/dev --json
    """
    entries = [_entry(source) for folder in folders for source in _sources(folder)]
    if json_output:
        print(json.dumps({"tasks": {entry["name"]: entry for entry in entries}}, indent=2))
        return
    from rich.table import Table
    from rich.text import Text

    from worker.cli.terminal import Console

    grid = Table()
    for name in ("Task", "Version", "Type", "Samples", "Group", "Description"):
        grid.add_column(name, justify="right" if name in {"Version", "Samples"} else "left")
    for entry in entries:
        grid.add_row(
            Text(entry["name"]),
            str(entry["version"]),
            entry["type"],
            f"{entry['samples']:,}",
            Text(entry["parent"] or "–"),
            Text(entry["description"] or "–"),
        )
    Console(highlight=False).print(grid)


def _sources(folder: Path) -> tuple[Path, ...]:
    """Return the tasks of a folder: the folder if it is a package, otherwise its tasks or, in a folder of such folders, those of each."""
    from scoring.tasks import is_package, task_sources

    if is_package(folder):
        return (folder,)
    inside = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    if inside and all(path.is_dir() and not is_package(path) for path in inside):
        return tuple(source for path in inside for source in _sources(path))
    return task_sources(folder)


def _entry(source: Path) -> dict[str, Any]:
    from scoring.neuco_bench.expectations import fingerprint
    from scoring.neuco_bench.labels import read_labels
    from scoring.tasks import TaskPackage, is_package, read_package

    if is_package(source):
        package = read_package(source)
    else:
        name, _, kind = source.stem.rpartition("__")
        package = TaskPackage(identifier=name, version=1, type=kind, labels=source)
    labels, _ = read_labels(package.labels, package.identifier, package.type)
    classes = {"regr": 0, "cls": 2}.get(labels.kind.value, len(labels.classes))
    baseline = package.baseline
    return {
        "name": package.identifier,
        "description": package.description,
        "dataset": package.dataset or package.labels.name,
        "input_shape": _input_shape(package),
        "n_classes": classes,
        "metric": METRICS[labels.kind.value],
        "neurobench_id": package.identifier,
        "baseline_accuracy": None if baseline is None else baseline.score,
        "type": labels.kind.value,
        "version": package.version,
        "samples": len(labels.ids),
        "parent": package.parent,
        "ceiling": package.ceiling,
        "licence": package.licence,
        "bibtex": package.bibtex,
        "fingerprint": fingerprint(labels),
        "package": is_package(source),
    }


def _input_shape(package: TaskPackage) -> list[int] | None:
    """Return the shape of one embedding, which is known if a baseline is shipped."""
    from scoring.neuco_bench.labels import read_labels
    from scoring.neuco_bench.reading import read_embeddings

    if package.baseline is None:
        return None
    labels, _ = read_labels(package.labels, package.identifier, package.type)
    return [read_embeddings(package.baseline.embeddings, set(labels.ids)).matrix.shape[1]]


def _document(done: PackageCheck) -> dict[str, Any]:
    return {
        "identifier": done.identifier,
        "passed": done.passed,
        "findings": [vars(finding) for finding in done.findings],
        "ceiling": done.ceiling,
        "baseline_score": done.baseline_score,
        "fingerprint": done.fingerprint,
    }

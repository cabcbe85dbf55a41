"""``neuco-worker task …``: make and check task packages."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from scoring.documents import contents
from scoring.errors import OrganizerError
from scoring.files import write_files
from scoring.printable import printable, printable_lines
from worker.cli.terminal import JsonOption

task = typer.Typer(no_args_is_help=True, help="Make and check task packages.")

COORDINATES = (("latitude", "lat"), ("longitude", "lon"))
TYPES = ("regr", "cls", "multiclass", "multilabel")
TEMPLATE = """\
identifier: {identifier}        # name of the task; letters, digits, '_', '-' and '.'
version: 1              # increase it when labels or settings change; then only this task is scored again
type: {type}              # regr (a number, R2) or cls (two classes, F1); only for `score`: multiclass, multilabel
description: ""         # what is predicted, in a sentence
dataset: ""             # where the samples come from
bibtex: ""              # what to cite
licence: ""             # of the labels
parent: ""              # group of tasks, such as land/forest
ceiling: null           # best score that the noise of the labels permits
labels: labels.csv      # columns id,label, and group if no split may part neighbours
baseline: null          # shipped embeddings and the score they must give:
#  embeddings: baseline.csv
#  folds: 10
#  epochs: 20
#  score: null          # `task check` prints it; enter it here
#  tolerance: 0.0001
"""


@task.command()
def new(
    folder: Annotated[Path, typer.Argument(help="Folder to make; its name is the task's name.")],
    *,
    labels: Annotated[
        Path,
        typer.Option(help="Label file to start from, such as canopy__regr.csv.", exists=True, dir_okay=False),
    ],
    kind: Annotated[
        str | None,
        typer.Option(
            "--type",
            help="regr or cls (for `score`, also multiclass or multilabel); by default from the label file's name.",
        ),
    ] = None,
    blocks: Annotated[
        float | None,
        typer.Option(
            help="Make groups of neighbouring samples: blocks of so many km, from the label file's columns latitude and longitude.",
            metavar="KM",
            min=0.001,
            max=10_000,
        ),
    ] = None,
) -> None:
    """Make a task package from a label file, with a task.yaml to fill in.

    Next: fill in task.yaml, then run `neuco-worker task check`.

    Example: `neuco-worker task new tasks/canopy --labels canopy__regr.csv`
    """
    from scoring.neuco_bench.labels import read_labels
    from scoring.tasks import NAME

    chosen = (kind or labels.stem.rpartition("__")[2]).lower()
    if chosen not in TYPES:
        raise OrganizerError(
            f"{chosen!r} is not a task type.",
            hint=f"Set --type to one of: {', '.join(TYPES)}.",
            code="task.bad_type",
        )
    if not NAME.match(folder.name):
        raise OrganizerError(
            f"A task cannot be named {folder.name!r}.",
            hint="Use letters a to z, digits, '_', '-' and '.' for the folder.",
            code="task.bad_name",
        )
    if folder.exists():
        raise OrganizerError(f"{folder} exists already.", hint="Choose another folder.", code="task.exists")
    read_labels(labels, folder.name, chosen)
    content, groups = (contents(labels), "") if blocks is None else _with_blocks(labels, blocks)
    text = TEMPLATE.format(identifier=folder.name, type=chosen)
    files = {"labels.csv": content, "task.yaml": text.encode()}
    write_files(folder, files, private=("",))  # the labels are hidden
    print(
        f"Made {folder}{groups}. Fill in {folder / 'task.yaml'}, then run: neuco-worker task check {shlex.quote(str(folder))}"
    )


def _with_blocks(labels: Path, km: float) -> tuple[bytes, str]:
    """Return a label file with a column of groups instead of coordinates, and how many groups there are, in words."""
    import pandas as pd

    from scoring.tasks import blocks, check_sizes

    table = pd.read_csv(labels, dtype=str, keep_default_na=False).rename(columns=str.strip)
    places = [name for names in COORDINATES for name in names if name in table]
    if len(places) != len(COORDINATES):
        raise OrganizerError(
            f"{labels} does not have one column latitude and one column longitude.",
            hint="Write both for each sample, in degrees, as decimal numbers.",
            code="task.coordinates",
        )
    if "group" in table:
        raise OrganizerError(
            f"{labels} has a column group already.",
            hint="Remove it, or leave out --blocks.",
            code="task.coordinates",
        )
    north, east = (pd.to_numeric(table[place], errors="coerce") for place in places)
    odd = ~(north.between(-90, 90) & east.between(-180, 360))
    if odd.any():
        raise OrganizerError(
            f"{labels} has a latitude or longitude that is not a number of degrees, first on line {int(odd.argmax()) + 2}.",
            hint="Write decimal numbers with a point: the latitude from -90 to 90, the longitude from -180 to 180 or from 0 to 360.",
            code="task.coordinates",
        )
    groups = blocks(north, east, km)
    check_sizes(groups, str(labels))
    table = table.drop(columns=places).assign(group=groups)
    content = table.to_csv(index=False, lineterminator="\n").encode()
    return content, f" with {len(set(groups)):,} groups of {len(table):,} samples"


@task.command()
def check(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Task packages, label files, or folders of them.", exists=True),
    ],
    *,
    ids: Annotated[Path | None, typer.Option(help="The phase's public id list, one per line.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Check the labels of tasks, and the baseline score of packages. Exits with 1 if a check fails.

    Next: `neuco-worker rehearse` scores the tasks as the challenge will.

    Example: `neuco-worker task check tasks/canopy --ids ids/dev.txt`
    """
    from scoring.inputs.identifiers import read_ids
    from scoring.neuco_bench.expectations import check_task

    public_ids = None if ids is None else read_ids(ids)
    sources = [source for path in paths for source in (_sources(path) if path.is_dir() else [path])]
    checks = [check_task(source, public_ids) for source in sources]
    passed = all(as_expected for _, done in checks for _, as_expected, _ in done)
    if json_output:
        keys = ("check", "passed", "sentence")
        tasks = [
            {"identifier": name, "findings": [dict(zip(keys, each, strict=True)) for each in done]}
            for name, done in checks
        ]
        print(json.dumps({"passed": passed, "tasks": tasks}))
    else:
        for name, done in checks:
            print(printable(name))
            for subject, as_expected, sentence in done:
                print(f"  {'ok   ' if as_expected else 'WRONG'} {subject}: {printable_lines(sentence)}")
    if not passed:
        raise typer.Exit(1)


def _sources(folder: Path) -> tuple[Path, ...]:
    """Return the tasks of a folder: the folder if it is a package, otherwise its tasks or, in a folder of such folders, those of each."""
    from scoring.tasks import is_package, task_sources

    if is_package(folder):
        return (folder,)
    inside = [path for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    if inside and all(path.is_dir() and not is_package(path) for path in inside):
        return tuple(source for path in inside for source in _sources(path))
    return task_sources(folder)

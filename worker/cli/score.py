"""``neuco-worker score``: NeuCo-Bench's ``main.py``, with the same flags, files and numbers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from scoring.errors import OrganizerError, needs_extra
from scoring.inputs.formats import listed
from scoring.probes import ProbeName
from worker.cli.terminal import Console, JsonOption, progress_bar, table_of

SHORT = "* The probe trains for too few steps, so this says little about the embeddings."


if TYPE_CHECKING:
    from scoring.neuco_bench.configuration import StandaloneSettings
    from scoring.neuco_bench.material import Material


def score(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Embeddings, one or several, then the labels: short for --submission_file and --annotation_path.",
            metavar="FILE... LABELS",
            show_default=False,
        ),
    ] = None,
    *,
    # flags are spelled as in NeuCo-Bench
    submission_file: Annotated[
        Path | None,
        typer.Option(
            "--submission_file",
            help=f"Embeddings as {listed(details=True)}; a folder of `*.parquet` is one table in parts.",
            show_default=False,
        ),
    ] = None,
    annotation_path: Annotated[
        Path | None,
        typer.Option(
            "--annotation_path",
            help="Folder of label files `<task>__<type>.csv` (columns id,label) or task packages; or one label file.",
            show_default=False,
        ),
    ] = None,
    output_dir: Annotated[Path, typer.Option("--output_dir", help="Folder for the results.")] = Path(
        "results"
    ),
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file; by default config.yaml if it exists, else the values of NeuCo-Bench's sample.",
            show_default=False,
        ),
    ] = None,
    method_name: Annotated[
        str | None,
        typer.Option(
            "--method_name",
            help="Method's name; by default that of the file or folder.",
        ),
    ] = None,
    phase: Annotated[str, typer.Option(help="Group of runs that are ranked together.")] = "results",
    exclude_file: Annotated[
        Path | None,
        typer.Option("--exclude_file", help="File of ids to leave out, one per line."),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            help="Name of the column with the ids; by default id.", metavar="NAME", show_default=False
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(help="Random splits per task; by default k_folds.", min=1),
    ] = None,
    probe: Annotated[
        ProbeName | None,
        typer.Option(help="Probe; by default the configuration's.", show_default=False),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Epochs of the probe; by default the configuration's.", min=1, show_default=False),
    ] = None,
    dims: Annotated[
        str,
        typer.Option(
            help="Score the first so many dimensions, once for each number: 64,128,256.",
            metavar="N,N",
            show_default=False,
        ),
    ] = "",
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of splits and training; 42 gives NeuCo-Bench's numbers.", min=0, max=2**32 - 1
        ),
    ] = 42,
    threads: Annotated[
        int | None,
        typer.Option(help="Folds trained at the same time; by default one per core.", min=1),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Score embeddings on your own tasks, as NeuCo-Bench's main.py does: same flags, configuration, files and numbers.

    Some faults that a challenge would refuse only cause a warning: missing values count as 0, samples without an embedding are left out,
    missing dimensions are 0.

    A run whose results are in the folder already, with the same inputs and configuration, is not computed again.

    Next: `neuco-worker compare` for differences between runs, `neuco-worker rank` for a ranking.

    Example: `neuco-worker score embeddings.csv labels`

    Example: `neuco-worker score embeddings.csv labels --probe ridge --dims 64,128,256`

    Example: `neuco-worker score --annotation_path labels --submission_file embeddings.csv --config config.yaml --phase dev`
    """
    from leaderboard.exchange import rank_table, read_runs
    from scoring.neuco_bench.labels import read_annotations
    from scoring.neuco_bench.material import read_material
    from scoring.neuco_bench.reading import read_excluded
    from scoring.neuco_bench.results import as_json, make_run_folder, phase_folder, read_results
    from scoring.neuco_bench.resuming import finished_run, inputs_digest, mark_finished
    from scoring.printable import count_of
    from worker.cli.rank import show_leaderboard, write_leaderboard

    shown, console = Console(highlight=False, quiet=json_output), Console(stderr=True, highlight=False)
    files, labels = _files(paths or [], submission_file, annotation_path)
    if method_name is not None and len(files) > 1:
        raise OrganizerError(
            f"--method_name names one run, not {len(files)}.",
            hint="Leave it out: runs are named after their files.",
            code="standalone.bad_name",
        )
    settings = _settings(config, folds, probe, epochs, console if json_output else shown)
    widths = _widths(dims)
    tasks = read_annotations(labels, id_column)
    excluded = frozenset[str]() if exclude_file is None else read_excluded(exclude_file)
    documents, found = [], 0
    for file in files:
        material = read_material(file, tasks, settings, excluded=excluded, id_column=id_column)
        _warn(console, material.warnings)
        for note in material.notes:
            console.print(f"Note: {note}", markup=False, soft_wrap=True)
        _check_libraries(material, settings)
        method, scored = method_name or _method(file), []
        for part, suffix in _parts(material, widths):
            inputs = inputs_digest(part, settings, seed)
            folder = finished_run(output_dir, phase=phase, method=method + suffix, inputs=inputs)
            found += folder is not None
            if folder is None:
                folder = make_run_folder(
                    output_dir, phase=phase, method=method + suffix, now=datetime.now().astimezone()
                )
                _run(part, folder, inputs, settings=settings, stem=file.stem, seed=seed, threads=threads)
                mark_finished(folder, inputs)
            summary, results = read_results(folder)
            _warn(console, summary["warnings"][len(part.warnings) :])
            scored.append((summary, results))
            documents.append(summary | {"folder": str(folder)})
            if not widths:
                shown.print(_results(summary, results, file.name))
            shown.print(f"Results: {folder}", markup=False, soft_wrap=True)
        if widths:
            shown.print(_widths_table(scored, file.name))
    if found:
        console.print(
            f"{found} of {count_of(len(documents), 'run')} had been scored before, with the same inputs and configuration, and"
            f" {'was' if found == 1 else 'were'} not computed again. Remove a folder of results to compute it again.",
            markup=False,
            soft_wrap=True,
        )
    if settings.update_leaderboard:
        runs = read_runs(phase_folder(output_dir, phase))
        ranking = rank_table(runs.table)
        leaderboard = write_leaderboard(runs, ranking, output_dir, phase)
        show_leaderboard(shown, runs, ranking, leaderboard)
    if json_output:
        print(as_json(documents[0] if len(documents) == 1 else documents).decode(), end="")


def _files(paths: list[Path], submission: Path | None, labels: Path | None) -> tuple[list[Path], Path]:
    """Return the files of embeddings, and the labels, which are the last path unless an option names them."""
    files = paths if submission is None else [submission, *paths]
    if labels is None and len(files) > 1:
        *files, labels = files
    if labels is None or not files:
        raise OrganizerError(
            "The command needs a file of embeddings and the labels.",
            hint="Name them in this order: neuco-worker score embeddings.csv labels.",
            code="standalone.no_files",
        )
    return files, labels


def _method(file: Path) -> str:
    """Return the name of a file's or folder's runs; a link, such as one to a cache, has its own name."""
    from scoring.inputs.formats import PARQUET

    place = Path(os.path.abspath(file))  # noqa: PTH100 - Path.resolve follows links
    return place.name.removesuffix(PARQUET.suffix) if place.is_dir() else place.stem


def _widths(text: str) -> list[int]:
    """Return the numbers of ``--dims``, in order."""
    numbers = [part.strip() for part in text.split(",")] if text else []
    if not all(re.fullmatch("0*[1-9][0-9]{0,8}", part) for part in numbers):
        raise OrganizerError(
            f"--dims is {text!r}, not numbers above 0 with commas between them.",
            hint="Write for example --dims 64,128,256.",
            code="standalone.dims",
        )
    return sorted({int(part) for part in numbers})


def _parts(material: Material, widths: Sequence[int]) -> Iterator[tuple[Material, str]]:
    """Yield the material with the first so many dimensions, and what is added to the method's name."""
    if not widths:
        yield material, ""
        return
    embeddings = material.embeddings
    most = embeddings.matrix.shape[1]
    if widths[-1] > most:
        raise OrganizerError(
            f"--dims names {widths[-1]:,} dimensions, but the embeddings have {most:,}.",
            hint="Name fewer.",
            code="standalone.dims",
        )
    for width in widths:
        prefix = replace(embeddings, matrix=embeddings.matrix[:, :width], names=embeddings.names[:width])
        yield replace(material, embeddings=prefix), f"_{width}d"


def _settings(
    config: Path | None, folds: int | None, probe: str | None, epochs: int | None, console: Console
) -> StandaloneSettings:
    """Read the configuration; without one, use the sample values and say so. The other options come before it."""
    from scoring.neuco_bench.configuration import SAMPLE, overridden, parse_settings, read_settings
    from scoring.printable import count_of

    usual = Path("config.yaml")  # NeuCo-Bench's
    if config is not None or usual.is_file():
        return read_settings(config or usual, folds=folds, probe=probe, epochs=epochs)
    settings = parse_settings(overridden(SAMPLE, folds=folds, probe=probe, epochs=epochs))
    params = ", ".join(f"{name} {value}" for name, value in settings.probe_params.items())
    console.print(
        f"There is no {usual}, so NeuCo-Bench's sample values are used: {count_of(settings.k_folds, 'fold')} and the probe"
        f" {settings.probe_type}{f' ({params})' if params else ''}.",
        markup=False,
        soft_wrap=True,
    )
    return settings


def _check_libraries(material: Material, settings: StandaloneSettings) -> None:
    """Import the optional libraries that a run uses, some of them only after hours of training."""
    has_columns = any(task.kind.has_columns for task in material.tasks)
    with needs_extra("research", "A plot"):
        if settings.enable_plots:
            import_module("vl_convert")
    with needs_extra("research", "A probe that is stored, or has several outputs,"):
        if settings.store_probes or (has_columns and settings.probe_type == "linear"):
            import_module("torch")


def _run(
    material: Material,
    folder: Path,
    inputs: str,
    *,
    settings: StandaloneSettings,
    stem: str,
    seed: int,
    threads: int | None,
) -> None:
    """Score, and write results and plots into the run's own folder."""
    from scoring.neuco_bench.results import store_probes, write_results
    from scoring.neuco_bench.resuming import mark_begun
    from scoring.neuco_bench.run import score_run

    try:
        with progress_bar("Scoring", "folds") as progress:
            report = score_run(material, settings, seed=seed, threads=threads, progress=progress)
    except BaseException:
        folder.rmdir()  # nothing was written yet, and an empty folder is no run
        raise
    write_results(folder, report, settings, experiment=folder.name)
    mark_begun(folder, inputs)
    if settings.store_probes:
        store_probes(folder, report, settings)
    if settings.enable_plots:
        from scoring.neuco_bench.plots import draw_plots

        with Console(stderr=True).status("Drawing plots …") as status:
            for task in report.tasks:
                status.update(f"Drawing plots of {task.data.name} …")
                draw_plots(folder, task, stem=stem)


def _warn(console: Console, warnings: Sequence[str]) -> None:
    for warning in warnings:
        console.print(f"Warning: {warning}", markup=False, soft_wrap=True)


def _results(summary: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]], name: str) -> Table:
    rows = [
        (
            task,
            result["task_type"],
            f"{result['samples']:,}",
            _number(result["q_stat"], 3),
            _number(result["mean_score"], 4) + _star(result),
            _number(result["std_dev"], 4),
        )
        for task, result in results.items()
    ]
    overall = _number(summary["overall_q_score"], 3), _number(summary["overall_acc_score"], 4)
    rows.append(("all", "", "", *overall, ""))
    names = ("Task", "Type", "Samples", "Q", "Score", "± std")
    return _starred(dict(zip(names, zip(*rows, strict=True), strict=True)), name)


def _widths_table(
    runs: Sequence[tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any]]]], name: str
) -> Table:
    """Return Q of each task for each number of dimensions."""
    columns = {"Task": [*runs[0][1], "all"]} | {
        f"{summary['embedding_dim']:,}": [
            *(_number(result["q_stat"], 3) + _star(result) for result in results.values()),
            _number(summary["overall_q_score"], 3),
        ]
        for summary, results in runs
    }
    return _starred(columns, f"Q by dimensions: {name}")


def _number(value: float | None, digits: int) -> str:
    return "nan" if value is None else f"{value:.{digits}f}"


def _star(result: Mapping[str, Any]) -> str:
    return "" if result["enough_steps"] else " *"


def _starred(columns: Mapping[str, Sequence[str]], title: str) -> Table:
    """Return a table, with an explanation if a score in it is marked."""
    table = table_of(columns, title, total=True)
    if any(cell.endswith(" *") for cells in columns.values() for cell in cells):
        table.caption = SHORT
        table.caption_justify = "left"
    return table

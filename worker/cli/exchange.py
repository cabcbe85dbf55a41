"""``neuco-worker import …`` and ``export …``: read results of other benchmarks, and write ours in their formats."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoring.errors import OrganizerError
from scoring.printable import count_of, printable, printable_lines
from worker.cli.options import JsonOption

if TYPE_CHECKING:
    import pandas as pd

import_results = typer.Typer(no_args_is_help=True, help="Read results of other benchmarks.")
export_results = typer.Typer(no_args_is_help=True, help="Write results in the formats of other benchmarks.")


@import_results.command("geobench")
def import_geobench(
    folders: Annotated[
        list[Path],
        typer.Argument(help="GEO-Bench's new_submission folders."),
    ],
    *,
    normalizer: Annotated[
        Path | None,
        typer.Option(help="Frozen normalizer; without it or --freeze, results are only checked."),
    ] = None,
    freeze: Annotated[
        Path | None,
        typer.Option(help="Make a normalizer from these results, in this new file."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder to write the rendered board to."),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the board.")] = "GEO-Bench",
    comment_file: Annotated[
        Path | None,
        typer.Option(
            "--comment", help="Markdown file to write the result to, for a comment on a pull request."
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Check, normalize, aggregate and rank GEO-Bench submissions. Exits with 1 if one of them is not valid.

    Example: `neuco-worker import geobench new_submission --normalizer normalizer.json --output board --comment verdict.md`
    """
    from leaderboard.exchange import (
        board_files,
        comment,
        ranking_markdown,
        read_normalizer,
        standings,
        without_range,
    )

    results, names, faults = _read_submissions(folders)
    if freeze is not None and not faults:
        _freeze(freeze, results)
        normalizer = normalizer or freeze
    ranges = None if normalizer is None else read_normalizer(normalizer)
    if ranges is not None:
        faults.extend(without_range(results, ranges))
    rows = [] if ranges is None or faults else standings(results, ranges, names)
    verdict = comment(faults, ranking_markdown(rows) if rows else "")
    if comment_file is not None:
        comment_file.write_text(verdict, "utf-8")
    if json_output:
        print(json.dumps({"valid": not faults, "faults": faults, "standings": rows}, indent=2))
    else:
        print(printable_lines(verdict), end="")
    if faults:
        raise typer.Exit(1)
    if output is not None:
        if ranges is None:
            raise OrganizerError(
                "A board needs a normalizer.",
                cure="Add --normalizer FILE, or create a normalizer with --freeze.",
                code="geobench.normalizer",
            )
        _write(output, board_files(results, ranges, names, title=title, at=datetime.now(UTC)))


def _read_submissions(folders: list[Path]) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Return the results of all folders, the display names of new models, and every fault."""
    import pandas as pd

    from leaderboard.exchange import read_submission

    read = [read_submission(folder) for folder in folders]
    faults = [
        fault if len(folders) == 1 else f"`{folder.name}`: {fault}"
        for folder, (*_, found) in zip(folders, read, strict=True)
        for fault in found
    ]
    names = {key: name for _, names, _ in read for key, name in names.items()}
    return pd.concat([results for results, *_ in read], ignore_index=True), names, faults


def _freeze(path: Path, results: pd.DataFrame) -> None:
    from leaderboard.exchange import make_normalizer

    if path.exists():
        raise OrganizerError(
            f"{path} exists. A frozen normalizer is never replaced.",
            cure="Use it with --normalizer, or choose another name.",
            code="geobench.frozen",
        )
    path.write_text(json.dumps(make_normalizer(results), indent=2) + "\n", "utf-8")


@export_results.command("geobench")
def export_geobench(
    folder: Annotated[Path, typer.Argument(help="Folder to write to.")],
    *,
    output_dir: Annotated[
        Path | None, typer.Option("--output_dir", help="Folder with the results of `score`.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A challenge's configuration, to export its scores instead."),
    ] = None,
    phase: Annotated[
        str,
        typer.Option(help="Group of runs; with --config, codename of a phase (required)."),
    ] = "results",
) -> None:
    """Write scores as a GEO-Bench submission. Folds take the place of seeds, and the files say so.

    With --config, the files show hidden tasks: keep them private until the reveal.

    Example: `neuco-worker export geobench new_submission --output_dir results --phase dev`
    """
    from leaderboard.exchange import rows_of_runs, write_submission

    if (output_dir is None) == (config is None):
        raise OrganizerError(
            "The command needs exactly one of --output_dir and --config.",
            cure="Use --output_dir for standalone runs, or --config for a challenge.",
            code="export.source",
        )
    if output_dir is not None:
        rows, left_out = rows_of_runs(output_dir, phase)
        for name in left_out:
            print(
                f"Left out: {printable(name)} has no scores of folds, or no types of tasks.", file=sys.stderr
            )
    else:
        rows = _challenge_rows(config, phase)
    write_submission(folder, rows)
    print(
        f"Wrote {rows['backbone'].nunique()} entries on {count_of(rows['dataset'].nunique(), 'task')} to {folder}."
    )


@export_results.command("neurobench")
def export_neurobench(
    source: Annotated[
        Path, typer.Argument(help="Folder of a run of `score`, or a scorecard's JSON file.", exists=True)
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder to write `<task>.json` files to; by default, they are printed."),
    ] = None,
) -> None:
    """Write results as NeuroBench JSON: correctness, complexity and system metrics, one document per task.

    Example: `neuco-worker export neurobench results/dev/mine_20260314_120000 --output neurobench`
    """
    from leaderboard.exchange import neurobench_documents

    found = neurobench_documents(source)
    if output is None:
        print(json.dumps(found, indent=2))
        return
    _write(output, {f"{each['task']}.json": (json.dumps(each, indent=2) + "\n").encode() for each in found})
    print(f"Wrote {count_of(len(found), 'task')} to {output}.")


def _challenge_rows(config: Path | None, codename: str) -> pd.DataFrame:
    from leaderboard.exchange import rows_of_phase
    from worker.challenge.setups import not_recorded, read_record
    from worker.fairness.register import LATEST, RegisterFold
    from worker.organizer.session import open_session

    if config is None:
        raise ValueError("no configuration")
    with open_session(config) as session:
        session.check_phase(codename)
        with session.store.read() as tx:
            record = read_record(tx, codename)
            state = RegisterFold().at(tx).phase(codename).snapshot(LATEST)
        if record is None or state is None:
            raise not_recorded(codename)
        kinds = {task.name: task.type.value for task in record.tasks}
        return rows_of_phase(state, kinds, vars(record.protocol.recipe))


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

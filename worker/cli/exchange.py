"""``neuco-worker import`` and ``export``: read results of other benchmarks, and write ours in their formats."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scoring.errors import OrganizerError
from scoring.files import write_files
from scoring.printable import count_of, name_some, printable, printable_lines
from worker.cli.terminal import JsonOption

if TYPE_CHECKING:
    import pandas as pd


def import_results(
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
    comment_file: Annotated[
        Path | None,
        typer.Option(
            "--comment", help="Markdown file to write the result to, for a comment on a pull request."
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Check, normalize, aggregate and rank submissions in GEO-Bench's format. Exits with 1 if one of them is not valid.

    Example: `neuco-worker import new_submission --normalizer normalizer.json --output board --comment verdict.md`
    """
    from leaderboard.exchange import (
        board_files,
        comment,
        make_normalizer,
        ranking_markdown,
        read_normalizer,
        standings,
        without_range,
    )

    results, names, faults = _read_submissions(folders)
    if freeze is not None and not faults:
        if freeze.exists():
            raise OrganizerError(
                f"{freeze} exists. A frozen normalizer is never replaced.",
                hint="Use it with --normalizer, or choose another name.",
                code="geobench.frozen",
            )
        frozen = json.dumps(make_normalizer(results), indent=2) + "\n"
        write_files(freeze.parent, {freeze.name: frozen.encode()})
        normalizer = normalizer or freeze
    ranges = None if normalizer is None else read_normalizer(normalizer)
    if ranges is not None:
        faults.extend(without_range(results, ranges))
    rows = [] if ranges is None or faults else standings(results, ranges, names)
    verdict = comment(faults, ranking_markdown(rows) if rows else "")
    if comment_file is not None:
        write_files(comment_file.parent, {comment_file.name: verdict.encode()})
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
                hint="Add --normalizer FILE, or create a normalizer with --freeze.",
                code="geobench.normalizer",
            )
        write_files(output, board_files(results, ranges, names, at=datetime.now(UTC)))


def _read_submissions(folders: list[Path]) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Return the results of all folders, the display names of new models, and every fault."""
    import pandas as pd

    from leaderboard.exchange import judge_metrics, quoted, read_submission

    read = [read_submission(folder) for folder in folders]
    faults = [
        fault if len(folders) == 1 else f"`{folder}`: {fault}"
        for folder, (*_, folder_faults) in zip(folders, read, strict=True)
        for fault in folder_faults
    ]
    places: dict[str, list[str]] = {}
    for folder, (results, *_) in zip(folders, read, strict=True):
        for backbone in results["backbone"].unique():
            places.setdefault(backbone, []).append(f"`{folder}`")
    faults += [
        f"The backbone {quoted(backbone)} is in {len(found)} folders: {name_some(found)}."
        for backbone, found in places.items()
        if len(found) > 1
    ]
    names = {key: name for _, names, _ in read for key, name in names.items()}
    together = pd.concat([results for results, *_ in read], ignore_index=True)
    return together, names, [*faults, *judge_metrics(together)]


def export_results(
    source: Annotated[
        Path,
        typer.Argument(
            help="For geobench: the results folder of `score`. For neurobench: a run in it.",
            exists=True,
            file_okay=False,
        ),
    ],
    *,
    to: Annotated[Literal["geobench", "neurobench"], typer.Option("--to", help="The benchmark.")],
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder to write to; without it, NeuroBench's documents are printed.", metavar="DIR"
        ),
    ] = None,
    phase: Annotated[
        str,
        typer.Option(help="For geobench: group of runs."),
    ] = "results",
) -> None:
    """Write results in the format of another benchmark: as a GEO-Bench submission, or as NeuroBench JSON, one document per task.

    In GEO-Bench's files, folds take the place of seeds.

    Example: `neuco-worker export results --to geobench --phase dev --output new_submission`

    Example: `neuco-worker export results/dev/mine_20260314_120000 --to neurobench --output neurobench`
    """
    from leaderboard.exchange import neurobench_documents, rows_of_runs, write_submission

    if to == "neurobench":
        documents = neurobench_documents(source)
        if output is None:
            print(json.dumps(documents, indent=2))
        else:
            texts = {f"{each['task']}.json": json.dumps(each, indent=2) + "\n" for each in documents}
            write_files(output, {name: text.encode() for name, text in texts.items()})
            print(f"Wrote {count_of(len(documents), 'task')} to {output}.")
        return
    if output is None:
        raise typer.BadParameter("--to geobench needs --output DIR.")
    rows, left_out = rows_of_runs(source, phase)
    for name, reason in left_out.items():
        print(f"Left out: {printable(name)} {reason}.", file=sys.stderr)
    write_submission(output, rows)
    print(
        f"Wrote {count_of(rows['backbone'].nunique(), 'entry', 'entries')} on"
        f" {count_of(rows['dataset'].nunique(), 'task')} to {output}."
    )

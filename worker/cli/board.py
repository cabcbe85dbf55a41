"""``neuco-worker board …``: show, publish, report on and close the boards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from scoring.errors import OrganizerError
from scoring.files import write_files
from scoring.printable import count_of
from worker.cli.terminal import (
    ConfigOption,
    Console,
    JsonOption,
    ReasonOption,
    YesOption,
    ask,
    confirm,
    open_session,
    progress_bar,
    table_of,
)

board = typer.Typer(no_args_is_help=True, help="Show, publish, report on and close the boards.")

COLUMNS = {
    "rank": "Rank",
    "team": "Team",
    "q_mean": "Mean Q",
    "rank_by_mean": "By mean Q",
    "submission": "Number",
}
"""The columns of a board by their names in its document."""

PhaseOption = Annotated[str, typer.Option("--phase", help="Codename of the phase.", show_default=False)]


@board.command()
def show(
    *,
    config: ConfigOption,
    phase: Annotated[str | None, typer.Option(help="Only this phase.", metavar="NAME")] = None,
    awards: Annotated[
        bool,
        typer.Option("--awards", help="Print three places of both awards."),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Show the latest boards in the terminal, as participants see them.

    Example: `neuco-worker board show --phase dev --config challenge.yaml`

    Example: `neuco-worker board show --awards --phase eval --config challenge.yaml`
    """
    from worker.organizer import listing

    with open_session(config) as session:
        shown = listing.last_boards(session, phase)
    if json_output:
        print(json.dumps({"boards": shown}, indent=2))
        return

    console = Console(highlight=False)
    for document in shown:
        title = f"Phase {document['phase']}{', closed' if document['closed_at'] else ''}"
        if document["withheld"]:
            teams = count_of(document["withheld"], "team has a value", "teams have values")
            console.print(
                f"{title}: {teams}, withheld until the phase is closed (shown: at_end).", markup=False
            )
        elif document["made_at"] is None:
            console.print(f"{title}: there is no board yet.", markup=False)
        elif awards:
            console.print(title, document["awards"], sep="\n", markup=False, soft_wrap=True)
        else:
            made_at = document["made_at"][:16].replace("T", " ")
            columns = {
                name: ["–" if row[key] is None else str(row[key]) for row in document["entries"]]
                for key, name in COLUMNS.items()
            }
            title = f"{title}, board {document['sequence']} of {made_at} UTC"
            console.print(table_of(columns, title))


@board.command()
def publish(
    *,
    config: ConfigOption,
    preview: Annotated[
        Path | None,
        typer.Option(help="Only write what would be pushed to this folder.", metavar="DIR"),
    ] = None,
    yes: YesOption = False,
) -> None:
    """Compute and push the boards now; if a worker runs, it does this, and the command waits.

    Asks before a first push would replace or remove files of others in the repository.

    Next: open the repository, or the page that --preview has written.

    Example: `neuco-worker board publish --config challenge.yaml`

    Example: `neuco-worker board publish --preview ./preview --config challenge.yaml`
    """
    from leaderboard.git import ForeignFiles
    from worker.organizer import board_by_hand

    with open_session(config) as session:
        if preview is not None:
            write_files(preview, board_by_hand.preview(session))
            print(f"Wrote {(preview / 'index.html').resolve()}. Nothing was pushed.")
            return
        try:
            published = board_by_hand.publish_now(session, tell=print)
        except OrganizerError as error:
            if error.code != ForeignFiles.usual_code:
                raise
            ask(error.sentence, yes=yes)
            board_by_hand.replace_foreign(session)
            published = board_by_hand.publish_now(session, tell=print)
    print(
        f"{'Pushed commit' if published.changed else 'Nothing has changed; the branch is at commit'} {published.commit}."
    )


@board.command()
def export(
    *,
    config: ConfigOption,
    phase: PhaseOption,
    form: Annotated[
        Literal["latex", "csv", "svg"],
        typer.Option("--format", help="The final table, or its figures with a badge per winner."),
    ],
    out: Annotated[Path, typer.Option(help="Folder to write to.", show_default=False)],
) -> None:
    """Write a board for a paper, with CITATION.cff and .zenodo.json; it shows what the public page shows.

    Example: `neuco-worker board export --phase eval --format latex --out ./paper --config challenge.yaml`
    """
    from leaderboard.rendering import PhaseDocument
    from leaderboard.report import paper_files
    from worker.organizer import board_by_hand

    with open_session(config) as session:
        session.check_phase(phase)
        public = board_by_hand.preview(session)
    document = PhaseDocument.model_validate_json(public[f"leaderboard/{phase}.json"])
    if not document.entries:
        raise OrganizerError(
            f"Phase {phase} has no public board yet.",
            hint="Export it once its values are shown.",
            code="export.empty",
        )
    files = paper_files(document, form)
    if form == "svg":
        files[f"{phase}-evolution.svg"] = public[f"leaderboard/{phase}-evolution-light.svg"]
    write_files(out, files)
    hidden = "" if document.tasks else " Tasks and intervals follow with the reveal."
    print(f"Wrote {count_of(len(files), 'file')} to {out.resolve()}.{hidden}")


@board.command()
def report(
    *,
    config: ConfigOption,
    phase: PhaseOption,
    out: Annotated[Path, typer.Option(help="Folder to write to.", show_default=False)],
) -> None:
    """Write a private report: standings, intervals, scores per task, diagnostics, near copies, participation. It shows hidden tasks.

    Near copies are embeddings of different teams that differ only by noise, scale or a rotation.

    Example: `neuco-worker board report --phase dev --out ./report --config challenge.yaml`
    """
    from leaderboard.ranking import from_json
    from leaderboard.report import report as make_report
    from leaderboard.report import report_page
    from scoring.tasks import read_package
    from worker.organizer.disclosure import similarities
    from worker.organizer.listing import participation, snapshot

    with open_session(config) as session:
        state = snapshot(session, phase)
        with session.store.read() as tx:
            newest = tx.newest_board(phase)
        tasks = session.configuration.path(session.configuration.phases[phase].tasks)
        packages = [read_package(path.parent) for path in sorted(tasks.glob("*/task.yaml"))]
        with progress_bar("Comparing what teams sent", "submissions") as progress:
            alike = similarities(session, state, progress=progress)
        board = None if newest is None else from_json(newest)
        made = make_report(
            state,
            board,
            made_at=session.now,
            packages=packages,
            alike=alike,
            sent=participation(session, phase),
        )
    text = json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    files = {f"{phase}.html": report_page(made).encode(), f"{phase}.json": text.encode()}
    write_files(out, files, private=("",))
    print(
        f"Wrote {out.resolve() / f'{phase}.html'} and {phase}.json. They show hidden tasks: keep them private."
    )


@board.command()
def close(
    *,
    config: ConfigOption,
    phase: PhaseOption,
    undo: Annotated[bool, typer.Option("--undo", help="Reopen the board.")] = False,
    now: Annotated[
        bool,
        typer.Option(
            "--now",
            help="Close it although EvalAI still takes submissions, without waiting for answers.",
        ),
    ] = False,
    reason: ReasonOption = "",
    yes: YesOption = False,
) -> None:
    """Close a phase: later submissions, and later changes at EvalAI, do not count.

    First end the phase at EvalAI. Submissions that are scored later are answered without a value.

    With `shown: at_end`, the command waits until all submissions are answered; then values and ranks are shown.

    Next: `neuco-worker board report`, then `neuco-worker challenge reveal`.

    Example: `neuco-worker board close --phase dev --reason "the phase has ended" --yes --config challenge.yaml`
    """
    from worker.organizer import board_by_hand

    with open_session(config) as session:
        session.check_phase(phase)
        if session.is_closed(phase) is not undo:
            print(f"The board of {phase} is {'open' if undo else 'closed'} already; nothing was done.")
            return
        if undo:
            with session.store.read() as tx:
                is_public = phase in tx.revealed()
            trained = (
                " Its tasks are public: whoever submitted since may have trained on them."
                if is_public
                else ""
            )
            reason = confirm(
                f"The board of {phase} will be opened again: what was scored meanwhile will count.{trained}",
                reason=reason,
                yes=yes,
            )
            board_by_hand.reopen(session, phase, reason)
            print(f"The board of {phase} is open again; the worker publishes it with its next push.")
            return
        withheld = board_by_hand.check_closable(session, phase)
        if not now:
            board_by_hand.check_ended(session, phase)
        shown = f" {board_by_hand.SHOWS_VALUES}" if withheld else ""
        reason = confirm(
            f"The board of {phase} will be closed: what is scored later will not count.{shown}",
            reason=reason,
            yes=yes,
        )
        if not now:
            board_by_hand.wait_for_answers(session, phase, tell=print)
        board_by_hand.close(session, phase, reason)
    posts = ", and then posts the withheld values to EvalAI" if withheld else ""
    print(f"The board of {phase} is closed; the worker publishes it with its next push{posts}.")

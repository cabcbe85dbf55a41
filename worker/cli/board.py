"""``neuco-worker board …``: show, publish, report on and close the boards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from worker.cli.confirming import YesOption, confirm
from worker.cli.options import ConfigOption, JsonOption
from worker.cli.progress import progress_bar

board = typer.Typer(no_args_is_help=True, help="Show, publish, report on and close the boards.")

PhaseOption = Annotated[str, typer.Option("--phase", help="Codename of the phase.", show_default=False)]


@board.command()
def show(
    *,
    config: ConfigOption,
    phase: Annotated[str | None, typer.Option(help="Only this phase.", metavar="NAME")] = None,
    awards: Annotated[
        bool,
        typer.Option("--awards", help="Print both awards, by dynamic rank and by mean Q."),
    ] = False,
    json_output: JsonOption = False,
) -> None:
    """Show the latest boards in the terminal, as participants see them.

    Example: `neuco-worker board show --phase dev --config challenge.yaml`

    Example: `neuco-worker board show --awards --phase eval --config challenge.yaml`
    """
    from worker.organizer import listing
    from worker.organizer.session import open_session

    with open_session(config) as session:
        shown = listing.last_boards(session, phase)
    if json_output:
        print(json.dumps({"boards": shown}, indent=2))
        return
    from worker.cli.terminal import Console, table_of

    console = Console(highlight=False)
    for one in shown:
        closed = ", closed" if one["frozen_at"] else ""
        if one["made_at"] is None:
            console.print(f"Phase {one['phase']} has no board yet{closed}.", markup=False)
            continue
        if awards:
            console.print(
                f"Phase {one['phase']}{closed}", one["awards"], sep="\n", markup=False, soft_wrap=True
            )
            continue
        title = f"Phase {one['phase']}{closed}, board {one['sequence']} of {one['made_at'][:16].replace('T', ' ')} UTC"
        keys = {
            "Rank": "rank",
            "Team": "team",
            "Mean Q": "q_mean",
            "By mean Q": "rank_by_mean",
            "Number": "submission",
        }
        columns = {
            name: ["–" if row[key] is None else str(row[key]) for row in one["entries"]]
            for name, key in keys.items()
        }
        console.print(table_of(columns, title))


@board.command()
def publish(
    *,
    config: ConfigOption,
    preview: Annotated[
        Path | None,
        typer.Option(help="Only write what would be pushed to this folder.", metavar="DIR"),
    ] = None,
) -> None:
    """Compute and push the boards now; if a worker runs, it does this, and the command waits.

    Example: `neuco-worker board publish --config challenge.yaml`

    Example: `neuco-worker board publish --preview ./preview --config challenge.yaml`
    """
    from worker.organizer import board_by_hand
    from worker.organizer.session import open_session

    with open_session(config) as session:
        if preview is not None:
            for name, content in board_by_hand.preview(session).items():
                path = preview / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            print(f"Wrote {(preview / 'index.html').resolve()}. Nothing was pushed.")
            return
        published = board_by_hand.publish_now(session, tell=print)
    print(
        f"{'Pushed commit' if published.changed else 'Nothing has changed; the branch is at commit'} {published.commit}."
    )


@board.command()
def report(
    *,
    config: ConfigOption,
    phase: PhaseOption,
    out: Annotated[Path, typer.Option(help="Folder to write to.", show_default=False)],
    compare: Annotated[
        bool,
        typer.Option(help="Read all files that count, to find near copies."),
    ] = True,
) -> None:
    """Write a private report: standings, intervals, scores per task, diagnostics, near copies, cost. It shows hidden tasks.

    Near copies are embeddings of different teams that differ only by noise, scale or a rotation.

    Example: `neuco-worker board report --phase dev --out ./report --config challenge.yaml`
    """
    from leaderboard.ranking import from_json
    from leaderboard.report import report as make_report
    from leaderboard.report import report_page
    from scoring.neuco_bench.ceilings import places_of
    from scoring.neuco_bench.labels import read_annotations
    from worker.challenge.setups import not_recorded
    from worker.fairness.register import LATEST, RegisterFold
    from worker.organizer.comparing import similarities
    from worker.organizer.session import open_session

    with open_session(config) as session:
        setup = session.check_phase(phase)
        with session.store.read() as tx:
            state = RegisterFold().at(tx).phase(phase).snapshot(LATEST)
            last = [from_json(text) for text in tx.boards(phase, after=tx.last_board(phase) - 1)]
        if state is None:
            raise not_recorded(phase)
        tasks = session.configuration.path(setup.tasks)
        places = places_of(read_annotations(tasks)) if tasks.is_dir() else ()
        alike = None
        if compare:
            with progress_bar("Comparing what teams sent", "submissions") as progress:
                alike = similarities(session, state, progress=progress)
        board = last[0] if last else None
        made = make_report(state, board, made_at=session.now, places=places, alike=alike)
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    for name, content in ((f"{phase}.html", report_page(made)), (f"{phase}.json", text)):
        (out / name).write_text(content, encoding="utf-8")
        (out / name).chmod(0o600)
    print(f"Wrote {out / f'{phase}.html'} and {phase}.json. They show hidden tasks: keep them private.")


@board.command()
def freeze(
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
    reason: Annotated[
        str, typer.Option("--reason", help="The reason, which the reveal publishes.", show_default=False)
    ] = "",
    yes: YesOption = False,
) -> None:
    """Close a phase: later submissions, and later changes at EvalAI, do not count.

    First end the phase at EvalAI. Submissions that are scored later are answered without a value.

    With `shown: at_end`, the command waits until all submissions are answered; then values and ranks are shown.

    Example: `neuco-worker board freeze --phase dev --reason "the phase has ended" --yes --config challenge.yaml`
    """
    from worker.organizer import board_by_hand
    from worker.organizer.decisions import is_frozen
    from worker.organizer.session import open_session

    with open_session(config) as session:
        session.check_phase(phase)
        if is_frozen(session, phase) is not undo:
            print(f"The board of {phase} is {'open' if undo else 'closed'} already; nothing was done.")
            return
        if undo:
            board_by_hand.thaw(session, phase, reason)
            print(f"The board of {phase} is open again; the worker publishes it with its next push.")
            return
        if not now:
            board_by_hand.check_ended(session, phase)
        at_end = session.check_phase(phase).shown == "at_end"
        shown = " Withheld values are posted to EvalAI and shown, which cannot be undone." if at_end else ""
        confirm(f"The board of {phase} is closed: what is scored later does not count.{shown}", yes=yes)
        if not now:
            board_by_hand.wait_for_answers(session, phase, tell=print)
        values = board_by_hand.freeze(session, phase, reason)
    posts = ", and then posts the withheld values to EvalAI" if values else ""
    print(f"The board of {phase} is closed; the worker publishes it with its next push{posts}.")

"""``neuco-worker board …``: show, publish, rebuild, report and close the boards."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from scoring.errors import OrganizerError
from scoring.printable import count_of
from worker.cli.commands import Commands
from worker.cli.options import ConfigOption, JsonOption, OptionalConfig, default_config
from worker.cli.progress import progress_bar

board = Commands(name="board", help="Show, preview, publish, replay, report on and close the boards.")

PhaseOption = Annotated[str, typer.Option("--phase", help="Codename of the phase.", show_default=False)]


@board.command()
def show(
    *,
    config: ConfigOption,
    phase: Annotated[str | None, typer.Option(help="Only this phase (its codename).", metavar="NAME")] = None,
    json_output: JsonOption = False,
) -> None:
    """Show the latest boards in the terminal, as participants see them.

    Example: neuco-worker board show --phase dev --config challenge.yaml
    """
    from worker.organizer import listing
    from worker.organizer.session import open_session

    with open_session(config) as session:
        shown = listing.last_boards(session, phase)
    if json_output:
        print(json.dumps({"boards": shown}, indent=2))
        return
    from rich.table import Table
    from rich.text import Text

    from worker.cli.terminal import Console

    console = Console(highlight=False)
    for one in shown:
        closed = ", closed" if one["frozen_at"] else ""
        if one["made_at"] is None:
            console.print(f"Phase {one['phase']} has no board yet{closed}.", markup=False)
            continue
        title = f"Phase {one['phase']}{closed}, board {one['sequence']} of {one['made_at'][:16].replace('T', ' ')} UTC"
        table = Table(title=Text(title), title_justify="left")
        for name in ("Rank", "Team", "Mean Q", "By mean Q", "Number"):
            table.add_column(name, justify="left" if name == "Team" else "right")
        for row in one["entries"]:
            ranks = ["–" if row[key] is None else str(row[key]) for key in ("rank", "rank_by_mean")]
            table.add_row(ranks[0], Text(row["team"]), row["q_mean"], ranks[1], str(row["submission"]))
        console.print(table)


@board.command()
def preview(
    *,
    config: ConfigOption,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write to; by default a new temporary folder.", metavar="DIR"),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, if there is one.")
    ] = True,
) -> None:
    """Write what a push would publish now to a folder, and open the page. Nothing is pushed.

    Example: neuco-worker board preview --no-open --config challenge.yaml
    """
    from worker.organizer import board_by_hand
    from worker.organizer.session import open_session

    with open_session(config) as session:
        files = board_by_hand.preview(session)
    folder = Path(tempfile.mkdtemp(prefix="neuco-worker-preview-")) if out is None else out
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    page = (folder / "index.html").resolve()
    print(f"Wrote {page}. Nothing was pushed; to push it, run `neuco-worker board publish`.")
    has_screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if open_page and sys.stdout.isatty() and has_screen:
        webbrowser.open(page.as_uri())


@board.command()
def publish(*, config: ConfigOption) -> None:
    """Compute and push the boards now. A running worker does this on request, and the command waits for it.

    Example: neuco-worker board publish --config challenge.yaml
    """
    from worker.organizer.board_by_hand import publish_now
    from worker.organizer.session import open_session

    with open_session(config) as session:
        published = publish_now(session, tell=print)
    print(
        f"{'Pushed commit' if published.changed else 'Nothing has changed; the branch is at commit'} {published.commit}."
    )


@board.command()
def replay(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A history to read instead of the database: history.jsonl of any challenge, or a CSV table.",
            exists=True,
            dir_okay=False,
            metavar="[FILE]",
            show_default=False,
        ),
    ] = None,
    *,
    config: OptionalConfig = None,
    phase: Annotated[
        str | None,
        typer.Option(help="Codename of the phase; with a FILE, all phases by default.", metavar="NAME"),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Rebuild the whole history of a phase from the database, one public submission after the other, and print it as CSV.

    The output shows hidden tasks and their weights: keep it private. With a FILE, the command reads a published history instead. It then
    shows each move of a team, whether the team or others caused it, and how often two teams swapped places although the values of both
    stayed the same.

    Example: neuco-worker board replay --phase dev --config challenge.yaml > history.csv

    Example: neuco-worker board replay leaderboard/history.jsonl --json
    """
    if file is not None:
        _follow(file, phase, json_output=json_output)
        return
    if phase is None:
        raise OrganizerError(
            "A replay from the database needs a phase.", cure="Add --phase NAME.", code="phase.unknown"
        )
    config = config or default_config()
    from leaderboard.report import moves_csv, replay, replay_json
    from worker.organizer.session import open_session
    from worker.publishing.snapshots import snapshot

    with open_session(config) as session:
        session.check_phase(phase)
        with session.store.read() as tx:
            state = snapshot(tx, session.configuration, phase)
            scored_at = {
                known.pk: known.scored_at for known in tx.submissions() if known.scored_at is not None
            }
        boards = replay(state, scored_at=scored_at)
    print(replay_json(boards) if json_output else moves_csv(boards), end="")


def _follow(file: Path, phase: str | None, *, json_output: bool) -> None:
    """Print the history in a file."""
    from leaderboard.exchange import history_csv, history_document, read_history

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OrganizerError(
            f"{file} cannot be read ({type(error).__name__}).",
            cure="It must be UTF-8 text.",
            code="runs.history",
        ) from None
    boards = [one for one in read_history(text) if phase in (None, one.phase)]
    if not boards:
        raise OrganizerError(
            f"{file} has no board{'' if phase is None else f' of phase {phase!r}'}.",
            cure="Run the command without --phase to see all phases."
            if phase
            else "Name the history of a challenge that has published a board.",
            code="runs.history",
        )
    if json_output:
        print(json.dumps(history_document(boards), indent=1, ensure_ascii=False))
        return
    print(history_csv(boards), end="")
    counts = history_document(boards)["tally"]
    print(
        f"{count_of(counts['boards'], 'board')}; {count_of(counts['own'] + counts['passive'], 'move')}, {counts['passive']} of them passive"
        f" (caused by other teams); {count_of(counts['swaps'], 'time')} two teams swapped places although neither's value had changed.",
        file=sys.stderr,
    )


@board.command()
def report(
    *,
    config: ConfigOption,
    phase: PhaseOption,
    out: Annotated[Path, typer.Option(help="Folder to write to.", show_default=False)],
    compare: Annotated[
        bool,
        typer.Option(help="Read the files of the submissions that count, to find near copies between teams."),
    ] = True,
) -> None:
    """Write a report with standings, intervals, scores per task, diagnostics, near copies and cost. It shows hidden tasks: keep it private.

    Near copies are embeddings of different teams that differ only by noise, scale or a rotation. Finding them takes about as long as
    reading all files once.

    Example: neuco-worker board report --phase dev --out ./report --config challenge.yaml
    """
    from leaderboard.ranking import from_json
    from leaderboard.report import report as make_report
    from scoring.neuco_bench.ceilings import places_of
    from worker.organizer.comparing import similarities
    from worker.organizer.session import open_session
    from worker.publishing.snapshots import snapshot

    with open_session(config) as session:
        setup = session.check_phase(phase)
        with session.store.read() as tx:
            state = snapshot(tx, session.configuration, phase)
            boards = [from_json(text) for text in tx.boards(phase)]
        places = places_of(session.configuration.path(setup.tasks))
        alike = None
        if compare:
            with progress_bar("Comparing what teams sent", "submissions") as progress:
                alike = similarities(session, state, progress=progress)
        made = make_report(state, boards, made_at=session.now, places=places, alike=alike)
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, content in ((f"{phase}.html", made.html), (f"{phase}.json", made.json)):
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
            "--now", help="With `shown: at_end`: close the phase without waiting for unanswered submissions."
        ),
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="The reason, which the reveal publishes.", show_default=False)
    ] = "",
) -> None:
    """Close a phase: its board keeps what has been answered so far. Later submissions, and later changes at EvalAI, no longer count.

    With `shown: at_end`, the command first waits until all submissions so far are answered. Then the values and ranks are shown.

    Example: neuco-worker board freeze --phase dev --reason "the phase has ended" --config challenge.yaml
    """
    from worker.organizer import board_by_hand
    from worker.organizer.session import open_session

    with open_session(config) as session:
        if not undo and not now:
            board_by_hand.wait_for_answers(session, phase, tell=print)
        if undo:
            board_by_hand.thaw(session, phase, reason)
            print(f"The board of {phase} is open again; the worker publishes it with its next push.")
            return
        values = board_by_hand.freeze(session, phase, reason)
    posts = ", and then posts the withheld values to EvalAI" if values else ""
    print(f"The board of {phase} is closed; the worker publishes it with its next push{posts}.")


@board.command()
def awards(*, config: ConfigOption, phase: PhaseOption) -> None:
    """Print the two awards (by dynamic rank and by mean Q) as text to paste into an announcement.

    Example: neuco-worker board awards --phase eval --config challenge.yaml
    """
    from leaderboard.ranking import from_json
    from leaderboard.report import awards as word_awards
    from worker.organizer.session import open_session
    from worker.publishing.snapshots import rules_and_epsilon

    with open_session(config) as session:
        session.check_phase(phase)
        with session.store.read() as tx:
            boards = tx.boards(phase)
            rules, _ = rules_and_epsilon(tx, session.configuration, phase)
    if not boards:
        raise OrganizerError(
            f"Phase {phase} has no board yet.",
            cure="Run `neuco-worker board publish` first.",
            code="board.none",
        )
    print(word_awards(from_json(boards[-1]), decimals=rules.decimals))

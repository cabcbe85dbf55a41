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
from worker.cli.commands import Commands
from worker.cli.options import ConfigOption, JsonOption, OptionalConfig, default_config
from worker.cli.progress import progress_bar

board = Commands(name="board", help="Show, publish, rebuild, report and close the boards.")

PhaseOption = Annotated[str, typer.Option("--phase", help="EvalAI phase codename.", show_default=False)]


@board.command()
def show(
    *,
    config: ConfigOption,
    phase: Annotated[
        str | None, typer.Option(help="Only this phase, by its codename.", metavar="NAME")
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Show the boards as they were last made, with what participants see.

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
        typer.Option(
            help="Folder to write to; by default a new one among the temporary files.", metavar="DIR"
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, where there is one.")
    ] = True,
) -> None:
    """Write what a push would publish now into a folder, and open the page; nothing is pushed.

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
    print(f"{page}: nothing was pushed; `neuco-worker board publish` does that.")
    has_screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if open_page and sys.stdout.isatty() and has_screen:
        webbrowser.open(page.as_uri())


@board.command()
def publish(*, config: ConfigOption) -> None:
    """Compute and push the boards now. If a worker runs, it does it, and this waits for it.

    Example: neuco-worker board publish --config challenge.yaml
    """
    from worker.organizer.board_by_hand import publish_now
    from worker.organizer.session import open_session

    with open_session(config) as session:
        published = publish_now(session, tell=print)
    print(f"{'Pushed' if published.changed else 'Nothing changed; the branch stands at'} {published.commit}")


@board.command()
def replay(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A history to follow instead of the database: history.jsonl of any challenge, or a CSV table.",
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
        typer.Option(help="EvalAI phase codename; of a FILE all phases if it is not given.", metavar="NAME"),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Rebuild a phase's whole history from the database, one public submission after the other; prints CSV.

    For the organizer alone: it shows hidden tasks and their weights. Of a FILE it says what anybody can see: who moved, whether by a value
    of their own or because others changed, and how often two teams swapped whose own values had not changed.

    Example: neuco-worker board replay --phase dev --config challenge.yaml > history.csv

    Example: neuco-worker board replay leaderboard/history.jsonl --json
    """
    if file is not None:
        _follow(file, phase, json_output=json_output)
        return
    if phase is None:
        raise OrganizerError(
            "A replay from the database is of one phase.", cure="Give --phase NAME.", code="phase.unknown"
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
    """Print the history that a file tells."""
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
            cure="Leave --phase out to see all phases.",
            code="runs.history",
        )
    if json_output:
        print(json.dumps(history_document(boards), indent=1, ensure_ascii=False))
        return
    print(history_csv(boards), end="")
    counts = history_document(boards)["tally"]
    print(
        f"{counts['boards']} boards; {counts['own'] + counts['passive']} moves, {counts['passive']} of them by others' doing;"
        f" {counts['swaps']} swaps of two teams whose own values had not changed.",
        file=sys.stderr,
    )


@board.command()
def report(
    *,
    config: ConfigOption,
    phase: PhaseOption,
    out: Annotated[Path, typer.Option(help="Folder to write to.", show_default=False)],
    compare: Annotated[
        bool, typer.Option(help="Read the counted submissions again, to find near copies between teams.")
    ] = True,
) -> None:
    """Write the private report: standings with intervals, per-task figures, diagnostics, conduct, cost. For the organizer alone.

    It compares what teams sent, and names embeddings that are the same but for noise, scale or a rotation; that takes about as long as
    reading these files once.

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
    print(f"{out / f'{phase}.html'} and .json: they show hidden tasks; keep them private.")


@board.command()
def freeze(
    *,
    config: ConfigOption,
    phase: PhaseOption,
    undo: Annotated[bool, typer.Option("--undo", help="Let the board move again.")] = False,
    now: Annotated[
        bool,
        typer.Option(
            "--now", help="Do not wait for the answers of what was sent before, where values come at the end."
        ),
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; the reveal publishes it.", show_default=False)
    ] = "",
) -> None:
    """Close a phase: what was answered until now stands on its board, and no later submission, visibility, name or flag moves it.

    A phase with `shown: at_end` waits until everything that was sent before is answered; then its values and ranks are shown.

    Example: neuco-worker board freeze --phase dev --reason "the phase has ended" --config challenge.yaml
    """
    from worker.organizer import board_by_hand
    from worker.organizer.session import open_session

    with open_session(config) as session:
        if not undo and not now:
            board_by_hand.wait_for_answers(session, phase, tell=print)
        if undo:
            board_by_hand.thaw(session, phase, reason)
            print(f"The board of {phase} moves again; the daemon publishes that.")
            return
        values = board_by_hand.freeze(session, phase, reason)
    posts = ", and posts the values that were kept back" if values else ""
    print(f"The board of {phase} is closed; the daemon publishes that{posts}.")


@board.command()
def awards(*, config: ConfigOption, phase: PhaseOption) -> None:
    """Print the two awards (dynamic rank, mean Q) as a text to paste.

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
        raise OrganizerError(f"Phase {phase} has no board yet.", cure="Publish one first.", code="board.none")
    print(word_awards(from_json(boards[-1]), decimals=rules.decimals))

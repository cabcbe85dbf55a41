"""``neuco-worker board …``: publish, rebuild, report and close the boards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scoring.errors import OrganizerError
from worker.cli.commands import Commands
from worker.cli.options import ConfigOption, JsonOption
from worker.cli.progress import progress_bar

board = Commands(name="board", help="Publish, rebuild, report and close the boards.")

PhaseOption = Annotated[str, typer.Option("--phase", help="EvalAI phase codename.", show_default=False)]


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
    *,
    config: ConfigOption,
    phase: PhaseOption,
    json_output: JsonOption = False,
) -> None:
    """Rebuild a phase's whole history from the database, one public submission after the other; prints CSV.

    For the organizer alone: it shows hidden tasks and their weights.

    Example: neuco-worker board replay --phase dev --config challenge.yaml > history.csv
    """
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
    reason: Annotated[
        str, typer.Option("--reason", help="Why; the reveal publishes it.", show_default=False)
    ] = "",
) -> None:
    """Close a phase: what was answered until now stands on its board, and no later submission, visibility, name or flag moves it.

    Example: neuco-worker board freeze --phase dev --reason "the phase has ended" --config challenge.yaml
    """
    from worker.organizer import board_by_hand
    from worker.organizer.session import open_session

    with open_session(config) as session:
        (board_by_hand.thaw if undo else board_by_hand.freeze)(session, phase, reason)
    print(f"The board of {phase} {'moves again' if undo else 'is closed'}; the daemon publishes that.")


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

"""``neuco-worker sandbox``: an EvalAI-compatible server on loopback, and submitting files to it."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scoring.printable import printable, printable_lines
from worker.cli.terminal import JsonOption

if TYPE_CHECKING:
    from worker.sandbox import SandboxSettings

DEFAULT_TEAMS = ("Team Alice", "Team Bob")
LOOK_EVERY_S = 2.0
"""Leaves half of the calls that EvalAI allows in a minute."""
WORKERS_CALLS = 6000
"""Calls a minute of a worker that need not wait."""


sandbox = typer.Typer(invoke_without_command=True)


@sandbox.callback()
def serve(
    context: typer.Context,
    *,
    port: Annotated[
        int, typer.Option(help="Port of the API; the files get the next one; 0: any free ones.")
    ] = 8000,
    throttle: Annotated[int, typer.Option(min=1, help="Calls that an account may make in a minute.")] = 60,
    visibility: Annotated[
        float, typer.Option(min=0.0, help="Seconds for which a received message is hidden.")
    ] = 30.0,
    config: Annotated[
        Path | None,
        typer.Option(help="A challenge's configuration to imitate: title, number, queue, phases."),
    ] = None,
    team: Annotated[
        list[str] | None, typer.Option(help="Name of a participant team; may be repeated.", metavar="NAME")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            help="Also run the worker, on a copy of --config's challenge in this new or empty folder.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Run an EvalAI-compatible server on this machine until Ctrl-C. It keeps everything in memory.

    Prints the tokens of the host and the teams. With --run, it is a whole challenge, to which you submit from another terminal.

    Example: `neuco-worker sandbox --config challenge.yaml --team "Team Alice" --run local`
    """
    from worker.challenge.configuration import load
    from worker.organizer.rehearsal import play
    from worker.sandbox import Sandbox

    if context.invoked_subcommand is not None:
        return
    if run is not None and config is None:
        raise typer.BadParameter("--run needs --config.")
    settings = _settings(
        config,
        port=port,
        throttle_per_minute=throttle if run is None else WORKERS_CALLS,
        visibility_timeout_s=visibility,
    )
    stop = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with Sandbox(settings) as server:
        for name in team or DEFAULT_TEAMS:
            server.add_team(name)
        facts = server.facts()
        typer.echo(json.dumps(facts) if json_output else _describe(facts))
        if config is not None and run is not None:
            play(
                load(config),
                server,
                run,
                stop=stop,
                tell=lambda sentence: typer.echo(sentence, err=json_output),
            )
        stop.wait()


@sandbox.command()
def submit(
    file: Annotated[
        Path, typer.Argument(help="The submission.", exists=True, dir_okay=False, metavar="FILE")
    ],
    *,
    phase: Annotated[str, typer.Option(help="Codename of the phase.", metavar="NAME")] = "dev",
    team: Annotated[
        str | None, typer.Option(help="Team that submits; by default, the first one.", metavar="NAME")
    ] = None,
    method: Annotated[str, typer.Option(help="Name of the method, such as `pooled means`.")] = "",
    public: Annotated[
        bool, typer.Option("--public/--private", help="Whether EvalAI shows the submission to everyone.")
    ] = True,
    server: Annotated[
        str, typer.Option(help="Address of the sandbox.", metavar="URL")
    ] = "http://127.0.0.1:8000",
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the answer, and print what the participant reads.")
    ] = False,
) -> None:
    """Submit a file to a sandbox that runs in another terminal.

    With --wait, it exits with 1 if the submission fails.

    Example: `neuco-worker sandbox submit embeddings.csv --phase dev --team "Team Alice" --wait`
    """
    from worker.sandbox import PracticeTeam

    entrant = PracticeTeam(server, team)
    number = entrant.submit(file, phase=phase, method=method, public=public)
    print(f"Submission {number} by {printable(entrant.name)} to phase {phase} is waiting for a worker.")
    if not wait:
        return
    while (ended := entrant.outcome(number)) is None:
        time.sleep(LOOK_EVERY_S)
    status, text = ended
    print(f"{status}: {printable_lines(text)}")
    if status != "finished":
        raise typer.Exit(1)


def _settings(config: Path | None, **chosen: Any) -> SandboxSettings:
    from worker.challenge.configuration import load
    from worker.sandbox import SandboxSettings, from_challenge

    return (
        SandboxSettings(**chosen) if config is None else from_challenge(load(config).model_dump(), **chosen)
    )


def _describe(facts: Mapping[str, Any]) -> str:
    lines = [
        f"EvalAI sandbox  {facts['url']}",
        f"files           {facts['media_url']}",
        f"challenge       {facts['challenge']}  {facts['title']}",
        f"queue           {facts['queue']}",
    ]
    lines += [f"phase           {pk}  {codename}" for codename, pk in facts["phases"].items()]
    lines += [f"token           {name}: {token}" for name, token in facts["tokens"].items()]
    phase = next(iter(facts["phases"]))
    submit = f"neuco-worker sandbox submit FILE --phase {phase} --server {facts['url']} --wait"
    return "\n".join([*lines, "", f"Submit a file from another terminal: {submit}", "Stop with Ctrl-C."])

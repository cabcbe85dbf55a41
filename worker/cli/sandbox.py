"""``neuco-worker sandbox``: an EvalAI-compatible server on loopback."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any

import typer

from worker.cli.terminal import JsonOption, configuration_file

DEFAULT_TEAMS = ("Team Alice", "Team Bob")
WORKERS_CALLS = 6000
"""Calls a minute of a worker that need not wait."""


def sandbox(
    *,
    port: Annotated[
        int,
        typer.Option(min=0, max=65534, help="Port of the API; the files get the next; 0: any free."),
    ] = 8000,
    throttle: Annotated[int, typer.Option(min=1, help="Calls that an account may make in a minute.")] = 60,
    visibility: Annotated[
        float, typer.Option(min=0.0, help="Seconds for which a received message is hidden.")
    ] = 30.0,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Configuration or folder of a challenge to imitate.",
            callback=lambda path: path and configuration_file(path),
        ),
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

    Prints the tokens of the hosts and the teams. With --run, it is a whole challenge.

    Next: submit a file from another terminal with the line that it prints.

    Example: `neuco-worker sandbox --config challenge.yaml --team "Team Alice" --run local`
    """
    from worker.challenge.configuration import load
    from worker.organizer.rehearsal import play
    from worker.sandbox import Sandbox, SandboxSettings, from_challenge

    if run is not None and config is None:
        raise typer.BadParameter("--run needs --config.")
    configuration = None if config is None else load(config)
    chosen: dict[str, Any] = {
        "port": port,
        "throttle_per_minute": throttle if run is None else WORKERS_CALLS,
        "visibility_timeout_s": visibility,
    }
    settings = (
        SandboxSettings(**chosen)
        if configuration is None
        else from_challenge(configuration.model_dump(), **chosen)
    )
    # A handler can always write to it, but cannot set an event for which the interrupted thread begins to wait.
    signals: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: signals.put(number))
    with Sandbox(settings) as server:
        for name in team or DEFAULT_TEAMS:
            server.add_team(name)
        facts = server.facts()
        said = json.dumps(facts) if json_output else _describe(facts)

        def started(sentence: str) -> None:
            typer.echo(said)
            typer.echo(sentence, err=json_output)

        if configuration is None or run is None:
            typer.echo(said)
            signals.get()
        else:
            play(configuration, server, run, stop=lambda: not signals.empty(), tell=started)


def _describe(facts: Mapping[str, Any]) -> str:
    lines = [
        f"EvalAI sandbox  {facts['url']}",
        f"files           {facts['media_url']}",
        f"challenge       {facts['challenge']}  {facts['title']}",
        f"queue           {facts['queue']}",
    ]
    lines += [f"phase           {codename}: {address}" for codename, address in facts["phases"].items()]
    lines += [
        f"token           {name}: {token}" for name, token in (facts["tokens"] | facts["teams"]).items()
    ]
    address, (team, token) = next(iter(facts["phases"].values())), next(iter(facts["teams"].items()))
    submit = f"curl -H 'Authorization: Bearer {token}' {address}"
    fields = "-F status=submitting -F is_public=true -F method_name=test -F input_file=@embeddings.csv"
    lines += [
        "",
        f"Submit embeddings.csv to the first phase, as {team}, from another terminal:",
        f"{submit} {fields}",
        "List the team's submissions; stdout_file and stderr_file are the addresses of an answer:",
        submit,
    ]
    return "\n".join([*lines, "", "Stop with Ctrl-C."])

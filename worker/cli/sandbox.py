"""``neuco-worker sandbox``: an EvalAI-compatible server on loopback."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scoring.errors import OrganizerError
from scoring.inputs.documents import read_yaml

if TYPE_CHECKING:
    from worker.sandbox import SandboxSettings

DEFAULT_TEAMS = ("Team Alice", "Team Bob")


def sandbox(
    *,
    port: Annotated[int, typer.Option(help="Port of the API; 0 takes any free one.")] = 8000,
    media_port: Annotated[
        int, typer.Option(help="Port of the files, another origin; 0 takes any free one.")
    ] = 0,
    throttle: Annotated[int, typer.Option(min=1, help="Calls a minute that one account may make.")] = 60,
    visibility: Annotated[
        float, typer.Option(min=0.0, help="Seconds that a received message stays hidden.")
    ] = 30.0,
    config: Annotated[
        Path | None,
        typer.Option(help="Challenge configuration whose title, challenge, queue and phases are taken over."),
    ] = None,
    team: Annotated[list[str] | None, typer.Option(help="A participant team; may be repeated.")] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print the facts as one JSON document.")
    ] = False,
) -> None:
    """Serve an EvalAI-compatible server on loopback until SIGINT or SIGTERM; its state is in memory.

    Prints addresses, primary keys, queue and tokens that a worker and participants need.

    Example: neuco-worker sandbox --port 8000 --visibility 5 --team "Team Alice"
    """
    from worker.sandbox import Sandbox

    settings = _settings(
        config,
        port=port,
        media_port=media_port,
        throttle_per_minute=throttle,
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
        stop.wait()


def _settings(config: Path | None, **chosen: Any) -> SandboxSettings:
    from worker.sandbox import SandboxSettings, from_challenge

    if config is None:
        return SandboxSettings(**chosen)
    import yaml

    try:
        document = read_yaml(config.read_text(encoding="utf-8"))
    except OSError as problem:
        raise OrganizerError(
            f"The configuration {config} cannot be read: {problem.strerror}.",
            cure="Check the path given with --config.",
            code="config.missing",
        ) from problem
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise OrganizerError(
            f"The configuration {config} is not YAML.",
            cure="Mend the file; `neuco-worker doctor` shows the line.",
            code="config.syntax",
        ) from problem
    try:
        return from_challenge(document, **chosen)
    except (AttributeError, TypeError, ValueError) as problem:
        raise OrganizerError(
            f"The configuration {config} is not that of a challenge.",
            cure="It needs the sections challenge, evalai and phases.",
            code="config.shape",
        ) from problem


def _describe(facts: Mapping[str, Any]) -> str:
    lines = [
        f"EvalAI sandbox  {facts['url']}",
        f"files           {facts['media_url']}",
        f"challenge       {facts['challenge']}  {facts['title']}",
        f"queue           {facts['queue']}",
    ]
    for codename, phase in facts["phases"].items():
        metrics = ", ".join(phase["metrics"])
        lines.append(f"phase           {phase['pk']}  {codename}  split {phase['split']}  metrics {metrics}")
    lines += [f"token           {name}: {tokens['bearer']}" for name, tokens in facts["tokens"].items()]
    return "\n".join([*lines, "Stop with Ctrl-C."])

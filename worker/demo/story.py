"""The demo's course: a sandbox opens, teams submit, the real worker scores and publishes, the boards are shown."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import requests

from scoring.errors import InfrastructureError
from worker.demo import data
from worker.demo.entries import HOSTS, PHASES, Entry, teams
from worker.demo.place import FOLDS, TITLE, Place, configure, git, prepare
from worker.demo.screen import Line, Screen
from worker.office import opened
from worker.publishing import freeze, publish_now
from worker.sandbox import PhaseSettings, Sandbox, SandboxSettings, TeamSettings
from worker.state import Store
from worker.status import read_status

LOOK_EVERY_S = 0.2
PATIENCE_S = 300  # without any change; then something is wrong
STOP_S = 12  # the daemon's own promise


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A submission that the sandbox has taken; ``file`` is what was submitted, kept for its team."""

    pk: int
    phase: str
    entry: Entry
    file: Path


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What came of the demo.

    Attributes:
        boards: Phase to the published document, as ``leaderboard/<phase>.json`` holds it.
        failures: Team to what EvalAI shows it about its failed submission.
        seconds: From the first submission to the last board.
    """

    place: Place
    boards: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, str]
    seconds: float


def play(
    folder: Path,
    screen: Screen,
    *,
    secret: bytes | None = None,
    folds: Mapping[str, int] | None = None,
    phases: Collection[str] = tuple(PHASES),
    entries: int | None = None,
    linger: Callable[[Sandbox, Place], None] | None = None,
) -> Ending:
    """Play the whole challenge in a folder.

    Args:
        folder: Where everything is kept.
        screen: Where progress is shown.
        secret: Challenge secret; by default the folder's, or a random one.
        folds: Random splits per phase, by default those of 2025.
        phases: Phases in which anybody submits.
        entries: Only so many submissions in each phase.
        linger: Called at the end, while sandbox and worker still run.

    Raises:
        OrganizerError: If the folder is in use.
        InfrastructureError: If the worker ends or nothing moves any more.
    """
    place = prepare(folder, secret=secret)
    with _evalai() as evalai:
        facts = {
            "url": evalai.url,
            "challenge": evalai.challenge,
            "queue": evalai.queue,
            "media_host": evalai.media_host,
            "token": evalai.token("host"),
        }
        configure(place, facts, folds=folds or FOLDS)
        with _worker(place) as worker:
            began = time.monotonic()
            with screen:
                submitted = _challenge(
                    evalai, place, screen, worker, {p: PHASES[p][:entries] for p in phases}
                )
            seconds = time.monotonic() - began
            if linger is not None:
                linger(evalai, place)
        _close(place)
        for s in submitted:
            _keep_answer(evalai, s)
        failures = {
            s.entry.team: evalai.text(s.pk, "stderr_file").strip()
            for s in submitted
            if evalai.submission(s.pk)["status"] == "failed"
        }
    boards = {
        codename: json.loads((place.checkout / "leaderboard" / f"{codename}.json").read_text("utf-8"))
        for codename in PHASES
        if codename in phases
    }
    return Ending(place=place, boards=boards, failures=failures, seconds=seconds)


def _evalai() -> Sandbox:
    return Sandbox(
        SandboxSettings(
            title=TITLE,
            host_team=HOSTS,
            phases=tuple(PhaseSettings(codename=codename) for codename in PHASES),
            teams=tuple(TeamSettings(name=team, members=(user,)) for team, user in teams().items()),
            throttle_per_minute=100_000,
        )
    )


def _challenge(
    evalai: Sandbox,
    place: Place,
    screen: Screen,
    worker: subprocess.Popen[bytes],
    programme: Mapping[str, Sequence[Entry]],
) -> list[Submitted]:
    """Let the phases pass one after the other, until every submission is answered and the boards are pushed."""
    submitted: list[Submitted] = []

    def look() -> None:
        screen.show(_lines(evalai, submitted))

    for codename, phase in zip(PHASES, data.load(), strict=True):
        for entry in programme.get(codename, ()):
            submitted.append(_submit(evalai, place, codename, phase, entry))
            look()
        _wait(lambda: _answered(evalai, submitted), look=look, worker=worker, place=place)
    _wait(lambda: _published(place), look=look, worker=worker, place=place)
    return submitted


def _submit(evalai: Sandbox, place: Place, codename: str, phase: data.PhaseData, entry: Entry) -> Submitted:
    """Submit a file as a participant does: with their own token, over HTTP."""
    content = entry.file(phase)
    kept = (
        place.participants
        / codename
        / f"{entry.user}-{entry.method_name.replace(' ', '-')}-{entry.file_name}"
    )
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)
    answer = requests.post(
        f"{evalai.url}/api/jobs/challenge/{evalai.challenge}/challenge_phase/{evalai.phase_pk(codename)}/submission/",
        headers={"Authorization": f"Bearer {evalai.token(entry.user)}"},
        data={
            "status": "submitting",
            "method_name": entry.method_name,
            "is_public": "true" if entry.public else "false",
        },
        files={"input_file": (entry.file_name, content)},
        timeout=30,
    )
    answer.raise_for_status()
    return Submitted(pk=int(answer.json()["id"]), phase=codename, entry=entry, file=kept)


def _close(place: Place) -> None:
    """Close all phases, as an organizer does at the end: only then are they revealed."""
    with opened(place.configuration) as office:
        for codename in PHASES:
            freeze(office, codename)
        publish_now(office)
    # Also where hooks do not run, such as on a file system that is mounted without the right to execute.
    git(
        *("--git-dir", str(place.repository), "--work-tree", str(place.checkout)),
        *("checkout", "--quiet", "--force", "main"),
    )


def _keep_answer(evalai: Sandbox, submitted: Submitted) -> None:
    """Keep what EvalAI showed beside the file, as careful participants do: it holds their receipt."""
    for output in ("stdout", "stderr"):
        text = evalai.text(submitted.pk, f"{output}_file")
        if text:
            submitted.file.with_name(f"{submitted.file.name}.{output}").write_text(text, encoding="utf-8")


@contextmanager
def _worker(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """Run the real daemon in a process of its own, and end it as systemd would."""
    command = [
        sys.executable,
        "-c",
        "from worker.cli import main; main()",
        "run",
        "--config",
        str(place.configuration),
    ]
    with place.log.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=place.folder)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(
    done: Callable[[], bool], *, look: Callable[[], None], worker: subprocess.Popen[bytes], place: Place
) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        look()
        if done():
            return
        if worker.poll() is not None:
            raise InfrastructureError(
                f"The worker ended by itself (exit status {worker.returncode}).",
                cure=f"Its last words are in {place.log}.",
                code="demo.worker_ended",
            )
        if time.monotonic() > deadline:
            raise InfrastructureError(
                f"The worker did not finish within {PATIENCE_S} seconds.",
                cure=f"What it did is in {place.log}.",
                code="demo.stuck",
            )
        time.sleep(LOOK_EVERY_S)


def _answered(evalai: Sandbox, submitted: list[Submitted]) -> bool:
    return all(evalai.submission(s.pk)["status"] in ("finished", "failed") for s in submitted)


def _published(place: Place) -> bool:
    """Ask the worker's own database, as `status` does, whether anything is owed to EvalAI or to the board."""
    store = Store(place.database_url)
    try:
        state = read_status(store, now=datetime.now(UTC), token_expires=None, free_bytes=0)
    finally:
        store.close()
    return not state.waiting and not state.owed and not state.states.get("posted") and bool(state.last_push)


def _lines(evalai: Sandbox, submitted: list[Submitted]) -> list[Line]:
    lines = []
    for s in submitted:
        status = evalai.submission(s.pk)["status"]
        output = evalai.text(s.pk, "stdout_file")
        lines.append(
            Line(
                phase=s.phase,
                team=s.entry.team,
                method=s.entry.method_name,
                public=s.entry.public,
                status=status,
                q_mean=json.loads(output)["q_mean"] if status == "finished" and output else None,
            )
        )
    return lines

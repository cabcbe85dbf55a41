"""The demo: start a sandbox, submit for several teams, let the real worker score and publish, and show the boards."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scoring.errors import InfrastructureError
from worker.organizer import scaffold
from worker.organizer.configuration_text import with_values
from worker.organizer.demo import data
from worker.organizer.demo.entries import HOSTS, PHASES, DemoEntry, teams
from worker.organizer.demo.folder import FOLDS, ChallengeFolder, git, prepare
from worker.organizer.demo.methods import DIMENSION
from worker.organizer.demo.runner import (
    board,
    close,
    last_words,
    publish_all,
    q_mean,
    sandbox_values,
    watch,
    worker,
)
from worker.organizer.demo.screen import Screen, ShownSubmission
from worker.sandbox import PhaseSettings, Sandbox, SandboxSettings, TeamSettings
from worker.state import Store
from worker.state.status import read_status

TITLE = "Handwritten digits (demo)"
PATIENCE_S = 300  # without any change, after which the demo has failed


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A submission that the sandbox has accepted; ``file`` is what was submitted, and is kept for its team."""

    pk: int
    phase: str
    entry: DemoEntry
    file: Path


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """The result of the demo.

    Attributes:
        boards: Phase to the published document, as in ``leaderboard/<phase>.json``.
        failures: Team to the message that EvalAI shows it about its failed submission.
        receipts: Submission to the text with the receipt that EvalAI showed for it.
        seconds: Time from the first submission to the last board.
    """

    challenge: ChallengeFolder
    boards: Mapping[str, Mapping[str, Any]]
    failures: Mapping[str, str]
    receipts: Mapping[int, Path]
    seconds: float


def run_demo(
    folder: Path,
    screen: Screen,
    *,
    secret: bytes | None = None,
    folds: Mapping[str, int] | None = None,
    phases: Collection[str] = tuple(PHASES),
    entries: int | None = None,
    before_end: Callable[[Sandbox, ChallengeFolder], None] | None = None,
) -> DemoResult:
    """Run the complete challenge in a folder.

    Args:
        folder: Where everything is kept.
        screen: Where progress is shown.
        secret: Challenge secret; by default the folder's, or a random one.
        folds: Random splits per phase; by default those of 2025.
        phases: Phases that receive submissions.
        entries: Number of submissions in each phase.
        before_end: Called at the end, while the sandbox and the worker still run.

    Raises:
        OrganizerError: If the folder is in use.
        InfrastructureError: If the worker ends, or nothing changes any more.
    """
    challenge = prepare(folder, secret=secret)
    with _evalai() as evalai:
        _configure(challenge, evalai, folds=folds or FOLDS)
        with worker(challenge, "run") as process:
            began = time.monotonic()
            with screen:
                submitted = _challenge(
                    evalai, challenge, screen, process, {p: PHASES[p][:entries] for p in phases}
                )
            seconds = time.monotonic() - began
            if before_end is not None:
                before_end(evalai, challenge)
        _close(challenge)
        kept = {s.pk: _keep_answer(evalai, s) for s in submitted}
        failures = {
            s.entry.team: evalai.text(s.pk, "stderr_file").strip()
            for s in submitted
            if evalai.submission(s.pk)["status"] == "failed"
        }
    shown = {codename: board(challenge, codename) for codename in PHASES if codename in phases}
    boards = {codename: document for codename, document in shown.items() if document is not None}
    return DemoResult(challenge=challenge, boards=boards, failures=failures, receipts=kept, seconds=seconds)


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


def _configure(challenge: ChallengeFolder, evalai: Sandbox, *, folds: Mapping[str, int]) -> None:
    """Write the configuration and the host's token for a running sandbox.

    It is what `init` writes, with a few changes: the sandbox instead of EvalAI, no waiting, values that are shown at once, and larger steps
    for the probes, because few images mean few steps.
    """
    new = scaffold.NewChallenge(
        title=TITLE,
        phases={codename: folds[codename] for codename in FOLDS},
        dim=DIMENSION,
        beacon="none",
    )
    values = sandbox_values(challenge, evalai) | {
        "phases.dev.selection": "last",
        "phases.eval.shown": "at_once",
        "submission.max_megabytes": 16,
        "submission.disk_reserve_gigabytes": 0.1,
        "scoring.learning_rate": 0.01,
        "leaderboard.publish_every": 1,
        "fairness.publish_files": "top:1",
    }
    changes = {tuple(key.split(".")): value for key, value in values.items()}
    challenge.configuration.write_text(
        with_values(scaffold.new_configuration(new), changes), encoding="utf-8"
    )


def _challenge(
    evalai: Sandbox,
    challenge: ChallengeFolder,
    screen: Screen,
    process: subprocess.Popen[bytes],
    entries: Mapping[str, Sequence[DemoEntry]],
) -> list[Submitted]:
    """Run one phase after another, until every submission is answered and the boards are pushed."""
    submitted: list[Submitted] = []
    for codename, phase in zip(PHASES, data.load(), strict=True):
        for entry in entries.get(codename, ()):
            submitted.append(_submit(evalai, challenge, codename, phase, entry))
            screen.show(_lines(evalai, submitted))
        _wait(evalai, challenge, screen, process, submitted, for_board=codename == tuple(PHASES)[-1])
    return submitted


def _submit(
    evalai: Sandbox, challenge: ChallengeFolder, codename: str, phase: data.PhaseData, entry: DemoEntry
) -> Submitted:
    content = entry.file(phase)
    kept = (
        challenge.participants
        / codename
        / f"{entry.user}-{entry.method_name.replace(' ', '-')}-{entry.file_name}"
    )
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)
    pk = evalai.submit(
        entry.team,
        codename,
        content,
        method_name=entry.method_name,
        project_url=entry.project_url,
        publication_url=entry.publication_url,
        is_public=entry.public,
        file_name=entry.file_name,
    )
    return Submitted(pk=pk, phase=codename, entry=entry, file=kept)


def _wait(
    evalai: Sandbox,
    challenge: ChallengeFolder,
    screen: Screen,
    process: subprocess.Popen[bytes],
    submitted: Sequence[Submitted],
    *,
    for_board: bool,
) -> None:
    """Show what changes until all submissions are answered and, if requested, the board is pushed."""
    pks = [s.pk for s in submitted]
    for statuses in watch(process, challenge, evalai, pks, patience_s=PATIENCE_S, code="demo.stuck"):
        screen.show(_lines(evalai, submitted))
        answered = all(status in ("finished", "failed") for status in statuses.values())
        if answered and (not for_board or _published(challenge)):
            return
    raise InfrastructureError(
        f"The worker ended unexpectedly (exit status {process.returncode}).",
        cure=f"Look for the cause in the last lines of its log: {last_words(challenge)}",
        code="demo.worker_ended",
    )


def _close(challenge: ChallengeFolder) -> None:
    """Close all phases and reveal them, as an organizer does at the end."""
    close(challenge, tuple(PHASES))
    publish_all(challenge, tuple(PHASES), tell=print)
    # Done here because hooks may not run, for example on a file system that is mounted with noexec.
    git(
        *("--git-dir", str(challenge.repository), "--work-tree", str(challenge.checkout)),
        *("checkout", "--quiet", "--force", "main"),
    )


def _keep_answer(evalai: Sandbox, submitted: Submitted) -> Path:
    """Keep what EvalAI showed next to the file, as careful participants do, because it contains the receipt."""
    places = {
        output: submitted.file.with_name(f"{submitted.file.name}.{output}") for output in ("stdout", "stderr")
    }
    for output, place in places.items():
        text = evalai.text(submitted.pk, f"{output}_file")
        if text:
            place.write_text(text, encoding="utf-8")
    return places["stdout"]


def _published(challenge: ChallengeFolder) -> bool:
    """Return whether nothing is owed to EvalAI or the board, according to the worker's database."""
    store = Store(challenge.database_url)
    try:
        state = read_status(store, now=datetime.now(UTC), led=False, token_expires=None, free_bytes=0)
    finally:
        store.close()
    return not state.waiting and not state.owed and not state.states.get("posted") and bool(state.last_push)


def _lines(evalai: Sandbox, submitted: Sequence[Submitted]) -> list[ShownSubmission]:
    lines = []
    for s in submitted:
        status = evalai.submission(s.pk)["status"]
        lines.append(
            ShownSubmission(
                phase=s.phase,
                team=s.entry.team,
                method=s.entry.method_name,
                public=s.entry.public,
                status=status,
                q_mean=q_mean(evalai, s.pk) if status == "finished" else None,
            )
        )
    return lines

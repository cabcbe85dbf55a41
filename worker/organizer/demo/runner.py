"""Run a challenge without EvalAI: in a folder, with a sandbox, and with the real worker in a child process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from scoring.errors import InfrastructureError
from worker.fairness.commitments import PATH
from worker.organizer.board_by_hand import freeze, publish_now
from worker.organizer.demo.folder import ChallengeFolder, git
from worker.organizer.disclosure import disclose
from worker.organizer.reveal import reveal
from worker.organizer.session import open_session
from worker.sandbox import Sandbox

LOOK_EVERY_S = 0.2
STOP_S = 12  # the daemon's own limit and a little more
LAST_WORDS = 1500  # characters of the worker's log in the error when it fails


def sandbox_values(challenge: ChallengeFolder, evalai: Sandbox) -> dict[str, object]:
    """Return the values, by dotted key, that replace EvalAI with the sandbox and GitHub with the folder's repository."""
    return {
        "evalai.server": evalai.url,
        "evalai.challenge": evalai.challenge,
        "evalai.queue": evalai.queue,
        "evalai.token": challenge.hand_over(evalai.token("host")),
        "evalai.poll_every": 0.5,
        "evalai.requests_per_minute": 6000,
        "evalai.media_hosts": [evalai.media_host],
        "submission.answer_grid": 0,
        "leaderboard.repository": f"./{challenge.repository.name}",
    }


@contextmanager
def worker(challenge: ChallengeFolder, command: Literal["run", "once"]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the real worker in a child process, and end it as systemd would."""
    code = "from worker.cli import main; main()"
    words = [sys.executable, "-c", code, command, "--config", str(challenge.configuration)]
    with challenge.log.open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, cwd=challenge.path)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def watch(
    process: subprocess.Popen[bytes],
    challenge: ChallengeFolder,
    evalai: Sandbox,
    submissions: Sequence[int],
    *,
    patience_s: float,
    code: str,
) -> Iterator[dict[int, str]]:
    """Yield the submissions' statuses repeatedly, for the last time after the worker has ended; ``code`` is that of the error.

    Raises:
        InfrastructureError: If nothing changes any more.
    """
    before: dict[int, str] = {}
    changed_at = time.monotonic()
    ended = False
    while not ended:
        ended = process.poll() is not None  # checked before the last look, so that nothing is missed
        statuses = {pk: str(evalai.submission(pk)["status"]) for pk in submissions}
        if statuses != before:
            before, changed_at = statuses, time.monotonic()
        yield statuses
        if time.monotonic() - changed_at > patience_s and not ended:
            raise InfrastructureError(
                f"There was no progress for {patience_s:.0f} seconds.",
                cure=f"Look for the cause in the last lines of the worker's log: {last_words(challenge)}",
                code=code,
            )
        time.sleep(0 if ended else LOOK_EVERY_S)


def last_words(challenge: ChallengeFolder) -> str:
    """Return the end of the worker's log."""
    return challenge.log.read_text("utf-8", "replace")[-LAST_WORDS:].strip()


def q_mean(evalai: Sandbox, pk: int) -> float | None:
    """Return the mean Q that the participant is shown, None if there is none."""
    try:
        value = json.loads(evalai.text(pk, "stdout_file"))["q_mean"]
    except (ValueError, KeyError, TypeError):
        return None
    return float(value) if isinstance(value, int | float) else None


def board(challenge: ChallengeFolder, codename: str) -> dict[str, Any] | None:
    """Read a phase's board as a visitor of the repository sees it; None if there is none."""
    for path in _published(challenge, "leaderboard/"):
        if path.endswith(".json"):
            document = _read(challenge, path)
            if isinstance(document, dict) and document.get("title") == codename and "entries" in document:
                return document
    return None


def published_commitments(challenge: ChallengeFolder) -> list[dict[str, Any]]:
    """Read the commitments as a visitor of the repository sees them; none before the first push."""
    return list(_read(challenge, PATH)) if _published(challenge, PATH) else []


def close(challenge: ChallengeFolder, phases: Collection[str]) -> None:
    """Close phases, as an organizer does at the end."""
    with open_session(challenge.configuration) as session:
        for codename in phases:
            freeze(session, codename)


def publish_all(challenge: ChallengeFolder, phases: Collection[str], tell: Callable[[str], object]) -> None:
    """Publish the last boards, and reveal everything that was hidden."""
    with open_session(challenge.configuration) as session:
        publish_now(session, tell=tell)
        contents = disclose(session, phases, tell=tell)
        reveal(session, phases, labels=True, contents=contents)
        publish_now(session, tell=tell)


def _published(challenge: ChallengeFolder, path: str) -> list[str]:
    """Return the published files at a path or in a folder."""
    repository = ("--git-dir", str(challenge.repository))
    if not git(*repository, "for-each-ref", "refs/heads/main"):
        return []
    return git(*repository, "ls-tree", "--name-only", "main", path).split()


def _read(challenge: ChallengeFolder, path: str) -> Any:
    return json.loads(git("--git-dir", str(challenge.repository), "show", f"main:{path}"))

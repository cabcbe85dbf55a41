"""The folder of a rehearsal: a normal challenge folder whose EvalAI is the sandbox, and whose repository is local."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from leaderboard.git import Repository
from scoring.errors import NeucoError
from worker.challenge.configuration import Configuration
from worker.challenge.secrets import KEY_FILE, SECRET_FILE, make
from worker.organizer.session import open_session
from worker.sandbox import Sandbox

STOP_S = 12  # the daemon's own limit and a little more
LOG_END = 1500  # characters of the worker's log in the error when it fails


@dataclass(frozen=True, kw_only=True)
class RehearsalFolder:
    """The paths of one rehearsal."""

    path: Path

    @property
    def configuration(self) -> Path:
        """The worker's configuration."""
        return self.path / "challenge.yaml"

    @property
    def repository(self) -> Path:
        """The bare git repository that the worker pushes to."""
        return self.path / "leaderboard.git"

    @property
    def log(self) -> Path:
        """The worker's log."""
        return self.path / "worker.log"

    def answer(self, phase: str, number: int) -> Path:
        """Return where the text is kept that EvalAI shows about a submission, with its receipt."""
        return self.path / "participants" / phase / f"{number}.stdout"

    def board(self, codename: str) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of a phase's board as a visitor of the repository sees them; none if there is no board."""
        document = Repository(self.repository).file("main", f"leaderboard/{codename}.json")
        return () if document is None else tuple(json.loads(document)["entries"])

    @contextmanager
    def worker(self, command: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run the real worker, ``once`` as cron would, or ``run`` as systemd would, and end it as systemd would."""
        code = "from worker.cli import main; main()"
        words = [sys.executable, "-c", code, command, "--config", str(self.configuration)]
        with self.log.open("ab") as log:
            process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, cwd=self.path)
            try:
                yield process
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(timeout=STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def alerts(self) -> tuple[str, ...]:
        """Return what the worker asks a person for."""
        try:
            with open_session(self.configuration) as session, session.store.read() as tx:
                return tuple(alert.text for alert in tx.alerts())
        except NeucoError:  # it has ended because of its configuration or its state
            return ()

    def reasons(self) -> tuple[str, ...]:
        """Return what the worker asks a person for or, if it asks for nothing, the end of its log."""
        return self.alerts() or (self.log.read_text("utf-8", "replace")[-LOG_END:].strip(),)


def copied(folder: RehearsalFolder, configuration: Configuration) -> Configuration:
    """Copy secret, tasks and ids into the folder, and return the configuration with the copies."""
    secret, phases = folder.path / SECRET_FILE, {}
    shutil.copy(configuration.challenge_secret, secret)
    (folder.path / "ids").mkdir()
    for codename, phase in configuration.phases.items():
        tasks, ids = folder.path / "tasks" / codename, folder.path / "ids" / f"{codename}.txt"
        shutil.copytree(configuration.path(phase.tasks), tasks, ignore=shutil.ignore_patterns(".*"))
        shutil.copy(configuration.path(phase.ids), ids)
        phases[codename] = phase.model_copy(update={"tasks": tasks, "ids": ids})
    challenge = configuration.challenge.model_copy(update={"secret": secret})
    return configuration.model_copy(update={"challenge": challenge, "phases": phases})


@contextmanager
def removed_if_refused(folder: Path) -> Iterator[None]:
    """Remove a folder that was new or empty if the system refuses a file in it, for example because the disk is full."""
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    if not made and not any(folder.iterdir()):
        made = [folder]
    try:
        yield
    except FileExistsError:  # it is another process's by now
        raise
    except OSError:
        for place in made[-1:]:
            shutil.rmtree(place, ignore_errors=True)
        raise


def prepare(
    folder: RehearsalFolder,
    configuration: Configuration,
    evalai: Sandbox,
    *,
    folds: int | None,
    draw: Mapping[str, Any],
) -> None:
    """Write the rehearsal's configuration, and make an empty repository.

    Everything that decides a score is the organizer's own: tasks, ids, secret, folds (unless fewer are requested), recipe and limits. These
    are replaced: EvalAI, the repository, the state, the signing key, the public value that decides the splits, and everything that would
    only take time, such as waiting between polls and pushes and for the grid of answers.

    Args:
        folder: The rehearsal's folder.
        configuration: The organizer's configuration.
        evalai: The sandbox.
        folds: Largest number in each phase; None for all.
        draw: The settings of the practice draw.
    """
    Repository(folder.path).run(
        "init", "--quiet", "--bare", "--template=", "--initial-branch=main", folder.repository.name
    )
    token = folder.path / "evalai.token"
    token.touch(mode=0o600)
    token.write_text(f"{evalai.token('host')}\n", encoding="utf-8")
    document: dict[str, Any] = configuration.model_dump(mode="json")
    make(folder.path / KEY_FILE)
    document["challenge"] |= {"secret": str(configuration.challenge_secret), "signing_key": f"./{KEY_FILE}"}
    document["evalai"] |= {
        "server": evalai.url,
        "challenge": evalai.challenge,
        "queue": evalai.queue,
        "token": f"file:./{token.name}",
        "poll_every": 0.5,
        "requests_per_minute": 6000,
        "media_hosts": [evalai.media_host],
    }
    for codename, phase in configuration.phases.items():
        document["phases"][codename] |= {
            "tasks": str(configuration.path(phase.tasks)),
            "ids": str(configuration.path(phase.ids)),
            "folds": phase.folds if folds is None else min(folds, phase.folds),
            "opens": None,
        }
    document["submission"] |= {"answer_grid": 0, "disk_reserve_gigabytes": 0}
    document["leaderboard"] |= {
        "repository": f"./{folder.repository.name}",
        "branch": "main",
        "token": None,
        "ssh_key": None,
        "known_hosts": None,
        "publish_every": 0,
    }
    document["fairness"] |= draw
    document |= {
        "alerts": {"webhook": None},
        "healthz": None,
        "state": f"sqlite:///{folder.path / 'state' / 'worker.db'}",
    }
    folder.configuration.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

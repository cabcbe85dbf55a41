"""The folder of a demo or rehearsal: a normal challenge folder whose EvalAI is the sandbox."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from scoring.errors import InfrastructureError, OrganizerError
from worker.organizer import scaffold
from worker.organizer.demo import data

FOLLOW = """#!/bin/sh
# What a visitor sees follows every push, a reveal among them.
exec git --work-tree=../{} checkout --quiet --force main
"""
FOLDS = {"dev": 40, "eval": 200}


@dataclass(frozen=True, kw_only=True)
class ChallengeFolder:
    """The paths of one demo or rehearsal."""

    path: Path

    @property
    def configuration(self) -> Path:
        """The worker's configuration."""
        return self.path / "challenge.yaml"

    @property
    def secret(self) -> Path:
        """The challenge secret."""
        return self.path / "challenge.secret"

    @property
    def repository(self) -> Path:
        """The bare git repository that the worker pushes to."""
        return self.path / "leaderboard.git"

    @property
    def checkout(self) -> Path:
        """A clone that is updated after every push, as a visitor of the repository sees it."""
        return self.path / "leaderboard"

    @property
    def log(self) -> Path:
        """The worker's log."""
        return self.path / "worker.log"

    @property
    def database_url(self) -> str:
        """The address of the worker's state."""
        return f"sqlite:///{self.path / 'state' / 'worker.db'}"

    @property
    def participants(self) -> Path:
        """The submitted files, in a folder for each phase."""
        return self.path / "participants"

    def hand_over(self, token: str) -> str:
        """Store the host's EvalAI token, and return the configuration's reference to it."""
        file = self.path / "evalai.token"
        file.touch(mode=0o600)
        file.write_text(f"{token}\n", encoding="utf-8")
        return f"file:./{file.name}"

    def make_repository(self) -> None:
        """Make an empty repository."""
        git("init", "--quiet", "--bare", "--initial-branch=main", str(self.repository))


def prepare(path: Path, *, secret: bytes | None) -> ChallengeFolder:
    """Make the challenge in the folder: secret, hidden tasks, public ids and an empty leaderboard repository.

    An existing secret is used again, so that a demo can be repeated with the same splits.

    Raises:
        OrganizerError: If the folder contains anything else, or another secret than the given one.
    """
    challenge = ChallengeFolder(path=path)
    path.mkdir(parents=True, exist_ok=True)
    others = sorted(other.name for other in path.iterdir() if other != challenge.secret)
    if others:
        raise OrganizerError(
            f"{path} contains other files ({', '.join(others[:3])}).",
            cure="Name a folder that is empty or does not exist. It may contain the challenge.secret of an earlier demo.",
            code="demo.folder",
        )
    if secret is not None or not challenge.secret.exists():
        scaffold.write_secret(challenge.secret, secret)
    for codename, phase in zip(FOLDS, data.load(), strict=True):
        data.write_phase(phase, tasks=path / "tasks" / codename, ids=path / "ids" / f"{codename}.txt")
    challenge.make_repository()
    challenge.checkout.mkdir()
    hook = challenge.repository / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(FOLLOW.format(challenge.checkout.name), encoding="utf-8")
    hook.chmod(0o755)
    return challenge


def git(*arguments: str) -> str:
    """Run git without the user's configuration, and return its output.

    Raises:
        InfrastructureError: If git is missing or fails.
    """
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run(
            ["git", *arguments], env=environment, capture_output=True, text=True, check=True, timeout=60
        )
    except FileNotFoundError:
        raise InfrastructureError(
            "git is not installed.", cure="Install it: sudo apt-get install git", code="git.missing"
        ) from None
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(
            f"git {arguments[0]} failed.", cure="Check whether git works on this machine.", code="git.failed"
        ) from error
    return done.stdout

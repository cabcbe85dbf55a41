"""What a rehearsal needs: a folder with the real configuration, but with substitutes for EvalAI and the repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from worker.challenge.configuration import Configuration
from worker.organizer.demo.folder import ChallengeFolder
from worker.organizer.demo.runner import sandbox_values
from worker.sandbox import Sandbox, SandboxSettings, from_challenge

# calls a minute, so that the rehearsal never waits; EvalAI's limit is taken into account afterwards
UNHINDERED = 1_000_000


def sandbox_settings(configuration: Configuration) -> SandboxSettings:
    """Return the sandbox's settings for the configuration."""
    document = configuration.model_dump(mode="json")
    return from_challenge(document, throttle_per_minute=UNHINDERED, visibility_timeout_s=600.0)


def prepare(
    challenge: ChallengeFolder,
    configuration: Configuration,
    evalai: Sandbox,
    *,
    folds: int | None,
    draw: Mapping[str, Any],
) -> None:
    """Write the rehearsal's configuration, and make an empty repository.

    Everything that decides a score is the organizer's own: tasks, ids, secret, folds (unless fewer are requested), recipe and limits. These
    are replaced: EvalAI, the repository, the state, the public value that decides the splits, and everything that would only take time,
    such as waiting between polls and pushes and for the grid of answers.

    Args:
        challenge: The rehearsal's folder.
        configuration: The organizer's configuration.
        evalai: The sandbox.
        folds: Largest number in each phase; None for all.
        draw: The settings of the practice draw.
    """
    challenge.make_repository()
    document: dict[str, Any] = configuration.model_dump(mode="json")
    document["challenge"]["secret"] = str(configuration.path(configuration.challenge.secret))
    for key, value in sandbox_values(challenge, evalai).items():
        section, name = key.split(".")
        document[section][name] = value
    for codename, phase in configuration.phases.items():
        document["phases"][codename] |= {
            "tasks": str(configuration.path(phase.tasks)),
            "ids": str(configuration.path(phase.ids)),
            "folds": phase.folds if folds is None else min(folds, phase.folds),
        }
    document["submission"]["disk_reserve_gigabytes"] = 0
    document["leaderboard"] |= {
        "branch": "main",
        "token": None,
        "ssh_key": None,
        "known_hosts": None,
        "publish_every": 0,
    }
    document["fairness"] |= draw
    document["alerts"] = {"webhook": None}
    document["metrics"] = {"listen": None, "textfile": None}
    document["state"] = challenge.database_url
    challenge.configuration.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")

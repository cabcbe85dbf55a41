"""The child that reads one submitted file and scores it.

Parsing of participants' files happens only here. The order holds everything: no configuration, no database, no token. Between reading and
scoring it asks the daemon which cells are missing, so equal content is answered from the stored cells.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoring.errors import OrganizerError
from scoring.protocol import Protocol, Recipe
from worker.limits import largest_expanded

if TYPE_CHECKING:  # the daemon's; loading them would cost each child 0.4 s
    from worker.challenge import PhaseSetup
    from worker.configuration import Configuration

STATM = Path("/proc/self/statm")


def order_for(setup: PhaseSetup, configuration: Configuration, file: Path) -> dict[str, Any]:
    """Write the order for one evaluation; JSON, for a pipe (it holds the phase key)."""
    return {
        "file": str(file),
        "ids": list(setup.ids),
        "tasks_folder": str(configuration.path(setup.settings.tasks)),
        "versions": dict(setup.tasks),
        "protocol": asdict(setup.protocol),
        "key": setup.key.hex(),
        "max_expanded_bytes": largest_expanded(configuration.submission.max_megabytes),
        "engine": configuration.scoring.engine,
        "threads": configuration.scoring.threads,
        "ray_address": configuration.scoring.ray_address,
    }


def resident_bytes() -> int:
    """Measure this process's memory; 0 where the system does not tell."""
    try:
        return int(STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def main(
    order: dict[str, Any], say: Callable[..., None], ask: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    """Read, ask what is missing, score that.

    Raises:
        ParticipantError: If the file is wrong.
        OrganizerError: If the labels are wrong, or not those that the daemon knows.
    """
    from scoring.reading import read_submission

    ids = tuple(order["ids"])
    protocol = Protocol(**{**order["protocol"], "recipe": Recipe(**order["protocol"]["recipe"])})
    say(kind="stage", stage="reading", memory_bytes=resident_bytes())
    embeddings = read_submission(
        Path(order["file"]), ids, protocol.embedding_dim, max_expanded_bytes=order["max_expanded_bytes"]
    )
    missing = ask(
        kind="read",
        content_hash=embeddings.content_hash,
        notes=list(embeddings.notes),
        zarr_suffix_removed=embeddings.zarr_suffix_removed,
    )["missing"]
    say(kind="stage", stage="scoring")
    if not missing:
        return {}

    from scoring.engines import make_engine
    from scoring.evaluate import score_embeddings
    from scoring.tasks import load_tasks

    tasks = load_tasks(Path(order["tasks_folder"]), ids)
    if {task.name: task.version for task in tasks} != order["versions"]:
        raise OrganizerError(
            f"The label files of phase {protocol.phase} are not those that the scores so far stand on.",
            cure="Put the files back, or take the change up with `neuco-worker challenge rescore`.",
            code="tasks.changed",
        )
    scorecard = score_embeddings(
        embeddings,
        tuple(task for task in tasks if task.name in missing),
        protocol,
        bytes.fromhex(order["key"]),
        engine=make_engine(order["engine"], threads=order["threads"], ray_address=order["ray_address"]),
        progress=lambda folds: say(kind="progress", folds=folds),
    )
    return {"scorecard": scorecard.to_json()}

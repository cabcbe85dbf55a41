"""A challenge that an earlier version ran, stopped in the middle of a phase: how it is kept, and how it is continued.

``python -m tests.worker.upgrade.challenge FOLDER`` runs a challenge with the present software, stops it in the middle of phase dev, and
keeps what a crash would leave: the state as SQL, the stored files, the published repository as a bundle, the challenge's folder, and
EvalAI's data. A version is added before the software changes; the test continues every version.
"""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from tests.worker.harness.harness import NEW, Harness, StepWorker, clean_environment, embeddings
from worker.sandbox import ManualClock
from worker.state import State

HOSTS = "Host Participant Team"
KEPT_FIELDS = ("status", "is_public", "is_baseline", "is_flagged", "ignore_submission", "method_name")
FILES_OF_CHALLENGE = ("challenge.yaml", "ids.txt", "challenge.secret", "tasks")
RUNNING = {
    "submission": {"answer_grid": 30},
    "leaderboard": {"publish_every": 60, "baselines": ["Baseline mean embeddings"]},
}


def keep(harness: Harness, folder: Path) -> None:
    """Write everything that would be left if the worker died now."""
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(harness.state / "worker.db")) as database:
        (folder / "state.sql").write_text("\n".join(database.iterdump()) + "\n")
    shutil.copytree(harness.state / "files", folder / "files")
    subprocess.run(
        ["git", "--git-dir", str(harness.board), "bundle", "create", str(folder / "board.bundle"), "main"],
        check=True,
        capture_output=True,
        env=clean_environment(),
    )
    for name in FILES_OF_CHALLENGE:
        source = harness.folder / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    (folder / "evalai.json").write_text(json.dumps(_evalai(harness), indent=1) + "\n")


def _evalai(harness: Harness) -> list[dict[str, Any]]:
    """Describe every submission as EvalAI has it, oldest first."""
    world = harness.evalai.world
    codenames = {phase.pk: phase.settings.codename for phase in world.phases.values()}
    return [
        {
            "pk": one.pk,
            "team": world.teams[one.team].name,
            "phase": codenames[one.phase],
            "content": base64.b64encode(world.media[one.input_file]).decode(),
            "submitted_at": one.submitted_at.isoformat(),
            **{name: getattr(one, name) for name in KEPT_FIELDS},
        }
        for one in world.submissions.values()
    ]


def take_up(harness: Harness, folder: Path) -> None:
    """Put a kept challenge into a new harness, whose EvalAI has other addresses."""
    world = harness.evalai.world
    for known in json.loads((folder / "evalai.json").read_text()):
        if known["team"] == HOSTS:
            harness.evalai.add_team(HOSTS, ("host",))
        pk = harness.evalai.submit(
            known["team"], known["phase"], base64.b64decode(known["content"]), file_name="embeddings.csv"
        )
        assert pk == known["pk"]
        world.submissions[pk].submitted_at = datetime.fromisoformat(known["submitted_at"])
        harness.evalai.edit(pk, **{name: known[name] for name in KEPT_FIELDS})
    harness.evalai.lose_messages()  # those of the submissions that the worker had met were deleted
    for name in FILES_OF_CHALLENGE:
        source, target = folder / name, harness.folder / name
        if source.is_dir():
            shutil.rmtree(target)
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    (harness.folder / "challenge.secret").chmod(0o600)
    settings = yaml.safe_load((folder / "challenge.yaml").read_text())
    addresses = {"server": harness.evalai.url, "media_hosts": [harness.evalai.media_host]}
    settings["evalai"] |= addresses
    harness.path.write_text(yaml.safe_dump(settings))
    shutil.rmtree(harness.board)
    subprocess.run(
        ["git", "clone", "-q", "--bare", "-b", "main", str(folder / "board.bundle"), str(harness.board)],
        check=True,
        env=clean_environment(),
    )
    shutil.rmtree(harness.state, ignore_errors=True)
    shutil.copytree(folder / "files", harness.state / "files")
    with closing(sqlite3.connect(harness.state / "worker.db")) as database, database:
        database.executescript((folder / "state.sql").read_text())
        for one in world.submissions.values():
            address = f"{harness.evalai.media_url}/media/{one.input_file}"
            database.execute(
                "UPDATE submissions SET input_file = ? WHERE pk = ? AND input_file IS NOT NULL",
                (address, one.pk),
            )


def run_until_killed(harness: Harness, folder: Path) -> None:
    """Run a challenge of two phases until there is a submission in nearly every state, and keep it."""
    evalai = harness.evalai
    evalai.add_team(HOSTS, ("host",))

    def baseline(seed: int) -> int:
        pk = harness.submit(HOSTS, embeddings(seed, noise=2.0), method_name="Baseline mean embeddings")
        evalai.edit(pk, is_baseline=True)
        return pk

    with harness.worker() as worker:
        harness.submit("A", embeddings(1))
        harness.submit("B", embeddings(2, noise=1.0))
        baseline(3)
        worker.drive()
        private = harness.submit("B", embeddings(3), is_public=False)
        harness.submit("C", b"id,0\nimg_000,1\n")
        worker.drive()
        worker.wait(6)  # a batch of the public log
        harness.submit("A", embeddings(4))
        again = harness.submit("D", embeddings(5))
        worker.drive()
        evalai.rerun(again)
        worker.drive()
        harness.submit("A", embeddings(6), phase="eval")
        cancelled = harness.submit("E", embeddings(6))
        evalai.cancel(cancelled)
        worker.drive()
        evalai.edit(private, is_public=True)
        worker.drive()
    harness.add_task("gamma__regr", seed=5)
    harness.rescore()
    with harness.worker() as worker:
        worker.drive()
        worker.wait(6)
    harness.configure(RUNNING)
    with harness.worker() as worker:
        worker.drive()
        reach(worker, harness.submit("B", embeddings(4, noise=0.8)), State.POSTED)
        reach(worker, harness.submit("C", embeddings(5, noise=0.9)), State.SCORED)
        reach(worker, harness.submit("E", b"id,0\nimg_000,1\n"), State.REJECTED)
        reach(worker, harness.submit("F", embeddings(NEW, noise=0.5)), State.SCORING)
        child = worker.child()
        assert child is not None
        child.suspend()
        reach(worker, harness.submit("A", embeddings(NEW + 1)), State.FETCHED)
        reach(worker, harness.submit("D", embeddings(NEW + 2)), State.ACKNOWLEDGED)
        reach(worker, harness.submit("G", embeddings(NEW + 3)), State.RECEIVED)
        print(worker.states())  # noqa: T201 - whoever makes a fixture sees what is in it
        keep(harness, folder)


def reach(worker: StepWorker, pk: int, state: State) -> None:
    """Step until a submission is in a state; time also passes while the worker is busy."""
    while worker.states().get(pk) != state.value:
        worker.step()
        worker.clock.advance(0.02)


def main() -> None:
    """Make a fixture."""
    clock = ManualClock(datetime.now(UTC) - timedelta(minutes=10))
    changes = {"leaderboard": {"receipts_every": 5, "baselines": ["Baseline mean embeddings"]}}
    with (
        tempfile.TemporaryDirectory() as folder,
        Harness(Path(folder), clock=clock, changes=changes) as harness,
    ):
        run_until_killed(harness, Path(sys.argv[1]))


if __name__ == "__main__":
    main()

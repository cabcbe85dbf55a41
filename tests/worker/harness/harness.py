"""The test environment of the worker: a tiny challenge, EvalAI's sandbox over real HTTP, a bare git repository.

A worker runs on it in this process, step by step with a clock that the test moves (:class:`StepWorker`), or as a child process
(:meth:`Harness.once`, :meth:`Harness.run`).
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import psutil
import pytest
import sqlalchemy as sa
import yaml

from scoring.files import write_files
from scoring.scorecard import Scorecard
from tests.waiting import LIMIT_S, until
from worker.challenge.configuration import load
from worker.challenge.context import Job
from worker.challenge.setups import read_phases
from worker.challenge.signing import Signer
from worker.daemon import Worker, intervals, make_client
from worker.evaluation import evaluate_child
from worker.evaluation.evaluate_child import order_for
from worker.intake.queue import POLL
from worker.intake.reading import RECONCILE
from worker.organizer.rescoring import carry_out, make_plan
from worker.organizer.session import open_session
from worker.sandbox import FaultPlan, ManualClock, PhaseSettings, Sandbox, SandboxSettings
from worker.state import ACTIVE, State, Store, SubmissionRow, Transaction, schema
from worker.verify import Status, Verdict, verdicts
from worker.verify.public import opened

if TYPE_CHECKING:
    from tests.worker.harness.fork_server import ForkServer

ROOT = Path(__file__).parents[3]
ROWS, DIM = 60, 8
IDS = tuple(f"img_{row:03d}" for row in range(ROWS))
SECRET = "5a" * 32
KEY = Signer(b"signing key of the test challenge"[:32])
WARM_CACHE = ROOT / ".cache" / "numba"
PHASES = (PhaseSettings(codename="dev"), PhaseSettings(codename="eval"))
AHEAD = 8  # seeds whose scores are known ahead in phase dev; in eval, only those of the first two with usual noise
NOISES = (0.3, 0.1, 1.0, 3.0)
RUN = "import sys; sys.executable = sys.argv.pop(1); from worker.cli import main; main()"
NEW = 100  # a seed whose score is not known ahead


@pytest.fixture
def today() -> ManualClock:
    """The clock of a module in which commands use the real clock, which says so: ``clock = today``."""
    return ManualClock(datetime.now(UTC))


def latent() -> np.ndarray:
    """Return the values from which the hidden labels are made."""
    return np.random.default_rng(7).normal(size=(ROWS, 3))


def embeddings(
    seed: int = 0, *, noise: float = NOISES[0], shuffled: bool = False, packed: bool = False
) -> bytes:
    """Return a submission: the latent values with noise; the last two arguments do not change the content."""
    rng = np.random.default_rng(seed)
    matrix = np.concatenate(
        [latent() + noise * rng.normal(size=(ROWS, 3)), rng.normal(size=(ROWS, DIM - 3))], axis=1
    )
    rows = [
        f"{name}," + ",".join(f"{value:.5g}" for value in row) for name, row in zip(IDS, matrix, strict=True)
    ]
    if shuffled:
        random.Random(1).shuffle(rows)
    text = "id," + ",".join(map(str, range(DIM))) + "\n" + "\n".join(rows) + "\n"
    return gzip.compress(text.encode(), mtime=0) if packed else text.encode()


def score_ahead(harness: Harness, place: Path, *, noises: Sequence[float] = NOISES) -> None:
    """Score what most tests submit with the child's code, and keep the cells.

    A worker then finds them as cells of an earlier submission with the same content, and needs no time to score.
    """
    configuration, store = load(harness.path), harness.store()
    file = harness.folder / "submission.csv"
    for phase, setup in read_phases(configuration).items():
        known = (
            itertools.product(range(AHEAD), noises) if phase == "dev" else ((0, NOISES[0]), (1, NOISES[0]))
        )
        for seed, noise in known:
            file.write_bytes(embeddings(seed, noise=noise))
            order = order_for(
                setup,
                configuration,
                file,
                folder=harness.folder / "child",
                tasks=tuple(setup.record.versions),
            )
            result = evaluate_child.main(order, lambda **_: None)
            card = Scorecard.from_json(result["scorecard"])
            with store.write() as tx:
                tx.save_cells(
                    result["content_hash"], setup.record.protocol.hash, phase, card.tasks, provenance={}
                )
    with store.read() as tx:
        place.write_bytes(pickle.dumps(stored(tx, schema.cells)))
    store.close()


def stored(tx: Transaction, table: sa.Table) -> list[dict[str, Any]]:
    """Return all rows of a table, in the order of their keys."""
    result = tx._connection.execute(sa.select(table).order_by(*table.primary_key))
    return [dict(row) for row in result.mappings()]


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge changes into a nested mapping."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return result


@cache
def database_with(cells: Path) -> bytes:
    """Return a database that contains only these scores; all challenges of this process begin with a copy."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "worker.db"
        with closing(Store(f"sqlite:///{file}")) as store, store.write() as tx:
            tx._connection.execute(schema.cells.insert(), pickle.loads(cells.read_bytes()))
        return file.read_bytes()


DECISIONS = frozenset(("apply", "close", "disqualify", "reveal"))


class Harness:
    """A challenge folder with its sandbox and its repository; a context manager.

    Args:
        folder: Where everything is.
        settings: Changes of the sandbox's settings.
        clock: The clock of the sandbox and of workers in this process; None for the machine's.
        changes: Changes of the configuration, nested.
        rng: Draws the sandbox's faults.
        cells: Scores that a database in the state directory contains from the beginning, see :func:`score_ahead`.
        fork_server: Starts commands quickly; without it each is a new interpreter.
    """

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, Any] | None = None,
        clock: ManualClock | None = None,
        changes: Mapping[str, Any] | None = None,
        rng: random.Random | None = None,
        cells: Path | None = None,
        fork_server: ForkServer | None = None,
    ) -> None:
        self.folder = folder
        self.fork_server = fork_server
        self._cells = cells
        self.clock = clock
        given: dict[str, Any] = {"throttle_per_minute": 1_000_000, "phases": PHASES, **(settings or {})}
        self.evalai = Sandbox(
            SandboxSettings(**given), clock=None if clock is None else clock.clock(), rng=rng
        )
        self._changes = dict(changes or {})
        self._processes: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        self.evalai.__enter__()
        self._write_challenge()
        self.configure({})
        if self._cells is not None:
            write_files(self.state, {"worker.db": database_with(self._cells)}, private=("",))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self.evalai.close()

    def _write_challenge(self) -> None:
        (self.folder / "ids.txt").write_text("\n".join(IDS) + "\n")
        labels = latent()
        for phase in ("dev", "eval"):
            tasks = self.folder / "tasks" / phase
            tasks.mkdir(parents=True)
            _write_task(tasks / "alpha__regr.csv", labels[:, 0], ROWS)
            _write_task(tasks / "beta__cls.csv", (labels[:, 1] > 0).astype(int), ROWS)
        _write_task(self.folder / "tasks" / "dev" / "gamma__regr.csv", labels[:, 2], 45)
        keys = {"challenge.secret": SECRET.encode(), "signing.key": KEY.seed.hex().encode()}
        write_files(self.folder, keys, private=("",))
        (self.folder / "token").write_text(self.evalai.token("host"))
        subprocess.run(
            ["git", "init", "-q", "--bare", "-b", "main", str(self.board)],
            check=True,
            env=clean_environment(),
        )
        with (self.board / "config").open("a") as config:
            # Each push would start two more processes, and write a file for each object.
            config.write("[receive]\nautogc = false\nunpackLimit = 1\n")

    @property
    def board(self) -> Path:
        """The leaderboard's repository."""
        return self.folder / "board.git"

    @property
    def path(self) -> Path:
        """The configuration file."""
        return self.folder / "challenge.yaml"

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.folder / "state"

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Write the configuration with further changes."""
        self._changes = merged(self._changes, changes)
        base: dict[str, Any] = {
            "challenge": {"title": "Tiny"},
            "evalai": {
                "server": self.evalai.url,
                "challenge": self.evalai.challenge,
                "queue": self.evalai.queue,
                "token": "file:token",
                "poll_every": 2 if self.clock is None else 10,  # in real time, tests wait for it
                "reconcile_every": 10,
                "requests_per_minute": 100_000,
                "media_hosts": [self.evalai.media_host],
            },
            "phases": {
                phase: {
                    "split": f"{phase}_split",
                    "tasks": f"./tasks/{phase}",
                    "ids": "./ids.txt",
                    "folds": 4,
                    "replicates": 100,  # few: every board, and every verification of it, computes them
                }
                for phase in ("dev", "eval")
            },
            "submission": {"embedding_dim": DIM, "answer_grid": 0, "disk_reserve_gigabytes": 0},
            "scoring": {"epochs": 2, "learning_rate": 0.05, "threads": 1},
            "leaderboard": {"repository": "./board.git", "publish_every": 0},
        }
        document = {key: value for key, value in merged(base, self._changes).items() if value is not None}
        self.path.write_text(yaml.safe_dump(document))

    def submit(
        self, team: str = "A", content: bytes | None = None, *, phase: str = "dev", **options: Any
    ) -> int:
        """Submit for a team, by default a good file."""
        return self.evalai.submit(team, phase, embeddings() if content is None else content, **options)

    def posts(self, pk: int) -> list[dict[str, Any]]:
        """Return what was posted for a submission, in order, without the state before it, which only the server knows."""
        posts = self.evalai.journal.posts().get(pk, [])
        return [{key: value for key, value in post.items() if key != "before"} for post in posts]

    def boards(self, phase: str = "dev") -> list[dict[str, Any]]:
        """Return the standings that the repository shows."""
        entries: list[dict[str, Any]] = json.loads(self.published(f"leaderboard/{phase}.json"))["entries"]
        return entries

    def published(self, path: str) -> str:
        """Return a file of the repository."""
        return git(self.board, "show", f"main:{path}")

    def verdicts(self) -> list[Verdict]:
        """Verify the repository."""
        with opened(str(self.board)) as repository:
            return list(verdicts(repository))

    def contradictions(self) -> list[str]:
        """Return the contradictions that a verification of the repository finds."""
        return [verdict.sentence for verdict in self.verdicts() if verdict.status is Status.CONTRADICTED]

    def teams(self, phase: str = "dev") -> list[str]:
        """Return the teams on a board, best first."""
        return [row["team"] for row in self.boards(phase)]

    def commits(self) -> int:
        """Count the commits of the repository."""
        return int(git(self.board, "rev-list", "--count", "--all"))

    def stdout(self, pk: int) -> dict[str, Any]:
        """Return what a participant can read about a success."""
        document: dict[str, Any] = json.loads(self.evalai.text(pk, "stdout_file"))
        return document

    def stderr(self, pk: int) -> str:
        """Return what a participant can read about a failure."""
        return self.evalai.text(pk, "stderr_file")

    def status(self, pk: int) -> str:
        """Return EvalAI's status of a submission."""
        return str(self.evalai.submission(pk)["status"])

    def add_task(self, name: str, *, seed: int, phase: str = "dev") -> None:
        """Add another hidden task, of noise."""
        values = np.random.default_rng(seed).normal(size=ROWS)
        _write_task(self.folder / "tasks" / phase / f"{name}.csv", values, ROWS)

    def rescore(self, phase: str = "dev") -> int:
        """Do what ``challenge apply --yes`` does while a worker runs; return how many answers changed."""
        with open_session(self.path) as session:
            return carry_out(session, make_plan(session, session.phase(phase)))

    @contextmanager
    def worker(self, **options: Any) -> Iterator[StepWorker]:
        """Run a worker in this process until the block ends."""
        worker = StepWorker(self, **options)
        try:
            yield worker
        finally:
            worker.stop()

    def store(self) -> Store:
        """Open the database beside the worker."""
        return Store(load(self.path).database_url)

    def states(self) -> dict[int, str]:
        """Return where the worker has all submissions, read beside it without any lock."""
        address = f"file:{self.state / 'worker.db'}?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True, timeout=LIMIT_S)) as database:
                return dict(database.execute("SELECT pk, state FROM submissions").fetchall())
        except sqlite3.OperationalError:  # no worker has made it yet
            return {}

    # processes of their own

    def command(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ``neuco-worker`` with this configuration; with a fork server by a fork of it."""
        arguments = (*arguments, "--config", str(self.path))
        if self.fork_server is not None:
            clean = clean_environment(**environment)
            return self.fork_server.command(arguments, environment=clean, folder=self.folder)
        return subprocess.run(
            [sys.executable, "-m", "worker.cli", *arguments],
            env=clean_environment(**environment),
            cwd=ROOT,
            text=True,
            capture_output=True,
            check=False,
        )

    def decide(self, *arguments: str) -> str:
        """Run one of the organizers' commands, a decision with a yes and its reason; it must succeed. Return what it prints."""
        words = list(arguments)
        if DECISIONS.intersection(words):
            words += ["--yes"] * ("--yes" not in words)
            words += ["--reason", "a test"] * (not {"--reason", "reveal"}.intersection(words))
        done = self.command(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def once(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run ``neuco-worker once``."""
        return self.command("once", **environment)

    def run(
        self,
        command: str = "run",
        *,
        config: Path | None = None,
        interpreter: Path | None = None,
        **environment: str,
    ) -> subprocess.Popen[str]:
        """Start ``neuco-worker run``, which is ended with the harness at the latest.

        Args:
            command: Another command instead.
            config: Another configuration file.
            interpreter: A program that its children have as their interpreter.
            environment: Variables of the process.
        """
        log = (self.folder / "daemon.log").open("a")
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                RUN,
                interpreter or sys.executable,
                command,
                "--config",
                config or self.path,
            ],
            env=clean_environment(**environment),
            cwd=ROOT,
            text=True,
            stdout=log,
            stderr=log,
        )
        log.close()
        self._processes.append(process)
        return process

    @property
    def leftovers(self) -> list[Path]:
        """The worker's temporary folders."""
        return list((self.state / "tmp").iterdir())

    @property
    def log(self) -> str:
        """The log of this challenge's daemons."""
        return (self.folder / "daemon.log").read_text()

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait in real time for the effect of a child process.

        Raises:
            AssertionError: If it does not come.
        """
        until(condition, lambda: f"it did not happen; the log says:\n{self.log[-3000:]}")


class Killed(BaseException):
    """Ends a worker in this process where a test wants it killed; no code of the worker handles it."""


class StepWorker:
    """A worker in this process, driven step by step.

    Only the test moves its clock: a little with each step, and more when nothing is under way. Its steps mark the regular jobs, too.
    """

    def __init__(
        self, harness: Harness, *, checkpoint: Callable[[str], None] = lambda _: None, seed: int = 0
    ) -> None:
        self.harness = harness
        self.clock = harness.clock or ManualClock(datetime.now(UTC))
        self.wake = threading.Event()
        self._checkpoint = checkpoint
        self._seed = seed
        self.tick_s = 5.0
        self.start()

    def start(self) -> None:
        """Begin, as after the start of a process."""
        self._marked_at: dict[Job, datetime] = {}
        configuration = load(self.harness.path)
        self.store = Store(configuration.database_url, checkpoint=self._checkpoint)
        try:
            self.daemon = Worker(
                configuration,
                self.store,
                make_client(configuration, clock=self._evalais_time),
                now=self.clock.now(),
                random=random.Random(self._seed),
                wake=self.wake.set,
                fresh_client=lambda changed: make_client(changed, clock=self._evalais_time),
                checkpoint=self._checkpoint,
            )
        except Killed:
            self.store.close()
            raise

    def _evalais_time(self) -> datetime:
        """Return the time on the worker's clock, or that of a sandbox in real time, with which the worker's should agree."""
        return datetime.now(UTC) if self.harness.clock is None else self.clock.now()

    def stop(self) -> None:
        """Stop the worker as usual."""
        self.daemon.stop(self.clock.now())
        self.store.close()

    def abandon(self) -> None:
        """Leave a worker that was killed as a killed process leaves it: nothing more is recorded, and its children are killed."""
        for stop in (
            self.daemon.publishing.stop,
            partial(self.daemon.evaluation.runner.stop, self.clock.now()),
            self.daemon.fetching.runner.stop,
        ):
            with contextlib.suppress(Killed):
                stop()
        for thread in threading.enumerate():
            if thread.name.startswith("runner-"):
                thread.join(LIMIT_S)
        self.store.close()

    def restart(self) -> None:
        """Stop the worker as usual, and start it again."""
        self.stop()
        self.start()

    def reload(self) -> None:
        """Take up the configuration file again."""
        configuration = load(self.harness.path)
        self.daemon.reload(configuration, now=self.clock.now())

    def step(self) -> bool:
        """Do one step."""
        self.wake.clear()
        self.clock.advance(0.001)
        self._mark_jobs(self.clock.now())
        return self.daemon.step(self.clock.now())

    def _mark_jobs(self, now: datetime) -> None:
        """Mark each job whose interval has passed, or all if the clock was set back."""
        for job, interval in intervals(self.daemon.context.configuration).items():
            last = self._marked_at.setdefault(job, now)
            if not last <= now < last + interval:
                self.daemon.context.timetable.mark(job)
                self._marked_at[job] = now

    def drive(self, until: Callable[[], bool] | None = None) -> None:
        """Step until a condition holds; by default until everything was read once more and nothing is left that can continue.

        Raises:
            AssertionError: If that does not happen.
        """
        begun = self.clock.now()
        ends = time.monotonic() + LIMIT_S
        while True:
            moved = self.step()
            if until() if until is not None else not moved and self.quiet(begun):
                return
            if time.monotonic() > ends:
                raise AssertionError(
                    f"it did not come: {self.daemon.waiting(self.clock.now())}, {self.states()}"
                )
            if moved:
                continue
            if self.busy:
                self.wake.wait(0.1)
            else:
                self.clock.advance(self.idle_s())

    def idle_s(self) -> float:
        """Return the seconds by which the clock moves when nothing is left to do for now."""
        return self.tick_s

    def finish(self, *pks: int) -> None:
        """Step until nothing is left, and check that submissions are answered with a result."""
        self.drive()
        assert {self.harness.status(pk) for pk in pks} == {"finished"}

    def wait(self, seconds: float) -> None:
        """Let time pass for a worker that has nothing to do."""
        ends = self.clock.now() + timedelta(seconds=seconds)
        self.drive(lambda: self.clock.now() >= ends)

    def advance(self, seconds: float) -> None:
        """Let time pass at once, and do everything that is then due."""
        self.clock.advance(seconds)
        self.drive()

    @property
    def busy(self) -> bool:
        """Whether something slow is under way."""
        return self.daemon.busy or self.daemon.alerting.busy

    def quiet(self, since: datetime) -> bool:
        """Return whether queue and listing were read since, and nothing is left that can continue by itself."""
        intake, timetable = self.daemon.intake, self.daemon.context.timetable
        looked = all(
            (done_at := timetable.done_at(job)) is not None and done_at > since for job in (POLL, RECONCILE)
        )
        if self.busy or not looked:  # which needs no look at the state
            return False
        with self.store.read() as tx:
            left = [row for row in tx.submissions(ACTIVE) if row.hold is None]
        return intake.drained and not (left or self.daemon.publishing.behind())

    def row(self, pk: int) -> SubmissionRow:
        """Return what the worker knows of a submission."""
        with self.store.read() as tx:
            row = tx.get(pk)
        assert row is not None
        return row

    def state(self, pk: int) -> State:
        """Return where a submission stands."""
        return self.row(pk).state

    def states(self) -> dict[int, str]:
        """Return where all submissions stand."""
        with self.store.read() as tx:
            return {row.pk: row.state.value for row in tx.submissions()}

    def outcomes(self, pk: int) -> list[str | None]:
        """Return how the attempts to score a submission ended."""
        with self.store.read() as tx:
            return [attempt.outcome for attempt in tx.attempts(pk=pk)]

    def failed(self, pk: int) -> int:
        """Return how many tries at what comes next for a submission have failed, 0 if it is not known yet."""
        return self.row(pk).tries if pk in self.states() else 0

    def alerts(self) -> set[str]:
        """Return the codes of the unresolved alerts."""
        with self.store.read() as tx:
            return {alert.code for alert in tx.alerts()}

    def alert(self, code: str) -> str:
        """Return the text of the one unresolved alert with this code; empty if there is none."""
        with self.store.read() as tx:
            (text,) = [alert.text for alert in tx.alerts() if alert.code == code] or [""]
        return text

    def scoring(self, stage: str) -> bool:
        """Return whether a child is in a stage: reading or scoring."""
        return any(act.stage == stage for act in self.daemon.evaluation.runner.acts)

    def child(self, module: str = "worker.evaluation.evaluate_child") -> psutil.Process | None:
        """Return the running child."""
        for process in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                if module in process.cmdline():
                    return process
        return None


def evaluating(pid: int) -> list[psutil.Process]:
    """Return the processes below a daemon that work on a submission."""
    children = []
    for process in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "worker.evaluation.evaluate_child" in process.cmdline():
                children.append(process)
    return children


def _write_task(path: Path, values: np.ndarray, rows: int) -> None:
    lines = [f"{name},{value}" for name, value in zip(IDS[:rows], values[:rows], strict=True)]
    path.write_text("id,label\n" + "\n".join(lines) + "\n")


def clean_environment(**more: str) -> dict[str, str]:
    """Return an environment for processes: ours, with the shared cache of compiled kernels and without a git identity."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PYTEST_", "COV_"))
    }
    return kept | {"NUMBA_CACHE_DIR": str(WARM_CACHE), "GIT_CONFIG_GLOBAL": os.devnull, **more}


def git(repository: Path, *arguments: str) -> str:
    """Run git on a repository and return its output."""
    return subprocess.run(
        ["git", "--git-dir", str(repository), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=clean_environment(),
    ).stdout


__all__ = [
    "AHEAD",
    "DIM",
    "IDS",
    "KEY",
    "NEW",
    "ROOT",
    "ROWS",
    "SECRET",
    "FaultPlan",
    "Harness",
    "Killed",
    "StepWorker",
    "clean_environment",
    "embeddings",
    "git",
    "merged",
    "score_ahead",
]

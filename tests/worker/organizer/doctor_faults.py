"""A healthy challenge, and for every check of the doctor a fault that it must find.

A fault is planted in a copy of the healthy challenge before it is examined. A check without a fault fails the test suite.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import yaml

from tests.worker.harness.harness import ROOT, clean_environment, git, merged
from worker.challenge.configuration import EXAMPLE_REPOSITORY, load
from worker.fairness.recording import record_phases
from worker.organizer.bundle import CONFIG_NAME, published
from worker.organizer.bundle_check import TERMS
from worker.organizer.demo_data import load as load_digits
from worker.organizer.demo_data import write_phase
from worker.organizer.doctor import ALL, Level, Report, examine
from worker.sandbox import Fault as Spoilt
from worker.sandbox import FaultPlan, PhaseSettings, Sandbox, SandboxSettings
from worker.state import Store

ROWS, DIM, FOLDS = 80, 8, 10
SECRET_LABEL = "8675309"  # a label that must never be shown
PHASES = ("dev", "eval")
LIMITS = {
    "max_submissions_per_day": 10,
    "max_submissions_per_month": 310,
    "max_submissions": 100_000,
    "max_concurrent_submissions_allowed": 3,
}
HEALTHY_PHASES = tuple(PhaseSettings(codename=phase, fields=LIMITS) for phase in PHASES)
ALWAYS_500 = FaultPlan(probability=1.0, kinds=(Spoilt.ERROR_BEFORE,))
Rows = list[tuple[str, str]]


def public_ids(phase: str) -> list[str]:
    """Return ids that look alike and reveal nothing."""
    return sorted(f"img_{hashlib.sha256(f'{phase} {row}'.encode()).hexdigest()[:12]}" for row in range(ROWS))


def label_rows(phase: str) -> dict[str, Rows]:
    """Return the healthy label files of a phase."""
    rng = np.random.default_rng(PHASES.index(phase) + 1)
    ids = public_ids(phase)
    values = rng.normal(size=(3, ROWS))
    return {
        "alpha__regr.csv": [(name, f"{value:.6f}") for name, value in zip(ids, values[0], strict=True)],
        "beta__cls.csv": [(name, str(int(value > 0))) for name, value in zip(ids, values[1], strict=True)],
        "gamma__regr.csv": [(name, f"{value:.6f}") for name, value in zip(ids, values[2], strict=True)],
    }


def write_healthy(folder: Path) -> None:
    """Write everything of a healthy challenge that does not depend on EvalAI's address."""
    for phase in PHASES:
        (folder / f"{phase}.txt").write_text("\n".join(public_ids(phase)) + "\n")
        (folder / "tasks" / phase).mkdir(parents=True)
        for name, rows in label_rows(phase).items():
            write_labels(folder / "tasks" / phase / name, rows)
    (folder / "tasks").chmod(0o700)
    secret = folder / "challenge.secret"
    secret.write_text(hashlib.sha256(b"a healthy secret").hexdigest() + "\n")
    secret.chmod(0o600)
    subprocess.run(
        ["git", "init", "-q", "--bare", "-b", "main", str(folder / "board.git")],
        check=True,
        env=clean_environment(),
    )


def write_labels(path: Path, rows: Iterable[tuple[str, object]]) -> None:
    """Write one label file."""
    path.write_text("id,label\n" + "".join(f"{name},{value}\n" for name, value in rows))


@dataclass
class FaultyChallenge:
    """A copy of the healthy challenge in which faults are planted; a context manager.

    Attributes:
        folder: Its folder, below a root directory like a service's.
        monkeypatch: For the environment.
        changes: Changes of the configuration, nested.
        settings: Settings of the sandbox.
        prepare: Called with the running sandbox.
        token: Returns the content of the token file.
        ahead: How far this machine's clock is ahead.
    """

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    changes: dict[str, Any] = field(default_factory=dict)
    settings: SandboxSettings = field(
        default_factory=lambda: SandboxSettings(throttle_per_minute=1_000_000, phases=HEALTHY_PHASES)
    )
    prepare: Callable[[Sandbox], None] = lambda _: None
    token: Callable[[Sandbox], str] = lambda evalai: evalai.token("host")
    ahead: timedelta = timedelta()
    evalai: Sandbox = field(init=False)
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def path(self) -> Path:
        """The configuration file."""
        return self.folder / "challenge.yaml"

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change the configuration."""
        self.changes = merged(self.changes, changes)

    def labels(self, phase: str, name: str, rows: Iterable[tuple[str, object]]) -> None:
        """Write a label file."""
        write_labels(self.folder / "tasks" / phase / name, rows)

    def spoil_phase(self, codename: str, **fields: Any) -> None:
        """Change EvalAI's fields of one of the sandbox's phases."""
        phases = tuple(
            replace(phase, fields={**phase.fields, **fields}) if phase.codename == codename else phase
            for phase in self.settings.phases
        )
        self.settings = replace(self.settings, phases=phases)

    def push(self, path: str, text: str) -> None:
        """Put a file into the leaderboard's repository."""
        work = self.folder / "work"
        (work / path).parent.mkdir(parents=True)
        (work / path).write_text(text)
        repository = self.folder / "board.git"
        options = ["-c", "user.name=x", "-c", "user.email=x@example.org", "--work-tree", str(work)]
        git(repository, "symbolic-ref", "HEAD", "refs/heads/main")
        for command in (["add", "-A"], ["commit", "-q", "-m", "x"]):
            subprocess.run(
                ["git", "--git-dir", str(repository), *options, *command],
                check=True,
                env=clean_environment(),
                cwd=work,
            )
        shutil.rmtree(work)

    def open(self) -> None:
        """Let the sandbox listen and write the configuration."""
        self.evalai = self._open.enter_context(Sandbox(self.settings))
        self.prepare(self.evalai)
        self.private("token", self.token(self.evalai))
        self.webhook = self.opened(socket.create_server(("127.0.0.1", 0)))
        self.private("webhook", f"http://127.0.0.1:{self.webhook.getsockname()[1]}/services/hidden")
        base = {
            "challenge": {"title": "Healthy"},
            "evalai": {
                "server": self.evalai.url,
                "challenge": self.evalai.challenge,
                "queue": self.evalai.queue,
                "token": "file:token",
                "media_hosts": [self.evalai.media_host],
            },
            "phases": {
                phase: {
                    "split": f"{phase}_split",
                    "tasks": f"./tasks/{phase}",
                    "ids": f"./{phase}.txt",
                    "folds": FOLDS,
                }
                for phase in PHASES
            },
            "submission": {
                "embedding_dim": DIM,
                "disk_reserve_gigabytes": 0.01,
                "max_megabytes": 10,
                "memory_gigabytes": 4,
            },
            "scoring": {"epochs": 10, "batch_size": 8, "learning_rate": 0.01, "threads": 1},
            "leaderboard": {"repository": "./board.git"},
            "fairness": {"beacon": "Lotto 6 aus 49@2099-12-05T19:30:00+01:00"},
            "alerts": {"webhook": "file:webhook"},
        }
        self.path.write_text(yaml.safe_dump(merged(base, self.changes)))

    def private(self, name: str, text: str, *, mode: int = 0o600) -> None:
        """Write a file readable only by its owner, unless it exists."""
        path = self.folder / name
        if not path.exists():
            path.write_text(text)
            path.chmod(mode)

    def opened(self, listening: socket.socket) -> socket.socket:
        """Keep a socket open until the challenge is closed."""
        return self._open.enter_context(listening)

    def examine(self, *only: str, offline: bool = False) -> Report:
        """Open the challenge, and run the given checks, or all."""
        self.open()
        return self.look(*only, offline=offline)

    def look(self, *only: str, offline: bool = False) -> Report:
        """Run the given checks, or all."""
        return examine(
            self.path,
            clock=lambda: datetime.now(UTC) + self.ahead,
            only=only or ALL,
            offline=offline,
        )


Plant = Callable[[FaultyChallenge], None]


@dataclass(frozen=True)
class Fault:
    """A planted fault, and its severity."""

    level: Level
    plant: Plant


def changing(changes: Mapping[str, Any]) -> Plant:
    """Return a function that changes the configuration."""
    return lambda challenge: challenge.change(changes)


def relabeled(change: Callable[[Rows], Iterable[tuple[str, object]]], name: str = "alpha__regr.csv") -> Plant:
    """Return a function that rewrites one of dev's label files."""
    return lambda challenge: challenge.labels("dev", name, change(label_rows("dev")[name]))


def failing(plant: Plant) -> Fault:
    """Return a fault that must be fixed."""
    return Fault(Level.FAIL, plant)


def warning(plant: Plant) -> Fault:
    """Return a fault that the organizer should know of."""
    return Fault(Level.WARN, plant)


def overwriting(name: str, text: str) -> Plant:
    """Return a function that overwrites a file."""

    def plant(challenge: FaultyChallenge) -> None:
        (challenge.folder / name).write_text(text)

    return plant


def _leaning(rows: Rows) -> Rows:
    noise = np.random.default_rng(3).normal(size=len(rows))
    return [(name, f"{row / len(rows) + 0.1 * noise[row]:.4f}") for row, (name, _) in enumerate(rows)]


def _commit_everything(challenge: FaultyChallenge) -> None:
    for command in (["init", "-q"], ["add", "challenge.secret"]):
        subprocess.run(["git", *command], cwd=challenge.folder, check=True, env=clean_environment())


def _name_the_task(challenge: FaultyChallenge) -> None:
    for file in [*challenge.folder.glob("*.txt"), *challenge.folder.glob("tasks/*/*.csv")]:
        file.write_text(file.read_text().replace("img_", "alpha_"))


def _two_kinds_of_names(challenge: FaultyChallenge) -> None:
    """Let one task leave out samples, and give these their own kind of names."""
    rows = label_rows("dev")["gamma__regr.csv"]
    challenge.labels("dev", "gamma__regr.csv", rows[:60])
    rest = {name for name, _ in rows[60:]}
    for file in [challenge.folder / "dev.txt", *challenge.folder.glob("tasks/dev/*.csv")]:
        lines = file.read_text().splitlines()
        changed = [f"field_{line[4:]}" if line.partition(",")[0] in rest else line for line in lines]
        file.write_text("\n".join(sorted(changed) if file.suffix == ".txt" else changed) + "\n")


def _replaced_token(evalai: Sandbox) -> None:
    """Press the profile's button after the token was copied."""
    evalai.world.tokens[evalai.token("host")].blacklisted = True


def _participants(evalai: Sandbox) -> str:
    evalai.add_team("A", ("alice",))
    return evalai.token("alice")


def _bundle(challenge: FaultyChallenge, page: str, name: str = "evaluation_details.html") -> None:
    with zipfile.ZipFile(challenge.folder / "bundle.zip", "w") as archive:
        archive.writestr(name, page)


def _bundle_limits(challenge: FaultyChallenge, **limits: int) -> None:
    """Pack a bundle that states these limits for dev."""
    document = {"challenge_phases": [{"codename": "dev", **limits}]}
    _bundle(challenge, yaml.safe_dump(document), CONFIG_NAME)


def _other_rule(challenge: FaultyChallenge) -> None:
    """Let the configuration state another rule than the first commitment."""
    challenge.open()
    configuration = load(challenge.path)
    with closing(Store(configuration.database_url)) as store:
        record_phases(store, configuration, now=datetime.now(UTC))
    challenge.change({"fairness": {"publish_files": "all"}})


def _terms(challenge: FaultyChallenge, *, packed: str, configured: str) -> None:
    """Pack terms for one rule, and configure another one."""
    challenge.change({"fairness": {"publish_files": configured}})
    words = html.escape(published(packed)).replace(" of ", "\n  of ")
    _bundle(challenge, f"<li>The embeddings of {words} are published.</li>", TERMS)


def _same_in_both_phases(challenge: FaultyChallenge) -> None:
    shutil.copy(challenge.folder / "dev.txt", challenge.folder / "eval.txt")
    for name, rows in label_rows("dev").items():
        other = [(i, str(float(v) * 2 + 1) if "regr" in name else v) for i, v in rows]
        challenge.labels("eval", name, other)


def _old_git(challenge: FaultyChallenge) -> None:
    script = challenge.folder / "bin" / "git"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho git version 2.20.1\n")
    script.chmod(0o700)
    challenge.monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")


def example_tasks(challenge: FaultyChallenge) -> None:
    """Leave the tasks and ids of dev as `init` writes them."""
    write_phase(load_digits()[0], tasks=challenge.folder / "tasks" / "dev", ids=challenge.folder / "dev.txt")
    for name in label_rows("dev"):
        (challenge.folder / "tasks" / "dev" / name).unlink()


def _state(challenge: FaultyChallenge, *, mode: int = 0o700, database: bytes | None = None) -> None:
    (challenge.folder / "state").mkdir()
    (challenge.folder / "state").chmod(mode)
    if database is not None:
        (challenge.folder / "state" / "worker.db").write_bytes(database)


def _installed(challenge: FaultyChallenge) -> None:
    units = challenge.folder.parents[1] / "systemd" / "system"
    shutil.copytree(ROOT / "deploy" / "systemd", units)


def _edited(challenge: FaultyChallenge) -> None:
    """Record the phases as a first start does, and then change a label file."""
    challenge.open()
    configuration = load(challenge.path)
    with closing(Store(configuration.database_url)) as store:
        record_phases(store, configuration, now=datetime.now(UTC))
    challenge.labels("dev", "alpha__regr.csv", label_rows("dev")["gamma__regr.csv"])


def _other_secret(challenge: FaultyChallenge) -> None:
    """Record a phase, score in it, and then change the secret."""
    _edited(challenge)
    with closing(sqlite3.connect(challenge.folder / "state" / "worker.db")) as database, database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(cells)")]
        values = ["dev" if name == "phase" else 1 for name in columns]
        database.execute(f"INSERT INTO cells VALUES ({', '.join('?' * len(values))})", values)
    (challenge.folder / "challenge.secret").write_text(os.urandom(32).hex())


def _board_in_tmp(challenge: FaultyChallenge) -> None:
    _installed(challenge)
    challenge.change({"leaderboard": {"repository": "/tmp/board.git"}})


def _with_token(give: Callable[[Sandbox], str]) -> Plant:
    return _attribute("token", give)


def _attribute(name: str, value: Any) -> Plant:
    return lambda challenge: setattr(challenge, name, value)


def _phase(**fields: Any) -> Plant:
    return lambda challenge: challenge.spoil_phase("dev", **fields)


def _dev(**changes: Any) -> Plant:
    return _sandbox(phases=(replace(HEALTHY_PHASES[0], **changes), *HEALTHY_PHASES[1:]))


def _sandbox(**changes: Any) -> Plant:
    return lambda challenge: setattr(challenge, "settings", replace(challenge.settings, **changes))


def _chmod(path: str, mode: int) -> Plant:
    return lambda challenge: (challenge.folder / path).chmod(mode)


def _open_tasks(challenge: FaultyChallenge) -> None:
    tasks = challenge.folder / "tasks"
    for path in (tasks, *tasks.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _other_default_branch(challenge: FaultyChallenge) -> None:
    challenge.push("README.md", "# Ours")
    git(challenge.folder / "board.git", "symbolic-ref", "HEAD", "refs/heads/master")


def _closed_port(challenge: FaultyChallenge) -> int:
    """Take a port without listening, so that no other program gets it."""
    taken = challenge.opened(socket.socket())
    taken.bind(("127.0.0.1", 0))
    return int(taken.getsockname()[1])


FAULTS: dict[str, Fault] = {
    "configuration.file": failing(changing({"evalai": {"pol_every": 3}})),
    "configuration.placeholders": failing(changing({"evalai": {"queue": "name-of-the-queue"}})),
    "configuration.phases": warning(changing({"phases": {"eval": {"tasks": "./tasks/dev"}}})),
    "configuration.early_release": warning(changing({"leaderboard": {"publish": ["intervals"]}})),
    "configuration.bundle": warning(lambda challenge: _bundle(challenge, "<p>No link.</p>")),
    "beacon.chosen": warning(changing({"fairness": {"beacon": "none"}})),
    "beacon.servers": failing(
        changing({"fairness": {"beacon": "drand", "drand_servers": ["http://127.0.0.1:9"]}})
    ),
    "secret.file": failing(lambda challenge: (challenge.folder / "challenge.secret").unlink()),
    "secret.versioned": failing(_commit_everything),
    "secret.readable": warning(_open_tasks),
    "labels.files": failing(overwriting("dev.txt", "\n".join([*public_ids("dev"), public_ids("dev")[3]]))),
    "ids.sorted": failing(overwriting("dev.txt", "\n".join(public_ids("dev")[::-1]))),
    "ids.neutral": failing(_name_the_task),
    "ids.labeled": warning(overwriting("dev.txt", "\n".join([*public_ids("dev"), "img_zz"]))),
    "labels.enough": warning(relabeled(lambda rows: rows[:30], "gamma__regr.csv")),
    "labels.distinct": failing(
        lambda challenge: challenge.labels(
            "dev", "delta__regr.csv", [(i, 3 - 2 * float(v)) for i, v in label_rows("dev")["alpha__regr.csv"]]
        )
    ),
    "labels.order": failing(relabeled(lambda rows: [(name, row**2) for row, (name, _) in enumerate(rows)])),
    "labels.spread": warning(relabeled(lambda rows: [(rows[0][0], "-99999"), *rows[1:]])),
    "labels.steps": warning(changing({"scoring": {"epochs": 2}})),
    "evalai.token": failing(changing({"evalai": {"token": "file:nowhere"}})),
    "evalai.server": failing(
        lambda challenge: challenge.change(
            {"evalai": {"server": f"http://127.0.0.1:{_closed_port(challenge)}"}}
        )
    ),
    "evalai.challenge": failing(_sandbox(fields={"remote_evaluation": False})),
    "evalai.launch": warning(_sandbox(fields={"published": False})),
    "evalai.clock": failing(_attribute("ahead", timedelta(hours=1))),
    "evalai.storage": failing(changing({"evalai": {"media_hosts": []}})),
    "evalai.phases": failing(_sandbox(phases=HEALTHY_PHASES[:1])),
    "evalai.phase_settings": warning(_phase(is_submission_paused=True)),
    "evalai.limits": warning(lambda challenge: _bundle_limits(challenge, max_submissions_per_day=5)),
    "evalai.leaderboards": warning(_phase(visibility=1)),
    "board.address": failing(changing({"leaderboard": {"token": "env:NEUCO_TEST_NOT_SET"}})),
    "board.push": failing(lambda challenge: shutil.rmtree(challenge.folder / "board.git")),
    "board.history": warning(lambda challenge: challenge.push("leaderboard/history.jsonl", "{}\n")),
    "alerts.webhook": warning(changing({"alerts": {"webhook": None}})),
    "machine.state": failing(lambda challenge: _state(challenge, mode=0o755)),
    "machine.disk": failing(changing({"submission": {"disk_reserve_gigabytes": 1e7}})),
    "machine.capacity": warning(changing({"submission": {"memory_gigabytes": 1e6}})),
    "machine.service": failing(_installed),
    "machine.cache": warning(
        lambda challenge: challenge.monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/cache")
    ),
    "records.same": warning(_edited),
    "labels.cost": failing(changing({"submission": {"deadline": 1e-6}})),
}
"""Check to the fault that proves it."""

SHADES: list[tuple[str, Fault]] = [
    ("configuration.phases", warning(changing({"phases": {"dev": {"folds": 3}}}))),
    ("evalai.launch", failing(_attribute("prepare", lambda evalai: evalai.end_challenge()))),
    ("evalai.limits", warning(changing({"evalai": {"requests_per_minute": 120}}))),
    ("board.address", failing(_old_git)),
    ("machine.state", failing(lambda challenge: _state(challenge, database=b"no database " * 100))),
    ("machine.capacity", warning(changing({"scoring": {"threads": 4096}}))),
    (
        "configuration.bundle",
        failing(lambda challenge: _terms(challenge, packed="baselines", configured="top:3")),
    ),
    (
        "board.push",
        warning(_other_default_branch),
    ),
    ("secret.file", failing(overwriting("challenge.secret", "5a" * 32))),
    ("secret.readable", failing(lambda challenge: challenge.private("token", "abc", mode=0o644))),
    ("ids.labeled", warning(relabeled(lambda rows: rows[:60], "gamma__regr.csv"))),
    ("labels.files", failing(overwriting("tasks/dev/notes.txt", "remember"))),
    (
        "labels.enough",
        warning(
            relabeled(
                lambda rows: [(name, int(row < 2)) for row, (name, _) in enumerate(rows)], "beta__cls.csv"
            )
        ),
    ),
    ("labels.distinct", warning(_same_in_both_phases)),
    (
        "evalai.token",
        failing(_attribute("token", lambda evalai: evalai.issue_token("host", lifetime=timedelta(days=-1)))),
    ),
    ("evalai.server", failing(changing({"evalai": {"challenge": 4711}}))),
    ("evalai.challenge", failing(_sandbox(fields={"is_docker_based": True}))),
    ("evalai.launch", warning(_sandbox(fields={"approved_by_admin": False}))),
    ("evalai.challenge", warning(_sandbox(fields={"manual_participant_approval": True}))),
    ("evalai.challenge", warning(_sandbox(fields={"allow_participants_resubmissions": True}))),
    ("evalai.challenge", warning(_sandbox(fields={"use_fifo_sqs": True}))),
    (
        "evalai.phases",
        warning(_sandbox(phases=(*HEALTHY_PHASES, PhaseSettings(codename="bonus", fields=LIMITS)))),
    ),
    (
        "evalai.launch",
        warning(
            _attribute(
                "prepare",
                lambda evalai: setattr(evalai.world.phase("dev"), "end_date", evalai.world.clock.now()),
            )
        ),
    ),
    (
        "evalai.launch",
        warning(
            _sandbox(phases=tuple(replace(phase, fields={"is_public": False}) for phase in HEALTHY_PHASES))
        ),
    ),
    ("evalai.phase_settings", warning(_phase(disable_logs=True))),
    ("evalai.phase_settings", warning(_phase(is_submission_public=False))),
    ("evalai.phase_settings", warning(_phase(is_partial_submission_evaluation_enabled=True))),
    ("evalai.phase_settings", warning(_phase(allowed_submission_file_types=".csv, .zip, .parquet, .npz"))),
    ("evalai.phase_settings", warning(_phase(is_restricted_to_select_one_submission=True))),
    ("evalai.limits", warning(_phase(max_submissions_per_day=100_000, max_submissions_per_month=100_000))),
    ("evalai.phases", failing(_dev(split="other_split"))),
    ("evalai.phases", failing(_dev(metrics=("q_mean", "accuracy")))),
    ("evalai.leaderboards", warning(_phase(show_leaderboard_by_latest_submission=True))),
    ("evalai.leaderboards", warning(_phase(is_leaderboard_order_descending=False))),
    ("evalai.leaderboards", warning(changing({"leaderboard": {"decimals": 4}}))),
    ("evalai.leaderboards", warning(_phase(show_scores_on_leaderboard=False))),
    ("evalai.leaderboards", warning(_phase(show_execution_time=True))),
    ("board.address", warning(changing({"leaderboard": {"repository": "git@127.0.0.1:x/board.git"}}))),
    (
        "board.history",
        failing(
            lambda challenge: challenge.push(
                "commitment.json", json.dumps([{"sequence": 1, "commitment": "a"}])
            )
        ),
    ),
    (
        "alerts.webhook",
        failing(
            lambda challenge: challenge.private(
                "webhook", f"http://127.0.0.1:{_closed_port(challenge)}/services/hidden"
            )
        ),
    ),
    ("labels.cost", warning(changing({"submission": {"answer_grid": 0}}))),
    ("labels.cost", failing(changing({"submission": {"max_megabytes": 0.001}}))),
    ("secret.file", failing(_chmod("challenge.secret", 0o644))),
    ("evalai.server", failing(_attribute("token", lambda evalai: evalai.issue_token("host", kind="access")))),
    ("evalai.server", failing(_attribute("token", lambda evalai: evalai.token("otherhost")))),
    ("evalai.server", failing(changing({"evalai": {"queue": "another-queue"}}))),
    ("configuration.file", failing(changing({"phases": {"dev": {"folds": "many"}}}))),
    ("configuration.phases", warning(changing({"phases": {"dev": {"selection": "ladder"}}}))),
    ("configuration.placeholders", failing(changing({"leaderboard": {"repository": EXAMPLE_REPOSITORY}}))),
    ("configuration.placeholders", failing(changing({"evalai": {"challenge": 0}}))),
    ("configuration.placeholders", failing(example_tasks)),
    ("configuration.phases", warning(changing({"phases": {"eval": {"ids": "./dev.txt"}}}))),
    ("configuration.early_release", warning(changing({"leaderboard": {"publish": ["stable_views"]}}))),
    ("configuration.bundle", warning(overwriting("bundle.zip", "not a zip"))),
    ("beacon.chosen", failing(changing({"fairness": {"beacon": "Lotto@2020-12-05T19:30+01:00"}}))),
    ("secret.file", failing(overwriting("challenge.secret", "too short"))),
    ("labels.files", failing(lambda challenge: shutil.rmtree(challenge.folder / "tasks" / "dev"))),
    ("labels.files", failing(overwriting("tasks/dev/alpha__regr.csv", f"img_1,{SECRET_LABEL}\n"))),
    ("labels.files", failing(relabeled(lambda rows: [(rows[0][0], f"{SECRET_LABEL}!"), *rows[1:]]))),
    ("labels.files", failing(relabeled(lambda rows: [(name, SECRET_LABEL) for name, _ in rows]))),
    (
        "labels.files",
        failing(relabeled(lambda rows: [(rows[0][0], SECRET_LABEL), *rows[1:]], "beta__cls.csv")),
    ),
    ("labels.order", warning(relabeled(_leaning))),
    ("ids.neutral", warning(_two_kinds_of_names)),
    (
        "evalai.token",
        warning(_with_token(lambda evalai: evalai.issue_token("host", lifetime=timedelta(days=9)))),
    ),
    (
        "evalai.launch",
        warning(_with_token(lambda evalai: evalai.issue_token("host", lifetime=timedelta(days=90)))),
    ),
    ("evalai.clock", warning(_attribute("ahead", timedelta(seconds=-40)))),
    ("evalai.server", failing(_attribute("prepare", _replaced_token))),
    ("evalai.server", failing(_with_token(_participants))),
    ("evalai.leaderboards", warning(_phase(leaderboard_public=False))),
    ("evalai.limits", warning(_phase(max_concurrent_submissions_allowed=16))),
    (
        "evalai.limits",
        warning(lambda challenge: _bundle_limits(challenge, max_concurrent_submissions_allowed=2)),
    ),
    ("evalai.server", failing(_sandbox(shared_queue=True))),
    ("evalai.server", failing(_attribute("prepare", lambda evalai: evalai.set_faults(ALWAYS_500)))),
    ("board.address", failing(changing({"leaderboard": {"repository": "http://example.org/board.git"}}))),
    ("alerts.webhook", failing(lambda challenge: challenge.private("webhook", "http://example.org/hidden"))),
    ("machine.state", failing(overwriting("state", "a file"))),
    ("machine.service", failing(_board_in_tmp)),
    ("labels.cost", failing(changing({"submission": {"memory_gigabytes": 0.1}}))),
    ("records.same", failing(_other_secret)),
    ("configuration.bundle", failing(lambda challenge: _terms(challenge, packed="top:12", configured="all"))),
    ("configuration.bundle", failing(lambda challenge: _bundle(challenge, "<p>Ours.</p>", TERMS))),
    ("configuration.bundle", warning(_other_rule)),
]
"""More of what a check must notice."""

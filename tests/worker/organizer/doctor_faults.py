"""A healthy challenge, and for every check of the doctor a fault that it must find.

A fault is planted in a copy of the healthy challenge before it is examined. A check without a fault fails the test suite.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Self

import numpy as np
import psutil
import pytest
import yaml
from flask import Flask

from scoring.files import write_files
from tests.waiting import LIMIT_S
from tests.worker.harness.harness import ROOT, clean_environment, git, merged
from worker.challenge.configuration import load
from worker.challenge.signing import Signer, signer
from worker.fairness.commitments import signed
from worker.fairness.recording import record_phases
from worker.organizer.bundle import CONFIG_NAME, pack, read_sources, sources
from worker.organizer.bundle_check import TERMS
from worker.organizer.demo_data import load as load_digits
from worker.organizer.doctor import ALL, Examination, Level, examine
from worker.organizer.scaffold import EXAMPLE_QUEUE
from worker.sandbox import Fault as Spoilt
from worker.sandbox import FaultPlan, Listener, PhaseSettings, Sandbox, SandboxSettings
from worker.state import Store

ROWS, DIM, FOLDS = 80, 8, 10
SECRET_LABEL = "8675309"  # a label that must never be shown
OTHER_KEY = Signer(b"7" * 32)
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
    for name in ("challenge.secret", "signing.key"):
        text = hashlib.sha256(f"a healthy {name}".encode()).hexdigest()
        write_files(folder, {name: f"{text}\n".encode()}, private=("",))
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
    drand: str = field(init=False)
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

    def push(self, path: str, text: str) -> None:
        """Put a file into the leaderboard's repository."""
        commit = "commit refs/heads/main\ncommitter x <x@example.org> 0 +0000\ndata 1\nx\n"
        stream = f"{commit}M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n"
        command = ["git", "--git-dir", str(self.folder / "board.git"), "fast-import", "--quiet"]
        subprocess.run(command, check=True, input=stream.encode(), env=clean_environment())

    def open(self) -> None:
        """Let the sandbox listen, unless it does, and write the configuration."""
        if not hasattr(self, "evalai"):
            self._listen()
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
                "answer_grid": LIMIT_S,
                "disk_reserve_gigabytes": 0.01,
                "max_megabytes": 10,
                "memory_gigabytes": 4,
            },
            "scoring": {"epochs": 10, "batch_size": 8, "learning_rate": 0.01, "threads": 1},
            "leaderboard": {"repository": "./board.git"},
            "fairness": {"beacon": "drand", "drand_servers": [self.drand]},
            "alerts": {"webhook": "file:webhook"},
        }
        self.path.write_text(yaml.safe_dump(merged(base, self.changes)))

    def _listen(self) -> None:
        self.evalai = self._open.enter_context(Sandbox(self.settings))
        rounds = Flask("drand")
        rounds.add_url_rule("/<path:round>", view_func=lambda round: {"signature": "ab"})
        self.drand = self._open.enter_context(closing(Listener(rounds))).url
        self.prepare(self.evalai)
        self.private("token", self.token(self.evalai))
        self.webhook = self._open.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.private("webhook", f"http://127.0.0.1:{self.webhook.getsockname()[1]}/services/hidden")

    def private(self, name: str, text: str, *, mode: int = 0o600) -> None:
        """Write a file readable only by its owner, unless it exists."""
        path = self.folder / name
        if not path.exists():
            path.write_text(text)
            path.chmod(mode)

    def examine(self, *only: str, offline: bool = False) -> Examination:
        """Open the challenge, and run the given checks, or all."""
        self.open()
        return self.look(*only, offline=offline)

    def look(self, *only: str, offline: bool = False, baseline: Path | None = None) -> Examination:
        """Run the given checks, or all."""
        return examine(
            self.path,
            clock=lambda: datetime.now(UTC) + self.ahead,
            only=only or ALL,
            offline=offline,
            baseline=baseline,
        )


Plant = Callable[[FaultyChallenge], object]


Fault = tuple[Level, Plant]
"""The severity of a planted fault, and the fault."""
FAIL, WARN = Level.FAIL, Level.WARN


def changing(**changes: Mapping[str, Any]) -> Plant:
    """Return a function that changes sections of the configuration."""
    return lambda challenge: challenge.change(changes)


def relabeled(change: Callable[[Rows], Iterable[tuple[str, object]]], name: str = "alpha__regr.csv") -> Plant:
    """Return a function that rewrites one of dev's label files."""
    return lambda challenge: challenge.labels("dev", name, change(label_rows("dev")[name]))


def overwriting(name: str, text: str) -> Plant:
    """Return a function that overwrites a file."""
    return lambda challenge: (challenge.folder / name).write_text(text)


def evalai(**settings: Any) -> Plant:
    """Return a function that changes the sandbox's settings."""
    return lambda challenge: setattr(challenge, "settings", replace(challenge.settings, **settings))


def phase(*, fields: Mapping[str, Any] = MappingProxyType({}), **changes: Any) -> Plant:
    """Return a function that changes EvalAI's phase dev."""
    changed = replace(HEALTHY_PHASES[0], **{**changes, "fields": {**LIMITS, **fields}})
    return evalai(phases=(changed, *HEALTHY_PHASES[1:]))


def prepared(change: Callable[[Sandbox], object]) -> Plant:
    """Return a function that has the running sandbox changed."""
    return lambda challenge: setattr(challenge, "prepare", change)


def token(give: Callable[[Sandbox], str]) -> Plant:
    """Return a function that replaces the worker's token."""
    return lambda challenge: setattr(challenge, "token", give)


def grouped(group: Callable[[int], str]) -> Plant:
    """Return a function that gives each row of dev's label files a group."""

    def plant(challenge: FaultyChallenge) -> None:
        for file in challenge.folder.glob("tasks/dev/*.csv"):
            header, *lines = file.read_text().splitlines()
            rows = [f"{line},{group(number)}" for number, line in enumerate(lines)]
            file.write_text("\n".join([f"{header},group", *rows]) + "\n")

    return plant


def _tracked(name: str) -> Plant:
    """Return a function that lets git track a private file."""

    def plant(challenge: FaultyChallenge) -> None:
        (challenge.folder / name).parent.mkdir(mode=0o700, exist_ok=True)
        (challenge.folder / name).touch(mode=0o600)
        for command in (["init", "-q"], ["add", name]):
            subprocess.run(["git", *command], cwd=challenge.folder, check=True, env=clean_environment())

    return plant


def _renamed(before: str, after: str, rows: slice = slice(None)) -> Plant:
    """Return a function that replaces the beginning of some of dev's ids; the last task is about the other ids only."""

    def plant(challenge: FaultyChallenge) -> None:
        kept = [row for row in label_rows("dev")["gamma__regr.csv"] if row[0] not in public_ids("dev")[rows]]
        challenge.labels("dev", "gamma__regr.csv", kept or label_rows("dev")["gamma__regr.csv"])
        for file in [challenge.folder / "dev.txt", *challenge.folder.glob("tasks/dev/*.csv")]:
            text = file.read_text()
            for name in public_ids("dev")[rows]:
                text = text.replace(name, name.replace(before, after))
            file.write_text("".join(sorted(text.splitlines(True))) if file.suffix == ".txt" else text)

    return plant


def _bundle(
    name: str = "evaluation_details.html", text: str | None = None, **said: object
) -> Callable[[FaultyChallenge], None]:
    """Return a function that packs a bundle with a changed page, or that says something else about dev."""

    def plant(challenge: FaultyChallenge) -> None:
        challenge.open()
        folder, configuration = challenge.folder / "bundle", load(challenge.path)
        write_files(folder, sources(configuration, now=datetime.now(UTC)))
        document = yaml.safe_load((folder / CONFIG_NAME).read_text())
        document["challenge_phases"][0] |= said
        (folder / CONFIG_NAME).write_text(yaml.safe_dump(document))
        if text is not None:
            (folder / name).write_text(text)
        packed = pack(read_sources(folder), configuration)
        (challenge.folder / "bundle.zip").write_bytes(packed)

    return plant


def close(challenge: FaultyChallenge, codename: str) -> None:
    """Close a recorded phase."""
    with closing(Store(load(challenge.path).database_url)) as store, store.write() as tx:
        tx.close_phase(codename, at=datetime.now(UTC))


def _paused(challenge: FaultyChallenge) -> None:
    with closing(Store(load(challenge.path).database_url)) as store, store.write() as tx:
        tx.set_pause("drain", now=datetime.now(UTC))


def _broken_git_configuration(challenge: FaultyChallenge) -> None:
    path = challenge.folder / "gitconfig"
    path.write_text("[broken")
    challenge.monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))


def _closed_above(challenge: FaultyChallenge) -> None:
    _open_tasks(challenge)
    (challenge.folder / "state").mkdir(mode=0o755)
    challenge.folder.chmod(0o700)


def _on_a_network_file_system(challenge: FaultyChallenge) -> None:
    mounts = [
        *psutil.disk_partitions(all=True),
        SimpleNamespace(mountpoint=str(challenge.folder), fstype="nfs4"),
    ]
    challenge.monkeypatch.setattr(psutil, "disk_partitions", lambda *, all: mounts)


def _hidden_until_the_end(challenge: FaultyChallenge) -> None:
    phase(fields={"visibility": 1})(challenge)
    challenge.change({"phases": {"dev": {"shown": "at_end"}}})


def _nearly_all_memory(challenge: FaultyChallenge) -> None:
    challenge.change({"submission": {"memory_gigabytes": 0.9 * psutil.virtual_memory().total / 1e9}})


def _old_git(challenge: FaultyChallenge) -> None:
    script = challenge.folder / "bin" / "git"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho git version 2.20.1\n")
    script.chmod(0o700)
    challenge.monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")


def example_tasks(challenge: FaultyChallenge) -> None:
    """Leave the tasks and ids of dev as `init` writes them."""
    files = load_digits()[0].files("dev")
    files["dev.txt"] = files.pop("ids/dev.txt")
    write_files(challenge.folder, files)
    for name in label_rows("dev"):
        (challenge.folder / "tasks" / "dev" / name).unlink()


def _installed(challenge: FaultyChallenge) -> None:
    shutil.copytree(ROOT / "deploy" / "systemd", challenge.folder.parents[1] / "systemd" / "system")


def recorded(then: Plant) -> Plant:
    """Return a function that records the phases as a first start does, and changes something afterwards."""

    def plant(challenge: FaultyChallenge) -> None:
        challenge.open()
        configuration = load(challenge.path)
        with closing(Store(configuration.database_url)) as store:
            with store.write() as tx:
                key = signer(tx, configuration)
            record_phases(store, configuration, key, now=datetime.now(UTC))
        then(challenge)

    return plant


def _open_tasks(challenge: FaultyChallenge) -> None:
    tasks = challenge.folder / "tasks"
    for path in (tasks, *tasks.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _other_default_branch(challenge: FaultyChallenge) -> None:
    challenge.push("README.md", "# Ours")
    git(challenge.folder / "board.git", "symbolic-ref", "HEAD", "refs/heads/master")


def _seed(challenge: FaultyChallenge) -> bytes:
    return bytes.fromhex((challenge.folder / "signing.key").read_text())


def _committed(challenge: FaultyChallenge, key: Signer) -> None:
    """Publish a commitment that the state lacks."""
    challenge.push("commitment.json", json.dumps([signed({"key": key.public}, key)]))


def _broken_sources(challenge: FaultyChallenge) -> None:
    _bundle()(challenge)
    (challenge.folder / "bundle" / CONFIG_NAME).write_text(": :")


def _checked_out(challenge: FaultyChallenge) -> None:
    challenge.push("README.md", "# Ours")
    shutil.move(challenge.folder / "board.git", challenge.folder / "board" / ".git")
    challenge.change({"leaderboard": {"repository": "./board"}})


NOBODY = "http://127.0.0.1:9"  # where nobody listens


def _behind_a_proxy(challenge: FaultyChallenge) -> None:
    challenge.private("webhook", "https://example.org/services/hidden")
    challenge.monkeypatch.setenv("HTTPS_PROXY", NOBODY)


def _unreachable_proxy(challenge: FaultyChallenge) -> None:
    challenge.monkeypatch.setenv("HTTPS_PROXY", NOBODY)
    challenge.change({"fairness": {"drand_servers": ["https://drand.example"]}})


def _socks_proxy(challenge: FaultyChallenge) -> None:
    challenge.open()  # there, something listens
    challenge.monkeypatch.setitem(sys.modules, "socks", None)  # not installed
    challenge.monkeypatch.setenv("ALL_PROXY", f"socks5h://{challenge.evalai.media_host}")
    challenge.change({"fairness": {"drand_servers": ["https://drand.example"]}})


FAULTS: dict[str, Fault] = {
    "configuration.file": (FAIL, changing(evalai={"pol_every": 3})),
    "records.pause": (FAIL, recorded(_paused)),
    "configuration.placeholders": (FAIL, changing(evalai={"queue": EXAMPLE_QUEUE})),
    "configuration.phases": (WARN, changing(phases={"dev": {"folds": 3}})),
    "configuration.bundle": (FAIL, _bundle(TERMS, "<p>Ours.</p>")),
    "beacon.chosen": (WARN, changing(fairness={"beacon": "none"})),
    "beacon.servers": (FAIL, changing(fairness={"drand_servers": [NOBODY]})),
    "secret.file": (FAIL, lambda challenge: (challenge.folder / "challenge.secret").unlink()),
    "secret.versioned": (FAIL, _tracked("challenge.secret")),
    "secret.readable": (WARN, _open_tasks),
    "labels.files": (FAIL, overwriting("dev.txt", "\n".join([*public_ids("dev"), public_ids("dev")[3]]))),
    "ids.sorted": (FAIL, overwriting("dev.txt", "\n".join(public_ids("dev")[::-1]))),
    "ids.neutral": (FAIL, _renamed("img_", "alpha_")),
    "ids.separate": (
        WARN,
        lambda challenge: (
            shutil.copytree(
                challenge.folder / "tasks" / "dev", challenge.folder / "tasks" / "eval", dirs_exist_ok=True
            )
            and shutil.copy(challenge.folder / "dev.txt", challenge.folder / "eval.txt")
        ),
    ),
    "ids.labeled": (WARN, overwriting("dev.txt", "\n".join([*public_ids("dev"), "img_zz"]))),
    "labels.enough": (WARN, relabeled(lambda rows: rows[:30], "gamma__regr.csv")),
    "labels.groups": (WARN, grouped(lambda row: f"tile {row % 8}")),
    "labels.distinct": (
        FAIL,
        lambda challenge: challenge.labels(
            "dev", "delta__regr.csv", [(i, 3 - 2 * float(v)) for i, v in label_rows("dev")["alpha__regr.csv"]]
        ),
    ),
    "labels.order": (FAIL, relabeled(lambda rows: [(name, row**2) for row, (name, _) in enumerate(rows)])),
    "labels.spread": (WARN, relabeled(lambda rows: [(rows[0][0], "-99999"), *rows[1:]])),
    "labels.steps": (WARN, changing(scoring={"epochs": 2})),
    "labels.cost": (FAIL, changing(submission={"deadline": 1e-6})),
    "evalai.token": (FAIL, changing(evalai={"token": "file:nowhere"})),
    "evalai.server": (FAIL, changing(evalai={"server": NOBODY})),
    "evalai.challenge": (FAIL, evalai(fields={"remote_evaluation": False})),
    "evalai.launch": (WARN, evalai(fields={"published": False})),
    "evalai.clock": (FAIL, lambda challenge: setattr(challenge, "ahead", timedelta(hours=1))),
    "evalai.storage": (FAIL, changing(evalai={"media_hosts": []})),
    "evalai.phases": (FAIL, evalai(phases=HEALTHY_PHASES[:1])),
    "evalai.phase_settings": (WARN, phase(fields={"is_submission_paused": True})),
    "evalai.limits": (WARN, _bundle(max_submissions_per_day=5)),
    "evalai.leaderboards": (WARN, phase(fields={"visibility": 1})),
    "board.address": (FAIL, changing(leaderboard={"token": "env:NEUCO_TEST_NOT_SET"})),
    "board.push": (FAIL, lambda challenge: shutil.rmtree(challenge.folder / "board.git")),
    "board.foreign": (FAIL, lambda challenge: challenge.push("index.html", "mine")),
    "board.history": (WARN, lambda challenge: challenge.push("leaderboard/history.jsonl", "{}\n")),
    "alerts.webhook": (WARN, changing(alerts={"webhook": None})),
    "machine.state": (FAIL, lambda challenge: (challenge.folder / "state").mkdir(mode=0o755)),
    "machine.disk": (FAIL, changing(submission={"disk_reserve_gigabytes": 1e7})),
    "machine.capacity": (WARN, changing(submission={"memory_gigabytes": 1e6})),
    "machine.service": (FAIL, _installed),
    "machine.cache": (
        WARN,
        lambda challenge: challenge.monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/cache"),
    ),
    "machine.proxies": (FAIL, _unreachable_proxy),
    "records.same": (WARN, recorded(relabeled(lambda rows: rows[1:]))),
}
"""Check to the fault that proves it."""

SOON, LONG_AGO = timedelta(days=3), timedelta(days=-3)
MISCONFIGURED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("evalai.challenge", "remote evaluation", "challenge", {"remote_evaluation": False}),
    ("evalai.challenge", "docker-based", "challenge", {"is_docker_based": True}),
    ("evalai.challenge", "approved it", "challenge", {"manual_participant_approval": True}),
    (
        "evalai.challenge",
        "run anybody's submission again",
        "challenge",
        {"allow_participants_resubmissions": True},
    ),
    ("evalai.challenge", "submit code", "challenge", {"is_static_dataset_code_upload": True}),
    ("evalai.challenge", "names of teams", "challenge", {"anonymous_leaderboard": True}),
    ("evalai.challenge", "FIFO queue", "challenge", {"use_fifo_sqs": True}),
    ("evalai.challenge", "the challenge was removed", "challenge", {"is_disabled": True}),
    ("evalai.launch", "not published", "challenge", {"published": False}),
    ("evalai.launch", "not approved", "challenge", {"approved_by_admin": False}),
    ("evalai.launch", "Registration is closed", "challenge", {"is_registration_open": False}),
    ("evalai.launch", "The challenge is paused", "challenge", {"is_submission_paused": True}),
    ("evalai.launch", "Only participants with", "challenge", {"allowed_email_domains": ["example.org"]}),
    ("evalai.launch", "cannot take part", "challenge", {"blocked_email_domains": ["example.org"]}),
    ("evalai.launch", "certain members", "challenge", {"banned_email_ids": ["a@example.org"]}),
    ("evalai.launch", "The challenge begins", "challenge", {"start_date": SOON}),
    ("evalai.launch", "accepts nothing after", "challenge", {"end_date": SOON}),
    ("evalai.launch", "before it begins", "challenge", {"start_date": 2 * SOON, "end_date": SOON}),
    (
        "evalai.launch",
        "but it opens on",
        "phase",
        {"start_date": 2 * SOON, "end_date": SOON, "is_public": False},
    ),
    ("evalai.launch", "addresses in a list", "phase", {"allowed_email_ids": ["a@example.org"]}),
    ("evalai.launch", "which ended on", "phase", {"end_date": LONG_AGO}),
    ("evalai.launch", "although it opens only", "phase", {"start_date": SOON}),
    ("evalai.phase_settings", "has paused phase dev", "phase", {"is_submission_paused": True}),
    ("evalai.phase_settings", "disable_logs", "phase", {"disable_logs": True}),
    ("evalai.phase_settings", "private by default", "phase", {"is_submission_public": False}),
    ("evalai.phase_settings", "Partial", "phase", {"is_partial_submission_evaluation_enabled": True}),
    ("evalai.phase_settings", "types .csv, .zip", "phase", {"allowed_submission_file_types": ".csv, .zip"}),
    ("evalai.phase_settings", "restricted", "phase", {"is_restricted_to_select_one_submission": True}),
    (
        "evalai.limits",
        "100000 submissions a day",
        "phase",
        dict.fromkeys(("max_submissions_per_day", "max_submissions_per_month", "max_submissions"), 100_000),
    ),
    ("evalai.limits", "its limit is 0", "phase", {"max_submissions": 0}),
    ("evalai.limits", "is 0 (max_concurrent", "phase", {"max_concurrent_submissions_allowed": 0}),
    ("evalai.limits", "16 of them at once", "phase", {"max_concurrent_submissions_allowed": 16}),
    ("evalai.leaderboards", "is not public", "phase", {"visibility": 1}),
    ("evalai.leaderboards", "is not public", "phase", {"leaderboard_public": False}),
    ("evalai.leaderboards", "newest first", "phase", {"show_leaderboard_by_latest_submission": True}),
    ("evalai.leaderboards", "worst team", "phase", {"is_leaderboard_order_descending": False}),
    ("evalai.leaderboards", "worst team", "settings", {"sort_ascending": True}),
    ("evalai.leaderboards", "shows 2 decimals", "phase", {"leaderboard_decimal_precision": 2}),
    ("evalai.leaderboards", "shows no values", "phase", {"show_scores_on_leaderboard": False}),
    ("evalai.leaderboards", "execution times", "phase", {"show_execution_time": True}),
]
"""What can be wrong at EvalAI: the check that names it, words of its sentence, what has the setting, and the wrong value."""


def misconfigured(what: str, changes: Mapping[str, Any]) -> Plant:
    """Return a function that changes EvalAI's challenge, phase dev or its settings; a time is relative to now."""
    if what == "settings":
        return phase(**changes)

    def change(evalai: Sandbox) -> None:
        now = evalai.world.clock.now()
        values = {k: now + v if isinstance(v, timedelta) else v for k, v in changes.items()}
        if what == "phase":
            evalai.set_phase("dev", **values)
        else:
            evalai.set_challenge(**values)

    return prepared(change)


UNKNOWN: dict[str, Plant] = {
    "configuration.bundle": lambda _: None,
    "evalai.token": overwriting("token", "ab" * 20),
    "beacon.servers": changing(fairness={"beacon": "none"}),
    "alerts.webhook": _behind_a_proxy,
}
"""What a check cannot find out, so that it must not pass."""
HARMLESS: list[tuple[str, Plant]] = [
    ("evalai.leaderboards", _hidden_until_the_end),
    ("secret.readable", _closed_above),
    ("machine.state", _closed_above),
    ("board.push", _broken_git_configuration),
    (
        "board.history",
        lambda challenge: challenge.push("leaderboard/history.jsonl", ""),
    ),  # as of a first start
]
"""What a check must not take for a fault."""
SHADES: list[tuple[str, Fault]] = [
    ("configuration.phases", (WARN, changing(phases={"dev": {"selection": "ladder"}}))),
    ("configuration.bundle", (WARN, _bundle(text="<p>No link.</p>"))),
    ("configuration.bundle", (WARN, _bundle("evaluation_details.html", "<p>No fingerprint.</p>"))),
    ("configuration.bundle", (FAIL, overwriting("bundle.zip", "not a zip"))),
    ("evalai.limits", (WARN, _bundle(end_date=datetime(2030, 1, 1)))),  # noqa: DTZ001
    ("machine.proxies", (FAIL, _socks_proxy)),
    ("secret.versioned", (FAIL, _tracked("state/notes"))),
    ("secret.file", (FAIL, overwriting("challenge.secret", "5a" * 32))),
    ("secret.file", (FAIL, overwriting("signing.key", "5a" * 32))),
    ("secret.file", (FAIL, changing(challenge={"signing_key": "./challenge.secret"}))),
    ("secret.file", (FAIL, lambda challenge: (challenge.folder / "challenge.secret").chmod(0o644))),
    ("secret.file", (FAIL, recorded(overwriting("signing.key", "5a" * 32)))),
    ("secret.readable", (FAIL, lambda challenge: challenge.folder.chmod(0o777))),
    ("secret.readable", (FAIL, lambda challenge: challenge.private("token", "abc", mode=0o644))),
    (
        "ids.separate",
        (WARN, overwriting("eval.txt", "\n".join(sorted([*public_ids("eval"), public_ids("dev")[0]])))),
    ),
    ("ids.neutral", (WARN, _renamed("img_", "field_", slice(60, None)))),
    ("ids.labeled", (WARN, relabeled(lambda rows: rows[:60], "gamma__regr.csv"))),
    ("labels.files", (FAIL, overwriting("tasks/dev/notes.txt", "remember"))),
    ("labels.files", (FAIL, relabeled(lambda rows: [(rows[0][0], f"{SECRET_LABEL}!"), *rows[1:]]))),
    ("labels.files", (FAIL, relabeled(lambda rows: [(name, SECRET_LABEL) for name, _ in rows]))),
    (
        "labels.enough",
        (
            WARN,
            relabeled(
                lambda rows: [(name, int(row < 2)) for row, (name, _) in enumerate(rows)], "beta__cls.csv"
            ),
        ),
    ),
    (
        "labels.enough",
        (WARN, relabeled(lambda rows: [(name, max(0, row - 77)) for row, (name, _) in enumerate(rows)])),
    ),
    ("labels.distinct", (WARN, changing(phases={"eval": {"ids": "./dev.txt", "tasks": "./tasks/dev"}}))),
    (
        "labels.order",
        (
            WARN,
            relabeled(
                lambda rows: [(name, row + 0.9 * (row * 37 % 80)) for row, (name, _) in enumerate(rows)]
            ),
        ),
    ),
    ("labels.cost", (WARN, changing(submission={"answer_grid": 0}))),
    ("labels.cost", (FAIL, changing(submission={"max_megabytes": 0.001}))),
    ("labels.cost", (FAIL, changing(submission={"memory_gigabytes": 0.1}))),
    ("evalai.token", (FAIL, token(lambda evalai: evalai.issue_token("host", lifetime=timedelta(days=-1))))),
    ("evalai.token", (WARN, token(lambda evalai: evalai.issue_token("host", lifetime=timedelta(days=9))))),
    ("evalai.launch", (FAIL, prepared(lambda evalai: evalai.end_challenge()))),
    (
        "evalai.launch",
        (
            WARN,
            prepared(lambda evalai: evalai.set_phase("dev", end_date=evalai.world.clock.now())),
        ),
    ),
    ("evalai.clock", (WARN, lambda challenge: setattr(challenge, "ahead", timedelta(seconds=-40)))),
    ("evalai.server", (FAIL, changing(evalai={"challenge": 4711}))),
    ("evalai.server", (FAIL, changing(evalai={"queue": "another-queue"}))),
    ("evalai.server", (FAIL, token(lambda evalai: evalai.token("otherhost")))),
    ("evalai.server", (FAIL, evalai(shared_queue=True))),
    ("evalai.server", (FAIL, prepared(lambda evalai: evalai.set_faults(ALWAYS_500)))),
    (
        "evalai.phases",
        (WARN, evalai(phases=(*HEALTHY_PHASES, PhaseSettings(codename="bonus", fields=LIMITS)))),
    ),
    ("evalai.phases", (FAIL, phase(split="other_split"))),
    ("evalai.phases", (FAIL, phase(metrics=("q_mean", "accuracy")))),
    ("evalai.limits", (WARN, changing(evalai={"requests_per_minute": 120}))),
    ("evalai.limits", (WARN, changing(evalai={"requests_per_minute": 8}))),
    ("evalai.limits", (WARN, changing(evalai={"poll_every": 0.5}))),
    ("evalai.limits", (WARN, phase(fields={"max_concurrent_submissions_allowed": 16}))),
    ("board.address", (FAIL, _old_git)),
    ("secret.versioned", (FAIL, lambda challenge: challenge.monkeypatch.setenv("PATH", "/nowhere"))),
    ("board.address", (WARN, changing(leaderboard={"repository": "git@127.0.0.1:x/board.git"}))),
    ("board.push", (WARN, _other_default_branch)),
    ("board.push", (WARN, _checked_out)),
    ("board.history", (WARN, lambda challenge: _committed(challenge, OTHER_KEY))),
    ("configuration.bundle", (WARN, _broken_sources)),
    ("board.history", (FAIL, lambda challenge: _committed(challenge, Signer(_seed(challenge))))),
    ("alerts.webhook", (FAIL, lambda challenge: challenge.private("webhook", f"{NOBODY}/services/hidden"))),
    ("alerts.webhook", (FAIL, lambda challenge: challenge.private("webhook", "http://example.org/hidden"))),
    ("alerts.webhook", (FAIL, lambda challenge: challenge.private("webhook", "https://[hidden"))),
    ("alerts.webhook", (FAIL, lambda challenge: challenge.private("webhook", "https://"))),
    (
        "machine.state",
        (FAIL, changing(state="sqlite:///./board.git")),
    ),
    ("machine.state", (WARN, _on_a_network_file_system)),
    ("machine.state", (FAIL, recorded(overwriting("state/worker.db", "no database " * 100)))),
    ("machine.capacity", (WARN, changing(scoring={"threads": 4096}))),
    ("machine.capacity", (WARN, _nearly_all_memory)),
    ("records.same", (FAIL, recorded(overwriting("challenge.secret", "0123456789abcdef" * 4)))),
    ("records.same", (WARN, recorded(changing(fairness={"publish_files": "top:9"})))),
    ("records.same", (WARN, recorded(changing(fairness={"access": "Nobody."})))),
    ("records.same", (WARN, recorded(changing(leaderboard={"receipts_every": 60})))),
]
"""More of what a check must notice."""

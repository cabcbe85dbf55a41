"""An organizer's complete workflow in a clean installation, without a network: init, doctor, rescore, reveal and verification.

Every step is a command as a person types it, participants submit over HTTP, and results are read where users see them: at EvalAI, in the
repository and on the screen.
"""

from __future__ import annotations

import hashlib
import json
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import requests
import yaml

from tests.acceptance.installation import Installation
from tests.acceptance.test_newcomer import BROKEN, FIRST_STEPS, OTHERS, commands
from tests.acceptance.test_other_benchmarks_documentation import COMMANDS as RESEARCHERS
from tests.waiting import until
from tests.worker.harness.harness import git, merged
from worker.cli import program
from worker.organizer.rehearsal.entries import csv_of

PHASES = ("dev", "eval")
TEAMS = ("Ada", "Bo", "Cy")
DIM, FOLDS = 16, 10
SECRET = hashlib.sha256(
    b"the way"
).hexdigest()  # fixed, because each secret that `init` draws gives different splits and scores
ADDED = "unheardof"  # a hidden task that is added later; the word occurs nowhere else

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("installation")]


class Organizer:
    """An organizer at a terminal, with a folder, the public repository and access to EvalAI, and the teams that take part."""

    def __init__(self, folder: Path, installation: Installation) -> None:
        self.folder = folder
        self.installation = installation
        self.challenge = folder / "challenge"
        self.config = self.challenge / "challenge.yaml"
        self.board = folder / "board.git"
        self.facts: dict[str, Any] = {}
        self.typed: set[str] = set()
        self.sent: dict[int, str] = {}  # the team of each submission

    def type(self, line: str, *more: str, expect: int = 0, config: bool = True) -> str:
        """Run a command and return what it prints."""
        words = self._words(line, *more, config=config)
        printed, errors = self.installation.command(*words, cwd=self.folder, expect=expect)
        assert not [word for word in BROKEN if word in errors], errors
        return printed

    def start(self, line: str, *more: str, log: str) -> subprocess.Popen[bytes]:
        """Start a long-running command."""
        with (self.folder / log).open("wb") as file:
            return subprocess.Popen(
                [self.installation.folder / "bin" / "neuco-worker", *self._words(line, *more)],
                env=self.installation.environment,
                cwd=self.folder,
                stdout=file,
                stderr=file,
            )

    def _words(self, line: str, *more: str, config: bool = True) -> list[str]:
        self.typed.add(line)
        where = ["--config", str(self.config)] if config else []
        return [*line.split(), *more, *where]

    def edit(self, changes: dict[str, dict[str, Any]]) -> None:
        """Change the configuration file, as an organizer does with an editor."""
        document = yaml.safe_load(self.config.read_text())
        self.config.write_text(yaml.safe_dump(merged(document, changes), sort_keys=False))

    def published(self, phase: str) -> dict[str, Any]:
        """Return the public board of a phase; an empty one before the first push."""
        try:
            document: dict[str, Any] = json.loads(git(self.board, "show", f"main:leaderboard/{phase}.json"))
        except subprocess.CalledProcessError:
            return {}
        return document

    def public(self, phase: str) -> dict[str, float]:
        """Return the mean Q of each team on the public board, best first."""
        return {entry["team"]: entry["q_mean"] for entry in self.published(phase).get("entries", ())}

    def embeddings(self, phase: str, team: str) -> bytes:
        """Return a submission: better teams add less noise to the labels, by far more than different splits can change."""
        ids = (self.challenge / "ids" / f"{phase}.txt").read_text().split()
        files = sorted((self.challenge / "tasks" / phase).glob("*__*.csv"))
        labels = pd.concat([pd.read_csv(file, index_col="id")["label"] for file in files], axis=1)
        matrix = np.zeros((len(ids), DIM))
        matrix[:, : len(files)] = (labels / labels.std()).reindex(ids).fillna(0)
        rng = np.random.default_rng([TEAMS.index(team), PHASES.index(phase)])
        matrix += (0.1 + 3 * TEAMS.index(team)) * rng.normal(size=matrix.shape)
        return csv_of(ids, matrix.astype(np.float32))

    def submit(self, team: str, phase: str, content: bytes, *, public: bool = True) -> int:
        """Submit as a participant does, and return the submission's number."""
        answer = requests.post(
            self.facts["phases"][phase],
            headers=self.authorization(team),
            data={
                "status": "submitting",
                "method_name": f"{team}'s",
                "is_public": json.dumps(public),
            },
            files={"input_file": ("embeddings.csv", content)},
        )
        pk = int(answer.json()["id"])
        self.sent[pk] = team
        return pk

    def authorization(self, team: str) -> dict[str, str]:
        """Return the header with which a team calls EvalAI."""
        return {"Authorization": f"Bearer {self.facts['teams'][team]}"}

    def read(self, pk: int) -> dict[str, Any]:
        """Return a submission as its team reads it at EvalAI."""
        address = f"{self.facts['url']}/api/jobs/submission/{pk}"
        document: dict[str, Any] = requests.get(address, headers=self.authorization(self.sent[pk])).json()
        return document

    def status(self, pk: int) -> str:
        """Return the status of a submission at EvalAI."""
        return str(self.read(pk)["status"])

    def shown(self, pk: int) -> str:
        """Return the text that the participant reads about a submission that has ended."""
        submission = self.read(pk)
        texts = (requests.get(submission[name]).text for name in ("stdout_file", "stderr_file"))
        return "\n".join(texts).strip()

    def q_mean(self, pk: int) -> float | None:
        """Return the value in the answer to a scored submission; None while it is withheld."""
        value: float | None = json.loads(self.shown(pk)).get("q_mean")
        return value

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds, or fail with the end of the daemon's log."""
        until(done, lambda: f"{what}\n{(self.folder / 'worker.log').read_text()[-3000:]}")


@pytest.fixture
def organizer(tmp_path: Path, installation: Installation) -> Organizer:
    """An organizer in an empty folder."""
    return Organizer(tmp_path, installation)


def test_from_an_empty_folder_to_the_awards(organizer: Organizer) -> None:
    """Every step of a challenge works after the previous one, and no hidden task becomes public before the reveal."""
    _prepare(organizer)
    sandbox = _open_evalai(organizer)
    daemon = None
    try:
        _check(organizer)
        # The sandbox allows this. With the defaults, the test would wait for the budget and for the next listing after a phase closes.
        organizer.edit({"evalai": {"requests_per_minute": 1000, "reconcile_every": 5}})
        daemon = organizer.start("run", log="worker.log")
        answered = _take_submissions(organizer)
        _rescore(organizer, answered)
        _administer(organizer, answered)
        _close(organizer, answered)
        _report(organizer)
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait() == 0
        _nothing_hidden_is_public(organizer)
        _verify(organizer)
        _continue_elsewhere(organizer)
        _every_command_was_typed(organizer)
    finally:
        for process in (daemon, sandbox):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def _prepare(organizer: Organizer) -> None:
    """Run `init` and edit the configuration."""
    options = ("--title", "The way", "--dim", str(DIM), "--folds", str(FOLDS), "--yes")
    organizer.type("init", str(organizer.challenge), *options, config=False)
    organizer.challenge.joinpath("challenge.secret").write_text(SECRET)
    # The example tasks serve as the organizer's own, so their ids are renamed.
    for file in [*organizer.challenge.glob("ids/*.txt"), *organizer.challenge.glob("tasks/*/*.csv")]:
        file.write_text(file.read_text().replace("img_", "scene_"))
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(organizer.board)], check=True)
    organizer.edit(
        {
            "fairness": {"beacon": "none"},  # another one takes minutes; tests/worker/fairness/test_beacon.py
            "evalai": {
                "challenge": 31,
                "queue": "the-way-queue",
                "token": "file:evalai.token",
                "poll_every": 0.5,
            },
            "phases": {phase: {"opens": None} for phase in PHASES},
            "submission": {"answer_grid": 0, "disk_reserve_gigabytes": 0.01, "max_megabytes": 10},
            "scoring": {"epochs": 10, "learning_rate": 0.02},
            "leaderboard": {"repository": str(organizer.board), "publish_every": 0.5},
        }
    )
    organizer.type("bundle", str(organizer.challenge), config=False)


def _open_evalai(organizer: Organizer) -> subprocess.Popen[bytes]:
    """Start the sandbox with the challenge that the configuration describes, and configure its address and token."""
    teams = [word for team in TEAMS for word in ("--team", team)]
    sandbox = organizer.start("sandbox --port 0 --throttle 100000 --json", *teams, log="evalai.json")
    path = organizer.folder / "evalai.json"
    organizer.folder.joinpath("worker.log").touch()
    organizer.wait(lambda: path.read_text().endswith("}\n"), "the sandbox did not start")
    organizer.facts = json.loads(path.read_text())
    token = organizer.challenge / "evalai.token"
    token.touch(mode=0o600)
    token.write_text(organizer.facts["tokens"]["host"])
    media = organizer.facts["media_url"].removeprefix("http://")
    organizer.edit({"evalai": {"server": organizer.facts["url"], "media_hosts": [media]}})
    return sandbox


def _check(organizer: Organizer) -> None:
    """`doctor` finds nothing that must be fixed."""
    document = json.loads(organizer.type("doctor --json"))
    assert document["counts"]["fail"] == 0
    warned = {check["id"] for check in document["checks"] if check["result"] == "warn"}
    # The bundle cannot link to a local repository, and the sandbox does not limit submissions.
    # The digits tasks do not label all samples, and this test uses few folds.
    assert warned == {
        *("labels.cost", "alerts.webhook", "configuration.bundle", "beacon.chosen"),
        "evalai.limits",
        "ids.labeled",
        "configuration.phases",
    }
    assert git(organizer.board, "for-each-ref") == ""  # it has pushed nothing


def _take_submissions(organizer: Organizer) -> dict[tuple[str, str], int]:
    """Teams submit in both phases; every submission is answered, and the boards are published."""
    answered = {
        (team, phase): organizer.submit(team, phase, organizer.embeddings(phase, team))
        for phase in PHASES
        for team in TEAMS[:2]
    }
    broken = organizer.submit("Cy", "dev", b"id,0\nnobody,1\n")
    hidden = organizer.submit("Cy", "dev", organizer.embeddings("dev", "Cy"), public=False)
    organizer.wait(
        lambda: all(
            organizer.status(pk) in ("finished", "failed") for pk in (*answered.values(), broken, hidden)
        ),
        "not everything was answered",
    )

    def complete() -> bool:
        waiting = {entry["team"] for entry in organizer.published("eval").get("waiting", ())}
        return set(organizer.public("dev")) == waiting == set(TEAMS[:2])

    organizer.wait(complete, "the boards lack teams")
    assert (organizer.status(broken), organizer.status(hidden)) == ("failed", "finished")
    assert "id" in organizer.shown(broken)
    shown = organizer.public("dev")
    assert list(shown) == ["Ada", "Bo"]
    assert organizer.public("eval") == {}
    for team in TEAMS[:2]:
        assert organizer.q_mean(answered[team, "dev"]) == shown[team]
        assert organizer.q_mean(answered[team, "eval"]) is None

    def quiet() -> bool:
        status = json.loads(organizer.type("status --json"))
        assert status["alerts"] == []
        return (status["waiting"], status["pending"]) == (0, 0)

    organizer.wait(quiet, "something was left to do")
    return answered


def _rescore(organizer: Organizer, answered: dict[tuple[str, str], int]) -> None:
    """A hidden task is added while the daemon runs; `apply` shows its plan, then carries it out, and answers and board are updated."""
    before = organizer.public("dev")
    names = (organizer.challenge / "ids" / "dev.txt").read_text().split()
    labels = pd.Series(np.random.default_rng(5).normal(size=len(names)), index=names, name="label")
    labels.to_csv(organizer.challenge / "tasks" / "dev" / f"{ADDED}__regr.csv", index_label="id")
    planned = organizer.type("challenge apply --phase dev", expect=1)
    assert f"dev: {ADDED} is new, with {len(names)} labels." in planned
    assert "Nothing has been done" in planned
    assert organizer.public("dev") == before
    organizer.type("challenge apply --phase dev --yes", "--reason", "a task more")

    def followed() -> bool:
        after = organizer.public("dev")
        return all(
            after.get(team) not in (None, before[team])
            and organizer.q_mean(answered[team, "dev"]) == after[team]
            for team in TEAMS[:2]
        )

    organizer.wait(followed, "the board did not follow the rescore")


def _administer(organizer: Organizer, answered: dict[tuple[str, str], int]) -> None:
    """What an organizer does while a challenge runs works next to the daemon."""
    pk = str(answered["Bo", "dev"])
    assert pk in organizer.type("submissions")
    organizer.type("board publish --preview page")
    listed = json.loads(organizer.type("submissions --json"))["submissions"]
    number = next(row["team_number"] for row in listed if str(row["number"]) == pk)
    for what in (pk, f"--team {number}"):
        for line in (f"challenge disqualify {what}", f"challenge disqualify {what} --undo"):
            organizer.type(line, "--yes", "--reason", "asked")
    assert "nothing was done" in organizer.type(f"challenge follow {pk}")
    for line in ("challenge pause", "challenge pause --finish", "challenge pause --undo"):
        organizer.type(line)
    organizer.type("challenge backup saved.zip")


def _close(organizer: Organizer, answered: dict[tuple[str, str], int]) -> None:
    """Closing the phases shows the values that were withheld."""
    for phase in PHASES:
        organizer.type(f"board close --phase {phase} --now --yes --reason over")
    organizer.type("board publish")

    def shown() -> bool:
        values = organizer.public("eval")
        return list(values) == ["Ada", "Bo"] and all(
            organizer.q_mean(answered[team, "eval"]) == value for team, value in values.items()
        )

    organizer.wait(shown, "the values were not shown at the end")


def _report(organizer: Organizer) -> None:
    """The private report names the hidden task, the awards do not."""
    folder = organizer.folder / "report"
    organizer.type("board report --phase dev", "--out", str(folder))
    for name in ("dev.html", "dev.json"):
        assert ADDED in (folder / name).read_text()
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    organizer.type("board export --phase eval --format csv", "--out", str(organizer.folder / "paper"))
    assert not [file for file in (organizer.folder / "paper").iterdir() if ADDED in file.read_text()]
    awards = organizer.type("board show --awards --phase eval")
    assert "Ada" in awards
    assert ADDED not in awards


def _nothing_hidden_is_public(organizer: Organizer) -> None:
    """The added task's name is in no file of any commit, in no commit message, and in no text that EvalAI shows."""
    assert ADDED not in git(organizer.board, "log", "--all", "--patch", "--format=%B")
    assert not [pk for pk in organizer.sent if ADDED in organizer.shown(pk)]


def _verify(organizer: Organizer) -> None:
    """After the reveal, `verify` finds the repository consistent and names the announced value for both phases."""
    organizer.type("challenge reveal --yes")
    report = json.loads(organizer.type("verify --json --engine torch", str(organizer.board), config=False))
    assert report["verdict"] == "consistent"


def _continue_elsewhere(organizer: Organizer) -> None:
    """A backup can be restored, and another drain changes no board."""
    organizer.type("challenge restore saved.zip elsewhere", config=False)
    organizer.type("once")
    assert list(organizer.public("dev")) == ["Ada", "Bo"]


def _every_command_was_typed(organizer: Organizer) -> None:
    """Every command was typed here, in test_newcomer.py, in test_other_benchmarks_documentation.py, or is listed with a reason."""
    researchers = (" ".join(words[1:]) for words in RESEARCHERS)
    lines = (*organizer.typed, *FIRST_STEPS, *researchers, *OTHERS)
    names = list(commands(program))
    assert len(names) > 25
    assert [name for name in names if not any(f"{line} ".startswith(f"{name} ") for line in lines)] == []

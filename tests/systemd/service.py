"""A challenge that runs as a service of the machine, with the sandbox in place of EvalAI, and the operations that the checks need."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml

from tests.systemd.machine import CLONE, LIBRARIES, Failed, Machine, until
from tests.worker.harness.harness import DIM, IDS, KEY, ROWS, SECRET, embeddings, latent, merged
from worker.sandbox import PhaseSettings, Sandbox, SandboxSettings

LONG = {"scoring": {"epochs": 20_000}}
"""Makes scoring take some seconds, so that a check can interfere with it."""
CHILDREN = """for pid in $(pgrep -f worker.evaluation.evaluate_child); do
  folder=$(readlink /proc/$pid/cwd) || continue
  case $folder in /var/lib/neuco-worker/%s/*) echo $pid;; esac
done"""
"""Prints the ids of the processes that evaluate a submission of one challenge."""
LOW_MEMORY = (
    "find /opt/neuco-worker -path '*/worker/runtime/storage.py' -exec"
    r" sed -i 's/^\(BARE\|READING\|VALUE\)_BYTES = .*/\1_BYTES = 0/' {} +"
)
"""Lets the installed software accept any limit of a child's memory."""


class Stage:
    """A machine and the software installed on it.

    Args:
        machine: The machine, already booted.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.installed = False

    def install(self) -> str:
        """Install a checkout as an organizer does, and return the installer's output."""
        self.installed = True
        return self.machine.run(f"{CLONE}/deploy/install.sh", "--source", CLONE, "--libraries", LIBRARIES)

    @contextmanager
    def service(
        self,
        name: str,
        changes: Mapping[str, Any] | None = None,
        *,
        token: bool = True,
        low_memory: bool = False,
    ) -> Iterator[Service]:
        """Adopt a challenge under a name, and stop it at the end.

        Args:
            name: The name.
            changes: Changes to the usual configuration.
            token: Whether it gets its EvalAI token.
            low_memory: Whether to change the installed software so that it accepts any limit of a child's memory.
        """
        settings = SandboxSettings(
            throttle_per_minute=1_000_000, visibility_timeout_s=2, phases=(PhaseSettings(codename="dev"),)
        )
        if not self.installed:
            self.install()
        if low_memory:
            self.machine.shell(LOW_MEMORY)
        with Sandbox(settings) as evalai:
            service = Service(self.machine, name, evalai)
            try:
                service.adopt(changes or {})
                if token:
                    service.credential("evalai.token", evalai.token("host"))
                yield service
            finally:
                service.remove()


class Service:
    """One challenge, its units, and its submissions.

    Args:
        machine: The machine that it runs on.
        name: The name under which it is adopted.
        evalai: The sandbox in place of EvalAI.
    """

    def __init__(self, machine: Machine, name: str, evalai: Sandbox) -> None:
        self.machine, self.name, self.evalai = machine, name, evalai
        self.unit = f"neuco-worker@{name}.service"
        self.once = f"neuco-worker-once@{name}.service"
        self.folder = f"/etc/neuco-worker/{name}"
        self.state = f"/var/lib/neuco-worker/{name}"
        self.board = f"/srv/{name}.git"
        self.submitted: list[int] = []

    # --- setup and removal ---

    def adopt(self, changes: Mapping[str, Any]) -> None:
        """Write a small challenge and a repository, and adopt the challenge with ``neuco-challenge adopt``."""
        self.machine.shell(f"git init -q --bare -b main {self.board}; chown -R neuco-worker: {self.board}")
        lines = [f"{IDS[row]},{latent()[row, 0]}" for row in range(ROWS)]
        for name, content in {
            "ids/dev.txt": "\n".join(IDS) + "\n",
            "tasks/dev/alpha__regr.csv": "\n".join(["id,label", *lines]) + "\n",
            "challenge.secret": SECRET,
            "signing.key": KEY.seed.hex(),
            "challenge.yaml": yaml.safe_dump(merged(self._settings(), changes)),
        }.items():
            self.machine.write(f"/root/{self.name}/{name}", content)
        self.machine.run(
            "chmod", "0600", *(f"/root/{self.name}/{name}" for name in ("challenge.secret", "signing.key"))
        )
        self.challenge("adopt", f"/root/{self.name}")

    def _settings(self) -> dict[str, Any]:
        evalai = {"server": self.evalai.url, "challenge": self.evalai.challenge, "queue": self.evalai.queue}
        quick = {"poll_every": 1, "reconcile_every": 5, "requests_per_minute": 100_000}
        return {
            "challenge": {"title": f"Challenge {self.name}"},
            "evalai": {**evalai, **quick, "media_hosts": [self.evalai.media_host]},
            "phases": {"dev": {"split": "dev_split", "folds": 4}},
            "submission": {
                "embedding_dim": DIM,
                "answer_grid": 0,
                "disk_reserve_gigabytes": 0,
                "memory_gigabytes": 1,
            },
            "scoring": {"epochs": 2, "learning_rate": 0.05, "threads": 1},
            "leaderboard": {"repository": self.board, "publish_every": 0},
        }

    def remove(self) -> None:
        """Stop and disable all units of the challenge."""
        units = (self.unit, self.once.replace(".service", ".timer"), self.once)
        self.machine.run("systemctl", "disable", "--now", *units, expect=None)

    # --- actions of an organizer ---

    def challenge(self, *arguments: str, stdin: str = "") -> str:
        """Run ``neuco-challenge`` for this challenge."""
        return self.machine.run("neuco-challenge", self.name, *arguments, stdin=stdin)

    def credential(self, file: str, content: str) -> None:
        """Store a credential."""
        self.challenge("credential", file, stdin=content)

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Edit the service's configuration."""
        path = f"{self.folder}/challenge.yaml"
        text = yaml.safe_dump(merged(yaml.safe_load(self.machine.run("cat", path)), changes))
        self.machine.shell(f"cat >{path} <<'END'\n{text}END")  # keeps its owner

    def add_to_unit(self, lines: str, unit: str = "") -> None:
        """Add a drop-in to a unit of this challenge, as ``systemctl edit`` does."""
        self.machine.write(f"/etc/systemd/system/{unit or self.unit}.d/60-check.conf", lines)
        self.machine.run("systemctl", "daemon-reload")

    def control(self, verb: str, unit: str = "", *, expect: int | None = 0) -> str:
        """Run ``systemctl`` on a unit, by default the daemon's."""
        return self.machine.run("systemctl", verb, unit or self.unit, expect=expect)

    def start(self) -> None:
        """Start the daemon and wait until it reports that it is ready."""
        try:
            self.control("start")
        except Failed as problem:
            raise Failed(f"{problem}\n{self.journal()[-2500:]}") from problem

    # --- actions of a participant ---

    def submit(self, team: str = "A", content: bytes | None = None, **options: Any) -> int:
        """Submit for a team; without content, submit a valid file that was not submitted before."""
        content = embeddings(len(self.submitted)) if content is None else content
        self.submitted.append(self.evalai.submit(team, "dev", content, **options))
        return self.submitted[-1]

    def statuses(self) -> list[str]:
        """Return the status of each submission at EvalAI."""
        return [str(self.evalai.submission(pk)["status"]) for pk in self.submitted]

    # --- state of the service ---

    def show(self, key: str, unit: str = "") -> str:
        """Return a property of a unit from ``systemctl show``."""
        return self.machine.run("systemctl", "show", "--value", "-p", key, unit or self.unit).strip()

    def pid(self) -> int:
        """Return the daemon's process id."""
        return int(self.show("MainPID"))

    def journal(self, unit: str = "") -> str:
        """Return the log of a unit."""
        return self.machine.run("journalctl", "--unit", unit or self.unit, "-o", "cat", "--no-pager")

    def alerts(self) -> set[str]:
        """Return the codes of the active alerts."""
        return {str(alert["code"]) for alert in json.loads(self.challenge("status", "--json"))["alerts"]}

    def children(self) -> list[int]:
        """Return the ids of the processes that evaluate one of its submissions."""
        return [int(pid) for pid in self.machine.shell(CHILDREN % self.name).split()]

    def limit_memory(self, limit: int | str) -> None:
        """Change the memory limit of the whole service, in bytes, until the machine is switched off."""
        limits = (f"MemoryMax={limit}", "MemorySwapMax=0")
        self.machine.run("systemctl", "set-property", "--runtime", self.unit, *limits)

    def leave_memory_for_half(self, child: int) -> None:
        """Limit the service's memory to what the daemon uses and half of what a child uses."""
        script = f"awk '/^RssAnon/ {{print $2}}' /proc/{self.pid()}/status /proc/{child}/status"
        daemon_kb, child_kb = map(int, self.machine.shell(script).split())
        self.limit_memory((daemon_kb + child_kb // 2) * 1024)

    def outcomes(self) -> list[str]:
        """Return the outcomes of all evaluations, in order."""
        sql = "SELECT outcome FROM attempts ORDER BY id"
        script = (
            f"import sqlite3; database = sqlite3.connect('file:{self.state}/worker.db?mode=ro', uri=True, timeout=60)\n"
            f"for row in database.execute({sql!r}): print(*row)"
        )
        return self.machine.run("/usr/bin/python3", "-c", script).split()

    def teams(self) -> list[str]:
        """Return the teams on the published board."""
        script = f"git --git-dir {self.board} show main:leaderboard/dev.json 2>/dev/null || true"
        board = self.machine.shell(script)
        return sorted(row["team"] for row in json.loads(board)["entries"]) if board.startswith("{") else []

    # --- waiting ---

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds; a failure includes the end of the log."""
        try:
            until(condition, what)
        except Failed as problem:
            raise Failed(f"{problem}\n{self.journal()[-2500:]}") from problem

    def until_answered(self, status: str = "finished") -> None:
        """Wait until all submissions have a status at EvalAI."""
        self.until(lambda: set(self.statuses()) == {status}, f"all submissions are {status}")

    def until_published(self, *teams: str) -> None:
        """Wait until exactly these teams are on the board."""
        self.until(lambda: self.teams() == sorted(teams), f"the board shows {sorted(teams)}")

    def until_scoring(self) -> int:
        """Wait until a submission is being scored, and return the process that does it."""
        self.until(
            lambda: "running" in self.statuses() and bool(self.children()), "a submission is being scored"
        )
        return self.children()[0]

    def answered_once(self) -> None:
        """Check at EvalAI and in the database that each submission was answered and scored exactly once.

        Raises:
            AssertionError: If a submission was not, or more than once.
        """
        posts = {pk: len(self.evalai.journal.posts().get(pk, [])) for pk in self.submitted}
        assert posts == dict.fromkeys(self.submitted, 1), f"answers per submission: {posts}"
        assert self.outcomes().count("done") == len(self.submitted), f"evaluations: {self.outcomes()}"

"""The commands in docs/organizers.md and docs/operations.md install a worker that scores, back it up, restore it and remove it cleanly."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.acceptance.service_manager import ServiceManager
from tests.waiting import until
from tests.worker.harness.harness import WARM_CACHE
from worker.organizer.configuration_text import with_values
from worker.sandbox import PhaseSettings, Sandbox, SandboxSettings

pytestmark = [pytest.mark.processes, pytest.mark.xdist_group("installation")]  # which has the wheel

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "organizers.md", ROOT / "docs" / "operations.md")
TEXT = "\n".join(page.read_text() for page in PAGES)
ELSEWHERE = {
    "openstack": "there is no cloud here",
    "git clone": "there is no network here; the clone is this checkout",
    "docker": "there is no container engine here; test_deploy_formats.py checks its files",
    "NEUCO_CHALLENGE=": "as docker",
    "sudo chown": "for the container's user",
}
"""Prefixes of commands that cannot be run in this test, and the reason for each."""
JUDGES = {"systemd-analyze"}
"""Checkers that may be missing; other tests run them on the same files."""
SCRIPT = [str(ROOT / "deploy" / "install.sh")]


def commands() -> list[str]:
    """Return the commands on both pages, in order."""
    blocks = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return [
        line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")
    ]


def names(folder: Path) -> set[str]:
    """Return the relative path of every file below a folder, including links."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def software(root: Path) -> set[str]:
    """Return the files that belong to the installation, without compiled files and files of single instances."""
    return {
        name
        for name in names(root)
        if name.startswith(("opt", "usr", "etc/systemd"))
        and "__pycache__" not in name
        and "@earth" not in name
    }


def options(root: Path, wheel: Path) -> list[str]:
    """Return options that install below a root directory and take the libraries from this environment, without a download."""
    libraries = sysconfig.get_path("purelib")
    return ["--root", str(root), "--source", str(wheel), "--libraries", libraries, "--python", sys.executable]


class Reader:
    """A person who follows the pages in a clone, with a separate root directory and the sandbox in place of EvalAI."""

    def __init__(self, folder: Path, wheel: Path, evalai: Sandbox) -> None:
        self.root, self.clone, self._wheel, self._evalai = folder / "root", folder / "clone", wheel, evalai
        for place in (self.root, self.clone, folder / "run"):
            place.mkdir()
        shutil.copytree(ROOT / "deploy", self.clone / "deploy")
        shutil.copy(ROOT / "constraints.txt", self.clone)
        self.manager = ServiceManager(self.root, folder / "run")
        self.submitted: list[int] = []
        (self.clone / "token.txt").write_text(evalai.token("host"))

    def follow(self, line: str) -> str:
        """Run a command from the pages and return its output."""
        words = shlex.split(line)
        words = words[words[0] == "sudo" :]
        if words[0] == "systemctl":
            self.manager.control(*words[1:])
            return ""
        command = self.manager.below(line.removeprefix("sudo "))
        if words[0] == "deploy/install.sh":
            command += " " + shlex.join(options(self.root, self._wheel))
        path = f"{self.root}/usr/local/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        if shutil.which(words[0], path=path) is None and words[0] in JUDGES:
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.clone,
            env={"PATH": path, "HOME": str(self.clone), "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            check=False,
        )
        accepted = {0, 1} if words[0] == "journalctl" else {0}  # there is no journal here
        assert done.returncode in accepted, f"{line}\n{done.stdout}{done.stderr}"
        assert "unrecognized option" not in done.stderr
        return done.stdout

    def edit(self) -> None:
        """Make the edits that the page asks for after `init`, keep the challenge small, and pack the bundle."""
        folder = self.clone / "my-challenge"
        # The example tasks serve as the reader's own, so their ids are renamed.
        for file in [*folder.glob("ids/*.txt"), *folder.glob("tasks/*/*.csv")]:
            file.write_text(file.read_text().replace("img_", "scene_"))
        path = self.clone / "my-challenge" / "challenge.yaml"
        board = self.root / "srv" / "board.git"
        subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(board)], check=True)
        values: dict[str, object] = {
            "evalai.server": self._evalai.url,
            "evalai.challenge": self._evalai.challenge,
            "evalai.queue": self._evalai.queue,
            "evalai.poll_every": 1,
            "evalai.reconcile_every": 2,
            "evalai.media_hosts": [self._evalai.media_host],
            "phases.dev.folds": 4,
            "phases.dev.opens": None,
            "phases.eval.folds": 4,
            "phases.eval.opens": None,
            "scoring.epochs": 2,
            "submission.answer_grid": 0,
            "submission.disk_reserve_gigabytes": 0,
            "leaderboard.repository": str(board),
            "leaderboard.publish_every": 0,
            "fairness.beacon": "none",
        }
        changes = {tuple(key.split(".")): value for key, value in values.items()}
        path.write_text(with_values(path.read_text(), changes))
        bundle = [Path(sys.executable).with_name("neuco-worker"), "bundle", "my-challenge"]
        subprocess.run(bundle, cwd=self.clone, check=True, capture_output=True)

    def submit(self, phase: str) -> None:
        """Send a valid submission to a phase."""
        ids = (self.clone / "my-challenge" / "ids" / f"{phase}.txt").read_text().split()
        matrix = np.random.default_rng(len(self.submitted)).normal(size=(len(ids), 64))
        rows = [f"{name}," + ",".join(f"{x:.4f}" for x in row) for name, row in zip(ids, matrix, strict=True)]
        content = "\n".join(["id," + ",".join(map(str, range(64))), *rows]) + "\n"
        self.submitted.append(self._evalai.submit("Team Earth", phase, content.encode()))

    def end(self, phase: str) -> None:
        """End a phase at EvalAI."""
        self._evalai.set_phase(phase, end_date=self._evalai.world.clock.now())

    def answered(self) -> list[str]:
        """Return the status of every submission so far at EvalAI."""
        return [str(self._evalai.submission(pk)["status"]) for pk in self.submitted]


@pytest.fixture
def reader(tmp_path: Path, wheel: Path) -> Iterator[Reader]:
    """A reader who has not run any command yet."""
    phases = (PhaseSettings(codename="dev"), PhaseSettings(codename="eval"))
    with Sandbox(SandboxSettings(throttle_per_minute=1_000_000, phases=phases)) as evalai:
        reader = Reader(tmp_path, wheel, evalai)
        yield reader
        reader.manager.close()


@pytest.mark.slow
def test_following_the_pages_leads_to_a_running_challenge(reader: Reader) -> None:
    """The commands on the pages install the worker, score submissions, back up, restore, upgrade and uninstall, as described."""
    started = "sudo systemctl start neuco-worker-once@earth"
    installed: set[str] | None = None
    for line in commands():
        if any(line.startswith(prefix) for prefix in ELSEWHERE):
            continue
        if line == started:
            reader.submit("dev")
        elif " board close " in line:
            reader.submit("eval")
            until(lambda: set(reader.answered()) == {"finished"}, reader.answered)
            reader.end("eval")
        output = reader.follow(line)
        if " init my-challenge " in line:
            reader.edit()
        elif line.endswith("install.sh --dry-run"):
            assert names(reader.root) == set()
            assert "neuco-challenge" in output
        elif line.endswith("install.sh") and installed is None:
            installed = software(reader.root)
            # Compiling takes ten seconds; test_demo.py does it in an installation that has no compiled code.
            WARM_CACHE.mkdir(parents=True, exist_ok=True)
            (reader.root / "var/cache/neuco-worker/numba").symlink_to(WARM_CACHE)
        elif line.endswith("install.sh"):
            assert software(reader.root) == installed
        elif line.endswith(" adopt my-challenge"):
            written = yaml.safe_load((reader.root / "etc/neuco-worker/earth/challenge.yaml").read_text())
            assert written["evalai"]["token"] == "credential:evalai.token"
            assert written["challenge"]["secret"] == "credential:challenge.secret"
            assert written["challenge"]["signing_key"] == "credential:signing.key"
        elif line == started:
            assert reader.answered() == ["finished", "finished"]
            board = subprocess.run(
                ["git", "-C", str(reader.root / "srv" / "board.git"), "show", "main:README.md"],
                capture_output=True,
                text=True,
            )
            assert "Team Earth" in board.stdout
        elif line.endswith("earth doctor"):
            assert " passed" in output.splitlines()[-1]
            assert "failed" not in output.splitlines()[-1]
        elif line.endswith("earth2 status"):
            assert "2 published" in output
    left = {name.split("/")[0] for name in names(reader.root)}
    assert left == {"etc", "srv", "var"}
    assert not [prefix for prefix in ELSEWHERE if not any(line.startswith(prefix) for line in commands())]
    assert not [name for name in names(reader.root) if name.startswith(("etc/systemd", "var/cache"))]
    assert (reader.root / "etc/neuco-worker/earth/challenge.yaml").is_file()
    assert (reader.root / "var/lib/neuco-worker/earth/worker.db").is_file()


def test_nothing_is_left_of_an_instance_that_does_not_run(tmp_path: Path) -> None:
    """Uninstallation removes links and drop-ins of an enabled instance even if it does not run, keeps other units, and says what stays."""
    units = tmp_path / "etc/systemd/system"
    for place in ("multi-user.target.wants", "timers.target.wants", "neuco-worker@earth.service.d"):
        (units / place).mkdir(parents=True)
    (units / "neuco-worker@earth.service.d" / "override.conf").write_text("[Service]\n")
    for link in ("multi-user.target.wants/neuco-worker@earth.service", "multi-user.target.wants/ssh.service"):
        (units / link).symlink_to("/etc/systemd/system/neuco-worker@.service")
    (units / "timers.target.wants" / "neuco-worker-once@earth.timer").symlink_to("/nowhere")
    command = [*SCRIPT, "--root", str(tmp_path), "--uninstall"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert f"{tmp_path}/var/backups/neuco-worker (backups, which hold the secrets too)" in said
    assert names(units) == {"multi-user.target.wants/ssh.service"}
    assert not (units / "neuco-worker@earth.service.d").exists()


def test_a_relative_path_is_the_one_that_was_meant(tmp_path: Path) -> None:
    """For pip, a word without a slash is a package of the index; for Python, libraries are relative to its own folder."""
    (tmp_path / "here").mkdir()
    command = [*SCRIPT, "--dry-run", "--root", "root", "--source", "here", "--libraries", "here"]
    dry = subprocess.run(
        [*command, "--python", sys.executable], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert f"libraries from {tmp_path / 'here'}\n" in dry.stdout
    assert f"--force-reinstall {tmp_path / 'here'}\n" in dry.stdout
    command[-1] = "nowhere"
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "nowhere: No such file or directory" in refused.stderr


def test_an_environment_that_was_not_finished_is_made_again(tmp_path: Path) -> None:
    """Without the package python3-venv, or interrupted, `python -m venv` leaves a Python without pip."""
    program = tmp_path / "opt/neuco-worker/bin/python"
    program.parent.mkdir(parents=True)
    for status in (0, 1):
        program.write_text(f"#!/bin/sh\nexit {status}\n")
        program.chmod(0o755)
        command = [*SCRIPT, "--dry-run", "--root", str(tmp_path), "--python", sys.executable]
        dry = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ("-m venv" in dry.stdout) is bool(status)


def test_a_clone_needs_the_build_tools_among_the_libraries(tmp_path: Path) -> None:
    """With ``--libraries``, nothing is downloaded, not even the build tools; if they are missing, they are named and nothing is made."""
    command = [*SCRIPT, "--root", tmp_path / "root", "--libraries", tmp_path, "--python", sys.executable]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "hatchling" in refused.stderr
    assert "--source" in refused.stderr
    assert not (tmp_path / "root").exists()

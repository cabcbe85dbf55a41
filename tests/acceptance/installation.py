"""An installation as a newcomer gets it: neuco-worker and its declared dependencies, without test packages.

The libraries are symbolic links into the environment that runs the tests, so an installation takes a second and needs no network. Only
declared dependencies are linked, so an undeclared one is missing here as it would be on a user's machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DECLARED: list[str] = PROJECT["project"]["dependencies"]
BUILD: list[str] = PROJECT["build-system"]["requires"]
SERVER = Path(__file__).with_name("command_server.py")


def closure(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Find the installed packages that requirements name, and all their dependencies."""
    packages: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    seen = set()
    while waiting:
        wanted = waiting.pop()
        if (wanted.name, *wanted.extras) in seen:
            continue
        seen.add((wanted.name, *wanted.extras))
        packages[wanted.name] = distribution(wanted.name)
        for needed in map(Requirement, packages[wanted.name].requires or ()):
            extras = wanted.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return packages


def link(requirements: Iterable[str], folder: Path) -> None:
    """Link the packages that requirements need into a folder."""
    for package in closure(requirements).values():
        for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            place = folder / name
            if not place.exists():
                place.symlink_to(Path(str(package.locate_file(name))))


def copy_checkout(target: Path) -> Path:
    """Copy only the files that an installation needs into a new git repository."""
    target.mkdir()
    files = ["pyproject.toml", "README.md", "LICENSE", "constraints.txt"]
    for name in files:
        shutil.copy(ROOT / name, target)
    for name in ("worker", "scoring", "leaderboard", "config", "deploy"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    git = ["git", "-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-C", str(target)]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "All"]):
        subprocess.run([*git, *words], check=True)
    return target


def build_wheel(source: Path, target: Path) -> Path:
    """Build the wheel of a checkout."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(target), str(source)]
    subprocess.run(command, check=True)
    (built,) = target.glob("neuco_worker-*.whl")
    return built


class Installation:
    """A virtual environment with the declared libraries, outside the checkout.

    Args:
        folder: Folder of the environment.
        declared: Requirements to install.
    """

    def __init__(self, folder: Path, declared: Iterable[str] = DECLARED) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (self.libraries,) = folder.glob("lib/python3.*/site-packages")
        link(declared, self.libraries)
        self._bring_pip()
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTEST_", "PYTHON", "PIP_", "GIT_", "COV_"))
        } | {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "NUMBA_CACHE_DIR": str(folder / "numba"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }

    def _bring_pip(self) -> None:
        """Make the tests' pip available, without an index and with linked build tools instead of those that it would download."""
        tools = self.folder / "build-tools"
        tools.mkdir()
        link(BUILD, tools)
        settings = f"PYTHONPATH={tools} PIP_NO_INDEX=1 PIP_NO_BUILD_ISOLATION=0 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1"
        command = f'exec env {settings} {sys.executable} -m pip --python {self.folder}/bin/python "$@"'
        script = self.folder / "bin" / "pip"
        script.write_text(f"#!/bin/sh\n{command}\n")
        script.chmod(0o755)

    def start(self) -> subprocess.Popen[str]:
        """Start the process that forks for each command; it ends with its context."""
        program, pipe = [self.folder / "bin" / "python", "-P", SERVER], subprocess.PIPE
        self._server = subprocess.Popen(program, env=self.environment, text=True, stdin=pipe, stdout=pipe)
        return self._server

    def command(self, *words: str, cwd: Path, expect: int = 0) -> tuple[str, str]:
        """Run a short command of ``neuco-worker`` to its end; return what it prints to standard output and to standard error."""
        outputs = [self.folder / name for name in ("command.out", "command.err")]
        print(json.dumps([words, str(cwd), list(map(str, outputs))]), file=self._server.stdin, flush=True)
        assert self._server.stdout is not None
        status = int(self._server.stdout.readline())
        printed, errors = (path.read_text() for path in outputs)
        assert status == expect, f"{' '.join(words)}: {status}\n{printed}\n{errors}"
        return printed, errors

    def run(self, *command: str, cwd: Path, expect: int = 0) -> str:
        """Run a program of the installation to its end and return what it prints."""
        done = subprocess.run(
            [shutil.which(command[0], path=self.environment["PATH"]) or command[0], *command[1:]],
            cwd=cwd,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert done.returncode == expect, f"{' '.join(command)}: {done.returncode}\n{done.stdout}"
        return done.stdout

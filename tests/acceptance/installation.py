"""An installation as a newcomer has it: neuco-worker and what it declares that it needs, no test package.

The libraries are links into the environment that runs the tests, so an installation takes a second and no network. Which ones are linked
follows from what the packages themselves declare, so one that is not declared is missing here as it is anywhere else.
"""

from __future__ import annotations

import os
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


def closure(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Find the installed packages that requirements need, and those that these need."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    seen = set()
    while waiting:
        wanted = waiting.pop()
        if (wanted.name, *wanted.extras) in seen:
            continue
        seen.add((wanted.name, *wanted.extras))
        found[wanted.name] = distribution(wanted.name)
        for needed in map(Requirement, found[wanted.name].requires or ()):
            extras = wanted.extras or {""}
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return found


def link(requirements: Iterable[str], folder: Path) -> None:
    """Put what requirements need into a folder."""
    for package in closure(requirements).values():
        for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
            place = folder / name
            if not place.exists():
                place.symlink_to(Path(str(package.locate_file(name))))


def build_wheel(source: Path, target: Path) -> Path:
    """Build the wheel of a checkout."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--wheel-dir", str(target), str(source)]
    subprocess.run(command, check=True, timeout=100)
    (built,) = target.glob("neuco_worker-*.whl")
    return built


class Installation:
    """A virtual environment with the declared libraries, far from the checkout.

    Args:
        folder: Where to make it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=100)
        (self.libraries,) = folder.glob("lib/python3.*/site-packages")
        link(DECLARED, self.libraries)
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTEST_", "PYTHON", "GIT_", "COV_"))
        } | {"NUMBA_CACHE_DIR": str(folder / "numba"), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}

    def pip(self, *arguments: str, **environment: str) -> str:
        """Run pip without an index; it is the one of the tests, a newcomer's has the same commands."""
        command = [sys.executable, "-m", "pip", "--python", str(self.folder / "bin" / "python")]
        done = subprocess.run(
            [*command, "--disable-pip-version-check", "--no-cache-dir", *arguments],
            env=self.environment | {"PIP_NO_INDEX": "1"} | environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, f"pip {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, *command: str, cwd: Path) -> subprocess.Popen[str]:
        """Start a program of the installation."""
        return subprocess.Popen(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            cwd=cwd,
            env=self.environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *command: str, cwd: Path, expect: int = 0) -> str:
        """Run a program of the installation to its end and return what it prints."""
        process = self.start(*command, cwd=cwd)
        output, _ = process.communicate(timeout=180)
        assert process.returncode == expect, f"{' '.join(command)}: {process.returncode}\n{output}"
        return output

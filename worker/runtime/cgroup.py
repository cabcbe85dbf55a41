"""Memory limits enforced by the kernel: a cgroup (version 2) for each child.

This works only if systemd has delegated a part of the tree to this service, which the unit requests with ``Delegate=memory`` and reports
in the variable :data:`DELEGATED`. Otherwise only the measured memory counts (:mod:`worker.runtime.child`), which is checked a few
times a second, so a sudden growth is noticed late.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import structlog

DELEGATED = "NEUCO_DELEGATED_CGROUP"
"""Set to 1 in the environment if the worker may divide its cgroup."""
TREE = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
DAEMON = "daemon"
PREFIX = "child-"


class Ceiling:
    """The cgroup of one child.

    Args:
        folder: Its folder in the kernel's tree.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def admit(self, pid: int) -> None:
        """Move a process into the cgroup, with everything that it will start; a process that has already ended is ignored."""
        with contextlib.suppress(OSError):
            _write(self._folder / "cgroup.procs", pid)

    def hit(self) -> bool:
        """Return whether the kernel has killed one of its processes for lack of memory."""
        try:
            lines = (self._folder / "memory.events").read_text(encoding="ascii").splitlines()
            events = dict(line.split() for line in lines)
            return int(events.get("oom_kill", "0")) > 0
        except (OSError, ValueError):
            return False

    def kill(self) -> None:
        """Kill all its processes, even those that have left the child's process group (Linux 5.14)."""
        with contextlib.suppress(OSError):
            _write(self._folder / "cgroup.kill", 1)

    def remove(self) -> None:
        """Remove the cgroup; if a dying process still uses it, it is removed when the next one is made."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()


class Delegation:
    """The part of the kernel's tree that is delegated to this service.

    Args:
        root: Its folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def take(self) -> None:
        """Move this process into a leaf of its own, because the kernel limits only the children of groups without processes.

        Raises:
            OSError: If the tree is not delegated, or has no memory limits.
        """
        if "memory" not in (self._root / "cgroup.controllers").read_text(encoding="ascii").split():
            raise FileNotFoundError("no memory controller")
        leaf = self._root / DAEMON
        leaf.mkdir(exist_ok=True)
        for pid in (self._root / "cgroup.procs").read_text(encoding="ascii").split():
            _write(leaf / "cgroup.procs", pid)
        _write(self._root / "cgroup.subtree_control", "+memory")

    def ceiling(self, name: str, *, memory_bytes: int) -> Ceiling | None:
        """Make a cgroup for a child; None if the kernel refuses, so that the measured memory decides.

        Swap counts as well, and all processes are killed together, because a child that has lost a helper could only fail later and less
        clearly.
        """
        for left in self._root.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):  # those of running children are busy
                left.rmdir()
        folder = self._root / f"{PREFIX}{name}"
        try:
            folder.mkdir()
            _write(folder / "memory.max", memory_bytes)
            _write(folder / "memory.oom.group", 1)
        except OSError as problem:  # the folder is removed with those that are left
            structlog.get_logger("neuco_worker").warning(
                "Kernel refused a memory limit for a child process; its memory is measured instead.",
                event_key="cgroup.refused",
                reason=problem.strerror,
            )
            return None
        with contextlib.suppress(OSError):  # not all kernels count swap
            _write(folder / "memory.swap.max", 0)
        return Ceiling(folder)


def delegation(
    environment: Mapping[str, str] = os.environ, *, tree: Path = TREE, membership: Path = MEMBERSHIP
) -> Delegation | None:
    """Return what systemd has delegated to this service, prepared for children; None if nothing.

    Args:
        environment: Contains :data:`DELEGATED` if the unit delegates.
        tree: Where the kernel's tree is mounted.
        membership: File that names this process's place in the tree.
    """
    if environment.get(DELEGATED) != "1":
        return None
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
        place = next(line.removeprefix("0::/") for line in lines if line.startswith("0::/"))
        ours = Delegation(tree / place)
        ours.take()
    except (OSError, StopIteration) as problem:
        structlog.get_logger("neuco_worker").warning(
            "Delegated cgroup cannot be used; memory of child processes is measured instead.",
            event_key="cgroup.unusable",
            reason=str(problem),
        )
        return None
    return ours


def _write(path: Path, value: object) -> None:
    path.write_text(f"{value}\n", encoding="ascii")

"""Children, their process groups and their cgroups, with real processes: none is left, and no unrelated one is killed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from worker.runtime.cgroup import DELEGATED, Ceiling, Delegation, delegation
from worker.runtime.child import Child

STAYS = """sleep 1000 </dev/null >/dev/null 2>&1 & echo "{\\"pid\\": $!}\""""
LIMIT_S = 60.0  # reached only when something is wrong


def started(folder: Path, *command: str, ceiling: Ceiling | None = None) -> Child:
    """Start a child."""
    return Child(command, {}, folder=folder / "child", wake=lambda: None, ceiling=ceiling)


def until(condition: Callable[[], bool]) -> None:
    """Wait until processes have done something."""
    ends = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


def spoken(child: Child) -> int:
    """Return the process id that a child reports."""
    messages: list[dict[str, int]] = []
    until(lambda: bool(messages.extend(child.messages()) or messages))
    return messages[0]["pid"]


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be reaped does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_a_child_leaves_behind_is_killed_before_it_is_reaped(tmp_path: Path) -> None:
    """While members may be alive, the dead child keeps the group's number; then all of them are gone, with the folder."""
    with closing(started(tmp_path, "sh", "-c", STAYS)) as child:
        member = spoken(child)
        until(child.exited)
        assert psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE
        assert is_alive(member)
        until(lambda: child.ended() == 0)
        until(lambda: not is_alive(member))
    assert child.end() == 0
    assert not (tmp_path / "child").exists()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder that looks like a delegated part of the kernel's tree."""
    place = tmp_path / "tree" / "unit.service"
    place.mkdir(parents=True)
    (place / "cgroup.controllers").write_text("cpu memory pids\n")
    (place / "cgroup.procs").write_text("4711\n")
    (tmp_path / "membership").write_text("1:name=systemd:/elsewhere\n0::/unit.service\n")
    return place


def given(tmp_path: Path, environment: dict[str, str]) -> Delegation | None:
    """Ask for the delegated part of the tree, as a worker does at its start."""
    return delegation(environment, tree=tmp_path / "tree", membership=tmp_path / "membership")


def test_a_delegated_part_is_divided(tmp_path: Path, tree: Path) -> None:
    """The daemon moves to a leaf, memory is limited below, and a child gets its own limited cgroup."""
    ours = given(tmp_path, {DELEGATED: "1"})
    assert ours is not None
    assert (tree / "daemon" / "cgroup.procs").read_text() == "4711\n"
    assert (tree / "cgroup.subtree_control").read_text() == "+memory\n"
    ceiling = ours.ceiling("evaluate-7", memory_bytes=1 << 30)
    assert ceiling is not None
    ceiling.admit(815)
    folder = tree / "child-evaluate-7"
    assert {path.name: path.read_text().strip() for path in folder.iterdir()} == {
        "memory.max": str(1 << 30),
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "cgroup.procs": "815",
    }
    for kills in (0, 2):
        (folder / "memory.events").write_text(f"low 0\nmax 3\noom 1\noom_kill {kills}\noom_group_kill 1\n")
        assert ceiling.hit() is (kills > 0)


@pytest.mark.parametrize("fault", ["not delegated", "no memory", "no folder", "no version 2"])
def test_without_cgroups_memory_is_measured(tmp_path: Path, tree: Path, fault: str) -> None:
    """The worker starts all the same, and does not touch a tree that it may not divide."""
    if fault == "no memory":
        (tree / "cgroup.controllers").write_text("cpu\n")
    elif fault == "no folder":
        (tmp_path / "membership").write_text("0::/other.service\n")
    elif fault == "no version 2":
        (tmp_path / "membership").write_text("1:memory:/unit.service\n")
    assert given(tmp_path, {} if fault == "not delegated" else {DELEGATED: "1"}) is None
    assert {path.name for path in tree.iterdir()} == {"cgroup.controllers", "cgroup.procs"}


@pytest.fixture
def real_tree() -> Iterator[Path]:
    """An empty group of this machine's own tree."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    places = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not places:
        pytest.skip("this machine has no cgroup version 2")
    place = places[0] / f"neuco-test-{os.getpid()}"
    try:
        place.mkdir()
    except OSError as problem:
        pytest.skip(f"this machine's cgroup tree is not ours to divide ({problem.strerror})")
    yield place
    for folder in (*place.glob("*/"), place):
        folder.rmdir()


def test_a_process_that_left_the_group_is_killed_with_its_ceiling(tmp_path: Path, real_tree: Path) -> None:
    """A process with its own session leaves the process group, but not the cgroup, which can then be removed."""
    folder = real_tree / "child-1"
    folder.mkdir()
    with closing(
        started(tmp_path, "sh", "-c", f"cat >/dev/null; setsid {STAYS}; sleep 1000", ceiling=Ceiling(folder))
    ) as child:
        escaped = spoken(child)
        assert not child.exited()
        assert escaped in map(int, (folder / "cgroup.procs").read_text().split())
    until(lambda: not is_alive(escaped))

    def is_removed() -> bool:
        """Make the next child's cgroup, which removes those that dying processes used until now."""
        Delegation(real_tree).ceiling("2", memory_bytes=1 << 30)
        return not folder.exists()

    until(is_removed)

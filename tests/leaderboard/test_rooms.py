"""The rooms of the leaderboard: their arrows go one way, and others import only what a room names."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("exchange", "report", "rendering", "ranking")
"""From top to bottom: a room imports rooms below it alone."""
APART = "git"  # knows nothing of boards


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the modules of the leaderboard that a file imports from, with each name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "leaderboard":
            yield from ((str(node.module), name.name) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names if name.name.split(".")[0] == "leaderboard")


@pytest.mark.parametrize("room", [*ROOMS, APART])
def test_a_room_imports_rooms_below_it_alone(room: str) -> None:
    """So each can be read without those above it; what pushes can be read without any."""
    below = {"snapshot", "figures", *ROOMS[ROOMS.index(room) :]} if room in ROOMS else {APART}
    paths = sorted((ROOT / "leaderboard" / room).rglob("*.py"))
    assert paths
    upward = [
        f"{path.name} imports {module}"
        for path in paths
        for module, _ in imported(path)
        if module.split(".")[1] not in below
    ]
    assert not upward


def test_others_import_only_what_a_room_names() -> None:
    """What a package's ``__all__`` lacks is nobody else's business."""
    inner = []
    for path in sorted([*(ROOT / "worker").rglob("*.py"), *(ROOT / "leaderboard").rglob("*.py")]):
        package = ".".join(path.relative_to(ROOT).parts[:-1])
        for module, name in imported(path):
            room = ".".join(module.split(".")[:2])
            at_home = package == room or (
                package.startswith("leaderboard") and not (ROOT / room.replace(".", "/")).is_dir()
            )
            if not at_home and (
                module != room or name not in getattr(importlib.import_module(room), "__all__", ())
            ):
                inner.append(f"{path.relative_to(ROOT)}: {module}.{name}")
    assert not inner


@pytest.mark.parametrize("room", ["", *(f".{room}" for room in (*ROOMS, APART))])
def test_public_names_are_there(room: str) -> None:
    """A package says in a sentence what it is for and names its public surface, sorted and without gaps."""
    package = importlib.import_module(f"leaderboard{room}")
    assert package.__doc__
    assert all(hasattr(package, name) for name in package.__all__)

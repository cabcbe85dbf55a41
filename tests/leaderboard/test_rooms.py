"""The leaderboard's packages import each other in one direction only, and other code imports only their public names."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("exchange", "report", "rendering", "ranking")
"""From top to bottom: a package may import only packages below it."""
APART = "git"  # independent of boards


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the modules of the leaderboard that a file imports from, with each name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "leaderboard":
            yield from ((str(node.module), name.name) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((name.name, "") for name in node.names if name.name.split(".")[0] == "leaderboard")


@pytest.mark.parametrize("room", [*ROOMS, APART])
def test_a_package_imports_only_packages_below_it(room: str) -> None:
    """A package may import only packages below it; ``git`` imports none."""
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


def test_other_code_imports_only_public_names() -> None:
    """Code outside a package imports only the names in its ``__all__``."""
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
    """A package has a docstring, and every name in its ``__all__`` exists."""
    package = importlib.import_module(f"leaderboard{room}")
    assert package.__doc__
    assert all(hasattr(package, name) for name in package.__all__)

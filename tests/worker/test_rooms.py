"""The rooms of the worker: their arrows go one way, and their code reads in one piece."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[2] / "worker"
ORDER = (
    "daemon",
    "intake",
    "fetching",
    "evaluation",
    "publishing",
    "fairness",
    "challenge",
    "runtime",
    "state",
)
"""From top to bottom: a room imports rooms below it alone."""
PIPELINE = ("daemon", "intake", "fetching", "evaluation", "publishing", "challenge", "runtime")
SCREEN = 60  # lines of a function
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def modules(room: str) -> list[Path]:
    """Return the modules of a room."""
    found = sorted((WORKER / room).rglob("*.py"))
    assert found, f"there is no room worker/{room}"
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def nested(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
    """Yield the functions that are defined inside others; a key to sort by is used up where it stands."""
    keys = {
        keyword.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "key"
    }
    for outer in ast.walk(tree):
        if isinstance(outer, FUNCTIONS):
            for part in outer.body if isinstance(outer.body, list) else [outer.body]:
                yield from (
                    inner for inner in ast.walk(part) if isinstance(inner, FUNCTIONS) and inner not in keys
                )


@pytest.mark.parametrize("room", ORDER)
def test_a_room_imports_rooms_below_it_alone(room: str) -> None:
    """Arrows go down the list, so nobody has to read upward to understand a room."""
    above = ORDER[: ORDER.index(room)]
    upward = [
        f"{path.relative_to(WORKER)} imports {name}"
        for path in modules(room)
        for name in imported(ast.parse(path.read_text()))
        if name.split(".")[0] == "worker" and name.split(".")[1] in above
    ]
    assert not upward


@pytest.mark.parametrize("room", PIPELINE)
def test_no_function_is_defined_inside_another_to_run_later(room: str) -> None:
    """What a room does reads in one piece, not in callbacks that another room runs."""
    later = [
        f"{path.relative_to(WORKER)}:{function.lineno}"
        for path in modules(room)
        for function in nested(ast.parse(path.read_text()))
    ]
    assert not later


@pytest.mark.parametrize("room", PIPELINE)
def test_a_function_fits_a_screen(room: str) -> None:
    """Sixty lines, with the docstring."""
    long = [
        f"{path.relative_to(WORKER)}:{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in modules(room)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= SCREEN
    ]
    assert not long

"""The subpackages of the worker: imports go one way, each names what others may use, and their code has no callbacks."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[2] / "worker"
ORDER = (
    "cli",
    "organizer",
    "daemon",
    "intake",
    "fetching",
    "publishing",
    "evaluation",
    "fairness",
    "challenge",
    "evalai",
    "runtime",
    "state",
    "participant",
)
"""From top to bottom: a room imports rooms below it alone."""
BESIDE = "sandbox"  # an EvalAI of our own: it knows no other room, and practice alone knows it
PRACTICE = {"cli", "organizer"}
PIPELINE = ("daemon", "intake", "fetching", "evaluation", "publishing", "challenge", "runtime")
SCREEN = 60  # lines of a function
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def modules(room: str) -> list[Path]:
    """Return the modules of a subpackage."""
    found = sorted((WORKER / room).rglob("*.py"))
    assert found, f"there is no room worker/{room}"
    return found


@cache
def imported(path: Path) -> tuple[tuple[str, ...], ...]:
    """Return what a module imports from worker, wherever in it, as parts of a dotted name."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [(*node.module.split("."), name.name) for name in node.names]
        elif isinstance(node, ast.Import):
            found += [tuple(name.name.split(".")) for name in node.names]
    return tuple(parts for parts in found if parts[0] == "worker")


def nested(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
    """Yield the functions that are defined inside others, except sort keys."""
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


def test_every_module_has_its_room() -> None:
    """``ls worker/`` shows the pipeline."""
    assert {path.name for path in WORKER.glob("*.py")} == {"__init__.py"}
    assert {path.parent.name for path in WORKER.glob("*/*.py")} == {*ORDER, BESIDE}


@pytest.mark.parametrize("room", [*ORDER, BESIDE])
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    """Imports go down the list, so that a subpackage can be understood without those above it."""
    allowed = {room, *(ORDER[ORDER.index(room) :] if room in ORDER else ())}
    allowed |= {BESIDE} if room in PRACTICE else set()
    upward = [
        f"{path.relative_to(WORKER)} imports {'.'.join(parts)}"
        for path in modules(room)
        for parts in imported(path)
        if parts[1] not in allowed
    ]
    assert not upward


@pytest.mark.parametrize("room", [*ORDER, BESIDE])
def test_others_import_only_what_a_room_names(room: str) -> None:
    """A name that is missing from a package's ``__all__`` is private to it, also inside a larger package."""
    past = []
    for path in modules(room):
        home = path.relative_to(WORKER.parent).parts[:-1]
        for parts in imported(path):
            for depth in range(2, len(parts)):
                package = parts[:depth]
                if home[:depth] == package or not WORKER.parent.joinpath(*package).is_dir():
                    continue
                if parts[depth] not in importlib.import_module(".".join(package)).__all__:
                    past.append(f"{path.relative_to(WORKER)} imports {'.'.join(parts)}")
    assert not past


@pytest.mark.parametrize("room", [*ORDER, BESIDE])
def test_a_room_says_what_it_is_for_and_offers_what_it_names(room: str) -> None:
    """Every name in ``__all__`` exists, as a name or as a module, and once."""
    for path in (WORKER / room).rglob("__init__.py"):
        package = importlib.import_module(".".join(path.parent.relative_to(WORKER.parent).parts))
        assert package.__doc__
        offered = getattr(package, "__all__", [])
        assert offered or path.parent != WORKER / room
        assert len(offered) == len(set(offered))
        for name in offered:
            inside = path.parent / name
            assert inside.with_suffix(".py").is_file() or inside.is_dir() or hasattr(package, name), name


@pytest.mark.parametrize("room", PIPELINE)
def test_no_function_is_defined_inside_another_to_run_later(room: str) -> None:
    """A subpackage's code can be read in order, without callbacks that another one runs."""
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

"""The packages and their rooms (subpackages): imports go one way, and each room names what others may use."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("worker", "leaderboard", "scoring")
"""From top to bottom: a package imports packages below it alone."""
ORDERS = {
    "worker": (
        *(
            "cli",
            "organizer",
            "verify",
            "daemon",
            "intake",
            "fetching",
            "publishing",
            "evaluation",
            "answers",
            "fairness",
        ),
        *("challenge", "evalai", "runtime", "state", "participant"),
    ),
    "leaderboard": ("exchange", "report", "rendering", "ranking"),
}
"""From top to bottom: a room imports rooms below it alone."""
BESIDE = {"worker.sandbox": {"cli", "organizer"}, "leaderboard.git": set[str]()}
"""Rooms that import no other room of their package, with the rooms that import them."""
ROOMS = sorted(
    f"{package}.{path.parent.name}" for package in PACKAGES for path in ROOT.glob(f"{package}/*/__init__.py")
)
PIPELINE = ("daemon", "intake", "fetching", "evaluation", "answers", "publishing", "challenge", "runtime")
SCREEN = 60  # lines of a function
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Name = tuple[str, ...]
"""The parts of a dotted name."""


@cache
def modules(package: str) -> tuple[Path, ...]:
    """Return the modules of a package or room."""
    return tuple(sorted((ROOT / package.replace(".", "/")).rglob("*.py")))


@cache
def imported(path: Path) -> tuple[Name, ...]:
    """Return what a module imports from the packages, also inside functions."""
    names: list[Name] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names += [(*node.module.split("."), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [tuple(alias.name.split(".")) for alias in node.names]
    return tuple(name for name in names if name[0] in PACKAGES)


def home(path: Path) -> Name:
    """Return the name of a module's package."""
    return path.relative_to(ROOT).parts[:-1]


def test_a_package_imports_only_packages_below_it() -> None:
    """``worker`` uses both others, ``leaderboard`` uses ``scoring``, and ``scoring`` uses neither."""
    for place, package in enumerate(PACKAGES):
        used = {name[0] for path in modules(package) for name in imported(path)}
        assert used <= set(PACKAGES[place:])


def test_every_module_of_the_worker_has_its_room() -> None:
    """``ls worker/`` shows the pipeline."""
    assert [path.name for path in (ROOT / "worker").glob("*.py")] == ["__init__.py"]
    for package, order in ORDERS.items():
        assert {f"{package}.{room}" for room in order} <= set(ROOMS) - BESIDE.keys()


@pytest.mark.parametrize("room", [*(f"{top}.{room}" for top in ORDERS for room in ORDERS[top]), *BESIDE])
def test_a_room_imports_only_rooms_below_it(room: str) -> None:
    """A room can be understood without those above it."""
    top, _, own = room.partition(".")
    order = ORDERS[top]
    allowed = {own, *(order[order.index(own) :] if own in order else ())}
    allowed |= {name.partition(".")[2] for name, users in BESIDE.items() if own in users}
    others = {*order, *(name.partition(".")[2] for name in BESIDE)} - allowed
    upward = [f"{path}: {name}" for path in modules(room) for name in imported(path) if name[0] == top]
    assert [text for text in upward if any(f"'{top}', '{other}'" in text for other in others)] == []


def test_others_import_only_what_a_room_names() -> None:
    """A name that is missing from a package's ``__all__`` is private to it, also inside a larger package."""
    past = [
        f"{path} imports {'.'.join(name)}"
        for path in (path for package in PACKAGES for path in modules(package))
        for name in imported(path)
        for depth in range(2, len(name))
        if home(path)[:depth] != name[:depth] and ROOT.joinpath(*name[:depth]).is_dir()
        if name[depth] not in importlib.import_module(".".join(name[:depth])).__all__
    ]
    assert past == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for_and_offers_what_it_names(room: str) -> None:
    """Every name in ``__all__`` exists, as a name or as a module, and once."""
    for path in (ROOT / room.replace(".", "/")).rglob("__init__.py"):
        package = importlib.import_module(".".join(home(path)))
        assert package.__doc__
        offered = getattr(package, "__all__", [])
        assert offered or ".".join(home(path)) != room
        assert len(offered) == len(set(offered))
        for name in offered:
            inside = path.parent / name
            assert inside.with_suffix(".py").is_file() or inside.is_dir() or hasattr(package, name), name


def test_nothing_is_imported_in_circles() -> None:
    """No module imports one that imports it, even indirectly or inside a function."""
    arrows: dict[Path, set[Path]] = {}
    for path in (path for package in PACKAGES for path in modules(package) if path.name != "__init__.py"):
        for name in imported(path):
            whole, part = (ROOT.joinpath(*parts).with_suffix(".py") for parts in (name, name[:-1]))
            arrows.setdefault(path, set()).add(whole if whole.is_file() else part)
    assert list(TopologicalSorter(arrows).static_order())


def test_a_class_name_has_one_meaning() -> None:
    """Whoever reads it need not look which of two is meant."""
    trees = (ast.parse(path.read_text()) for package in PACKAGES for path in modules(package))
    names = [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert [name for name in set(names) if names.count(name) > 1] == []


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


@pytest.mark.parametrize("room", PIPELINE)
def test_code_of_the_pipeline_reads_in_order(room: str) -> None:
    """No function is defined inside another to run later, and each fits a screen with its docstring."""
    for path in modules(f"worker.{room}"):
        tree = ast.parse(path.read_text())
        assert [f"{path}:{function.lineno}" for function in nested(tree)] == []
        functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS[:2])]
        assert [
            function.name for function in functions if (function.end_lineno or 0) - function.lineno >= SCREEN
        ] == []

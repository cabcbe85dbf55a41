"""The packages of scoring: their public names, imports of other code, and imports between them."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import scoring

ROOM = Path(scoring.__file__).parent
ROOMS = sorted(path.parent.name for path in ROOM.glob("*/__init__.py"))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of every import from scoring, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scoring"):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.startswith("scoring."))


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_exists(room: str) -> None:
    """Every name in ``__all__`` exists, as a name or as a module, and is listed once."""
    package = importlib.import_module(f"scoring.{room}")
    assert len(package.__all__) == len(set(package.__all__))
    for name in package.__all__:
        assert hasattr(package, name) or (ROOM / room / f"{name}.py").is_file()


def test_code_outside_a_package_imports_only_public_names() -> None:
    """Code outside a package imports only the names in its ``__all__``."""
    past = []
    for package in ("scoring", "leaderboard", "worker"):
        for path in sorted((ROOM.parent / package).rglob("*.py")):
            for module, name in imports(path):
                _, room, *inside = [*module.split("."), *([name] if name else [])]
                if room not in ROOMS or path.is_relative_to(ROOM / room) or not inside:
                    continue
                if inside[0] not in importlib.import_module(f"scoring.{room}").__all__:
                    past.append(f"{path.relative_to(ROOM.parent)}: {module} {name}")
    assert past == []


def test_nothing_is_imported_in_circles() -> None:
    """No package and no module imports one that imports it, even indirectly or inside a function."""
    packages: dict[str, set[str]] = {}
    modules: dict[str, set[str]] = {}
    for path in ROOM.rglob("*.py"):
        own = ".".join(path.relative_to(ROOM.parent).with_suffix("").parts).removesuffix(".__init__")
        for module, name in imports(path):
            whole = f"{module}.{name}"
            target = whole if (ROOM.parent / whole.replace(".", "/")).with_suffix(".py").exists() else module
            modules.setdefault(own, set()).add(target)
            places = [f"{part}.".split(".")[1] for part in (own, whole)]
            if places[0] != places[1]:
                packages.setdefault(places[0], set()).add(places[1])
    modules.pop("scoring", None)  # its lazy names are imported for the type checker only
    packages.pop("", None)
    for arrows in (packages, modules):
        assert list(TopologicalSorter(arrows).static_order())

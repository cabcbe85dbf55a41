"""Reading other people's YAML; every fault is the same kind of error."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import scoring
from scoring.documents import read_yaml


@pytest.mark.parametrize(
    "text",
    ["a: [", "2026-99-99", "[" * 5000, b"\xff\xfe\xfa", "a: !!python/object:os.system {}", "\x00"],
    ids=["open", "no date", "deep", "bytes", "object", "control"],
)
def test_all_invalid_yaml_raises_the_same_error(text: str | bytes) -> None:
    """No other exception is raised, and no object is created."""
    with pytest.raises(yaml.YAMLError):
        read_yaml(text)


def test_only_this_module_calls_the_yaml_loaders() -> None:
    """PyYAML's own loaders are called in one place only."""
    root = Path(scoring.__file__).parents[1]
    callers = [
        str(path.relative_to(root))
        for room in ("scoring", "leaderboard", "worker")
        for path in sorted((root / room).rglob("*.py"))
        if any(name in path.read_text() for name in ("yaml.safe_load", "yaml.load(", "yaml.SafeLoader("))
    ]
    assert callers == ["scoring/documents.py"]

"""Reading and editing other people's YAML; every fault is the same kind of error."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import scoring
from scoring.inputs.documents import read_yaml, with_values


@pytest.mark.parametrize(
    "text",
    ["a: [", "2026-99-99", "[" * 5000, b"\xff\xfe\xfa", "a: !!python/object:os.system {}", "\x00"],
    ids=["open", "no date", "deep", "bytes", "object", "control"],
)
def test_all_invalid_yaml_raises_the_same_error(text: str | bytes) -> None:
    """No other exception is raised, and no object is created."""
    with pytest.raises(yaml.YAMLError):
        read_yaml(text)


def test_plain_values_come_out() -> None:
    """Mappings, lists, texts and numbers."""
    assert read_yaml("a: [1, 2.5, x, true, null]") == {"a": [1, 2.5, "x", True, None]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# top\na:\n  b: 1.0  # one\n  c: x # two\n", "# top\na:\n  b: 1.0  # one\n  c: new: er # two\n"),
        ("a: {b: 'yes', c: \"x\"} # all\r\n", "a: {b: 'yes', c: 'new: er'} # all\r\n"),
        ("a:\n  c:\n  # nothing yet\n  b: no\n", "a:\n  c: 'new: er'\n  # nothing yet\n  b: no\n"),
        ("a:\n  c: >\n    x\n    y\n\nb: 1\n", None),
    ],
    ids=["block", "flow", "empty", "folded"],
)
def test_a_value_is_replaced_where_it_is_written(text: str, expected: str | None) -> None:
    """Comments, order, quotes and line ends of everything else stay."""
    edited = with_values(text, {("a", "c"): "new: er"})
    if expected is not None:
        assert edited == expected.replace("c: new: er", "c: 'new: er'")
    assert read_yaml(edited)["a"]["c"] == "new: er"


def test_unchanged_values_keep_their_spelling() -> None:
    """A value that is equal, but written in another way, is not edited."""
    text = "a: 'x' # quoted\n"
    assert with_values(text, {("a",): "x"}) == text


@pytest.mark.parametrize(
    "text",
    [
        "a: &one {c: x}\nb: *one\n",
        "a: {c: &one x}\nb: {c: *one}\n",
        "z: &one {c: x}\na: {<<: *one}\nb: {c: x}\n",
    ],
    ids=["section", "value", "merged"],
)
def test_a_shared_section_gets_separate_values(text: str) -> None:
    """The result loses its comments, but has the right values."""
    document = read_yaml(with_values(text, {("a", "c"): "y", ("b", "c"): "z"}))
    assert (document["a"], document["b"]) == ({"c": "y"}, {"c": "z"})


def test_only_this_module_calls_the_yaml_loaders() -> None:
    """PyYAML's own loaders are called in one place only."""
    root = Path(scoring.__file__).parents[1]
    callers = [
        str(path.relative_to(root))
        for room in ("scoring", "leaderboard", "worker")
        for path in sorted((root / room).rglob("*.py"))
        if "yaml.safe_load" in path.read_text() or "yaml.load(" in path.read_text()
    ]
    assert callers == ["scoring/inputs/documents.py"]

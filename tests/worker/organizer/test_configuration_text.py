"""Editing a configuration file: only the changed values change."""

from __future__ import annotations

import pytest

from scoring.documents import read_yaml
from worker.organizer.configuration_text import with_values


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


@pytest.mark.parametrize("value", ["x\ny", "x\u2028y ✓", "\n"])
def test_a_value_with_a_line_break_stays_whole(value: str) -> None:
    """A title is copied from a web page, and a folder's name may have anything."""
    edited = with_values("a: 1  # one\n", {("a",): value})
    assert edited.endswith("  # one\n")
    assert read_yaml(edited) == {"a": value}


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


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("b",), "a:\n    c: 1  # one\nb: true\n"),
        (("b", "d"), "a:\n    c: 1  # one\nb:\n  d: true\n"),
        (("a", "d"), "a:\n    d: true\n    c: 1  # one\n"),
        (("a", "d", "e"), "a:\n    d:\n      e: true\n    c: 1  # one\n"),
    ],
)
def test_missing_keys_and_sections_are_added(path: tuple[str, ...], expected: str) -> None:
    """They go to the beginning of their section, or to the end of the text."""
    assert with_values("a:\n    c: 1  # one\n", {path: True}) == expected

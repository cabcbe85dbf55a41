"""A long challenge is verified in little memory, and its large documents are parsed like any other JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.bench_verify import verified
from tests.benchmarks.long_challenge import Size, make_repository
from worker.fairness.verify.documents import LargeDocument

VERSIONS = 300
LIMIT_MB = 160  # imports take 65 MB; holding all boards as values would take another 300 MB
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_square_of_the_boards(tmp_path: Path) -> None:
    """Every version of every growing file is compared and every board is recomputed, but only a few are in memory at once."""
    report, megabytes, _ = verified(make_repository(tmp_path, Size(versions=VERSIONS)))
    assert (report["verdict"], report["entries"]) == ("consistent", VERSIONS)
    assert megabytes < LIMIT_MB


@given(JSON, st.lists(JSON, max_size=4), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_large_documents_read_as_json_does(one: Any, many: list[Any], indent: Any, ascii_only: bool) -> None:
    """A document of any layout has the same values when its lists are read one element at a time."""
    written = {"before": one, "many": many, "": {"many": many}, "none": []}
    content = json.dumps(written, indent=indent, ensure_ascii=ascii_only).encode()
    document = LargeDocument(content, lists=("many", "none", "before"))
    for name in ("many", "none"):
        assert [json.loads(text) for text in document.each(name)] == written[name]
    if isinstance(one, list):
        assert [json.loads(text) for text in document.each("before")] == one
    else:
        assert document.rest["before"] == one
    assert document.rest[""] == {"many": many}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"a"}',
        '{"a":1}x',
        '{"a":1,}',
        '{"many":[1,]}',
        '{"a":1}{',
        '{"a":1,"a":2}',
        "{1:2}",
        '{"many":[1 2]}',
        '{"many":[1',
        '{"many":[1]',
        "{} {}",
    ],
)
def test_malformed_documents_are_refused(text: str) -> None:
    """Malformed documents are refused, including those with a duplicate key, which JSON readers usually accept."""
    with pytest.raises((ValueError, LookupError)):
        LargeDocument(text.encode(), lists=("many",))

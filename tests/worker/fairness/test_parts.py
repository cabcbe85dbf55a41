"""The register of a reveal is divided into parts, and read back in its order."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from worker.fairness import reveals

VALUES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(values=st.lists(VALUES, max_size=12), at_most=st.integers(1, 200), ascii_only=st.booleans())
def test_parts_hold_what_was_written(values: list[object], at_most: int, ascii_only: bool) -> None:
    """The order is kept, no part is too large unless it has one element, and each matches its description."""
    lines = [json.dumps(value, ensure_ascii=ascii_only) for value in values]
    written = reveals.written(lines, at_most=at_most)
    files = {f"reveal/dev/{part.name}": text.encode() for part, text in written}
    assert len(files) == len(written)
    read: list[object] = []
    for number, (part, _) in enumerate(written, 1):
        path = reveals.path_of(files, "reveal/dev", part)
        content = files[path]
        found = list(reveals.lines_of(content))
        assert path == f"reveal/dev/register-{number}.jsonl"
        assert len(content) <= at_most or len(found) == 1
        read += map(json.loads, found)
    assert read == values

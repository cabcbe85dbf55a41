"""Rewrite our block of README.md, and nothing around it.

Only the text between the two markers changes; every other byte of the file stays. The block is plain GitHub-flavored Markdown, with a
``<picture>`` for the light and the dark figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from leaderboard.rendering.assets import templates
from leaderboard.rendering.names import markdown
from leaderboard.rendering.shown import ShownPhase

BEGIN = "<!-- neuco-worker:begin -->"
END = "<!-- neuco-worker:end -->"
_MARKER = re.compile(rb"^[ \t]*<!-- neuco-worker:(begin|end) -->[ \t]*\r?$", re.MULTILINE)


def update_readme(existing: bytes | None, title: str, phases: Sequence[ShownPhase]) -> bytes:
    """Return README.md with our block.

    If there is no file, a new one has the challenge's title. If there are no markers, the block is appended. The first complete pair of
    markers is ours. A marker counts only alone on its line, and an opening marker without an end is ignored.
    """
    block = render_block(phases)
    if existing is None or not existing.strip():
        return f"# {markdown(title)}\n\n{block}\n".encode()
    newline = "\r\n" if b"\r\n" in existing.split(b"\n", 1)[0] + b"\n" else "\n"
    ours = block.replace("\n", newline).encode()
    start = None
    for match in _MARKER.finditer(existing):
        if match.group(1) == b"begin":
            start = match.start()
        elif start is not None:
            end = match.end() - (1 if match.group().endswith(b"\r") else 0)
            return existing[:start] + ours + existing[end:]
    gap = newline if existing.endswith(b"\n") else newline * 2
    return existing + gap.encode() + ours + newline.encode()


def render_block(phases: Sequence[ShownPhase]) -> str:
    """Return the block with its markers, without a final newline."""
    same_rules = len({phase.rules for phase in phases}) == 1
    return templates().get_template("readme.md.j2").render(phases=phases, same_rules=same_rules)

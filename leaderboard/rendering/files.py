"""Render all published files with one pure function, from a site to the bytes of its files.

In README.md, only the text between the two markers changes; every other byte stays. The block is plain GitHub-flavored Markdown, with a
``<picture>`` for the light and the dark figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from leaderboard.rendering.assets import schemas, templates
from leaderboard.rendering.charts import evolution_figures
from leaderboard.rendering.columns import COLUMNS
from leaderboard.rendering.documents import EntryRow, PhaseDocument, rounded
from leaderboard.rendering.history import HISTORY, update_history
from leaderboard.rendering.names import csv_cell, csv_text, markdown
from leaderboard.rendering.page import render_page
from leaderboard.rendering.shown import ShownPhase, shown_phases
from leaderboard.snapshot import Site

_MARKER = re.compile(rb"^[ \t]*<!-- neuco-worker:(begin|end) -->[ \t]*\r?$", re.MULTILINE)


def update_readme(
    existing: bytes | None, title: str, phases: Sequence[ShownPhase], access: str = ""
) -> bytes:
    """Return README.md with our block.

    If there is no file, a new one has the challenge's title. If there are no markers, the block is appended. The first complete pair of
    markers is ours. A marker counts only alone on its line, and an opening marker without an end is ignored.
    """
    block = (
        templates()
        .get_template("readme.md.j2")
        .render(
            phases=phases,
            same_rules=len({phase.rules for phase in phases}) == 1,
            access=access,
            columns=[column for column in COLUMNS if column.in_readme],
        )
    )
    if existing is None or not existing.strip():
        return f"# {markdown(title)}\n\n{block}\n".encode()
    newline = "\r\n" if b"\r\n" in existing.split(b"\n", 1)[0] + b"\n" else "\n"
    ours = block.replace("\n", newline).encode()
    if (around := around_block(existing)) is not None:
        return around[0] + ours + around[1]
    gap = newline if existing.endswith(b"\n") else newline * 2
    return existing + gap.encode() + ours + newline.encode()


def around_block(existing: bytes) -> tuple[bytes, bytes] | None:
    """Return what is before and after our block in README.md; None if there is no block."""
    start = None
    for match in _MARKER.finditer(existing):
        if match.group(1) == b"begin":
            start = match.start()
        elif start is not None:
            return existing[:start], existing[match.end() - match.group().endswith(b"\r") :]
    return None


METHOD_COLUMNS = ("method", "project_url", "publication_url")
"""The last columns of the CSV, if any participant gave one of these values."""
CSV_COLUMNS = tuple(name for name in EntryRow.model_fields if name not in METHOD_COLUMNS)


def render(site: Site, *, readme: bytes | None, history: bytes | None = None) -> dict[str, bytes]:
    """Return path → content of every published file; paths are relative to the root of the branch.

    The function is pure: equal values give equal bytes, in any process. Before the reveal nothing in the files depends on the number of
    hidden tasks. What a reveal unlocks is added to ``index.html`` and the phase's JSON.

    Args:
        site: The site to render.
        readme: README.md from the branch, so that the text around our block stays; None if there is none.
        history: leaderboard/history.jsonl from the branch, which is only appended to; None starts a new one.
    """
    phases = shown_phases(site)
    files = {
        ".gitattributes": b"* -text\n",  # so that every clone has the bytes that were signed
        "README.md": update_readme(readme, site.title, phases, site.access),
        "index.html": render_page(site, phases),
        HISTORY: update_history(history, site),
        **{f"leaderboard/schema/{name}": content for name, content in schemas().items()},
    }
    for phase in phases:
        files[f"leaderboard/{phase.document.phase}.json"] = phase.document.file_text().encode()
        files[f"leaderboard/{phase.document.phase}.csv"] = _csv(phase.document)
        if phase.evolution:
            light, dark = evolution_figures(phase.document.phase, phase.evolution)
            files[f"leaderboard/{phase.document.phase}-evolution-light.svg"] = light
            files[f"leaderboard/{phase.document.phase}-evolution-dark.svg"] = dark
    return dict(sorted(files.items()))


def _csv(document: PhaseDocument) -> bytes:
    has_methods = any(row.has_method for row in document.entries)
    columns = (*CSV_COLUMNS, *(METHOD_COLUMNS if has_methods else ()))
    lines = []
    for row in document.entries:
        cells = row.model_dump(mode="json", include=set(columns)) | {
            "q_mean": rounded(row.q_mean, document.rules.decimals)
        }
        lines.append([_cell(name, cells[name]) for name in columns])
    return csv_text(columns, lines).encode()


def _cell(name: str, value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return csv_cell(value) if isinstance(value, str) and name != "q_mean" else value

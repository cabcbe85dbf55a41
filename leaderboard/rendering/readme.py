"""Rewrite our block of README.md, and nothing around it.

Only the text between the two markers changes; every other byte of the file stays. The block is plain GitHub-flavored Markdown, with a
``<picture>`` for the light and the dark figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from leaderboard.rendering.names import markdown
from leaderboard.rendering.rows import Row, minute, movement, waiting_sentence
from leaderboard.rendering.shown import ShownPhase
from leaderboard.snapshot import WaitingTeam
from scoring.printable import count_of

BEGIN = "<!-- neuco-worker:begin -->"
END = "<!-- neuco-worker:end -->"
HEADER = ("Rank", "Movement", "Team", "Mean Q", "Last submission")
ALIGNMENT = ("---:", ":---", ":---", "---:", ":---")
WAITING_HEADER = ("Team", "Submissions", "Last submission")
WAITING_ALIGNMENT = (":---", "---:", ":---")

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
    parts = [BEGIN]
    shared = {phase.rules for phase in phases}
    for phase in phases:
        parts += ["", *_phase(phase)]
        if len(shared) > 1:
            parts += ["", f"**How the board of {markdown(phase.site.title)} is made**", "", *_rules(phase)]
    if len(shared) == 1:
        parts += ["", "**How this board is made**", "", *_rules(phases[0])]
    page = "[index.html](index.html) also has groups, search, the history and the reason for every move."
    parts += ["", page, "", END]
    return "\n".join(parts)


def _rules(phase: ShownPhase) -> list[str]:
    return [f"- {line}" for line in phase.rules]


def _phase(phase: ShownPhase) -> list[str]:
    site, stem, board, rows = phase.site, phase.stem, phase.board, phase.rows
    title = markdown(site.title)
    heading = f"## {title}" if site.title == site.codename else f"## {title} (`{stem}`)"
    closed = (
        f"This phase was closed on {minute(site.frozen_at)}; its board is final." if site.frozen_at else ""
    )
    if phase.waiting:
        return [
            heading,
            "",
            " ".join(filter(None, (waiting_sentence(len(phase.waiting)), closed))),
            "",
            *_waiting(phase.waiting),
        ]
    if board is None:
        return [
            heading,
            "",
            " ".join(filter(None, ("No submission has been scored in this phase yet.", closed))),
        ]
    said = f"{count_of(len(rows), 'entry', 'entries')}, last change {minute(board.made_at)}."
    files = f"Data: [JSON](leaderboard/{stem}.json), [CSV](leaderboard/{stem}.csv), [history](leaderboard/history.jsonl)."
    lines = [heading, "", " ".join(filter(None, (said, closed, files))), ""]
    lines += [_line(HEADER), _line(ALIGNMENT), *(_line(_cells(row)) for row in rows)]
    figure = f"leaderboard/{stem}-evolution"
    lines += [
        "",
        "<picture>",
        f'  <source media="(prefers-color-scheme: dark)" srcset="{figure}-dark.svg">',
        f'  <img alt="Rank of every entry after each update of the board" src="{figure}-light.svg" width="100%">',
        "</picture>",
    ]
    return lines


def _waiting(teams: Sequence[WaitingTeam]) -> list[str]:
    rows = ((markdown(team.team), str(team.submissions), minute(team.last_submitted_at)) for team in teams)
    return [_line(WAITING_HEADER), _line(WAITING_ALIGNMENT), *map(_line, rows)]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        _number(row.rank),
        movement(row),
        team_cell(row),
        row.q_text,
        minute(row.last_submitted_at),
    )


def team_cell(row: Row) -> str:
    """Return a team's name with the notes on its row."""
    notes = f" *({', '.join(row.notes)})*" if row.notes else ""
    return f"{markdown(row.team)}{notes}"


def _number(rank: int | None) -> str:
    return "–" if rank is None else str(rank)


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"

"""What a commit of the leaderboard changes, in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leaderboard.snapshot import Board, MoveKind, Site

SUBJECT_LIMIT = 72  # characters of the first line


def commit_message(
    site: Site,
    new_boards: Sequence[Board],
    *,
    decisions: Sequence[str] = (),
    attestations: Sequence[str] = (),
) -> str:
    """Say in words what a commit changes, with the public submissions that caused its boards as trailers.

    Only numbers and the organizer's own phase codenames are used: no name, no score, nothing a participant wrote.

    Args:
        site: What is published.
        new_boards: Boards that the commit adds.
        decisions: What the organizers decided, a sentence each: the news of the commit.
        attestations: What it adds besides, a sentence each.
    """
    lines, submissions = _board_lines(site, new_boards)
    facts = [*decisions, *lines, *attestations]
    if decisions or not lines:
        subject = facts[0] if facts else "Update the page"
    elif len(lines) == 1 and len(lines[0]) <= SUBJECT_LIMIT:
        subject = lines[0]
    else:
        subject = f"Update the leaderboard: {', '.join(_phases(site, new_boards))}"[:SUBJECT_LIMIT]
    paragraphs = [
        "".join(f"{fact}\n" for fact in facts if fact != subject),
        "".join(f"Submission: {number}\n" for number in submissions),
    ]
    return "\n".join([f"{subject}\n", *filter(None, paragraphs)])


def _board_lines(site: Site, new_boards: Sequence[Board]) -> tuple[list[str], list[int]]:
    """Return a line per phase with new boards, and the submissions that caused them."""
    lines, submissions = [], set()
    for phase in site.phases:
        mine = [board for board in new_boards if board.phase == phase.codename]
        if not mine:
            continue
        counted = {number for board in mine for number in board.triggers}
        submissions |= counted
        kinds = [row.move_kind for board in mine for row in board.standings]
        own, passive, new = (kinds.count(kind) for kind in (MoveKind.OWN, MoveKind.PASSIVE, MoveKind.NEW))
        facts = (
            [f"{_count(len(counted), 'submission')} counted"]
            if counted
            else ["the rules or the entries changed"]
        )
        facts += [_count(new, "new entry", "new entries")] * bool(new) + [_count(own, "own move")] * bool(own)
        facts += [_count(passive, "passive move")] * bool(passive)
        lines.append(f"{plain(phase.codename)}: {', '.join(facts)}")
    return lines, sorted(submissions)


def _phases(site: Site, new_boards: Sequence[Board]) -> list[str]:
    made = {board.phase for board in new_boards}
    return [plain(phase.codename) for phase in site.phases if phase.codename in made]


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def plain(codename: str) -> str:
    """Write a phase's codename so that it cannot be taken for anything else in a message."""
    return re.sub(r"[^\w.-]+", "-", codename)

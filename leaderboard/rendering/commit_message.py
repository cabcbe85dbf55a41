"""The messages of the leaderboard's commits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leaderboard.snapshot import Board, MoveKind, Site
from scoring.printable import count_of

SUBJECT_LIMIT = 72  # characters of the first line


def commit_message(
    site: Site,
    new_boards: Sequence[Board],
    *,
    decisions: Sequence[str] = (),
    attestations: Sequence[str] = (),
) -> str:
    """Return the message of a commit, with the public submissions that caused its boards as trailers.

    It uses only numbers and the organizer's phase codenames: no names, no scores, and no text of participants.

    Args:
        site: The published site.
        new_boards: Boards that the commit adds.
        decisions: One sentence for each decision of the organizers; they come first.
        attestations: One sentence for everything else that the commit adds.
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
            [f"{count_of(len(counted), 'submission')} counted"]
            if counted
            else ["the rules or the entries changed"]
        )
        facts += [count_of(new, "new entry", "new entries")] * bool(new) + [count_of(own, "own move")] * bool(
            own
        )
        facts += [count_of(passive, "passive move")] * bool(passive)
        lines.append(f"{plain(phase.codename)}: {', '.join(facts)}")
    return lines, sorted(submissions)


def _phases(site: Site, new_boards: Sequence[Board]) -> list[str]:
    made = {board.phase for board in new_boards}
    return [plain(phase.codename) for phase in site.phases if phase.codename in made]


def plain(codename: str) -> str:
    """Return a phase's codename in a form that cannot be mistaken for another part of the message."""
    return re.sub(r"[^\w.-]+", "-", codename)

"""The messages of the leaderboard's commits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leaderboard.snapshot import Board, Site
from scoring.printable import count_of


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
    lines = []
    for phase in site.phases:
        boards = [board for board in new_boards if board.phase == phase.codename]
        counted = {number for board in boards for number in board.triggers}
        if boards:
            facts = f"{count_of(len(counted), 'submission')} counted" if counted else "the entries changed"
            lines.append(f"{plain(phase.codename)}: {facts}")
    subject, *others = [*decisions, *lines, *attestations] or ["Update the page"]
    submissions = sorted({number for board in new_boards for number in board.triggers})
    paragraphs = [
        "".join(f"{fact}\n" for fact in others),
        "".join(f"Submission: {number}\n" for number in submissions),
    ]
    return "\n".join([f"{subject}\n", *filter(None, paragraphs)])


def plain(codename: str) -> str:
    """Return a phase's codename in a form that cannot be mistaken for another part of the message."""
    return re.sub(r"[^\w.-]+", "-", codename)

"""The message of a commit: what the push changes in the repository.

It is derived from the files before and after. So a message describes its own commit, even if an earlier push was lost or somebody else
has pushed. It uses only numbers and the organizer's phase codenames: no names, no scores, and no text of participants.
"""

from __future__ import annotations

import json
import re

from leaderboard import Site
from leaderboard.git import Files
from leaderboard.rendering import unrecorded
from scoring.printable import count_of
from worker.fairness import commitments, receipts
from worker.fairness.reveals import reveal_path

HISTORY = "leaderboard/history.jsonl"


def message(site: Site, before: Files, after: Files) -> str:
    """Describe what a commit changes: decisions of the organizers first, with the submissions that caused new boards as trailers.

    Args:
        site: What is published.
        before: The files as they are in the branch.
        after: The files as they will be.
    """
    decisions, counts = [], []
    new_boards = unrecorded(before.get(HISTORY), site)
    for phase in site.phases:
        # in a form that cannot be mistaken for another part of the message
        name = re.sub(r"[^\w.-]+", "-", phase.codename)
        if before.get(reveal_path(phase.codename)) != after.get(reveal_path(phase.codename)):
            decisions.append(f"Reveal phase {name}")
        page = f"leaderboard/{phase.codename}.json"
        closed = _is_frozen(after.get(page))
        if closed != _is_frozen(before.get(page)):
            decisions.append(f"{'Close' if closed else 'Open'} the board of phase {name}")
        boards = [board for board in new_boards if board.phase == phase.codename]
        counted = {number for board in boards for number in board.triggers}
        if boards:
            facts = f"{count_of(len(counted), 'submission')} counted" if counted else "the entries changed"
            counts.append(f"{name}: {facts}")
    for path, words in ((commitments.PATH, "Publish a commitment"), (receipts.PATH, "Publish receipts")):
        if before.get(path, b"") != after.get(path, b""):
            counts.append(words)
    subject, *others = [*decisions, *counts] or ["Update the page"]
    trailers = sorted({number for board in new_boards for number in board.triggers})
    paragraphs = ["\n".join(others), "\n".join(f"Submission: {number}" for number in trailers)]
    return "\n\n".join([subject, *filter(None, paragraphs)]) + "\n"


def _is_frozen(document: bytes | None) -> bool:
    """Return whether a phase's file says that its board is closed; a file that is not ours says nothing."""
    try:
        return json.loads(document or b"{}").get("frozen_at") is not None
    except (ValueError, AttributeError, RecursionError):
        return False

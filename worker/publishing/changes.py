"""The message of a commit: what the push changes in the repository.

It is derived from the files before and after. So a message describes its own commit, even if an earlier push was lost or somebody else
has pushed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from leaderboard.git import Files
from leaderboard.rendering import file_stems, unrecorded
from leaderboard.snapshot import Board, Site
from scoring.printable import count_of
from worker.fairness import commitments, receipts
from worker.fairness.reveals import reveal_path


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


HISTORY = "leaderboard/history.jsonl"


def message(site: Site, before: Files, after: Files) -> str:
    """Describe what a commit changes.

    Args:
        site: What is published.
        before: The files as they are in the branch.
        after: The files as they will be.
    """
    return commit_message(
        site,
        unrecorded(before.get(HISTORY), site),
        decisions=[*_revealed(site, before, after), *_closed(site, before, after)],
        attestations=[*_committed(before, after), *_batches(before, after)],
    )


def _revealed(site: Site, before: Files, after: Files) -> Iterator[str]:
    for phase in site.phases:
        path = reveal_path(phase.codename)
        if before.get(path) != after.get(path):
            yield f"{'Extend the reveal of' if path in before else 'Reveal'} phase {plain(phase.codename)}"


def _closed(site: Site, before: Files, after: Files) -> Iterator[str]:
    for codename, stem in file_stems(site).items():
        was, will = (_is_frozen(files.get(f"leaderboard/{stem}.json")) for files in (before, after))
        if was != will:
            yield f"{'Close' if will else 'Open'} the board of phase {plain(codename)}"


def _committed(before: Files, after: Files) -> Iterator[str]:
    was, will = (_length(files.get(commitments.PATH)) for files in (before, after))
    if will > was:
        yield f"Publish {_numbered('commitment', was + 1, will)}"


def _batches(before: Files, after: Files) -> Iterator[str]:
    was, will = (files.get(receipts.PATH, b"").count(b"\n") for files in (before, after))
    if will > was:
        yield f"Publish {_numbered('batch', was + 1, will, plural='batches')} of receipts"


def _numbered(noun: str, first: int, last: int, *, plural: str = "") -> str:
    return f"{noun} {first}" if first == last else f"{plural or noun + 's'} {first} to {last}"


def _is_frozen(document: bytes | None) -> bool:
    """Return whether a phase's file says that its board is closed; a file that is not ours says nothing."""
    try:
        return json.loads(document or b"{}").get("frozen_at") is not None
    except (ValueError, AttributeError, RecursionError):
        return False


def _length(document: bytes | None) -> int:
    try:
        return len(json.loads(document or b"[]"))
    except (ValueError, TypeError, RecursionError):
        return 0

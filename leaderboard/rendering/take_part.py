"""What a participant needs to take part in a phase: the file, the deadline, the limits, and the commands to check file and result."""

from __future__ import annotations

from dataclasses import dataclass

from leaderboard.rendering.documents import PhaseDocument
from leaderboard.snapshot import Terms


@dataclass(frozen=True, kw_only=True)
class TakePart:
    """What README.md and the page say, without names of participants.

    Attributes:
        file: What a file must have, as a sentence.
        ids: Path of the id list in the repository; empty if it is not published yet.
        example: The beginning of a file.
        limits: How many submissions a team has, as a sentence; may be empty.
        check: The command that checks a file.
        verify: The command that checks a result.
    """

    file: str
    ids: str
    example: str
    limits: str
    check: str
    verify: str


def take_part(document: PhaseDocument) -> TakePart | None:
    """Return what a participant needs; None if the phase is closed, or nothing is known of what a submission must have."""
    terms = document.terms
    if terms is None or document.frozen_at is not None:
        return None
    repository, last = document.repository, terms.embedding_dim - 1
    source = f"--challenge {repository} --phase {document.title}"
    if not repository or not terms.ids:
        source = f"--ids {terms.ids or 'IDS'} --dim {terms.embedding_dim}"
    columns = [str(column) for column in range(last + 1)] if last < 3 else ["0", "1", "…", str(last)]
    return TakePart(
        file=f"One table with the columns id and 0 to {last}, and one row for each id of the phase:",
        ids=terms.ids,
        example=f"{','.join(['id', *columns])}\nsample_0001,0.1242,…\n",
        limits=_limits(terms),
        check=f"neuco-check validate submission.csv {source}",
        verify=f"neuco-worker verify {repository or 'REPOSITORY'} --submission submission.csv --receipt stdout.txt",
    )


def _limits(terms: Terms) -> str:
    limits = ((terms.per_day, "a day"), (terms.per_month, "a month"), (terms.in_all, "in all"))
    stated = [f"{number} {period}" for number, period in limits if number is not None]
    return f"Submissions of a team: at most {', '.join(stated)}." if stated else ""

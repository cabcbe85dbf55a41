"""The content of a site's phases, made once for all renderers (Markdown, HTML, SVG, JSON and CSV)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from leaderboard.rendering.charts import Evolution, evolution
from leaderboard.rendering.documents import PhaseDocument, WaitingEntry
from leaderboard.rendering.names import distinct_names
from leaderboard.rendering.rows import minute, public_rows, published_decisions
from leaderboard.rendering.unlocked import unlocked
from leaderboard.rules import sentences
from leaderboard.snapshot import PhaseSite, Site, Terms, WaitingTeam
from scoring.printable import count_of


@dataclass(frozen=True, kw_only=True)
class ShownPhase:
    """The content of one phase.

    Attributes:
        site: What it is made from.
        document: What is published of it, from which everything is rendered that needs no earlier board.
    """

    site: PhaseSite
    document: PhaseDocument

    @cached_property
    def evolution(self) -> Evolution | None:
        """The bump chart; None if there is no board."""
        return evolution(self.site.history, self.document.entries) if self.document.entries else None

    @cached_property
    def take_part(self) -> dict[str, str] | None:
        """What README.md and the page tell participants; None if the phase is closed, or nothing is known of what a file must have.

        Its values are:
            ``file``: What a file must have, as a sentence.
            ``ids``: Path of the id list in the repository; empty if it is not published yet.
            ``example``: The beginning of a file.
            ``limits``: How many submissions a team has, as a sentence; may be empty.
            ``check``: The command that checks a file.
            ``verify``: The command that checks a result.
        """
        document, terms = self.document, self.document.terms
        if terms is None or document.closed_at is not None:
            return None
        repository, last = document.repository, terms.embedding_dim - 1
        source = f"--challenge {repository} --phase {document.phase}"
        if not repository or not terms.ids:
            source = f"--ids {terms.ids or 'IDS'} --dim {terms.embedding_dim}"
        if terms.max_megabytes is not None:
            source += f" --max-megabytes {terms.max_megabytes:g}"
        columns = [str(column) for column in range(last + 1)] if last < 3 else ["0", "1", "…", str(last)]
        return {
            "file": f"One table with the columns id and 0 to {last}, and one row for each id of the phase:",
            "ids": terms.ids,
            "example": f"{','.join(['id', *columns])}\nsample_0001,0.1242,…\n",
            "limits": _limits(terms),
            "check": f"neuco-check validate submission.csv {source}",
            "verify": f"neuco-worker verify {repository or 'REPOSITORY'} --submission submission.csv --receipt stdout.txt",
        }

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """The sentences that say how the board is made: plain text, with the organizers' names of baselines."""
        document = self.document
        apart = (
            " Entries that affect no others are below them; the rank that they would have is in parentheses."
            if any(row.rank_if_competing for row in document.entries)
            else ""
        )
        shown = (
            "The hidden tasks have been revealed: the page shows them with scores, weights and intervals."
            if document.tasks is not None
            else "The hidden tasks, their weights and the scores on them are published at the end, when the organizers reveal them."
        )
        return (
            "The board is ordered by the dynamic rank, not by mean Q; the page also shows the ranks by mean Q.",
            (
                "On every hidden task, the entries are ranked by their quality score Q. The dynamic rank orders them by the weighted"
                " average of these ranks. A task weighs more if the entries differ more on it."
            ),
            *sentences(document.rules),
            f"A submission is public if its author made it public when submitting.{apart}",
            (
                "A move is “own” if another submission of the team counts, and “passive” if something else caused it: the submissions of"
                " others, for example, change task ranks and weights. Entries cannot be told apart if the first of them does not beat any"
                " of the others with 95 % confidence. A mean Q below zero is unreliable."
            ),
            shown,
        )

    @property
    def state(self) -> str:
        """How far the phase is, as a sentence."""
        document = self.document
        if document.made_at is not None:
            entries = count_of(len(document.entries), "entry", "entries")
            return f"{entries}, last change {minute(document.made_at)}."
        if not document.waiting:
            return "No team has a scored public submission in this phase."
        return (
            f"{count_of(len(document.waiting), 'team has', 'teams have')} a scored public submission. Values and ranks are shown when the"
            " organizers close this phase; until then, teams are listed by name."
        )


def shown_phases(site: Site) -> tuple[ShownPhase, ...]:
    """Return the content of a site's phases."""
    return tuple(ShownPhase(site=phase, document=phase_document(site, phase)) for phase in site.phases)


def _limits(terms: Terms) -> str:
    limits = ((terms.per_day, "a day"), (terms.per_month, "a month"), (terms.in_all, "in all"))
    stated = [f"{number} {period}" for number, period in limits if number is not None]
    return f"Submissions of a team: at most {', '.join(stated)}." if stated else ""


def phase_document(site: Site, phase: PhaseSite) -> PhaseDocument:
    """Return what is published of a phase."""
    before, board = (None, None, *phase.history)[-2:]
    decisions, rounding = published_decisions(phase), phase.rules.rounding
    rows = public_rows(board, rounding, phase.methods, decisions, before=before) if board else ()
    return PhaseDocument(
        schema_="schema/phase-v1.json",
        version=1,
        challenge=site.title,
        link=site.link,
        repository=site.repository,
        page=site.page,
        phase=phase.codename,
        closed_at=phase.closed_at,
        made_at=board.made_at if board else None,
        sequence=board.sequence if board else 0,
        triggers=board.triggers if board else (),
        rules=phase.rules,
        entries=rows,
        waiting=None if phase.waiting is None or board else _waiting(phase.waiting),
        terms=phase.terms,
        decisions=decisions,
        **unlocked(phase, board, rows),
    )


def _waiting(teams: tuple[WaitingTeam, ...]) -> tuple[WaitingEntry, ...]:
    names = distinct_names((team.key, team.team) for team in teams)
    return tuple(
        WaitingEntry(
            team=names[team.key], submissions=team.submissions, last_submission=team.last_submitted_at
        )
        for team in teams
    )

"""A phase that runs board by board, like the worker's."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from leaderboard.ranking import next_board
from leaderboard.rules import PhaseRules
from leaderboard.snapshot import Board, Entry, PhaseSite, PhaseSnapshot, Site


class PlayedPhase:
    """An evaluation phase that receives submissions.

    Args:
        tasks: Its tasks, all on the same samples.
        codename: Its codename.

    Attributes:
        snapshot: Its state.
        history: Its boards so far.
    """

    def __init__(
        self,
        tasks: Iterable[str],
        *,
        codename: str = "eval",
    ) -> None:
        self.snapshot = PhaseSnapshot(
            codename=codename,
            rules=PhaseRules(replicates=100),
            row_sets=dict.fromkeys(tasks, "rows"),
            entries=(),
        )
        self.history: list[Board] = []

    def receive(self, *entries: Entry) -> None:
        """Add submissions."""
        self.snapshot = replace(self.snapshot, entries=(*self.snapshot.entries, *entries))

    def make_board(self, at: datetime) -> None:
        """Make the next board, if anything changed."""
        board = next_board(self.snapshot, self.history, at=at)
        if board is not None:
            self.history.append(board)

    def site(self, title: str, **facts: object) -> Site:
        """Return the site of a challenge with this phase alone."""
        now = self.snapshot
        phase = PhaseSite(codename=now.codename, rules=now.rules, history=tuple(self.history))
        return Site(title=title, phases=(phase,), **facts)  # type: ignore[arg-type]

    def revealed_site(self, title: str, *, closed_at: datetime | None = None, **facts: object) -> Site:
        """Return the same site after the reveal."""
        site = self.site(title, **facts)
        phase = replace(site.phases[0], revealed=True, closed_at=closed_at)
        return replace(site, phases=(phase,))

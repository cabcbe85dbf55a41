"""The columns of a board in README.md and on the page; JSON and CSV have every field of :class:`EntryRow`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from leaderboard.rendering.documents import EntryRow, PhaseDocument
from leaderboard.rendering.rows import minute, movement


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column.

    Attributes:
        key: What the page's address calls it, and the template: a cell with more than its text is drawn there.
        title: Its title.
        text: The text of a row's cell.
        style: Classes of the page: `num` is on the right, `wide` is left out on telephones.
        first: Whether the first click on its title sorts `up` or `down`; by default, numbers go down, and words go up.
        in_readme: Whether README.md shows it.
    """

    key: str
    title: str
    text: Callable[[EntryRow, PhaseDocument], object]
    style: str = ""
    first: str = ""
    in_readme: bool = False


COLUMNS = (
    Column(
        key="rank",
        title="Rank",
        text=lambda row, _: row.shown_rank,
        style="num rank",
        first="up",
        in_readme=True,
    ),
    Column(
        key="move",
        title="Movement",
        text=lambda row, _: movement(row),
        style="move",
        first="down",
        in_readme=True,
    ),
    Column(key="team", title="Team", text=lambda row, _: row.team, style="team", in_readme=True),
    Column(key="method", title="Method", text=lambda row, _: row.method, style="method"),
    Column(
        key="q",
        title="Mean Q",
        text=lambda row, document: document.text(row.q_mean),
        style="num q",
        in_readme=True,
    ),
    Column(
        key="mean",
        title="By mean\N{NO-BREAK SPACE}Q",
        text=lambda row, _: row.rank_by_mean or "–",
        style="num mean",
        first="up",
    ),
    Column(
        key="group",
        title="Cannot be told apart",
        text=lambda row, _: row.group,
        style="num group wide",
        first="up",
    ),
    Column(key="count", title="Submissions", text=lambda row, _: row.submissions, style="num wide"),
    Column(
        key="last",
        title="Last submission",
        text=lambda row, _: minute(row.last_submission),
        style="wide",
        in_readme=True,
    ),
)

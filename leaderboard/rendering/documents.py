"""The published documents: one model for each, with which it is written, read and described by the schema published with it.

The JSON of a phase has everything that README.md, the CSV and the page's table show of it; they are made from it alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field, PlainSerializer, WithJsonSchema, model_validator

from leaderboard.documents import Document, Number, Positive
from leaderboard.rules import Decimals, StatedRules
from leaderboard.snapshot import Decision, MoveKind, Terms


def stamp(moment: datetime) -> str:
    """Return a time for programs: RFC 3339, UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rounded(q_mean: float, decimals: int) -> str:
    """Return mean Q as it is printed everywhere, without a sign if it rounds to zero."""
    text = f"{q_mean:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text


def printed(q_mean: float, decimals: int, step: float | None) -> str:
    """Return mean Q as it is printed everywhere; if it is a multiple of the Ladder's step, it is marked as rounded."""
    return f"{'' if step is None else '≈ '}{rounded(q_mean, decimals)}"


Second = Annotated[
    AwareDatetime,
    PlainSerializer(stamp, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
Share = Annotated[float, Field(ge=0, le=1)]
WebAddress = Annotated[str, Field(pattern=r"^([Hh][Tt][Tt][Pp][Ss]?://.*)?$")]


class _Placed(Document):
    """Where an entry stands; these fields come first in JSON and CSV."""

    position: Positive
    """Line on the board."""
    rank: Positive | None
    """Official dynamic rank; ties share the better rank. Null for baselines and entries out of competition, which have only a position."""
    rank_by_mean: Positive | None
    """Rank by mean Q; null where rank is null."""


class _Shown(Document):
    """What a board shows of an entry besides its place."""

    team: Annotated[str, Field(min_length=1)]
    """Team name as shown: one line, no invisible characters, shortened."""
    q_mean: float
    """Mean Q as shown: rounded to rules.decimals and, with rules.ladder_step, to a multiple of that step."""
    baseline: bool
    eligible: bool
    """False: shown out of competition."""
    submission: Number
    """EvalAI's number of the counted submission."""
    submissions: Number
    """The team's scored public submissions."""


class HistoryRow(_Shown):
    """A row that is new on a board, or shows something else than on the board before."""

    row: Positive
    """Number of the row: it stays the same in the whole history of the phase, also if the team gets another name."""


class NewestOnly(Document):
    """What the newest board alone shows of an entry; the values are those of its standing."""

    group: Number
    """Number of the entry's group, from the top. A group's first rank does not beat any other entry of the group with 95 % confidence."""


NEWEST = tuple(NewestOnly.model_fields)


class EntryRow(NewestOnly, _Shown, _Placed):
    """A row of the newest board."""

    move: int
    """Places moved with the last change of the board; positive is up."""
    move_kind: MoveKind
    """`own` if another submission of the team counts, `passive` if something else caused the move."""
    rank_if_competing: Positive | None
    """Rank that an entry below the others would have, such as a team out of competition, which affects no others. Null for the others."""
    reliable: bool
    """False for a mean Q below zero."""
    why: str
    """Why the rank moved; empty if it did not."""
    last_submission: Second
    method: str
    """Name of the method, as its participants gave it."""
    project_url: WebAddress
    """Code or page of the method, as its participants gave it."""
    publication_url: WebAddress
    """Paper on the method, as its participants gave it."""

    @property
    def has_method(self) -> bool:
        """Whether it has information about its method."""
        return bool(self.method or self.project_url or self.publication_url)

    @property
    def shown_rank(self) -> str:
        """The rank as it is printed: in parentheses if it is the one that the entry would have."""
        return str(self.rank or (f"({self.rank_if_competing})" if self.rank_if_competing else "–"))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that a reader needs to understand the row."""
        notes = {
            "baseline": self.baseline,
            "out of competition": not self.eligible,
            "unreliable: mean Q below zero": not self.reliable,
        }
        return tuple(note for note, applies in notes.items() if applies)


class Row(EntryRow):
    """A row with mean Q as it is printed, which is not in the JSON."""

    q_text: str


class WaitingEntry(Document):
    """A team whose value is not shown yet."""

    team: str
    submissions: Positive
    last_submission: Second


class Interval(Document):
    """The uncertainty of one entry's figures."""

    submission: Number
    q_mean: tuple[float, float] | None
    """Ends of the 95 % interval of mean Q, as shown; null if there are too few folds."""
    rank: tuple[int, int]
    p_first: Share
    p_top3: Share
    swap_with_next: Share | None
    """Share of the resamplings in which the row below is ahead."""


class Intervals(Document):
    """The uncertainty of the board, from resamplings of the folds."""

    level: float
    entries: tuple[Interval, ...]


class EntryStability(Document):
    """What becomes of one entry with other tasks."""

    submission: Number
    without: tuple[Positive, ...]
    """Its rank without each of the tasks, in the order of tasks."""
    p_first: Share
    """Share of the resamplings of the tasks in which it has rank 1."""
    keeps_order: Share | None
    """Share in which it and the row below are in the same order: one is ahead, or both are equal."""


class Flip(Document):
    """Two entries whose order would be another one without a third."""

    left_out: str
    ahead: str
    behind: str


class RevealedTask(Document):
    """A hidden task: its weight, and the quality score Q of every entry, in the order of entries."""

    name: str
    weight: float
    quality: tuple[float, ...]
    score: tuple[float, ...]
    """The mean over the splits that Q is computed from: R² of a regression, F1 of a classification."""


class PhaseDocument(Document):
    """One phase's leaderboard."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Annotated[Literal["schema/phase-v1.json"], Field(alias="$schema")]
    version: Literal[1]
    challenge: str
    link: str
    """EvalAI's page of the challenge."""
    repository: WebAddress
    """Web page of the repository that this file is published in; empty if it is unknown."""
    page: WebAddress
    """Where the page is served; empty if it is unknown."""
    phase: Annotated[str, Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z_.-]*$")]
    """The phase's codename, by which its files are named."""
    closed_at: Second | None
    """When the phase was closed; null while it is open."""
    made_at: Second | None
    """When the board last changed; null before the first one."""
    sequence: Number
    """Number of the board within the phase; 0 before the first one."""
    triggers: tuple[Number, ...]
    """Submissions that count from this board on."""
    rules: StatedRules
    entries: tuple[EntryRow, ...]
    waiting: tuple[WaitingEntry, ...] | None
    """The teams with a scored submission, by name, as long as values are kept back until the phase is closed."""
    terms: Terms | None
    """What a submission must have, and the deadline and limits at EvalAI, as far as they are known."""
    decisions: tuple[Decision, ...]
    """What was decided or happened, oldest first."""
    intervals: Intervals | None
    """Only after the reveal."""
    leave_one_out: tuple[Flip, ...] | None
    """Only after the reveal: the pairs of teams whose order depends on a third entry."""
    stability: tuple[EntryStability, ...] | None
    """Only after the reveal of two tasks or more: how the entries' ranks depend on the choice of tasks, in the order of entries."""
    tasks: tuple[RevealedTask, ...] | None
    """Only after the reveal, heaviest first."""
    weighted_ranks: tuple[float, ...] | None
    """Only after the reveal: the weighted ranks by which the board is ordered, in the order of entries."""

    def text(self, q_mean: float) -> str:
        """Return a value of mean Q as it is printed."""
        return printed(q_mean, self.rules.decimals, self.rules.ladder_step)


class HistoryLine(Document):
    """A line of the history: what changed on a board."""

    version: Literal[1]
    phase: str
    sequence: Positive
    made_at: Second
    triggers: tuple[Number, ...]
    """Submissions that count from this board on."""
    decimals: Decimals
    """Decimal places of mean Q on this board."""
    ladder_step: float | None
    """Mean Q is shown as a multiple of this step; null if it is not."""
    changed: tuple[HistoryRow, ...]
    """The rows that are new or show something else than on the board before, besides their places."""
    order: tuple[Positive, ...]
    """The numbers of all rows, from the top of the board to its end; the next three lists have this order too."""
    rank: tuple[Positive | None, ...]
    """Official dynamic ranks; null for baselines and entries out of competition."""
    rank_by_mean: tuple[Positive | None, ...]
    """Ranks by mean Q."""
    move: tuple[int, ...]
    """Places moved since the board before; positive is up."""
    own: tuple[Positive, ...]
    """The numbers of the rows that moved because another submission of the team counts."""

    @model_validator(mode="after")
    def _each_row_once(self) -> Self:
        """Refuse what no board shows, which nobody who looks at one would notice."""
        columns = (self.order, set(self.order), self.rank, self.rank_by_mean, self.move)
        if len({*map(len, columns)}) != 1:
            raise ValueError("order, rank, rank_by_mean and move must have one value for each row")
        for name, listed in (("changed", [row.row for row in self.changed]), ("own", list(self.own))):
            rows = set(listed)
            if listed != [number for number in self.order if number in rows]:
                raise ValueError(f"{name} must have rows of the board, each once, in their order")
        return self

    def to_bytes(self) -> bytes:
        """Write it, without a line end."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":")).encode()


MODELS: Mapping[str, type[Document]] = {"history-v1.json": HistoryLine, "phase-v1.json": PhaseDocument}
"""The documents whose schemas are published, by the names of these."""


def schema(model: type[Document]) -> bytes:
    """Return a document's schema."""
    return (
        json.dumps(model.model_json_schema(mode="serialization"), indent=1, ensure_ascii=False) + "\n"
    ).encode()

"""The leaderboard's input and state as plain values.

The worker builds a :class:`PhaseSnapshot` from its database. If a row changed, ``next_board`` makes the next :class:`Board` from it and the
boards so far. ``render`` makes files from a :class:`Site`. Both are pure: equal values give equal results.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from leaderboard.rules import PhaseRules, Rounding
from scoring.protocol import Recipe

RowKey = tuple[int, str]
"""Team key and, for baselines only, the method: the identity of a row throughout the history."""


class MoveKind(StrEnum):
    """Why an entry's rank differs from the previous board."""

    NEW = "new"  # it was not on the previous board
    OWN = "own"  # another submission of its own counts, with another mean Q
    PASSIVE = "passive"  # something else changed, such as others' submissions, a rule, or the tasks
    NONE = "none"  # the rank is the same


class DecisionKind(StrEnum):
    """What a decision is about; the first three can move entries, and are told in this order."""

    RESCORE = "rescore"  # the tasks or the protocol
    RULE = "rule"  # the rules of the board
    ENTRY = "entry"  # a submission or a team: taken off the board, put back, marked as a baseline
    OTHER = "other"  # a name, the close of the board, an event of the whole challenge


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Something that was decided in a phase, or that happened to the challenge, and that is public.

    Attributes:
        at: When it was registered, aware UTC.
        kind: What it is about.
        text: What was decided, without a full stop; participants' names in it are in the form in which they are shown.
        reason: Why, in the organizers' words; may be empty.
        submission: The submission that it is about; None if it is about more.
        board: Number of the first board made after it; None if there is none yet.
        effect: What changed on that board, as a sentence; may be empty.
    """

    at: datetime
    kind: DecisionKind
    text: str
    reason: str = ""
    submission: int | None = None
    board: int | None = None
    effect: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One scored submission: a complete row of the score matrix and its facts.

    Attributes:
        submission: EvalAI's submission pk.
        team_key: EvalAI's participant team pk; teams are told apart by it, never by name.
        team: Participant team name as EvalAI shows it now; hostile text.
        method: Method name; hostile text.
        submitted_at: Aware UTC.
        public: Whether it was public when it was first seen.
        baseline: Whether the organizers sent it, under a name that the rules list.
        eligible: False shows it as out of competition.
        climbed: False if the Ladder selects and it did not beat its team's previous value.
        scores: Task identifier to K fold scores, NaN for a failed fold. A complete row has every task of the phase.
        content_hash: Hash of the embeddings, for the private report.
    """

    submission: int
    team_key: int
    team: str
    method: str
    submitted_at: datetime
    public: bool
    baseline: bool
    scores: Mapping[str, Sequence[float]]
    eligible: bool = True
    climbed: bool = True
    content_hash: str = ""

    @cached_property
    def qualities(self) -> dict[tuple[str, float], float]:
        """A cache from task and epsilon to quality score, because a long history ranks an entry many times."""
        return {}

    @cached_property
    def scored(self) -> frozenset[str]:
        """The tasks with a finite fold score, kept because every board of a long history asks for them."""
        return frozenset(task for task, folds in self.scores.items() if any(map(math.isfinite, folds)))


@dataclass(frozen=True, kw_only=True)
class PhaseSnapshot:
    """Everything that decides the current board of a phase.

    Attributes:
        codename: EvalAI phase codename; names the files.
        rules: Its rules.
        row_sets: Task identifier to row-set hash; tasks with equal hashes share splits. Its keys are the phase's tasks.
        entries: Scored submissions with complete rows, any order, private ones included.
        epsilon: The protocol's epsilon, for the quality scores.
        test_parts: Row-set hash to the number of each fold's test part; empty or missing if no two folds have the same one.
    """

    codename: str
    rules: PhaseRules
    row_sets: Mapping[str, str]
    entries: tuple[Entry, ...]
    epsilon: float = Recipe.epsilon
    test_parts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)  # slots, because a daemon keeps those of every board
class Standing:
    """One public row of a board.

    Ranked rows (teams in competition) have the numbers 1, 2, 3 … A baseline or a row out of competition has a position but takes no number:
    its ``rank`` and ``rank_by_mean`` are those that it would have. They order the rows and give the movement, but are printed only if it is
    apart.

    Attributes:
        rank: Dynamic rank; ties share the better rank.
        rank_by_mean: Rank by unrounded mean Q, for the second award.
        team_key: EvalAI's participant team pk. A host team may have several baseline rows, so :attr:`key` identifies a row.
        team: Name to show, which is the method for a baseline; hostile text.
        submission: The counted submission's pk.
        q_mean: Mean Q, unrounded; rendering rounds it to ``rules.decimals``.
        baseline: Whether it is a baseline, which is shown without a number.
        eligible: False shows it as out of competition, without a number.
        apart: Whether it affects no other row. It is below them, and its rank is printed in parentheses.
        group: 1-based tie group.
        submissions: Number of the row's scored public submissions.
        last_submitted_at: The latest of them, aware UTC.
        move: Places gained since the previous board; positive is up.
        move_kind: The reason for the move.
        method: Method name of a baseline row, empty for others; hostile text.
    """

    rank: int
    rank_by_mean: int
    team_key: int
    team: str
    submission: int
    q_mean: float
    baseline: bool
    eligible: bool
    group: int
    submissions: int
    last_submitted_at: datetime
    move: int = 0
    move_kind: MoveKind = MoveKind.NONE
    method: str = ""
    apart: bool = False

    @property
    def key(self) -> RowKey:
        """The row's identity, on this board and throughout the history."""
        return (self.team_key, self.method)

    @property
    def numbered(self) -> bool:
        """Whether a rank number is printed, as for a team in competition."""
        return self.eligible and not self.baseline


@dataclass(frozen=True, kw_only=True)
class RowStability:
    """What becomes of one row of a board with other tasks.

    Attributes:
        without: Task to the rank without it.
        p_first: Share of the replicates that draw tasks in which the row has rank 1.
        keeps_order: Share in which it and the row below are in the same order; None for the last row.
    """

    without: Mapping[str, int]
    p_first: float
    keeps_order: float | None


@dataclass(frozen=True, kw_only=True)
class RowFigures:
    """The figures of one row of a board.

    Attributes:
        q: Task to quality score.
        score: Task to the mean of its finite fold scores.
        task_ranks: Task to rank.
        q_interval: Ends of the 95 % interval of mean Q; None if there are too few folds.
        swap_with_next: Share of replicates in which the row below is ahead; None for the last row.
        stability: None if there is one task, or fewer than two teams in competition.
    """

    submission: int
    q: Mapping[str, float]
    score: Mapping[str, float]
    weighted_rank: float
    task_ranks: Mapping[str, int]
    q_interval: tuple[float, float] | None
    rank_interval: tuple[int, int]
    p_first: float
    p_top3: float
    swap_with_next: float | None
    stability: RowStability | None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of a board that only the organizers may see before the reveal, because all say something about the hidden tasks.

    Attributes:
        weights: Task to weight, sorted by task.
        rows: In board order.
        leave_one_out: Submission to the pairs (ahead, behind) of submissions whose order reverses when it is left out of weights and task
            ranks, if there are any.
    """

    weights: Mapping[str, float]
    rows: tuple[RowFigures, ...]
    leave_one_out: Mapping[int, tuple[tuple[int, int], ...]]


@dataclass(frozen=True, kw_only=True)
class Board:
    """One state of a phase's board; the sequence of boards is the published history.

    Attributes:
        phase: Phase codename.
        sequence: 1, 2, 3 … within the phase.
        made_at: When it was made, in UTC with a time zone.
        triggers: Pks of public submissions that count since this board, and did not on the board before.
        standings: In board order.
        rounding: How its values are shown.
        fingerprint: Hash of everything that decided it.
        figures: For the organizers; not published before the reveal. None for a board without rows, and if they were not kept.
    """

    phase: str
    sequence: int
    made_at: datetime
    triggers: tuple[int, ...]
    standings: tuple[Standing, ...]
    rounding: Rounding
    fingerprint: str
    figures: Figures | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """What a participant says on EvalAI about the method of a submission; hostile text, which never decides a board.

    Attributes:
        name: Name of the method.
        project_url: Address of its code or its page.
        publication_url: Address of the paper.
    """

    name: str = ""
    project_url: str = ""
    publication_url: str = ""


@dataclass(frozen=True, kw_only=True)
class WaitingTeam:
    """A team with a score in a phase that does not show values yet.

    Attributes:
        key: The row's identity, which distinguishes equal names.
        team: Name to show; hostile text.
        submissions: Number of its scored public submissions.
        last_submitted_at: The latest of them, aware UTC.
    """

    key: RowKey
    team: str
    submissions: int
    last_submitted_at: datetime


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a submission to a phase must have, and until when and how often one may be sent.

    Attributes:
        embedding_dim: Numbers per id.
        ids: Path of the id list in the repository; empty if it is not published yet.
        opens_at: When the phase opens, aware UTC; None if it has opened, or that is unknown.
        ends_at: When EvalAI ends the phase, aware UTC; None if that is unknown, like the limits below.
        per_day: Submissions that EvalAI accepts of a team in a day.
        per_month: The same in a month.
        in_all: The same in all.
        max_megabytes: Largest size of a file, in MB; None if the usual one.
    """

    embedding_dim: int
    ids: str = ""
    opens_at: datetime | None = None
    ends_at: datetime | None = None
    per_day: int | None = None
    per_month: int | None = None
    in_all: int | None = None
    max_megabytes: float | None = None


@dataclass(frozen=True, kw_only=True)
class PhaseSite:
    """The content of one phase: its rules and its boards so far.

    Attributes:
        waiting: The teams whose values are not shown yet; None if values are shown.
        methods: Submission pk to what its participant says about the method, for submissions on the newest board that may show it.
        decisions: What was decided, oldest first.
        only_if_shown: The submissions of which decisions are only published if a board ever had these.
        terms: What a submission must have; None before the phase was committed to.
    """

    codename: str
    rules: PhaseRules
    history: tuple[Board, ...]
    waiting: tuple[WaitingTeam, ...] | None = None
    revealed: bool = False
    closed_at: datetime | None = None
    methods: Mapping[int, Method] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    only_if_shown: frozenset[int] = frozenset()
    terms: Terms | None = None


@dataclass(frozen=True, kw_only=True)
class Site:
    """Everything that is published; phases are in the order of the configuration.

    Attributes:
        link: EvalAI's challenge page.
        repository: Web page of the repository with the published files; empty if there is none or it is unknown.
        page: Address at which the page is served; empty if it is unknown.
        committed: Whether the challenge has published its commitment, so that anybody can check it.
        software: Name and version of what renders it; only the same version renders the same bytes.
        access: Who knows the hidden tasks, in the organizers' words; empty if they do not say.
        logged_at: When the newest line of the public log was written, which the page alone shows; None before the first.
    """

    title: str
    phases: tuple[PhaseSite, ...]
    link: str = ""
    repository: str = ""
    page: str = ""
    committed: bool = False
    software: str = ""
    access: str = ""
    logged_at: datetime | None = None

"""What the leaderboard is told and what it remembers: plain values, and what follows from one of them alone.

The worker builds a :class:`PhaseSnapshot` from its database. ``next_board`` turns it and the boards so far into the next :class:`Board`,
or into nothing if no row changed; ``render`` turns a :class:`Site` into files. Both are pure: equal values in, equal bytes out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from leaderboard.figures import Private
from scoring.quality import shown

RowKey = tuple[int, str]
"""Team key and, for baselines only, the method: the identity of a row through the history."""


class Selection(StrEnum):
    """Which of a team's scored public submissions counts."""

    LAST = "last"  # greatest (submitted_at, pk)
    BEST = "best"  # highest unrounded mean Q, the earlier on a tie
    CHOSEN = "chosen"  # named by the organizer with a reason
    LADDER = "ladder"  # the last one that beat the team's standing value by a step (Blum and Hardt, 2015)


class MoveKind(StrEnum):
    """Why an entry's rank differs from the board before."""

    NEW = "new"  # was not on the board
    OWN = "own"  # the team's counted submission changed
    PASSIVE = "passive"  # others changed; the team's own scores did not
    NONE = "none"  # same rank


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One scored submission: a complete row of the score matrix and its facts.

    Attributes:
        submission: EvalAI's submission pk.
        team_key: EvalAI's participant team pk; teams are told apart by it, never by name.
        team: Participant team name as EvalAI shows it now; hostile text.
        method: Method name; hostile text.
        submitted_at: Aware UTC.
        public: Whether it counts as public under the phase's visibility rule.
        baseline: EvalAI's flag, or a method that the configuration names, sent by the organizers themselves.
        eligible: False shows it out of competition.
        climbed: False if it did not beat its team's standing value, where the Ladder selects.
        scores: Task identifier to its K fold scores (NaN = failed fold). Every task of the phase, or the row is not complete.
        content_hash: Of the embeddings, for the private report.
        seconds: What scoring it cost, for the private report.
        engines: What trained its probes; empty if that is not known.
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
    seconds: float = 0.0
    engines: frozenset[str] = frozenset()

    @cached_property
    def scored_tasks(self) -> frozenset[str]:
        """The tasks of which at least one fold has a score."""
        return frozenset(task for task, folds in self.scores.items() if any(map(math.isfinite, folds)))

    @cached_property
    def qualities(self) -> dict[tuple[str, float], float]:
        """Task and epsilon to quality score, as far as it was computed: a long history ranks an entry many times."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The organizer's settings that decide a board."""

    selection: Selection = Selection.LAST
    epsilon: float = 0.02
    baselines_weigh: bool = True
    ghost_task: float = 0.0
    decimals: int = 3
    hidden_teams: frozenset[str] = frozenset()
    chosen: Mapping[int, int] = field(default_factory=dict)  # team_key -> submission pk
    visibility: str = "at_submission"
    eligible_if_scored_in: str | None = None
    ladder_step: float | None = None  # values are shown as multiples of it
    shown: str = "at_once"  # or "at_end": not before the phase is closed

    def value(self, q_mean: float) -> float:
        """Return mean Q as it is shown."""
        return shown(q_mean, self.decimals, self.ladder_step)


@dataclass(frozen=True, kw_only=True)
class PhaseSnapshot:
    """Everything that decides one phase's board now.

    Attributes:
        codename: EvalAI phase codename; names the files.
        title: Phase name for people.
        rules: The organizer's settings.
        row_sets: Task identifier to row-set hash; tasks with equal hashes share splits. Its keys are the phase's tasks.
        entries: Scored submissions with complete rows, any order, private ones included.
    """

    codename: str
    title: str
    rules: Rules
    row_sets: Mapping[str, str]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True, slots=True)  # a daemon keeps those of every board
class Standing:
    """One public row of a board.

    Ranked rows (teams in competition) carry the numbers 1, 2, 3 …; a baseline or a row out of competition keeps its position and takes no
    number away: its ``rank`` and ``rank_by_mean`` are those it would have, for ordering and movement, and are not printed.

    Attributes:
        rank: By dynamic rank, ties share the better one.
        rank_by_mean: The second award's standing, by unrounded mean Q.
        team_key: EvalAI's participant team pk. One host team may own several baseline rows, so rows are told apart by :attr:`key`.
        team: Name to show; hostile text. A baseline is named by its method.
        submission: The counted submission's pk.
        q_mean: Unrounded; rendering rounds to ``rules.decimals``.
        baseline: Shown without a number.
        eligible: False shows it out of competition, without a number.
        group: 1-based tie group.
        submissions: The row's scored public submissions.
        last_submitted_at: The latest of them, aware UTC.
        move: Places gained against the board before, positive = up.
        move_kind: Why.
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

    @property
    def key(self) -> RowKey:
        """What tells this row from the others, on this board and through the history."""
        return (self.team_key, self.method)

    @property
    def numbered(self) -> bool:
        """Whether a rank number is printed: a team in competition."""
        return self.eligible and not self.baseline


@dataclass(frozen=True, kw_only=True)
class Board:
    """One state of a phase's board; the sequence of them is the published history.

    Attributes:
        phase: Phase codename.
        sequence: 1, 2, 3 … within the phase.
        made_at: When it was made, aware UTC.
        triggers: Public submissions that became counted with this board (pks); empty if a rule, name or flag changed.
        standings: In board order.
        private: Kept for the organizer, for replay and reveal; never rendered before.
    """

    phase: str
    sequence: int
    made_at: datetime
    triggers: tuple[int, ...]
    standings: tuple[Standing, ...]
    private: Private = field(default_factory=Private)

    def rules_then(self, rules: Rules) -> Rules:
        """Return the rules by which this board was made; today's for what it did not keep."""
        kept = self.private.rules
        return rules if kept is None else replace(rules, **asdict(kept))


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """What a participant says of a submission at EvalAI; hostile text, and no part of what decides a board.

    Attributes:
        name: Of the method.
        project_url: Address of its code or its page.
        publication_url: Address of the paper.
    """

    name: str = ""
    project_url: str = ""
    publication_url: str = ""


@dataclass(frozen=True, kw_only=True)
class WaitingTeam:
    """A team with a score in a phase that keeps its values back.

    Attributes:
        key: The row's identity, which tells equal names apart.
        team: Name to show; hostile text.
        submissions: Its scored public submissions.
        last_submitted_at: The latest of them, aware UTC.
    """

    key: RowKey
    team: str
    submissions: int
    last_submitted_at: datetime


@dataclass(frozen=True, kw_only=True)
class PhaseSite:
    """What the site shows of one phase: its rules, its boards so far, and, once revealed, its whole snapshot.

    Attributes:
        waiting: The teams that wait for their values; None if values are shown.
        methods: Submission pk to what its participant says of it; of the newest board's submissions that may be told.
        engines: What trained the probes of the newest board's submissions; empty if it was the compiled kernel alone.
    """

    codename: str
    title: str
    rules: Rules
    history: tuple[Board, ...]
    waiting: tuple[WaitingTeam, ...] | None = None
    snapshot: PhaseSnapshot | None = None  # only if something beyond the boards may be shown
    revealed: bool = False
    frozen_at: datetime | None = None
    methods: Mapping[int, Method] = field(default_factory=dict)
    engines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Site:
    """Everything that is published, in the order of the configuration.

    Attributes:
        publish: What is released early: ``intervals``, ``stable_views``.
        link: EvalAI's challenge page.
        repository: Web page of the repository that all of it is published in; empty if it has none that is known.
        committed: Whether the challenge has committed itself, so that anybody can check it.
    """

    title: str
    phases: tuple[PhaseSite, ...]
    publish: frozenset[str] = frozenset()
    link: str = ""
    repository: str = ""
    committed: bool = False

"""The replay: what follows from the events of the register at any moment, for boards and for answers.

It is the only derivation of either. The worker publishes and answers from it, with all events; ``verify`` compares what was published with
it, as far as the events were opened. It is pure: equal events give equal results.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter
from typing import Generic, TypeVar

from leaderboard import Entry, Method, PhaseRules, PhaseSnapshot, Shown
from scoring.metrics import mean_quality, quality, shown
from worker.fairness import membership
from worker.fairness.events import (
    RESTORED,
    ChallengeEvent,
    ClosedEvent,
    Event,
    PhaseEvent,
    QualifyingEvent,
    ScoreEvent,
    SubmissionEvent,
    TeamEvent,
)
from worker.fairness.membership import AFTER_THE_CLOSE, LadderEntry, ShownValue, climbs, ladders

Dated = TypeVar("Dated", ClosedEvent, QualifyingEvent, SubmissionEvent, ScoreEvent, PhaseEvent, TeamEvent)
AT = attrgetter("at")
LAST_PLACE = 2**62  # on a ladder: a submission that is being scored for the first time comes after all others


@dataclass
class EventHistory(Generic[Dated]):
    """The events about one subject, oldest first."""

    events: list[Dated] = field(default_factory=list)

    def at(self, moment: datetime) -> Dated | None:
        """Return the newest event at a moment."""
        place = bisect_right(self.events, moment, key=AT)
        return self.events[place - 1] if place else None

    def until(self, moment: datetime) -> list[Dated]:
        """Return all events up to a moment, the newest first."""
        return self.events[: bisect_right(self.events, moment, key=AT)][::-1]


class PhaseReplay:
    """What follows from the events of one phase.

    Args:
        name: Codename.
        others: All phases with known events, to which a rule may refer.

    Attributes:
        decisions: The phase's own events.
        registered: Entry to the facts about a submission, as they were registered.
        submissions: The same with the decisions about teams: while a team is disqualified, each of its submissions is.
        teams: EvalAI's number of a team to the decisions about it.
        scores: Entry to its scores, in the order of the first ones.
        answered_at: Entry to the moment from which it was answered.
        end: The moment of the newest event that was opened completely, except those of the whole challenge.
        private: The entries that were opened only in part.
        qualifying: Entry to what was opened of a private one because its team may compete in another phase.
        notes: The events of the whole challenge.
    """

    def __init__(self, name: str, others: Mapping[str, PhaseReplay]) -> None:
        self.name = name
        self.decisions: EventHistory[PhaseEvent] = EventHistory()
        self.registered: dict[str, EventHistory[SubmissionEvent]] = {}
        self.submissions: dict[str, EventHistory[SubmissionEvent]] = {}
        self.teams: dict[int, EventHistory[TeamEvent]] = {}
        self.scores: dict[str, EventHistory[ScoreEvent]] = {}
        self.answered_at: dict[str, datetime] = {}
        self.end = self._newest = datetime.min.replace(tzinfo=UTC)
        self.private: set[str] = set()
        self.notes: list[ChallengeEvent] = []
        self._others = others
        self.qualifying: dict[str, EventHistory[QualifyingEvent]] = {}
        self._entry_of: dict[int, str] = {}
        self._places: dict[str, int] = {}
        self._scored: dict[int | None, list[str]] = {}
        self._entries: dict[str, tuple[tuple[object, ...], Entry | None]] = {}
        self._q_means: dict[tuple[int, float], float] = {}

    def take(self, event: Event) -> None:
        """Add the next event.

        Raises:
            ValueError: If it is earlier than the one before.
        """
        if event.at < self._newest:  # the Ladder and decisions about teams go by the order of events
            raise ValueError("events are not in order")
        self._newest = event.at
        if isinstance(event, PhaseEvent | TeamEvent | SubmissionEvent | ScoreEvent):
            self.end = event.at
        match event:
            case ChallengeEvent():
                self.notes.append(event)
            case PhaseEvent():
                self.decisions.events.append(event)
            case TeamEvent():
                self._decide(event)
            case SubmissionEvent():
                self.registered.setdefault(event.entry, EventHistory()).events.append(event)
                self.submissions.setdefault(event.entry, EventHistory()).events.append(
                    self._decided(event, event.at)
                )
                self._entry_of.setdefault(event.submission, event.entry)
                if event.answered:
                    self.answered_at.setdefault(event.entry, event.at)
            case ScoreEvent():
                if event.entry not in self.scores:
                    self._places[event.entry] = len(self.scores)
                    self._scored.setdefault(event.team_key, []).append(event.entry)
                self.scores.setdefault(event.entry, EventHistory()).events.append(event)
            case QualifyingEvent():
                self.private.add(event.entry)
                self.qualifying.setdefault(event.entry, EventHistory()).events.append(event)
            case _:
                self.private.add(event.entry)

    def _decide(self, event: TeamEvent) -> None:
        """Let a decision about a team change each of its submissions."""
        self.teams.setdefault(event.team_key, EventHistory()).events.append(event)
        for entry, history in self.registered.items():
            if history.events[-1].team_key == event.team_key:
                self.submissions[entry].events.append(self._decided(history.events[-1], event.at))

    def _decided(self, facts: SubmissionEvent, moment: datetime) -> SubmissionEvent:
        """Return the facts about a submission as the decision about its team makes them from a moment on."""
        removed = facts.removed or self.disqualified(facts.team_key, moment)
        unchanged = (removed, moment) == (facts.removed, facts.at)
        return facts if unchanged else facts.model_copy(update={"removed": removed, "at": moment})

    def disqualified(self, team: int | None, moment: datetime) -> str | None:
        """Return why a team is disqualified at a moment; None if it is not."""
        decision = self.teams[team].at(moment) if team is not None and team in self.teams else None
        return decision.reason if decision is not None and decision.disqualified else None

    @property
    def methods(self) -> dict[int, Method]:
        """What participants say of their public submissions, by submission."""
        newest = (history.events[-1] for history in self.submissions.values())
        return {
            facts.submission: Method(
                name=facts.method or "",
                project_url=facts.project_url or "",
                publication_url=facts.publication_url or "",
            )
            for facts in newest
            if facts.public
        }

    @property
    def closed_at(self) -> datetime | None:
        """The moment that the closed board shows; None while the phase is open."""
        return self.decisions.events[-1].closed_at if self.decisions.events else None

    @property
    def ends_at(self) -> datetime:
        """The moment that the last board shows: its closing, or the newest event, also of a phase that the rules of an open one ask for."""
        rules = self.rules(self.end)
        needed = None if rules is None else self._others.get(rules.eligible_if_scored_in or "")
        return self.closed_at or max(self.end, self.end if needed is None else needed._newest)

    @property
    def restored_at(self) -> datetime | None:
        """When the state was last restored from a backup, according to a note."""
        return next((note.at for note in reversed(self.notes) if note.what == RESTORED), None)

    @property
    def unknown_phase(self) -> str | None:
        """A phase to which the rules refer but whose events are not known."""
        needed = {event.rules.eligible_if_scored_in for event in self.decisions.events}
        return next(
            iter(sorted(name for name in needed if name is not None and name not in self._others)), None
        )

    def entry_of(self, submission: int) -> str | None:
        """Return the entry of a submission."""
        return self._entry_of.get(submission)

    def place(self, entry: str | None) -> tuple[int, int]:
        """Return the place of an entry among its team's, by the first one of equal content, and its own among all scores."""
        if entry is None or entry not in self.scores:
            return LAST_PLACE, LAST_PLACE
        newest = self.scores[entry].events[-1]
        same_team = self._scored.get(newest.team_key, ())
        same = [name for name in same_team if self.scores[name].events[-1].content == newest.content]
        return min(self._places[name] for name in [*same, entry]), self._places[entry]

    def rules(self, moment: datetime) -> PhaseRules | None:
        """Return the rules at a moment, None before there were any."""
        decided = self.decisions.at(moment)
        return None if decided is None else decided.rules

    def score(self, entry: str, moment: datetime) -> ScoreEvent | None:
        """Return the newest score of an entry for the tasks and the protocol of a moment."""
        decided = self.decisions.at(moment)
        return None if decided is None else self._score(entry, decided, moment)

    def _score(self, entry: str, decided: PhaseEvent, moment: datetime) -> ScoreEvent | None:
        scores = self.scores[entry].until(moment) if entry in self.scores else []
        made_by = decided.protocol, decided.tasks
        return next((score for score in scores if (score.protocol, score.versions) == made_by), None)

    def qualified(self, moment: datetime) -> frozenset[int | None]:
        """Return the teams with a submission that counts at a moment; a disqualified team is on no board, whether or not it is one."""
        newest: list[SubmissionEvent | QualifyingEvent | None] = [
            *(history.at(moment) for history in self.submissions.values()),
            *(history.at(moment) for history in self.qualifying.values()),
        ]
        return frozenset(facts.team_key for facts in newest if facts is not None and membership.stands(facts))

    def snapshot(self, moment: datetime) -> PhaseSnapshot | None:
        """Return everything that decides the board of a moment; None before the phase was recorded.

        A rule that asks for a score in a phase without known events excludes nobody.
        """
        decided = self.decisions.at(moment)
        if decided is None:
            return None
        needed = self._others.get(decided.rules.eligible_if_scored_in or "")
        eligible = None if needed is None else needed.qualified(moment)
        counting = self._counting(decided, moment)
        entries: list[Entry] = []
        newest: ScoreEvent | None = None
        for name, history in self.submissions.items():
            facts, score = history.at(moment), self._score(name, decided, moment)
            if facts is None or score is None:
                continue
            competes = eligible is None or facts.team_key in eligible
            counts = counting is None or facts.submission in counting
            entry = self._entry(name, (facts, score, decided, competes, counts))
            if entry is not None:
                entries.append(entry)
                newest = score
        cells = newest.cells if newest else {}
        return PhaseSnapshot(
            codename=self.name,
            rules=decided.rules,
            epsilon=decided.epsilon,
            row_sets={task: cell.row_set for task, cell in cells.items()},
            test_parts={cell.row_set: cell.test_parts for cell in cells.values()},
            entries=tuple(entries),
        )

    def _entry(
        self, name: str, basis: tuple[SubmissionEvent, ScoreEvent, PhaseEvent, bool, bool]
    ) -> Entry | None:
        """Return a submission's entry; the earlier one is reused if nothing that decides it has changed."""
        facts, score, decided, competes, counts = basis
        key = id(facts), id(score), id(decided), competes, counts
        before = self._entries.get(name)
        if before is not None and before[0] == key:
            return before[1]
        scores = {task: cell.folds for task, cell in score.cells.items()}
        entry = membership.entry(facts, decided.rules, scores, eligible=competes, climbed=counts)
        self._entries[name] = key, entry
        return entry

    def _counting(self, decided: PhaseEvent, moment: datetime) -> frozenset[int] | None:
        """Return the submissions that count on a ladder; None if the rules have none."""
        if decided.rules.ladder_step is None:
            return None
        on_ladder = self._ladder_entries(self.scores, decided, moment)
        return frozenset(pk for pk, value in ladders(on_ladder, decided.rules).items() if value.counts)

    def _ladder_entries(
        self, entries: Iterable[str], decided: PhaseEvent, moment: datetime
    ) -> Iterator[LadderEntry]:
        """Yield the answered ones of these entries as entries of their ladders at a moment."""
        for name in entries:
            facts = self.registered[name].at(moment) if name in self.registered else None
            answered_at, first = self.answered_at.get(name), self.scores[name].at(moment)
            if (
                facts is None
                or first is None
                or answered_at is None
                or answered_at > moment
                or not climbs(facts)
            ):
                continue
            score = self._score(name, decided, moment)
            q_mean = None if score is None else self._q_mean(score, decided.epsilon)
            yield self._ladder_entry(facts, score or first, q_mean)

    def _ladder_entry(self, facts: SubmissionEvent, score: ScoreEvent, q_mean: float | None) -> LadderEntry:
        return LadderEntry(
            submission=score.submission,
            team=(score.team_key or 0, bool(facts.public or facts.public_at_first)),
            content=score.content,
            place=self._places.get(score.entry, LAST_PLACE),
            q_mean=q_mean,
        )

    def _q_mean(self, score: ScoreEvent, epsilon: float) -> float:
        """Return unrounded mean Q of a score, which is cached."""
        key = id(score), epsilon
        if key not in self._q_means:
            self._q_means[key] = q_mean_of(score, epsilon)
        return self._q_means[key]

    def withholds(self, moment: datetime) -> bool:
        """Return whether values are withheld at a moment: where the rules say so, until the phase is closed for the first time."""
        rules = self.rules(moment)
        if rules is None or rules.shown is not Shown.AT_END:
            return False
        return all(event.closed_at is None for event in self.decisions.until(moment))

    def shown_value(self, score: ScoreEvent, moment: datetime) -> ShownValue:
        """Return the value that the participant of a score is shown at a moment.

        Args:
            score: The newest score of its entry on the tasks of the moment, whether or not it is among the events yet.
            moment: The moment.

        Raises:
            LookupError: If the submission or the phase was not registered by then.
        """
        decided, facts = self.decisions.at(moment), self.registered[score.entry].at(moment)
        if decided is None or facts is None:
            raise LookupError("a score from before its submission or its phase")
        rules, scored = decided.rules, self.scores.get(score.entry)
        if self.withholds(moment):
            return ShownValue(value=None)
        if decided.closed_at is not None and (scored is None or scored.events[0].at > decided.closed_at):
            return AFTER_THE_CLOSE
        q_mean = q_mean_of(score, decided.epsilon)
        if rules.ladder_step is None or facts.own:
            return ShownValue(value=shown(q_mean, rules.decimals, rules.ladder_step))
        earlier = [] if scored is None or climbs(facts) else scored.until(moment)
        before = next((event for event in earlier if event is not score), None)
        if before is not None:  # taken off by the organizers: its answer stays as it was
            return ShownValue(value=before.q_mean, counts=before.counts)
        same_team = (name for name in self._scored.get(score.team_key, ()) if name != score.entry)
        on_ladder = [
            *self._ladder_entries(same_team, decided, moment),
            self._ladder_entry(facts, score, q_mean),
        ]
        shows = ladders(on_ladder, rules)[score.submission]
        return shows if climbs(facts) else ShownValue(value=shows.value)


class ChallengeReplay(dict[str, PhaseReplay]):
    """What follows from the events of a challenge, phase by phase; a phase without events is empty."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        super().__init__()
        self._everywhere: list[TeamEvent | ChallengeEvent] = []
        for event in events:
            self.take(event)

    def __missing__(self, name: str) -> PhaseReplay:
        """Make an empty phase."""
        phase = self[name] = PhaseReplay(name, self)
        for event in self._everywhere:
            phase.take(event)
        return phase

    def take(self, event: Event) -> None:
        """Add the next event.

        Raises:
            ValueError: If it is earlier than the one before.
        """
        if isinstance(event, TeamEvent | ChallengeEvent):
            self._everywhere.append(event)
            for phase in self.values():
                phase.take(event)
        else:
            self[event.phase].take(event)


def q_mean_of(score: ScoreEvent, epsilon: float) -> float:
    """Return unrounded mean Q of a score."""
    return mean_quality([quality(cell.folds, epsilon).q for cell in score.cells.values()])

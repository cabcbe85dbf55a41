"""Replay: recompute the boards of a phase from its register with the worker's own functions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from leaderboard import Entry, PhaseSnapshot
from scoring.quality import mean_quality, quality
from worker.challenge.records import PhaseRules
from worker.fairness import events, membership, receipts
from worker.fairness.ladder import Rung, climbs, ladders

Fields = Mapping[str, Any]


@dataclass
class History:
    """The registered events about one subject, oldest first."""

    moments: list[datetime] = field(default_factory=list)
    events: list[Fields] = field(default_factory=list)

    def add(self, fields: Fields) -> None:
        """Append an event.

        Raises:
            ValueError: If it is earlier than the one before.
        """
        moment = datetime.fromisoformat(fields["at"])
        if self.moments and moment < self.moments[-1]:
            raise ValueError("events are not in order")
        self.moments.append(moment)
        self.events.append(fields)

    def at(self, moment: datetime) -> Fields | None:
        """Return the newest event at a moment."""
        place = bisect_right(self.moments, moment)
        return self.events[place - 1] if place else None

    def until(self, moment: datetime) -> list[Fields]:
        """Return all events up to a moment, the newest first."""
        return self.events[: bisect_right(self.moments, moment)][::-1]


class Register:
    """The register of one phase, as far as it was opened.

    Args:
        phase: Codename.
        opened: The fields of its events, in their order.
    """

    def __init__(self, phase: str, opened: Iterable[Fields]) -> None:
        self.phase = phase
        self.decisions = History()
        self.submissions: dict[str, History] = {}
        self.scores: dict[str, History] = {}
        self._entries: dict[str, tuple[tuple[int, ...], Entry | None]] = {}
        self._ladders: dict[tuple[int, bool], list[tuple[int, str]]] = {}
        self._answered_at: dict[str, datetime | None] = {}
        self._q_means: dict[tuple[int, float], float] = {}
        self.private: set[str] = set()
        # private submissions: only the fields that qualify their teams for another phase
        self.qualifying: dict[str, History] = {}
        self.notes: list[Fields] = []
        for fields in opened:
            self._take(fields)

    def _take(self, fields: Fields) -> None:
        kind = fields["kind"]
        if kind == events.CHALLENGE:
            self.notes.append(fields)
        elif kind == events.PHASE:
            self.decisions.add(fields)
        elif "submission" not in fields:
            self.private.add(fields["entry"])
            if kind == events.SUBMISSION:
                self.qualifying.setdefault(fields["entry"], History()).add(fields)
        else:
            histories = self.submissions if kind == events.SUBMISSION else self.scores
            if kind == events.SCORE and fields["entry"] not in self.scores:
                team = fields["team_key"], bool(fields["public_at_first"])
                self._ladders.setdefault(team, []).append((len(self.scores), fields["entry"]))
            histories.setdefault(fields["entry"], History()).add(fields)

    @property
    def restored_at(self) -> datetime | None:
        """When the state was last restored from a backup, according to a note; None if there is none."""
        moments = [note["at"] for note in self.notes if note["what"] == receipts.RESTORED]
        return datetime.fromisoformat(moments[-1]) if moments else None

    @property
    def end(self) -> datetime:
        """The moment of its newest event."""
        histories = [self.decisions, *self.submissions.values(), *self.scores.values()]
        return max(history.moments[-1] for history in histories if history.moments)

    def unknown_phase(self, elsewhere: Collection[str]) -> str | None:
        """Return a phase to which its rules refer but that is not among the others; None if there is none."""
        asked = {fields["rules"]["eligible_if_scored_in"] for fields in self.decisions.events}
        return next(iter(sorted(asked - {None, self.phase, *elsewhere})), None)

    @property
    def closed_at(self) -> datetime:
        """The moment that the last board shows: its closing or, if it is open, the end of the register."""
        closed = self.decisions.events[-1]["frozen_at"]
        return self.end if closed is None else datetime.fromisoformat(closed)

    def rules(self, moment: datetime) -> PhaseRules | None:
        """Return the rules at a moment, None before there were any."""
        found = self.decisions.at(moment)
        if found is None:
            return None
        lists = {name: tuple(value) for name, value in found["rules"].items() if isinstance(value, list)}
        return PhaseRules(**{**found["rules"], **lists})

    def score(self, entry: str, moment: datetime) -> Fields | None:
        """Return the newest score of an entry for the tasks and the protocol of a moment."""
        decided = self.decisions.at(moment)
        return None if decided is None else self._score(entry, decided, moment)

    def _score(self, entry: str, decided: Fields, moment: datetime) -> Fields | None:
        """Return the newest score of an entry at a moment, for the given tasks and protocol."""
        scores = self.scores.get(entry)
        for fields in () if scores is None else scores.until(moment):
            versions = {task: cell["version"] for task, cell in fields["cells"].items()}
            if fields["protocol"] == decided["protocol"] and versions == decided["tasks"]:
                return fields
        return None

    def teams(self, moment: datetime) -> frozenset[int]:
        """Return the teams with a submission that counts at a given time."""
        histories = (*self.submissions.values(), *self.qualifying.values())
        found = (history.at(moment) for history in histories)
        return frozenset(
            facts["team_key"] for facts in found if facts and "team_key" in facts and membership.stands(facts)
        )

    def snapshot(
        self, moment: datetime, *, epsilon: float, elsewhere: Mapping[str, Register] | None
    ) -> PhaseSnapshot | None:
        """Return everything that decides the board of a moment; None before the phase was recorded.

        Args:
            moment: The time on the board.
            epsilon: Epsilon of the protocol at that moment.
            elsewhere: Other phases, for the rule that requires a score in one of them; None lets all teams compete.

        Raises:
            KeyError: If that phase is not among them.
        """
        rules, decided = self.rules(moment), self.decisions.at(moment)
        if rules is None or decided is None:
            return None
        needed = None if elsewhere is None else rules.eligible_if_scored_in
        known = {**(elsewhere or {}), self.phase: self}
        eligible = None if needed is None else known[needed].teams(moment)
        entries: list[Entry] = []
        row_sets: dict[str, str] = {}
        climbed = self._climbed(decided, rules, moment, epsilon)
        for name, history in self.submissions.items():
            facts = history.at(moment)
            score = None if facts is None else self._score(name, decided, moment)
            if facts is None or score is None:
                continue
            made = self._entry(
                name,
                facts,
                score,
                decided,
                rules,
                eligible=eligible is None or facts["team_key"] in eligible,
                climbed=climbed is None or facts["submission"] in climbed,
            )
            if made is not None:
                entries.append(made)
                row_sets = {task: cell["row_set"] for task, cell in score["cells"].items()}
        chosen = {int(team): submission for team, submission in decided["chosen"].items()}
        return PhaseSnapshot(
            codename=self.phase,
            title=self.phase,
            rules=rules.for_board(epsilon=epsilon, chosen=chosen),
            row_sets=row_sets,
            entries=tuple(entries),
        )

    def _climbed(
        self, decided: Fields, rules: PhaseRules, moment: datetime, epsilon: float
    ) -> frozenset[int] | None:
        """Return the submissions that counted on a ladder by a moment; None if the rules have none."""
        if rules.ladder_step is None:
            return None
        rungs = self.rungs(decided, moment, epsilon=epsilon)
        return frozenset(pk for pk, told in ladders(rungs, rules).items() if told.counts)

    def rungs(
        self,
        basis: Fields,
        moment: datetime,
        *,
        epsilon: float,
        entry: str = "",
        team: tuple[int, bool] | None = None,
    ) -> list[Rung]:
        """Return all submissions on the ladders at a moment.

        Args:
            basis: An event with the protocol and the tasks to which a score must belong to have a value.
            moment: The moment.
            epsilon: Epsilon of that protocol.
            entry: An entry to include although it is not answered yet.
            team: Only this team's ladder.
        """
        found = []
        for place, name in self._ladders.get(team, ()) if team else enumerate(self.scores):
            scores = self.scores[name]
            facts, first = self.submissions.get(name, History()).at(moment), scores.at(moment)
            if facts is None or first is None or not climbs(facts):
                continue
            if name != entry and not self._was_answered(name, moment):
                continue
            score = self._score(name, basis, moment)
            found.append(
                Rung(
                    submission=int(first["submission"]),
                    team=(int(first["team_key"]), bool(first["public_at_first"])),
                    content=str((score or first)["content"]),
                    place=place,
                    q_mean=None if score is None else self._q_mean(score, epsilon),
                )
            )
        return found

    def _was_answered(self, entry: str, moment: datetime) -> bool:
        """Return whether a submission was answered at a moment or before it."""
        if entry not in self._answered_at:
            history = self.submissions[entry]
            answered = (
                at for at, facts in zip(history.moments, history.events, strict=True) if facts["answered"]
            )
            self._answered_at[entry] = next(answered, None)
        since = self._answered_at[entry]
        return since is not None and since <= moment

    def _q_mean(self, score: Fields, epsilon: float) -> float:
        """Return unrounded mean Q of a score, which is cached."""
        known = id(score), epsilon
        if known not in self._q_means:
            qualities = [quality(cell["folds"], epsilon).q for cell in score["cells"].values()]
            self._q_means[known] = mean_quality(qualities)
        return self._q_means[known]

    def withholds(self, moment: datetime) -> bool:
        """Return whether values were withheld at a moment. They are until the board is closed for the first time."""
        rules = self.rules(moment)
        if rules is None or rules.shown != "at_end":
            return False
        return all(fields["frozen_at"] is None for fields in self.decisions.until(moment))

    def is_after_the_close(self, entry: str, moment: datetime) -> bool:
        """Return whether an entry was scored for the first time after the phase was closed, and the phase was closed at a moment."""
        decided = self.decisions.at(moment)
        closed = None if decided is None else decided["frozen_at"]
        return closed is not None and self.scores[entry].moments[0] > datetime.fromisoformat(closed)

    def _entry(
        self,
        name: str,
        facts: Fields,
        score: Fields,
        decided: Fields,
        rules: PhaseRules,
        *,
        eligible: bool,
        climbed: bool,
    ) -> Entry | None:
        """Return a submission's entry; the earlier one is reused if nothing that decides it has changed."""
        basis = id(facts), id(score), id(decided), int(eligible), int(climbed)
        known = self._entries.get(name)
        if known is None or known[0] != basis:
            scores = {task: cell["folds"] for task, cell in score["cells"].items()}
            known = basis, membership.entry(facts, rules, scores, eligible=eligible, climbed=climbed)
            self._entries[name] = known
        return known[1]

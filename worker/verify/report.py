"""The report: five questions with a verdict each, what has to be taken on trust, and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from worker.challenge.signing import fingerprint
from worker.fairness import receipts
from worker.participant.challenge import MISSED
from worker.verify.public import PublicRepository
from worker.verify.revealed import read_reveals
from worker.verify.verdict import Status, Verdict, believed, consistent, judged

YOURS = "your "
"""Prefix of the checks of what a participant brought along."""
MARKS = {
    Status.CONTRADICTED: "✗",
    Status.CHANGED: "!",
    Status.NOT_REVEALED: "?",
    Status.BELIEVED: "~",
    Status.RECOMPUTED: "✓",
    Status.CONSISTENT: "✓",
}
"""The mark of each status, the worst first."""
AGAINST = (Status.CONTRADICTED, Status.CHANGED, Status.NOT_REVEALED)
"""What an answer consists of if there is any, the worst first."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question of somebody who lost.

    Attributes:
        text: The question.
        yes: The answer if nothing is contradicted.
        checks: The checks that answer it.
    """

    text: str
    yes: str
    checks: frozenset[str]


QUESTIONS = (
    Question(
        text="Was it the same game from the start?",
        yes="Tasks, protocol, splits and rules are those that were fixed before the first score, with the decisions that are listed.",
        checks=frozenset(
            (
                "access",
                "commitment",
                "order",
                "signatures",
                "reveal",
                "splits",
                "fixed",
                "labels",
                "ids",
                "beacon",
                "decisions",
                "times",
            )
        ),
    ),
    Question(
        text="Is everybody on the board who should be?",
        yes="Every board follows from the events that were registered, and each of them is in the public log.",
        checks=frozenset(("receipts", "register", "private", "received", "places", "boards", "reveal")),
    ),
    Question(
        text="Are the scores true?",
        yes="They are possible, and belong to the submission, team and file that were registered.",
        checks=frozenset(("reveal", "scores", "possible", "facts", "files", "recomputed")),
    ),
    Question(
        text="Is what I see what was computed?",
        yes="The published pages are those that follow from the boards.",
        checks=frozenset(("page", "words")),
    ),
    Question(
        text="Has anybody else changed this?",
        yes="No change by anybody else was found.",
        checks=frozenset(("signed", "tip", "history", "earlier", "older clone")),
    ),
)
ALWAYS = (
    "What only EvalAI knows: who sent each submission, when and with which method, whether it was public, and whether one is missing from"
    " the register.",
    "The organizers' clocks were right, and this history was published during the challenge. A receipt or a clone from that time can"
    " contradict it (--receipt, --against).",
    "The tie groups and intervals of all boards but the last, the pages of earlier commits, and messages of commits.",
)
"""What cannot be proved in any challenge; docs/fairness.md has the same sentences."""
TRUST = {
    "private": "Whose the entries are that were opened only in part (private, refused, not answered, or trials of the"
    " organizers), and what they scored.",
    "recomputed": "The scores of files that are not published.",
}
"""What cannot be proved in most challenges, by the check that says so, also in the words of docs/fairness.md."""


@dataclass(frozen=True, kw_only=True)
class QuestionAnswer:
    """The answer to a question.

    Attributes:
        question: The question.
        status: The worst status of its checks; consistent if something has to be taken on trust, which is listed elsewhere.
        said: The answer, or what speaks against it, and what is always told.
        verdicts: All verdicts that answer it.
    """

    question: Question
    status: Status
    said: tuple[Verdict, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is said, in words."""
        return tuple(map(spoken, self.said))


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results of a verification.

    Attributes:
        repository: What was checked: address, fingerprint of the key, branch, commit and its time, time of the log.
        phases: Codename to what was revealed of a phase: whether anything, its entries, and how many of them were recomputed.
        verdicts: All verdicts, those on the challenge first.
    """

    repository: Mapping[str, Any]
    phases: Mapping[str, Mapping[str, int]]
    verdicts: tuple[Verdict, ...]

    def number(self, status: Status) -> int:
        """Return the number of checks with a status."""
        return sum(verdict.status is status for verdict in self.verdicts)

    @property
    def answers(self) -> tuple[QuestionAnswer, ...]:
        """The answers to the five questions."""
        return tuple(
            _answer(question, [verdict for verdict in self.verdicts if verdict.check in question.checks])
            for question in QUESTIONS
        )

    @property
    def trust(self) -> list[str]:
        """What has to be taken on trust, each once."""
        taken = [
            verdict
            for verdict in self.verdicts
            if verdict.status is Status.BELIEVED and not verdict.check.startswith(YOURS)
        ]
        return list(
            dict.fromkeys([*ALWAYS, *(TRUST.get(verdict.check) or spoken(verdict) for verdict in taken)])
        )

    @property
    def yours(self) -> list[Verdict]:
        """The verdicts on what a participant brought along."""
        return [verdict for verdict in self.verdicts if verdict.check.startswith(YOURS)]

    @property
    def sentence(self) -> str:
        """The overall result, which never says more than was checked."""
        if contradicted := self.number(Status.CONTRADICTED):
            return f"Contradicted: {contradicted} of {len(self.verdicts)} checks found a contradiction, marked ✗ above."
        if self.number(Status.CHANGED):
            return (
                "Changed by somebody else: what visitors see now is not what the challenge has signed, see ! above. Nothing that it"
                " has signed is contradicted."
            )
        waits = any(
            verdict.status is Status.NOT_REVEALED
            and verdict.phase is not None
            and not verdict.check.startswith(YOURS)
            for verdict in self.verdicts
        )
        if not self.phases or waits or not all(sums["revealed"] for sums in self.phases.values()):
            return "Consistent so far: nothing is contradicted, but not everything has been revealed."
        return f"Consistent: nothing is contradicted. {self._recomputed}"

    @property
    def _recomputed(self) -> str:
        """Say how many scores were recomputed, and that the others must be trusted."""
        entries, recomputed = (
            sum(sums[name] for sums in self.phases.values()) for name in ("entries", "recomputed")
        )
        if not entries:
            return "No public submission was scored."
        rest = f"; the other {entries - recomputed} have to be taken on trust" if recomputed < entries else ""
        return f"The scores of {recomputed} of {entries} submissions were recomputed from their files{rest}."

    def heading(self) -> list[str]:
        """Return lines that say what was checked."""
        where, commit = self.repository, self.repository["commit"]
        lines = [f"Key: {where['key'] or 'none'}", f"Repository: {where['address']}"]
        if commit is None:
            lines.append("This is a plain folder, without branch, commit or history.")
        else:
            lines.append(f"Branch {where['branch']}, commit {commit[:10]} of {where['committed_at']}")
        log = f"last line of {where['log_at']}" if where["log_at"] else "empty"
        lines.append(f"Public log: {log}.{where['silence']}")
        return lines

    def lines(self, *, verbose: bool) -> Iterator[str]:
        """Yield the lines of the report; they quote untrusted text, which the caller must make printable.

        Args:
            verbose: Whether every verdict is shown, not only the answers.
        """
        yield from self.heading()
        for answer in self.answers:
            yield ""
            yield answer.question.text
            yield from (f"  {MARKS[verdict.status]} {spoken(verdict)}" for verdict in answer.said)
            for verdict in answer.verdicts if verbose else ():
                yield f"      {MARKS[verdict.status]} {spoken(verdict)}"
        if self.trust:
            yield ""
            yield "Taken on trust, because nothing that is published could contradict it"
            yield from (f"  {MARKS[Status.BELIEVED]} {sentence}" for sentence in self.trust)
        for check in dict.fromkeys(verdict.check for verdict in self.yours):
            yield ""
            yield check.replace("your", "Your", 1)
            yield from (
                f"  {MARKS[verdict.status]} {spoken(verdict)}"
                for verdict in self.yours
                if verdict.check == check
            )
        yield ""
        yield self.sentence

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-ready document."""
        changed, contradicted = (self.number(status) for status in (Status.CHANGED, Status.CONTRADICTED))
        return {
            "repository": dict(self.repository),
            "phases": {name: dict(sums) for name, sums in self.phases.items()},
            "questions": [
                {
                    "question": answer.question.text,
                    "status": answer.status.value,
                    "answer": list(answer.sentences),
                }
                for answer in self.answers
            ],
            "trust": self.trust,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "verdict": "contradicted" if contradicted else "changed" if changed else "consistent",
        }


def spoken(verdict: Verdict) -> str:
    """Return a verdict's sentence with its phase."""
    return f"Phase {verdict.phase}: {verdict.sentence}" if verdict.phase else verdict.sentence


def _answer(question: Question, verdicts: list[Verdict]) -> QuestionAnswer:
    against = [verdict for verdict in verdicts if verdict.status in AGAINST]
    passed = [verdict for verdict in verdicts if verdict.status in (Status.CONSISTENT, Status.RECOMPUTED)]
    listed = [
        verdict
        for verdict in passed
        if verdict.check in ("decisions", "fixed") or verdict.status is Status.RECOMPUTED
    ]
    unknown = believed("This cannot be checked with what is published here.")
    said = sorted(against, key=lambda verdict: AGAINST.index(verdict.status)) or [
        consistent(question.yes) if passed else unknown
    ]
    return QuestionAnswer(
        question=question, status=said[0].status, said=(*said, *listed), verdicts=tuple(verdicts)
    )


def make_report(
    repository: PublicRepository, checks: Iterable[Verdict], now: datetime | None = None
) -> Report:
    """Summarize verdicts on a repository, and name the scores that were not recomputed."""
    verdicts, readable = list(checks), read_reveals(repository).phases
    sums = {}
    for name in dict.fromkeys(
        [*repository.phases, *(verdict.phase for verdict in verdicts if verdict.phase)]
    ):
        entries = len(readable[name].records) if name in readable else 0
        recomputed = len({pk for verdict in verdicts if verdict.phase == name for pk in verdict.submissions})
        if recomputed < entries:
            sentence = (
                f"the scores of {entries - recomputed} of {entries} submissions were not recomputed from their files: they are taken on"
                " trust"
            )
            verdicts += judged("recomputed", believed, sentence, phase=name)
        sums[name] = {"revealed": name in repository.revealed, "entries": entries, "recomputed": recomputed}
    commit, log = repository.commit, repository.log
    checked = {
        "address": repository.address,
        "key": repository.key and fingerprint(repository.key),
        "branch": repository.branch,
        "commit": commit and commit.commit,
        "committed_at": commit and commit.at.isoformat(),
        "log_at": log[-1].made_at.isoformat() if log else None,
        "silence": _silence(repository, now or datetime.now(UTC)),
    }
    return Report(repository=checked, phases=sums, verdicts=tuple(verdicts))


def _silence(repository: PublicRepository, now: datetime) -> str:
    """Say that nothing was written into the log of an open challenge for long, because a worker that runs adds a line at each interval."""
    has_ended = {*repository.phases} <= {*repository.revealed}
    if repository.is_copy or not repository.log or not repository.commitments or has_ended:
        return ""
    age = now - repository.log[-1].made_at
    if age <= max(MISSED * receipts.cadence(repository.commitments), timedelta(hours=2)):
        return ""
    return f" It has been silent for {age // timedelta(hours=1):,} hours: write to the organizers."

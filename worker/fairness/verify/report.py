"""The report: what was checked, every verdict, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scoring.printable import all_of
from worker.fairness import receipts
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.revealed import (
    UNREADABLE,
    phases,
    read_phase,
    revealed_phases,
)
from worker.fairness.verify.verdict import Verdict, Worth, believed

YOURS = "your "
"""Prefix of the checks of what a participant brought along."""


SHOWN_AS = {Worth.BELIEVED: "taken on trust"}
"""Names of worths in text, if they differ from the JSON."""


@dataclass(frozen=True, kw_only=True)
class PhaseSums:
    """A summary of the checks of one phase.

    Attributes:
        revealed: Whether anything of the phase was revealed.
        entries: Number of submissions revealed with their scores.
        recomputed: Number of them that were recomputed.
        counts: Number of its checks with each worth.
    """

    revealed: bool
    entries: int
    recomputed: int
    counts: Mapping[Worth, int]

    @property
    def sentence(self) -> str:
        """The summary in one line."""
        if not self.revealed:
            return "Nothing of this phase has been revealed."
        told = [f"scores of {_some(self.recomputed, self.entries)} recomputed"]
        told += [
            f"{self.counts[worth]} {SHOWN_AS.get(worth, worth.value)}"
            for worth in Worth
            if worth is not Worth.RECOMPUTED and self.counts.get(worth)
        ]
        return f"Summary: {', '.join(told)}."


@dataclass(frozen=True, kw_only=True)
class Report:
    """All results of a verification.

    Attributes:
        repository: What was checked: address, branch, commit and its time, time of the public log.
        phases: Codename to summary.
        verdicts: All verdicts, those on the challenge first.
    """

    repository: Mapping[str, Any]
    phases: Mapping[str, PhaseSums]
    verdicts: tuple[Verdict, ...]

    @property
    def contradictions(self) -> int:
        """Number of checks that found a contradiction."""
        return sum(verdict.worth is Worth.CONTRADICTED for verdict in self.verdicts)

    @property
    def changes(self) -> int:
        """Number of checks that found that somebody else has changed what visitors see."""
        return sum(verdict.worth is Worth.CHANGED for verdict in self.verdicts)

    @property
    def entries(self) -> int:
        """Number of submissions that were revealed with their scores."""
        return sum(sums.entries for sums in self.phases.values())

    @property
    def recomputed(self) -> int:
        """Number of them that were recomputed."""
        return sum(sums.recomputed for sums in self.phases.values())

    @property
    def sentence(self) -> str:
        """The overall result, which never says more than was checked."""
        if self.contradictions:
            return f"Contradicted: {self.contradictions} of {len(self.verdicts)} checks found a contradiction, marked ✗ above."
        if self.changes:
            return (
                "Changed by somebody else: what visitors see now is not what the challenge has signed, see ! above. Nothing that it"
                " has signed is contradicted."
            )
        if not self.phases or not all(sums.revealed for sums in self.phases.values()) or self._waits:
            return "Consistent so far: nothing is contradicted, but not everything has been revealed."
        return f"Consistent: nothing is contradicted. {self._recomputed}"

    @property
    def _recomputed(self) -> str:
        """Say how many scores were recomputed, and that the others must be trusted."""
        rest = self.entries - self.recomputed
        if not rest:
            return f"The scores of {all_of(self.entries, 'submission')} were recomputed from {_files(self.entries)}."
        if not self.recomputed:
            return f"No scores were recomputed: those of {all_of(self.entries, 'submission')} have to be taken on trust."
        others = "those of the other one have" if rest == 1 else f"the other {rest} have"
        return (
            f"The scores of {self.recomputed} of {self.entries} submissions were recomputed from their files; {others} to be"
            " taken on trust."
        )

    @property
    def _waits(self) -> bool:
        """Whether something of a revealed phase, such as a later board, waits for another reveal."""
        return any(
            one.worth is Worth.NOT_REVEALED and one.phase is not None and not one.check.startswith(YOURS)
            for one in self.verdicts
        )

    def of_challenge(self) -> list[Verdict]:
        """Return the verdicts on the challenge as a whole."""
        return [one for one in self.verdicts if one.phase is None and not one.check.startswith(YOURS)]

    def of_phase(self, name: str) -> list[Verdict]:
        """Return the verdicts on one phase."""
        return [one for one in self.verdicts if one.phase == name and not one.check.startswith(YOURS)]

    def of_yours(self) -> dict[str, list[Verdict]]:
        """Return the verdicts on what a participant brought along, by receipt and file."""
        found: dict[str, list[Verdict]] = {}
        for one in self.verdicts:
            if one.check.startswith(YOURS):
                found.setdefault(one.check, []).append(one)
        return found

    def heading(self) -> list[str]:
        """Return lines that say what was checked."""
        where, commit = self.repository, self.repository["commit"]
        lines = [f"Repository: {where['address']}"]
        if commit is None:
            lines.append("This is a plain folder, without branch, commit or history.")
        else:
            lines.append(f"Branch {where['branch']}, commit {commit[:10]} of {where['committed_at']}")
        log = f"last line of {where['log_at']}" if where["log_at"] else "empty"
        lines.append(f"Public log: {log}.")
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the JSON-ready document."""
        return {
            "repository": dict(self.repository),
            "phases": {
                name: {
                    "revealed": sums.revealed,
                    "entries": sums.entries,
                    **{worth.value: sums.counts.get(worth, 0) for worth in Worth},
                    "recomputed": sums.recomputed,
                }
                for name, sums in self.phases.items()
            },
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "verdict": "contradicted" if self.contradictions else "changed" if self.changes else "consistent",
            "recomputed": self.recomputed,
            "entries": self.entries,
        }


def make_report(repository: PublicRepository, found: Iterable[Verdict]) -> Report:
    """Summarize verdicts on a repository, and name the scores that were not recomputed."""
    verdicts = list(found)
    revealed = revealed_phases(repository)
    sums = {}
    for name in dict.fromkeys([*phases(repository), *(one.phase for one in verdicts if one.phase)]):
        entries = _entries(repository, name) if name in revealed else 0
        recomputed = len({pk for one in verdicts if one.phase == name for pk in one.submissions})
        if recomputed < entries:
            verdicts.append(
                believed(
                    "recomputed",
                    (
                        f"The scores of {_some(entries - recomputed, entries)} were not recomputed from {_files(entries)}: they"
                        " are taken on trust."
                    ),
                    phase=name,
                )
            )
        sums[name] = PhaseSums(
            revealed=name in revealed,
            entries=entries,
            recomputed=recomputed,
            counts=Counter(one.worth for one in verdicts if one.phase == name),
        )
    return Report(repository=_checked(repository), phases=sums, verdicts=tuple(verdicts))


def _some(number: int, entries: int) -> str:
    return f"{number} of {entries} submissions" if entries > 1 else all_of(entries, "submission")


def _files(entries: int) -> str:
    return "its file" if entries == 1 else "their files"


def _checked(repository: PublicRepository) -> dict[str, Any]:
    commit = repository.commit
    lines = list(repository.lines(receipts.PATH))
    return {
        "address": repository.address,
        "branch": repository.branch,
        "commit": None if commit is None else commit.hash,
        "committed_at": None if commit is None else commit.at.isoformat(),
        "log_at": lines[-1].get("made_at") if lines else None,
    }


def _entries(repository: PublicRepository, name: str) -> int:
    try:
        return len(read_phase(repository, name).records)
    except UNREADABLE:
        return 0

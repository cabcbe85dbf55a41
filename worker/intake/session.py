"""What this process has learned from EvalAI since its start; losing it costs nothing but calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scoring.errors import OrganizerError
from scoring.printable import duration_of
from worker.challenge.configuration import Configuration
from worker.evalai import Client, Phase, PhaseSplit
from worker.state import SubmissionRow

# How long new submissions are collected for one listing while others are worked on.
BATCH_WINDOW = timedelta(seconds=5)
OVERLAP = timedelta(minutes=1)  # EvalAI may store two submissions in another order than that of their times
CLOCKS_AGREE = timedelta(minutes=2)  # if they differ by less


@dataclass(kw_only=True)
class Session:
    """What EvalAI told this process.

    Attributes:
        remote: Our challenge and its phases; None before they were read.
        outdated: Whether the configuration was reloaded since, or the phases have changed at EvalAI.
        empty_polls: How many polls in a row found the queue empty.
        receipt: By which the next poll deletes the message of the last one; None if there is nothing to delete.
        call_began_at: When the last call that EvalAI answered began; see :meth:`received_at`.
        call_ended_at: When its answer came.
        silent_since: Since when EvalAI has given no usable answer; None while it answers.
        unlisted: The submissions that the last comparison did not find in EvalAI's listing, and that were not read since.
        missed: The submissions that a listing made for them lacked, which are read by their own address.
        unseen: The submissions that no page of their phase's listing showed, or only with another team's name, and when.
    """

    remote: RemoteChallenge | None = None
    outdated: bool = False
    empty_polls: int = 0
    receipt: str | None = None
    call_began_at: datetime | None = None
    call_ended_at: datetime | None = None
    silent_since: datetime | None = None
    unlisted: list[int] = field(default_factory=list)
    missed: set[int] = field(default_factory=set)
    unseen: dict[int, datetime] = field(default_factory=dict)

    def received_at(self, row: SubmissionRow) -> datetime | None:
        """Return when EvalAI's last facts about a submission arrived.

        The database records when EvalAI was asked, because only what was decided before that moment is certain to be included. The age of
        the facts counts from their arrival; otherwise a slow call would be repeated indefinitely.
        """
        return self.call_ended_at if row.read_at == self.call_began_at else row.read_at


@dataclass(frozen=True, kw_only=True)
class RemoteChallenge:
    """What EvalAI says of our challenge; read at the start, after a reload, and after a change of its phases.

    Attributes:
        listed: All phases of the challenge.
        phases: Their pk to codename.
        silent: Phases whose logs the host has disabled; EvalAI would store logs all the same, so the worker sends none.
        host_team_pk: The host team.
    """

    listed: Sequence[Phase]
    phases: Mapping[int, str]
    silent: frozenset[int]
    host_team_pk: int | None


def clocks_differ(ahead: timedelta) -> str:
    """Say how far EvalAI's clock is ahead of ours, or behind it."""
    off = duration_of(abs(ahead).total_seconds())
    return f"This machine's clock is {off} {'behind' if ahead > timedelta() else 'ahead of'} EvalAI's"


def read_remote(client: Client, configuration: Configuration) -> RemoteChallenge:
    """Return what EvalAI says of our challenge, after checking that its pk, splits and metrics are the configured ones.

    This takes several calls, at the start and after a reload.

    Raises:
        OrganizerError: If they are not; with the hint.
        NeucoError: As every call.
    """
    challenge = client.challenge()
    ours = configuration.evalai.challenge
    if challenge.pk != ours:
        raise OrganizerError(
            f"The queue belongs to challenge {challenge.pk}, but the configuration says {ours}.",
            hint="Correct evalai.challenge or evalai.queue.",
            code="evalai.challenge_differs",
        )
    listed = client.phases()
    phases = {phase.pk: phase.codename for phase in listed}
    for fault in split_faults(configuration, phases, client.splits()):
        raise fault
    return RemoteChallenge(
        listed=listed,
        phases=phases,
        silent=frozenset(phase.pk for phase in listed if phase.disable_logs),
        host_team_pk=challenge.host_team_pk,
    )


def split_faults(
    configuration: Configuration, phases: Mapping[int, str], splits: Mapping[tuple[int, str], PhaseSplit]
) -> Iterator[OrganizerError]:
    """Yield why EvalAI would refuse a result of a phase, or show "#" instead of its score.

    Args:
        configuration: Names a split and its metric for each phase.
        phases: EvalAI's phases, number to codename.
        splits: EvalAI's splits, by the phase's number and the split's codename.
    """
    for pk, codename in phases.items():
        settings = configuration.phases.get(codename)
        if settings is None:
            continue
        metrics = {name: split.labels for (phase, name), split in splits.items() if phase == pk}
        if settings.split not in metrics:
            yield OrganizerError(
                f"Phase {codename} has no dataset split {settings.split} on EvalAI; it has {', '.join(sorted(metrics)) or 'none'}.",
                hint=f"Correct phases.{codename}.split.",
                code="evalai.split_unknown",
            )
        elif metrics[settings.split] != (settings.metric,):
            yield OrganizerError(
                f"The leaderboard of phase {codename} has the metrics {', '.join(metrics[settings.split])}, but the worker posts"
                f" {settings.metric}.",
                hint=f"Correct phases.{codename}.metric, or the schema of the bundle: labels: [{settings.metric}].",
                code="evalai.metric_differs",
            )


def phase_faults(configuration: Configuration, phases: Mapping[int, str]) -> Iterator[OrganizerError]:
    """Yield the configured phases that EvalAI lacks.

    Args:
        configuration: Has the phases.
        phases: EvalAI's phases, number to codename.
    """
    listed = ", ".join(sorted(phases.values())) or "none"
    for codename in sorted(configuration.phases.keys() - set(phases.values())):
        yield OrganizerError(
            f"EvalAI has no phase with the codename {codename}; it has {listed}.",
            hint="Under `phases`, use the codenames of the challenge bundle.",
            code="evalai.phase_unknown",
        )

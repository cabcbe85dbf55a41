"""The doctor: every check that is possible before the launch, each with its result and cure.

It changes nothing outside: it receives nothing from the queue, pushes nothing and posts nothing. Label values are never shown. Names of
hidden tasks are, because only the organizer reads them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from scoring.errors import NeucoError
from worker.organizer.doctor import (
    beacon,
    board,
    configuration,
    cost,
    evalai,
    machine,
    phases,
    records,
    tasks,
    training,
)
from worker.organizer.doctor.check import Check, CheckOutcome, Finding, Level, Report, fail, skipped, worst
from worker.organizer.doctor.cost import Cost
from worker.organizer.doctor.examination import Examination
from worker.organizer.doctor.remote import Wait

CHECKS: tuple[Check, ...] = (
    *configuration.CHECKS,
    *tasks.CHECKS,
    *training.CHECKS,
    *evalai.CHECKS,
    *phases.CHECKS,
    *board.CHECKS,
    *beacon.CHECKS,
    *machine.CHECKS,
    *records.CHECKS,
    *cost.CHECKS,
)


def examine(
    path: Path,
    *,
    clock: Callable[[], datetime],
    offline: bool = False,
    only: Collection[str] | None = None,
    on_outcome: Callable[[CheckOutcome], None] = lambda _: None,
    wait: Wait = lambda seconds, _: time.sleep(seconds),
) -> Report:
    """Run the checks in their order.

    Args:
        path: The configuration file.
        clock: Returns the time of this machine, aware.
        offline: Skip the checks that contact other machines.
        only: Ids of the checks to run, with those that they need; all by default.
        on_outcome: Called with each outcome as soon as it is known.
        wait: Waits for the given seconds, with the reason.
    """
    wanted = _closure(only)
    outcomes: dict[str, CheckOutcome] = {}
    with Examination(path, clock=clock, wait=wait) as exam:
        for check in CHECKS:
            if check.id not in wanted:
                continue
            outcomes[check.id] = CheckOutcome(
                check=check, findings=_ask(check, exam, outcomes, offline=offline)
            )
            on_outcome(outcomes[check.id])
        return Report(outcomes=tuple(outcomes.values()), costs=exam.measured)


def _ask(
    check: Check, exam: Examination, outcomes: dict[str, CheckOutcome], *, offline: bool
) -> tuple[Finding, ...]:
    if offline and check.remote:
        return (skipped("--offline was given."),)
    for need in check.needs:
        if outcomes[need].level in (Level.FAIL, Level.SKIPPED):
            state = "failed" if outcomes[need].level is Level.FAIL else "was skipped"
            return (skipped(f"{need} {state}."),)
    findings: list[Finding] = []
    try:
        findings.extend(check.ask(exam))
    except NeucoError as error:
        findings.append(fail(error.sentence, error.cure))
    except Exception as error:  # noqa: BLE001 - a defect in one check must not hide what the others find
        kind = type(error).__name__
        findings.append(
            fail(
                f"This check itself failed ({kind}).",
                "This is a bug in neuco-worker. Report it, with the check's name and your configuration without its secrets.",
            )
        )
    return tuple(findings)


def _closure(only: Collection[str] | None) -> frozenset[str]:
    by_id = {check.id: check for check in CHECKS}
    if only is None:
        return frozenset(by_id)
    wanted: set[str] = set()
    waiting = list(only)
    while waiting:
        identifier = waiting.pop()
        if identifier not in wanted:
            wanted.add(identifier)
            waiting.extend(by_id[identifier].needs)
    return frozenset(wanted)


__all__ = [
    "CHECKS",
    "Check",
    "CheckOutcome",
    "Cost",
    "Examination",
    "Finding",
    "Level",
    "Report",
    "Wait",
    "examine",
    "worst",
]

"""Check of the source of the public value that decides the splits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, timedelta

from scoring.printable import count_of
from worker.challenge.sections import read_source
from worker.fairness.draws import CHOOSE_ONE, DRAND, NONE, WITHOUT, in_words
from worker.fairness.recording import drand_chain
from worker.organizer.doctor.check import Checks, Finding, fail, note, warn
from worker.organizer.doctor.examination import Examination
from worker.publishing import drand_session, latest_round

CHECKS = Checks()


@CHECKS.add("beacon.chosen", "Nobody can choose the splits")
def _chosen(exam: Examination) -> Iterator[Finding]:
    fairness = exam.configuration.fairness
    if fairness.beacon == NONE:
        yield warn(WITHOUT, CHOOSE_ONE)
    elif fairness.beacon == DRAND:
        wait = in_words(fairness.beacon_notice)
        yield note(
            f"In a new phase, scoring begins at least {wait} after the commitment to the phase. Submissions are downloaded meanwhile.",
            always=True,
        )
    else:
        yield from _source(exam)


def _source(exam: Examination) -> Iterator[Finding]:
    """Check a source whose value the organizer enters."""
    source, at = read_source(exam.configuration.fairness.beacon)
    moment, left = f"{at.astimezone(UTC):%Y-%m-%d at %H:%M} UTC", at - exam.clock()
    if left > timedelta(0):
        days, hours = divmod(round(left / timedelta(hours=1)), 24)
        wait = f"{count_of(days, 'day')} and {count_of(hours, 'hour')}"
        yield note(
            f"Nothing is scored until {source} has published its value, on {moment} (in {wait}), and you have run"
            " `neuco-worker challenge commit --beacon VALUE`. Submissions are downloaded meanwhile.",
            always=True,
        )
        return
    with exam.state() as tx:
        new = [name for name in exam.configuration.phases if tx is None or tx.phase_record(name) is None]
    if new:
        phases_have = f"phase {new[0]} has" if len(new) == 1 else f"the phases {', '.join(new)} have"
        yield fail(
            f"{source} was due to publish its value on {moment}, but {phases_have} not begun yet. With a known"
            " value, the secret could be chosen to favor a team.",
            "Name a value in fairness.beacon that will be published in the future.",
        )


@CHECKS.add("beacon.servers", "A server of drand answers", remote=True)
def _servers(exam: Examination) -> Iterator[Finding]:
    fairness = exam.configuration.fairness
    if fairness.beacon != DRAND:
        return
    chain = drand_chain(exam.configuration)
    with drand_session() as session:
        answering = [server for server in fairness.drand_servers if latest_round(session, server, chain)]
    if not answering:
        yield fail(
            f"No server of {chain.name} answers, so no phase could begin.",
            "Open the firewall to one of fairness.drand_servers, name others there (every answer is checked, so any mirror is safe),"
            " or set fairness.beacon: SOURCE@TIME.",
        )
    elif len(answering) < len(fairness.drand_servers):
        yield note(
            f"{len(answering)} of {count_of(len(fairness.drand_servers), 'server')} of {chain.name} can be reached."
        )

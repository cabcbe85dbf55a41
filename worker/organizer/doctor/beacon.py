"""Check of the source of the public value that decides the splits."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from worker.fairness.draws import DRAND, NONE
from worker.fairness.recording import drand_chain
from worker.organizer.doctor.check import Checks, Finding, fail, note, warn
from worker.organizer.doctor.examination import Examination
from worker.publishing import drand_session, latest_round

CHECKS = Checks()


@CHECKS.add("beacon.chosen", "Nobody can choose the splits")
def _chosen(exam: Examination) -> Iterator[Finding]:
    fairness = exam.configuration.fairness
    if fairness.beacon == NONE:
        yield warn(
            "fairness.beacon is none: whoever made the secret could have tried many and kept the one whose splits suit somebody, and"
            " `verify` will say so.",
            "Set fairness.beacon: drand, or SOURCE@TIME on a machine without a network, before the first phase begins.",
        )
    elif fairness.beacon == DRAND:
        wait = timedelta(seconds=fairness.beacon_notice)
        yield note(
            f"In a new phase nothing is scored for {wait} (h:mm:ss) after it was committed to; files are fetched."
        )
    else:
        source, _, moment = fairness.beacon.rpartition("@")
        yield note(f"Nothing is scored before the value of {source} is known, on {moment}.")


@CHECKS.add("beacon.servers", "A server of drand answers", needs=("beacon.chosen",), remote=True)
def _servers(exam: Examination) -> Iterator[Finding]:
    fairness = exam.configuration.fairness
    if fairness.beacon != DRAND:
        return
    chain = drand_chain(exam.configuration)
    with drand_session() as session:
        answering = [server for server in fairness.drand_servers if latest_round(session, server, chain)]
    if not answering:
        yield fail(
            f"No server of {chain.name} answers; no phase could begin.",
            "Open the firewall to one of fairness.drand_servers, name others there (every answer is checked, so anybody's mirror serves),"
            " or set fairness.beacon: SOURCE@TIME.",
        )
    elif len(answering) < len(fairness.drand_servers):
        yield note(f"{len(answering)} of {len(fairness.drand_servers)} servers of {chain.name} answer.")

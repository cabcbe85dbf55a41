"""Checks of the phases on record: is what is scored what the files and the configuration say?"""

from __future__ import annotations

from collections.abc import Iterator

from scoring.errors import NeucoError
from worker.challenge.differences import differences
from worker.challenge.files import read_secret
from worker.challenge.setups import open_phase
from worker.organizer.doctor.check import Checks, Finding, fail, warn
from worker.organizer.doctor.examination import Examination

RECORDS = ("configuration.file", "secret.file", "machine.state", "machine.database")
CHECKS = Checks()


@CHECKS.add(
    "records.same", "Phases are scored as their files and the configuration describe them", needs=RECORDS
)
def _same(exam: Examination) -> Iterator[Finding]:
    secret = read_secret(exam.configuration)
    with exam.state() as tx:
        for codename in exam.configuration.phases:
            if tx is None or tx.phase_record(codename) is None:
                continue  # the first start records it
            try:
                open_phase(tx, codename, secret)
            except NeucoError as error:
                yield fail(error.sentence, error.cure)
                continue
            for found in differences(tx, exam.configuration, codename, secret):
                yield warn(found.sentence, found.cure)

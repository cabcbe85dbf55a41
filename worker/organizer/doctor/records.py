"""Checks whether the recorded phases match the files and the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from scoring.engines import KERNEL_ENGINES
from scoring.errors import NeucoError
from worker.challenge.differences import differences
from worker.challenge.setups import open_phase, read_record
from worker.organizer.doctor.check import Finding, fail, note, warn
from worker.organizer.doctor.subjects import Challenge


def same(challenge: Challenge) -> Iterator[Finding]:
    """Compare each record with the files."""
    secret = challenge.secret()
    with challenge.state() as tx:
        for codename in challenge.configuration.phases:
            if tx is None or tx.phase_record(codename) is None:
                continue  # the first start records it
            try:
                open_phase(tx, codename, secret)
            except NeucoError as error:
                yield fail(error.sentence, error.cure)
                continue
            for difference in differences(tx, challenge.configuration, codename, secret):
                yield warn(difference.sentence, difference.cure)


def engine(challenge: Challenge) -> Iterator[Finding]:
    """Look for scores of several engines in one phase; if the first engine is used again, nothing needs to be done."""
    with challenge.state() as tx:
        for codename in challenge.configuration.phases:
            record = None if tx is None else read_record(tx, codename)
            if tx is None or record is None:
                continue
            rows = tx.matrix(record.protocol.hash).values()
            cells = sorted((cell for row in rows for cell in row.values()), key=lambda cell: cell.scored_at)
            engines = list(dict.fromkeys(_kernel(cell.engine) for cell in cells))
            if len(engines) > 1:
                sentence = (
                    f"Phase {codename} has scores of the engines {' and '.join(engines)}, which can differ by rounding. It began with"
                    f" {engines[0]}, and is scored by {_kernel(record.engine)}."
                )
                cure = (
                    f"To have all further scores made by {engines[0]}, set scoring.engine: {engines[0]} and run"
                    " `neuco-worker challenge apply --reason TEXT`."
                )
                yield note(sentence) if _kernel(record.engine) == engines[0] else warn(sentence, cure)


def _kernel(engine: str | None) -> str:
    """Return an engine's name, one for all that run the same kernel."""
    return "local" if engine in KERNEL_ENGINES else str(engine)

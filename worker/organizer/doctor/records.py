"""Checks whether the recorded phases match the files and the configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scoring.engines import KERNEL_ENGINES
from scoring.errors import NeucoError
from worker.challenge.differences import differences
from worker.challenge.setups import open_phase, read_record
from worker.fairness import disclosure
from worker.organizer.bundle import published
from worker.organizer.bundle_check import TERMS, stated_rule
from worker.organizer.doctor.check import Checks, Finding, fail, note, warn
from worker.organizer.doctor.examination import Examination

CHECKS = Checks()


@CHECKS.add("records.same", "Phases are scored as their files and the configuration describe them")
def _same(exam: Examination) -> Iterator[Finding]:
    secret = exam.secret
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


@CHECKS.add("records.engine", "Each phase is scored by one engine")
def _engine(exam: Examination) -> Iterator[Finding]:
    with exam.state() as tx:
        for codename in exam.configuration.phases:
            record = None if tx is None else read_record(tx, codename)
            if tx is None or record is None:
                continue
            rows = tx.matrix(record.protocol.hash).values()
            cells = sorted((cell for row in rows for cell in row.values()), key=lambda cell: cell.scored_at)
            engines = list(
                dict.fromkeys("local" if cell.engine in KERNEL_ENGINES else cell.engine for cell in cells)
            )
            if len(engines) > 1:
                yield _mixed(codename, engines, record.engine)


def _mixed(codename: str, found: Sequence[str], recorded: str) -> Finding:
    """Report that scores of different engines were mixed; if the first engine is used again, nothing needs to be done."""
    engines, first_engine = " and ".join(found), found[0]
    engine = "local" if recorded in KERNEL_ENGINES else recorded
    if engine == first_engine:
        return note(
            f"Phase {codename} has scores of the engines {engines}, which can differ by rounding. It is scored by"
            f" {first_engine} again, as at its beginning."
        )
    return warn(
        f"Phase {codename} has scores of the engines {engines}, which can differ by rounding. It is scored by {engine};"
        f" at its beginning, it was scored by {first_engine}.",
        f"To have all further scores made by {first_engine}, set scoring.engine: {first_engine} and run"
        " `neuco-worker challenge rescore`.",
    )


@CHECKS.add(
    "records.terms",
    "The terms say whose embeddings are published",
)
def _terms(exam: Examination) -> Iterator[Finding]:
    configured = exam.configuration.fairness.publish_files
    rules = dict.fromkeys(exam.configuration.phases, configured)
    with exam.state() as tx:
        entries = [] if tx is None else [public for public, _ in tx.commitments()]
    for codename in rules:
        rule = disclosure.rule_of(entries, codename)
        if rule is not None and rule != configured:
            yield warn(
                f"The commitment to phase {codename} promised fairness.publish_files: {rule},"
                f" but the configuration says {configured}, which has no effect on this phase.",
                f"Set fairness.publish_files: {rule} again.",
            )
        rules[codename] = rule or configured
    archive = exam.base / "bundle.zip"
    stated = stated_rule(archive) if archive.is_file() else None
    for rule in dict.fromkeys(rules.values()):
        if stated is not None and stated != rule:
            codenames = ", ".join(codename for codename in rules if rules[codename] == rule)
            yield fail(
                f"bundle.zip: the terms do not match fairness.publish_files, which is {rule} for {codenames}: the terms"
                f" {f'describe {stated}' if stated else 'contain no sentence about it that `doctor` recognizes'}.",
                f"Write in bundle/{TERMS}: “the organizers publish the embeddings of {published(rule)}”. Then pack the bundle again:"
                f" neuco-worker bundle {exam.base}. If the terms are on EvalAI already, edit them there.",
            )

"""The rehearsal: start a sandbox, submit the baselines, let the real worker draw the splits and drain the queue.

At the end, the phases are closed, revealed and verified, and the results are collected.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from scoring.errors import NeucoError, OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.printable import count_of
from worker.challenge.configuration import Configuration, load
from worker.challenge.files import read_phases
from worker.challenge.sections import Phase
from worker.fairness.verify import Worth, make_report, verdicts
from worker.fairness.verify.public import opened
from worker.fairness.verify.published import published_verdicts
from worker.organizer.demo.folder import ChallengeFolder
from worker.organizer.demo.runner import board, close, last_words, publish_all, q_mean, watch, worker
from worker.organizer.rehearsal.entries import Features, RehearsalEntry, covering, make_entries
from worker.organizer.rehearsal.practice_draw import DrawWatch, practised
from worker.organizer.rehearsal.preparation import prepare, sandbox_settings
from worker.organizer.rehearsal.report import PhaseReport, Rehearsal, RehearsedSubmission
from worker.sandbox import Sandbox
from worker.state import Attempt, Store, Transaction

PATIENCE_S = 120.0  # beyond a submission's deadline, without any change, after which the rehearsal has failed
ANSWERED = ("finished", "failed")
BEACON = "beacon"
"""The check of `verify` about what decided the splits."""


@dataclass(frozen=True, kw_only=True)
class _Submitted:
    pk: int
    phase: str
    entry: RehearsalEntry


def rehearse(
    path: Path,
    *,
    folds: int | None = None,
    features: Features | None = None,
    keep: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Rehearsal:
    """Rehearse a challenge in a folder of its own; EvalAI and the leaderboard's repository are not touched.

    Args:
        path: The organizer's configuration.
        folds: Largest number in each phase, to save time; times are estimated for all.
        features: Public data by id, for the pooled mean.
        keep: New or empty folder to keep everything in; by default a temporary one, which is removed.
        tell: Called with a sentence about each step.

    Raises:
        OrganizerError: If configuration, secret, ids or tasks are wrong, or the folder is not empty.
        InfrastructureError: If nothing changes any more.
    """
    configuration = load(path)
    read_phases(configuration)  # reports its faults before anything is started
    begun = time.monotonic()
    with (
        _folder(keep) as folder,
        Sandbox(sandbox_settings(configuration)) as evalai,
    ):
        challenge = ChallengeFolder(path=folder)
        submitted = _submit(configuration, evalai, features or {}, tell)
        calls_before = len(evalai.journal)
        watched = DrawWatch(challenge, configuration.fairness, tell)
        with practised(configuration.fairness, challenge.path) as draw:
            prepare(challenge, configuration, evalai, folds=folds, draw=draw)
            status = _drain(configuration, challenge, evalai, submitted, watched=watched, tell=tell)
        calls = _calls(evalai, since=calls_before)
        failures = _failures(challenge, evalai, status)
        verified: tuple[str, ...] = ()
        if not failures:
            verified, failures = _end(challenge, configuration.phases, tell)
        phases = _phases(configuration, challenge, evalai, submitted, watched)
    return Rehearsal(
        phases=phases,
        calls_per_submission=calls / len(submitted),
        requests_per_minute=configuration.evalai.requests_per_minute,
        failures=failures,
        verified=verified,
        drawn_by=configuration.fairness.beacon,
        seconds=time.monotonic() - begun,
    )


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Make the rehearsal's folder, readable only by its owner, because its database contains the labels."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="neuco-rehearsal-") as temporary:
            yield Path(temporary)
        return
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise OrganizerError(
            f"{keep} exists and is not an empty folder.", cure="Name a new folder.", code="rehearse.keep"
        )
    keep.mkdir(mode=0o700, parents=True, exist_ok=True)
    keep.chmod(0o700)
    yield keep.resolve()


def _submit(
    configuration: Configuration, evalai: Sandbox, features: Features, tell: Callable[[str], None]
) -> list[_Submitted]:
    submitted = []
    for codename, phase in configuration.phases.items():
        ids = read_ids(configuration.path(phase.ids))
        covers = covering(features, ids)
        if covers is None:
            tell(
                f"{codename}: no pooled-mean baseline is submitted, because there is no public data for all ids (--data FILE)."
            )
        for entry in make_entries(ids, configuration.submission.embedding_dim, covers):
            pk = evalai.submit(
                entry.team, codename, entry.content, method_name=entry.method, is_public=entry.public
            )
            submitted.append(_Submitted(pk=pk, phase=codename, entry=entry))
    tell(f"Submitted {len(submitted)} files; the worker starts.")
    return submitted


def _drain(
    configuration: Configuration,
    challenge: ChallengeFolder,
    evalai: Sandbox,
    submitted: Sequence[_Submitted],
    *,
    watched: DrawWatch,
    tell: Callable[[str], None],
) -> int:
    """Run ``once`` as cron would, report its progress, and return its exit status."""
    answered: dict[int, str] = {}
    patience_s = configuration.submission.deadline + PATIENCE_S
    with worker(challenge, "once") as process:
        for now in watch(
            process,
            challenge,
            evalai,
            [one.pk for one in submitted],
            patience_s=patience_s,
            code="rehearse.stuck",
        ):
            watched.look(datetime.now(UTC))
            for one in submitted:
                if now[one.pk] in ANSWERED and one.pk not in answered:
                    answered[one.pk] = now[one.pk]
                    tell(
                        f"{len(answered)} of {len(submitted)} answered. {one.phase}, {one.entry.method}: {now[one.pk]}"
                    )
    return int(process.returncode)


def _end(
    challenge: ChallengeFolder, phases: Mapping[str, Phase], tell: Callable[[str], None]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Close and reveal the phases, and verify everything from the repository alone; return the result, and what went wrong."""
    try:
        close(challenge, phases)
        if kept := [name for name, phase in phases.items() if phase.shown == "at_end"]:
            tell(f"{', '.join(kept)}: closed; the withheld values are now shown.")
            with worker(challenge, "once") as process:
                process.wait(timeout=PATIENCE_S)
        tell("Closing and revealing the phases, and checking the repository with `verify` …")
        publish_all(challenge, phases, tell)
        with opened(str(challenge.repository)) as public:
            report = make_report(public, [*verdicts(public), *published_verdicts(public)])
    except NeucoError as error:
        return (), (f"The end of the challenge could not be rehearsed: {error.message}",)
    except subprocess.TimeoutExpired:
        return (), (f"The worker did not exit after the phases were closed. {last_words(challenge)}",)
    contradicted = [one.sentence for one in report.verdicts if one.worth is Worth.CONTRADICTED]
    drawn = [f"Phase {one.phase}: {one.sentence}" for one in report.verdicts if one.check == BEACON]
    return (*drawn, report.sentence), tuple(f"`verify` found a contradiction: {one}" for one in contradicted)


def _failures(challenge: ChallengeFolder, evalai: Sandbox, status: int) -> tuple[str, ...]:
    failures = []
    if status != 0:
        failures.append(f"The worker exited with status {status}. {last_words(challenge)}")
    if evalai.queue_length():
        failures.append(
            f"{count_of(evalai.queue_length(), 'message is', 'messages are')} still in the queue."
        )
    return tuple(failures)


def _phases(
    configuration: Configuration,
    challenge: ChallengeFolder,
    evalai: Sandbox,
    submitted: Sequence[_Submitted],
    watched: DrawWatch,
) -> tuple[PhaseReport, ...]:
    """Collect the results of every phase."""
    rehearsed = load(challenge.configuration)
    reports = []
    with closing(Store(challenge.database_url)) as store, store.read() as tx:
        for codename, settings in configuration.phases.items():
            folds = rehearsed.phases[codename].folds
            theirs = [one for one in submitted if one.phase == codename]
            more = settings.folds / folds
            reports.append(
                PhaseReport(
                    codename=codename,
                    folds=folds,
                    configured_folds=settings.folds,
                    shows_all=settings.selection != "chosen",
                    submissions=tuple(_rehearsed(tx, evalai, one, more=more) for one in theirs),
                    entries=tuple((board(challenge, codename) or {"entries": ()})["entries"]),
                    draw=watched.drawn.get(codename),
                )
            )
    return tuple(reports)


def _rehearsed(tx: Transaction, evalai: Sandbox, one: _Submitted, *, more: float) -> RehearsedSubmission:
    """Collect the result of a submission.

    Args:
        tx: The worker's state.
        evalai: The sandbox that received it.
        one: The submission.
        more: Ratio of the configuration's folds to the rehearsed ones.
    """
    shown = evalai.submission(one.pk)
    stdout, stderr = evalai.text(one.pk, "stdout_file"), evalai.text(one.pk, "stderr_file")
    finished = shown["status"] == "finished"
    seconds, peak = None, None
    for attempt in tx.attempts(pk=one.pk):
        if attempt.kind == Attempt.EVALUATE.value and attempt.closed_at is not None:
            seconds = (attempt.closed_at - attempt.opened_at).total_seconds()
            peak = attempt.peak_memory_bytes
    known = tx.get(one.pk)
    content = known.content_hash if known is not None else None
    training_s = sum(
        float(cell.seconds)
        for cell in tx.all_cells()
        if (cell.content_hash, cell.phase) == (content, one.phase)
    )
    return RehearsedSubmission(
        phase=one.phase,
        team=one.entry.team,
        method=one.entry.method,
        public=one.entry.public,
        good=one.entry.good,
        status=str(shown["status"]),
        q_mean=q_mean(evalai, one.pk) if finished else None,
        message=stderr.strip(),
        silent=not (stderr if one.entry.good else stdout),
        seconds=seconds,
        full_seconds=None if seconds is None else seconds + training_s * (more - 1),
        peak_memory_bytes=peak,
    )


def _calls(evalai: Sandbox, *, since: int) -> int:
    """Count the calls that submissions caused, excluding polls of an empty queue and the calls at the start."""
    journal = [entry for entry in evalai.journal if entry.number >= since]
    received = sum(entry.kind == "effect" and entry.name == "message_received" for entry in journal)
    theirs = ("/api/jobs/submission/", "/update_submission/", "/api/jobs/queues/")
    others = sum(
        entry.kind == "request" and entry.origin == "api" and any(part in entry.path for part in theirs)
        for entry in journal
    )
    return received + others

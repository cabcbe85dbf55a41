"""The rehearsal: start a sandbox, submit files, let the real worker draw the splits and drain the queue.

At the end, the phases are closed, revealed and verified, and the results are collected.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from worker.challenge.configuration import Configuration, load
from worker.challenge.sections import PhaseSection
from worker.challenge.setups import read_phases
from worker.organizer.board_by_hand import close
from worker.organizer.rehearsal.entries import Entries, RehearsalEntry
from worker.organizer.rehearsal.folder import RehearsalFolder, copied, prepare, removed_if_refused
from worker.organizer.rehearsal.practice_draw import practised
from worker.organizer.rehearsal.report import PhaseReport, Rehearsal, RehearsedSubmission
from worker.organizer.reveal import publish_revealed
from worker.organizer.session import open_session
from worker.sandbox import Sandbox, from_challenge
from worker.verify import Status, make_report, verdicts
from worker.verify.public import opened
from worker.verify.recompute import published_verdicts

# calls a minute, so that the rehearsal never waits
UNHINDERED = 1_000_000
TELL_AFTER_S = 30.0  # longer than a draw takes; a wait is told then, and again after twice the time
PATIENCE_S = 120.0  # beyond a submission's deadline, without an answer, after which the rehearsal has failed
LOOK_EVERY_S = 0.2
ANSWERED = ("finished", "failed")
BEACON = "beacon"
"""The check of `verify` about what decided the splits."""


Submitted = dict[int, tuple[str, RehearsalEntry]]
"""EvalAI's number of each submission to its phase and content."""


def rehearse(
    configuration: Configuration,
    entries: Entries,
    *,
    folds: int | None = None,
    keep: Path | None = None,
    tell: Callable[[str], object] = lambda _: None,
) -> Rehearsal:
    """Rehearse a challenge in a folder of its own; EvalAI and the leaderboard's repository are not touched.

    Args:
        configuration: The organizer's configuration.
        entries: The submissions to each phase, in order.
        folds: Largest number in each phase, to save time.
        keep: New or empty folder to keep everything in; by default a temporary one, which is removed.
        tell: Called with a sentence about each step.

    Raises:
        OrganizerError: If configuration, secret, ids or tasks are wrong, or the folder is not empty.
        InfrastructureError: If nothing changes any more.
    """
    read_phases(configuration)  # reports its faults before anything is started
    begun = time.monotonic()
    settings = from_challenge(
        configuration.model_dump(mode="json"), throttle_per_minute=UNHINDERED, visibility_timeout_s=600.0
    )
    with _folder(keep) as path, Sandbox(settings) as evalai:
        folder = RehearsalFolder(path=path)
        submitted = _submit(evalai, entries)
        tell(f"Submitted {len(submitted)} files; the worker starts.")
        if configuration.fairness.beacon != "none":
            tell(
                "Scoring begins in some seconds, with a practice value. `doctor` says how long the real challenge waits."
            )
        with practised(configuration.fairness.beacon, path) as draw:
            prepare(folder, configuration, evalai, folds=folds, draw=draw)
            status = _drain(configuration, folder, evalai, submitted, tell=tell)
        verified, failures = (
            _end(folder, configuration.phases, tell)
            if status == 0
            else ((), (f"The worker exited with status {status}.", *folder.reasons()))
        )
        phases = _phases(configuration, folder, evalai, submitted)
        if keep is not None:
            _keep_files(folder, evalai, submitted)
    return Rehearsal(
        phases=phases,
        failures=failures,
        verified=verified,
        drawn_by=configuration.fairness.beacon,
        seconds=time.monotonic() - begun,
    )


def play(
    configuration: Configuration,
    evalai: Sandbox,
    keep: Path,
    *,
    stop: Callable[[], bool],
    tell: Callable[[str], object],
) -> None:
    """Run the worker on a copy of a challenge in a folder of its own, whose EvalAI is a sandbox that listens, until `stop` returns true.

    The copy has its own tasks, ids and secret, so that these can be changed there. `tell` is called once, when all was checked.

    Raises:
        OrganizerError: If configuration, secret, ids or tasks are wrong, or the folder is not empty.
        InfrastructureError: If the worker ends by itself.
    """
    read_phases(configuration)
    with _folder(keep) as path, practised(configuration.fairness.beacon, path) as draw:
        folder = RehearsalFolder(path=path)
        prepare(folder, copied(folder, configuration), evalai, folds=None, draw=draw)
        tell(
            f"The worker runs. Its board is in the git repository {folder.repository}, its log in {folder.log}."
        )
        with folder.worker("run") as process:
            while process.poll() is None and not stop():
                time.sleep(LOOK_EVERY_S)
        if not stop():
            raise InfrastructureError(
                " ".join([f"The worker exited with status {process.returncode}.", *folder.reasons()]),
                hint="Correct what this names, and run the command with a new folder.",
                code="rehearse.worker",
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
            f"{keep} exists and is not an empty folder.", hint="Name a new folder.", code="rehearse.keep"
        )
    with removed_if_refused(keep):
        keep.mkdir(mode=0o700, parents=True, exist_ok=True)
        keep.chmod(0o700)
        try:
            yield keep.resolve()
        except NeucoError as error:
            error.hint = f"{error.hint} What was made so far is in {keep}.".strip()
            raise


def _submit(evalai: Sandbox, entries: Entries) -> Submitted:
    submitted: Submitted = {}
    for codename, theirs in entries.items():
        for entry in theirs:
            pk = evalai.submit(
                entry.team,
                codename,
                entry.content,
                method_name=entry.method,
                project_url=entry.project_url,
                publication_url=entry.publication_url,
                is_public=entry.public,
                file_name=entry.file_name,
            )
            submitted[pk] = codename, entry
    return submitted


def _drain(
    configuration: Configuration,
    folder: RehearsalFolder,
    evalai: Sandbox,
    submitted: Submitted,
    *,
    tell: Callable[[str], object],
) -> int:
    """Run the worker until nothing is left to do, report its progress, and return its exit status.

    Raises:
        InfrastructureError: If nothing is answered any more.
    """
    waiting = list(submitted)
    patience_s = configuration.submission.deadline + PATIENCE_S
    answered_at, tell_after_s = time.monotonic(), TELL_AFTER_S
    ended = False
    with folder.worker("once") as process:
        while not ended:
            time.sleep(LOOK_EVERY_S)
            ended = process.poll() is not None  # checked before the last look, so that nothing is missed
            for pk in [pk for pk in waiting if evalai.submission(pk)["status"] in ANSWERED]:
                waiting.remove(pk)
                answered_at, tell_after_s = time.monotonic(), TELL_AFTER_S
                done = len(submitted) - len(waiting)
                tell(f"{done} of {len(submitted)} answered. {_outcome(evalai, pk, *submitted[pk])}")
            quiet_s = time.monotonic() - answered_at
            if quiet_s > patience_s and not ended:
                raise InfrastructureError(
                    " ".join([f"There was no progress for {patience_s:.0f} seconds.", *folder.reasons()]),
                    code="rehearse.stuck",
                )
            if quiet_s > tell_after_s and not ended:
                tell_after_s *= 2
                tell(" ".join([f"No answer for {quiet_s:.0f} seconds.", *folder.alerts()]))
    return int(process.returncode)


def _outcome(evalai: Sandbox, pk: int, phase: str, entry: RehearsalEntry) -> str:
    answer, kind = _answer(evalai, pk), "public" if entry.public else "private"
    status = evalai.submission(pk)["status"]
    value, about = answer.get("q_mean"), "≈ " if "rounded_to" in answer else ""
    shown = "" if value is None else f", mean Q {about}{value:g}"
    return f"{phase}, {entry.team}, {entry.method}, {kind}: {status}{shown}"


def _end(
    folder: RehearsalFolder, phases: Mapping[str, PhaseSection], tell: Callable[[str], object]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Close and reveal the phases, and verify everything from the repository alone; return the result, and what went wrong."""
    try:
        with open_session(folder.configuration) as session:
            for codename in phases:
                close(session, codename)
        if kept := [name for name, phase in phases.items() if phase.shown == "at_end"]:
            tell(f"{', '.join(kept)}: closed; the withheld values are now shown.")
            with folder.worker("once") as process:
                process.wait(timeout=PATIENCE_S)
        tell("Closing and revealing the phases, and checking the repository with `verify` …")
        with open_session(folder.configuration) as session:
            publish_revealed(session, phases, labels=True, tell=tell)
        with opened(str(folder.repository)) as public:
            report = make_report(public, [*verdicts(public), *published_verdicts(public)])
    except NeucoError as error:
        return (), (f"The end of the challenge could not be rehearsed: {error.message}",)
    except subprocess.TimeoutExpired:
        return (), ("The worker did not exit after the phases were closed.", *folder.reasons())
    contradictions = tuple(
        f"`verify` found a contradiction: {verdict.sentence}"
        for verdict in report.verdicts
        if verdict.status is Status.CONTRADICTED
    )
    sources = (
        f"Phase {verdict.phase}: {verdict.sentence}" for verdict in report.verdicts if verdict.check == BEACON
    )
    return (*sources, report.sentence), contradictions


def _phases(
    configuration: Configuration,
    folder: RehearsalFolder,
    evalai: Sandbox,
    submitted: Submitted,
) -> tuple[PhaseReport, ...]:
    """Collect the results of every phase."""
    rehearsed = load(folder.configuration)
    return tuple(
        PhaseReport(
            codename=codename,
            folds=rehearsed.phases[codename].folds,
            configured_folds=settings.folds,
            rounding=settings.rounding,
            submissions=tuple(
                _rehearsed(evalai, pk, phase, entry)
                for pk, (phase, entry) in submitted.items()
                if phase == codename
            ),
            entries=folder.board(codename),
        )
        for codename, settings in configuration.phases.items()
    )


def _rehearsed(evalai: Sandbox, pk: int, phase: str, entry: RehearsalEntry) -> RehearsedSubmission:
    """Collect the result of a submission."""
    submission = evalai.submission(pk)
    return RehearsedSubmission(
        phase=phase,
        entry=entry,
        status=str(submission["status"]),
        q_mean=_answer(evalai, pk).get("q_mean"),
        message=evalai.text(pk, "stderr_file").strip(),
        seconds=None if submission["execution_time"] == "None" else submission["execution_time"],
    )


def _answer(evalai: Sandbox, pk: int) -> dict[str, Any]:
    """Return the answer that the participant is shown; an empty one if it is not JSON."""
    try:
        return dict(json.loads(evalai.text(pk, "stdout_file")))
    except ValueError:
        return {}


def _keep_files(folder: RehearsalFolder, evalai: Sandbox, submitted: Submitted) -> None:
    """Keep what was submitted, and what EvalAI showed about it, as careful participants do, because it contains the receipt."""
    for pk, (phase, entry) in submitted.items():
        answer = folder.answer(phase, pk)
        answer.parent.mkdir(parents=True, exist_ok=True)
        answer.with_name(f"{pk}-{entry.file_name}").write_bytes(entry.content)
        answer.write_text(evalai.text(pk, "stdout_file"), encoding="utf-8")
        answer.with_suffix(".stderr").write_text(evalai.text(pk, "stderr_file"), encoding="utf-8")

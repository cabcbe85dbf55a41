"""``neuco-worker challenge …``: run and correct a challenge."""

from __future__ import annotations

import shlex
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scoring.errors import OrganizerError
from scoring.printable import count_of, printable
from worker.cli.terminal import (
    ConfigOption,
    ReasonOption,
    YesOption,
    ask,
    check_reason,
    confirm,
    open_session,
    progress_bar,
)

if TYPE_CHECKING:
    from worker.organizer.session import OrganizerSession
    from worker.state import SubmissionRow


challenge = typer.Typer(no_args_is_help=True, help="Correct and control a running challenge.")

LOST = (
    "Decisions made since the backup, such as a disqualification, are lost: make them again. The leaderboard's README.md lists them until"
    " the worker pushes."
)
SCORES = "Scores, and who counts"
WORKER = "The worker"
COPIES = "Copies"


def _number(number: int | None) -> int | None:
    if number is not None and number >= 2**63:  # more than a database column holds
        raise typer.BadParameter("EvalAI's numbers are smaller.")
    return number


SUBMISSION = typer.Argument(help="EvalAI's submission number.", show_default=False, callback=_number)
Pk = Annotated[int, SUBMISSION]


@challenge.command(rich_help_panel=SCORES)
def apply(
    *,
    config: ConfigOption,
    phase: Annotated[str | None, typer.Option(help="Only this phase.")] = None,
    reason: ReasonOption = "",
    yes: YesOption = False,
) -> None:
    """Apply changes of label files, id lists or the configuration: show what differs, what follows and who moves, then do it.

    A phase without scores is recorded again, with a new commitment, as at the next start. In a phase with scores, changed rules apply
    from the next board on, and changed tasks or a changed protocol rescore all scored submissions, from their stored files. If
    interrupted, run the command again. A closed board does not change.

    Next: `neuco-worker status` shows when all answers are posted.

    Example: `neuco-worker challenge apply --reason "a label was wrong" --config challenge.yaml`
    """
    from worker.organizer import applying
    from worker.organizer.rescoring import carry_out, fill_missing

    with open_session(config) as session:
        changes = [
            applying.read_change(session, name)
            for name in (session.configuration.phases if phase is None else [phase])
        ]
        for change in changes:
            if not change.due:
                print(f"{change.phase}: nothing to do.{_closed(session, change.phase)}")
        due = [change for change in changes if change.due]
        if not due:
            return
        sentences = [text for change in due for text in applying.consequences(session, change)]
        if missing := [change.plan for change in due if change.plan is not None and change.plan.missing]:
            check_reason(reason, yes=yes)
            first = "First, the scores are computed. That changes nothing yet, but shows who would move."
            ask("\n".join([*sentences, first]), yes=yes, options="--yes --reason TEXT")
            sentences = ["The scores are computed."]
            for plan in missing:
                with progress_bar(f"Scoring {plan.setup.record.codename}", "submissions") as progress:
                    fill_missing(session, plan, progress=progress)
        moved = [applying.moves(session, change) for change in due if change.rules or change.plan]
        reason = confirm("\n".join([*sentences, *filter(None, moved)]), reason=reason, yes=yes)
        if commitment := applying.commit_to_changes(session, due, reason=reason):
            print(f"Commitment {commitment} was made; a running worker publishes it.")
        for change in due:
            closed = _closed(session, change.phase)
            if change.rules:
                applying.apply_rules(session, change, reason=reason)
                print(f"{change.phase}: now uses the new {', '.join(change.rules)}.{closed}")
            if change.plan is not None:
                with progress_bar(f"Rescoring {change.phase}", "submissions") as progress:
                    changed = carry_out(session, change.plan, reason=reason, progress=progress)
                print(
                    f"{change.phase}: {count_of(changed, 'answer')} changed; the worker posts what changed.{closed}"
                )


@challenge.command(rich_help_panel=SCORES)
def disqualify(
    pk: Annotated[int | None, SUBMISSION] = None,
    *,
    config: ConfigOption,
    team: Annotated[
        int | None,
        typer.Option(
            help="EvalAI's number of a team: all its submissions, later ones too.",
            metavar="NUMBER",
            callback=_number,
        ),
    ] = None,
    reason: ReasonOption = "",
    undo: Annotated[bool, typer.Option("--undo", help="Let it count again.")] = False,
    yes: YesOption = False,
) -> None:
    """Take a submission off the board, or a team with all its submissions off the boards of all phases.

    A disqualified team can still submit, and gets answers. EvalAI's own leaderboard does not change. A team goes by its number, because
    names change, and two teams may have the same.

    Next: `neuco-worker board show` after the next push.

    Example: `neuco-worker challenge disqualify 123 --reason "used test data" --yes --config challenge.yaml`

    Example: `neuco-worker challenge disqualify --team 45 --reason "several accounts" --yes --config challenge.yaml`
    """
    from worker.organizer import decisions

    if (pk is None) is (team is None):
        raise typer.BadParameter(
            "Write either the number of a submission, or --team with the number of a team."
        )
    does, already = ("counts again", "is not") if undo else ("no longer counts", "is already")
    with open_session(config) as session:
        if pk is not None:
            row = decisions.submission(session, pk)
            disqualified = row.excluded is not None
            decide = partial(decisions.disqualify, session, pk)
            subject, lacks = f"Submission {pk}", "It has no scores"
            consequences, boards = [f"{subject}{_named(row)} {does}."], [row.phase]
            consequences += [
                f"Phase {name} ranks only teams that have a score in phase {row.phase}, so the team's rank there may change, too."
                for name, phase in session.configuration.phases.items()
                if row.phase is not None and phase.eligible_if_scored_in == row.phase
            ]
        elif team is not None:
            rows, disqualified = decisions.team(session, team)
            decide = partial(decisions.disqualify_team, session, team)
            subject, lacks = f"Team {team}", "Not all its submissions have scores"
            sent = f"{count_of(len(rows), 'submission')} until now, and all later ones, in all phases"
            consequences = [f"{subject} ({printable(rows[-1].team or 'unknown name')}) {does}: {sent}."]
            boards = list(session.configuration.phases)
        if disqualified is not undo:
            print(f"{subject} {already} disqualified; nothing was done.")
            return
        reason = confirm("\n".join(consequences), reason=reason, yes=yes)
        complete = decide(reason, undo=undo)
        closed = "".join(_closed(session, phase) for phase in boards)
    print(f"{subject} {does} from now on.{closed}")
    if undo and not complete:
        print(
            f"{lacks} on the tasks that were added meanwhile: run `neuco-worker challenge apply --reason TEXT`."
        )


@challenge.command(rich_help_panel=SCORES)
def follow(pk: Pk, *, config: ConfigOption, reason: ReasonOption = "", yes: YesOption = False) -> None:
    """Take over what EvalAI shows of a submission now, if that differs from what the worker saw first.

    This covers a deletion or cancellation (the submission then no longer counts, as after `challenge disqualify`, whose `--undo` takes it
    back), whether it is public, its method and its links. It does not cover team, author, phase and file: their team must submit again.

    Next: `neuco-worker board show` after the next push.

    Example: `neuco-worker challenge follow 123 --reason "the team withdrew it" --yes --config challenge.yaml`
    """
    from worker.intake import changes
    from worker.organizer import decisions

    with open_session(config) as session:
        row = decisions.submission(session, pk)
        taken = changes.followed(row)
        left = {name: values for name, values in changes.differences(row).items() if name not in taken}
        if left:
            print(
                f"Not taken over: {printable(changes.described(row, left))}. If the team did not send the submission, disqualify it;"
                " otherwise the team must submit again."
            )
        if not taken:
            print(f"EvalAI shows nothing of submission {pk} that can be taken over; nothing was done.")
            return
        first = f"Submission {pk}{_named(row)}: {printable(changes.described(row, taken))}."
        if not taken.keys().isdisjoint(("cancelled", "deleted")):
            first += " It no longer counts."
        reason = confirm(first, reason=reason, yes=yes)
        decisions.follow(session, pk, taken, reason)
        print(f"This holds for submission {pk} from now on.{_closed(session, row.phase)}")


def _named(row: SubmissionRow) -> str:
    """Return whose submission it is, so that a wrong number is noticed."""
    phase = "unknown phase" if row.phase is None else f"phase {row.phase}"
    return f" ({printable(row.team or 'unknown team')}, {phase})"


@challenge.command(rich_help_panel=SCORES)
def retry(pk: Pk, *, config: ConfigOption) -> None:
    """Let a submission continue that is on hold, waits for its next attempt, or was cancelled or deleted at EvalAI before its answer.

    Fix the cause first. A running worker continues within a minute. The answer of an answered submission is sent to EvalAI once more, in
    case somebody has replaced it there; to score such a submission again, re-run it at EvalAI as a host.

    Next: `neuco-worker submissions` shows its new state.

    Example: `neuco-worker challenge retry 123 --config challenge.yaml`
    """
    from worker.organizer import decisions

    with open_session(config) as session:
        print(decisions.retry(session, pk))


def _closed(session: OrganizerSession, phase: str | None) -> str:
    """Report if a phase's board is closed, so that it will not follow the decision."""
    if not session.is_closed(phase):
        return ""
    return f" The board of {phase} is closed, so it does not change (`board close --phase {phase} --undo` reopens it)."


@challenge.command(rich_help_panel=WORKER)
def pause(
    *,
    config: ConfigOption,
    finish: Annotated[
        bool,
        typer.Option(
            "--finish",
            help="Receive no more submissions, but finish those received, for example before an upgrade.",
        ),
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="End the pause.")] = False,
) -> None:
    """Stop scoring. Submissions are still received, and finished answers are still sent.

    Next: `neuco-worker challenge pause --undo` ends it.

    Example: `neuco-worker challenge pause --config challenge.yaml`

    Example: `neuco-worker challenge pause --undo --config challenge.yaml`
    """
    until = "until you run `neuco-worker challenge pause --undo`"
    sentences = {
        None: "Submissions are received and scored again.",
        "drain": f"Submissions already received are finished; no more are received {until}.",
        "pause": f"Paused: nothing is scored {until}.",
    }
    mode: Literal["pause", "drain"] | None = None if undo else "drain" if finish else "pause"
    with open_session(config) as session, session.store.write() as tx:
        tx.set_pause(mode, now=session.now)
    print(sentences[mode])


@challenge.command(rich_help_panel=COPIES)
def backup(
    archive: Annotated[
        Path,
        typer.Argument(
            help="File to write (.zip), or a folder, where it is named after challenge and time.",
            show_default=False,
        ),
    ],
    *,
    config: ConfigOption,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing archive.")] = False,
) -> None:
    """Write the database, stored files, configuration, secret and signing key to one archive, even while the worker runs.

    Protect the archive like the secret, which it contains. It contains no tokens.

    Next: copy the archive to another machine; `neuco-worker challenge restore` unpacks it.

    Example: `neuco-worker challenge backup /backup/challenge.zip --config challenge.yaml`
    """
    from worker.organizer.archiving import write_backup

    with open_session(config) as session:
        if archive.is_dir():
            name = config.resolve().parent.name or "challenge"
            archive /= f"{name}-{session.now:%Y-%m-%dT%H-%M-%SZ}.zip"
        with progress_bar("Backing up", "files") as progress:
            size = write_backup(session, config, archive, replace=force, progress=progress)
    print(
        f"Wrote {archive.resolve()} ({size / 1000000.0:.1f} MB). It contains the challenge's secret, so protect it like the secret."
    )


@challenge.command(rich_help_panel=COPIES)
def restore(
    archive: Annotated[
        Path | None, typer.Argument(help="An archive that `challenge backup` wrote.", show_default=False)
    ] = None,
    directory: Annotated[
        Path | None, typer.Argument(help="An empty or new folder.", show_default=False)
    ] = None,
    *,
    config: ConfigOption,
    dump: Annotated[
        bool,
        typer.Option(
            "--dump",
            help="Record that the PostgreSQL state of --config was restored from a dump, before you start a worker on it.",
        ),
    ] = False,
) -> None:
    """Unpack a backup into a new folder.

    When the worker starts, an alert names the submissions that were answered after the backup.

    Next: `neuco-worker doctor` with the restored configuration names the tokens and keys to add, which no backup contains.

    Example: `neuco-worker challenge restore /backup/challenge.zip ./challenge`

    Example: `neuco-worker challenge restore --dump --config challenge.yaml`
    """
    from worker.organizer.archiving import mark_restored, read_backup
    from worker.state import refused

    if dump and archive is None:
        with open_session(config) as session, closing(session.leader_lock()) as lock:
            if not lock.take():  # it would go on with what it remembers of the state before the dump
                raise refused()
            with session.store.write() as tx:
                if tx.last_leader() is None:
                    raise OrganizerError(
                        "No worker has ever used this state, so it does not come from a dump.",
                        hint="First run pg_restore --clean --if-exists, with the database in `state` of the configuration.",
                        code="restore.empty",
                    )
                mark_restored(tx, session.now.isoformat())
        print(f"Recorded. {LOST} When you start the worker, an alert names the submissions answered since.")
        return
    if archive is None or directory is None or dump:
        raise OrganizerError(
            "Restoring needs an archive and a folder, or --dump alone.",
            hint="Write: neuco-worker challenge restore ARCHIVE DIRECTORY",
            code="restore.arguments",
        )
    place = read_backup(archive, directory)
    print(f"Restored into {directory}. {LOST}")
    print(
        "Backups contain no tokens and no ssh keys; the doctor says which to add before you start the worker."
    )
    print(f"Next: neuco-worker doctor --config {shlex.quote(str(place))}")

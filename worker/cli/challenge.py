"""``neuco-worker challenge …``: run and correct a challenge; every step is recorded in the audit trail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from scoring.printable import count_of
from worker.cli.options import ConfigOption
from worker.cli.progress import progress_bar

if TYPE_CHECKING:
    from worker.organizer.session import OrganizerSession


challenge = typer.Typer(no_args_is_help=True, help="Correct and control a running challenge.")

SCORES = "Scores, and who counts"
WORKER = "The worker"
COPIES = "Copies"

Reason = Annotated[
    str, typer.Option("--reason", help="The reason, which the reveal publishes.", show_default=False)
]
Pk = Annotated[int, typer.Argument(help="EvalAI's submission number.", show_default=False)]


@challenge.command(rich_help_panel=SCORES)
def rescore(
    *,
    config: ConfigOption,
    phase: Annotated[str | None, typer.Option(help="Only this phase.")] = None,
    reason: Annotated[
        str,
        typer.Option(
            "--reason", help="The reason, which is published with the new commitment.", show_default=False
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without --yes, only the plan is shown.")] = False,
) -> None:
    """Rescore all scored submissions, after a change of the tasks or the protocol.

    Without --yes, it only shows what would be done and how long it would take. If it is interrupted, run it again: it continues where it
    stopped. Files that are no longer stored are downloaded from EvalAI again, and used only if their content has not changed.

    Example: `neuco-worker challenge rescore --reason "a label was wrong" --config challenge.yaml --yes`
    """
    from worker.organizer.rescoring import carry_out, estimate, make_plan
    from worker.organizer.session import open_session

    with open_session(config) as session:
        setups = [session.phase(phase)] if phase else list(session.phases().values())
        for setup in setups:
            plan = make_plan(session, setup)
            cells = sum(len(row.tasks) for row in plan.missing)
            if plan.recorded and not cells:
                print(
                    f"{setup.codename}: nothing to do; the scores of {count_of(plan.rows, 'submitted file')} are complete."
                )
                continue
            with session.store.read() as tx:
                revealed = setup.codename in tx.reveals()
            cost = "this takes an unknown time"
            if (seconds := estimate(session, plan)) is not None:
                scoring_s, posting_s = seconds
                cost = f"this takes about {scoring_s:.0f} s"
                cost += f", and posting the answers about {posting_s:.0f} s" if posting_s else ""
            print(
                f"{setup.codename}: new or changed tasks: {len(plan.added)}; dropped tasks: {len(plan.dropped)};"
                f" scores to compute: {cells}, for {count_of(len(plan.missing), 'submission')} ({cost})."
            )
            if gone := sum(row.file_hash is None for row in plan.missing):
                print(
                    f"  The files of {count_of(gone, 'submission')} are no longer stored here; they are first fetched from EvalAI again."
                )
            if revealed and plan.changed:
                print(
                    f"  {setup.codename} has been revealed: its next board will show the new tasks to everyone."
                )
            if not yes:
                print("  Nothing has been done yet: add --yes to do it.")
                continue
            with progress_bar(f"Rescoring {setup.codename}", "submissions") as progress:
                changed = carry_out(session, plan, reason=reason, progress=progress, tell=print)
            follows = _closed(session, setup.codename) or " The worker publishes the board."
            print(f"  Done: {count_of(changed, 'answer')} changed; the worker posts what changed.{follows}")


@challenge.command(rich_help_panel=SCORES)
def rules(
    *,
    config: ConfigOption,
    reason: Reason,
    phase: Annotated[str | None, typer.Option(help="Only this phase.")] = None,
) -> None:
    """Apply board rules that you changed in the configuration. Until then, a phase keeps the rules that it was recorded with.

    The rules are selection, ladder_step, shown, visibility, eligible_if_scored_in, baselines, baselines_weigh, ghost_task, decimals and
    hidden_teams. The next board uses the new rules. Boards of closed phases do not change; posted answers change only if you switch
    `selection: ladder` or `shown: at_end` on or off.

    Example: `neuco-worker challenge rules --reason "announced on 1 June" --config challenge.yaml`
    """
    from worker.fairness.recording import record_rules
    from worker.organizer.session import open_session

    with open_session(config) as session:
        for codename in [phase] if phase else list(session.configuration.phases):
            session.check_phase(codename)
            with session.store.write() as tx:
                changed = record_rules(
                    tx, session.configuration, codename, actor=session.actor, reason=reason, now=session.now
                )
            closed = _closed(session, codename)
            told = f"now uses the new {', '.join(changed)}." if changed else "nothing to do."
            print(f"{codename}: {told}{closed}")


@challenge.command(rich_help_panel=SCORES)
def choose(pk: Pk, *, config: ConfigOption, reason: Reason) -> None:
    """Choose the submission that counts for its team. The phase must have `selection: chosen`.

    Example: `neuco-worker challenge choose 123 --reason "requested by the team before the deadline" --config challenge.yaml`
    """
    from worker.organizer import decisions
    from worker.organizer.session import open_session

    with open_session(config) as session:
        closed = _closed(session, decisions.choose(session, pk, reason))
    print(f"Submission {pk} now counts for its team.{closed}")


@challenge.command(rich_help_panel=SCORES)
def disqualify(
    pk: Pk,
    *,
    config: ConfigOption,
    reason: Reason,
    undo: Annotated[bool, typer.Option("--undo", help="Let it count again.")] = False,
) -> None:
    """Take a submission off the board. To remove it from EvalAI's own leaderboard too, use EvalAI's pages.

    Example: `neuco-worker challenge disqualify 123 --reason "used test data" --config challenge.yaml`
    """
    from worker.organizer import decisions
    from worker.organizer.session import open_session

    hint = ""
    with open_session(config) as session:
        if undo:
            phase, complete = decisions.reinstate(session, pk, reason)
            if not complete:
                hint = " It has no scores on the tasks that were added meanwhile: run `neuco-worker challenge rescore`."
        else:
            phase = decisions.disqualify(session, pk, reason)
        closed = _closed(session, phase)
    print(f"Submission {pk} {'counts again' if undo else 'no longer counts'}.{hint}{closed}")


@challenge.command(rich_help_panel=SCORES)
def rename_team(
    *,
    config: ConfigOption,
    team: Annotated[
        str, typer.Option(help="The team, by its name or by its number at EvalAI.", show_default=False)
    ],
    pseudonym: Annotated[
        str, typer.Option("--as", help="The pseudonym that replaces the name.", show_default=False)
    ],
    reason: Annotated[
        str,
        typer.Option(help="The reason, which is published; it must not name the team.", show_default=False),
    ],
) -> None:
    """Replace a team's name with a pseudonym in everything that is published from now on, when the team asks for it.

    This cannot be undone. The name stays in earlier commits of the repository and in older lines of history.jsonl.

    Example: `neuco-worker challenge rename-team --team "Jane Doe" --as "Team 12" --reason "asked for by its members"`
    """
    from worker.organizer.renaming import rename
    from worker.organizer.session import open_session

    with open_session(config) as session:
        number = rename(session, team, pseudonym.strip(), reason.strip())
    print(f"Team {number} is called {pseudonym.strip()} from now on; a running worker publishes that.")
    print("Earlier commits and the older lines of history.jsonl still have the name.")


@challenge.command(rich_help_panel=SCORES)
def retry(pk: Pk, *, config: ConfigOption) -> None:
    """Let a submission that is on hold or waiting for its next attempt continue without further waiting.

    Fix the cause first. A running worker continues with the submission within a minute. A submission that was already answered is not
    scored again; to score it again, re-run it at EvalAI as a host.

    Example: `neuco-worker challenge retry 123 --config challenge.yaml`
    """
    from worker.organizer import decisions
    from worker.organizer.session import open_session

    with open_session(config) as session:
        row = decisions.retry(session, pk)
    if row.disputed:
        print(
            f"Submission {pk} is on hold: {row.hold_reason} The worker asks EvalAI again, and continues with the"
            " submission if the problem is solved."
        )
    elif row.tries:
        print(
            f"Submission {pk} ({row.state}) is tried again now, after {count_of(row.tries, 'failed attempt')}."
        )
    else:
        print(f"Submission {pk} ({row.state}) is only waiting for its turn; there is nothing to retry.")


def _closed(session: OrganizerSession, phase: str | None) -> str:
    """Report if a phase's board is frozen, so that it will not follow the decision."""
    from worker.organizer.decisions import is_frozen

    if not is_frozen(session, phase):
        return ""
    return f" The board of {phase} is closed, so it does not change (`board freeze --undo` reopens it)."


def _mode(config: Path, mode: Literal["pause", "drain"] | None, action: str, sentence: str) -> None:
    from worker.organizer.decisions import set_mode
    from worker.organizer.session import open_session

    with open_session(config) as session:
        set_mode(session, mode, action)
    print(sentence)


@challenge.command(rich_help_panel=WORKER)
def pause(*, config: ConfigOption) -> None:
    """Stop scoring. Submissions are still received, and finished answers are still sent.

    Example: `neuco-worker challenge pause --config challenge.yaml`
    """
    _mode(
        config,
        "pause",
        "paused",
        "Paused: nothing is scored until you run `neuco-worker challenge resume`.",
    )


@challenge.command(rich_help_panel=WORKER)
def drain(*, config: ConfigOption) -> None:
    """Finish the submissions that were received, and receive no more, before an upgrade or a move to another machine.

    Example: `neuco-worker challenge drain --config challenge.yaml`
    """
    _mode(
        config,
        "drain",
        "draining",
        (
            "Draining: submissions already received are finished; no more are received until you run `neuco-worker"
            " challenge resume`."
        ),
    )


@challenge.command(rich_help_panel=WORKER)
def resume(*, config: ConfigOption) -> None:
    """End a pause or a drain.

    Example: `neuco-worker challenge resume --config challenge.yaml`
    """
    _mode(config, None, "resumed", "Resumed: submissions are received and scored again.")


@challenge.command(rich_help_panel=COPIES)
def backup(
    archive: Annotated[
        Path,
        typer.Argument(
            help="File to write (.tar.gz), or a folder; the file in it is then named after the challenge and the time.",
            show_default=False,
        ),
    ],
    *,
    config: ConfigOption,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing archive.")] = False,
) -> None:
    """Write the database, stored files, configuration and secret to one archive, even while the worker runs.

    The archive contains the secret and all submissions, so protect it like the secret. It does not contain tokens.

    Example: `neuco-worker challenge backup /backup/challenge.tar.gz --config challenge.yaml`
    """
    from worker.organizer.archiving import named, write_backup
    from worker.organizer.session import open_session

    with open_session(config) as session:
        archive = named(archive, config, now=session.now)
        with progress_bar("Backing up", "files") as progress:
            size = write_backup(session, config, archive, replace=force, progress=progress)
        with session.store.write() as tx:
            tx.log("backup", actor=session.actor, now=session.now, bytes=size)
    print(
        f"Wrote {archive} ({size / 1000000.0:.1f} MB). It contains the challenge's secret, so protect it like the secret."
    )


@challenge.command(rich_help_panel=COPIES)
def restore(
    archive: Annotated[
        Path, typer.Argument(help="An archive that `challenge backup` wrote.", show_default=False)
    ],
    directory: Annotated[Path, typer.Argument(help="An empty or new folder.", show_default=False)],
) -> None:
    """Unpack a backup into a new folder, and say which tokens and keys you still have to add.

    Example: `neuco-worker challenge restore /backup/challenge.tar.gz ./challenge`
    """
    from worker.challenge.configuration import load
    from worker.organizer.archiving import missing_secrets, read_backup

    place = read_backup(archive, directory)
    print(f"Restored into {directory}.")
    if missing := missing_secrets(load(place)):
        print("Backups do not contain tokens or ssh keys. Before you start the worker:")
        for one in missing:
            print(f"  {one}")
    print(f"Next: neuco-worker doctor --config {place}")


@challenge.command(rich_help_panel=COPIES)
def mark_restored(*, config: ConfigOption) -> None:
    """Record that a PostgreSQL state was restored from a dump. Run this before you start a worker on it.

    An alert will then name the submissions that were answered after the dump, and the public log of receipts continues correctly. After
    `challenge restore`, this is not needed.

    Example: `neuco-worker challenge mark-restored --config challenge.yaml`
    """
    from worker.organizer.archiving import mark_restored as mark
    from worker.organizer.session import open_session

    with open_session(config) as session, session.store.write() as tx:
        mark(tx, session.now.isoformat())
        tx.log("restored", actor=session.actor, now=session.now)
    print(
        "Recorded. Start the worker now; an alert will name the submissions that were answered after the dump."
    )

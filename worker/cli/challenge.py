"""``neuco-worker challenge …``: run and correct a challenge, all with a trail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from worker.cli.commands import Commands, Group
from worker.cli.options import ConfigOption
from worker.cli.progress import progress_bar

if TYPE_CHECKING:
    from worker.organizer.session import OrganizerSession


class ChallengeCommands(Group):
    """The commands of a challenge, in sections."""

    sections = (
        (
            "Scores, and who counts",
            ("rescore", "rules", "retry", "choose", "disqualify", "rename-team"),
        ),
        ("The daemon", ("pause", "resume", "drain")),
        ("Records and copies", ("audit", "backup", "restore", "mark-restored")),
        ("What anybody can check", ("commit", "reveal")),
    )


challenge = Commands(
    name="challenge",
    cls=ChallengeCommands,
    help="Run and correct a challenge; every step goes into the audit trail.",
)

Reason = Annotated[
    str, typer.Option("--reason", help="Why; it goes into the audit trail.", show_default=False)
]
Pk = Annotated[int, typer.Argument(help="EvalAI's submission number.", show_default=False)]


@challenge.command()
def rescore(
    *,
    config: ConfigOption,
    phase: Annotated[str | None, typer.Option(help="Only this phase.")] = None,
    reason: Annotated[
        str,
        typer.Option("--reason", help="Why, in public; at once, with the commitment.", show_default=False),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without it only the plan is shown.")] = False,
) -> None:
    """Take up changed tasks or a changed protocol: fill the missing cells of all submissions that count.

    Without --yes it only says what would be done and what it would cost. Interrupted, it goes on where it was. Stored files that are gone
    are fetched again from EvalAI by the worker that leads, and kept only if they are the ones that were scored.

    Example: neuco-worker challenge rescore --reason "a label was wrong" --config challenge.yaml --yes
    """
    from worker.organizer.rescoring import carry_out, make_plan
    from worker.organizer.session import open_session

    with open_session(config) as session:
        setups = [session.phase(phase)] if phase else list(session.phases().values())
        for setup in setups:
            plan = make_plan(session, setup)
            cells = sum(len(row.tasks) for row in plan.missing)
            if plan.recorded and not cells:
                print(f"{setup.codename}: nothing to do; all {plan.rows} rows are complete.")
                continue
            with session.store.read() as tx:
                revealed = setup.codename in tx.reveals()
            cost = "unknown time" if plan.seconds is None else f"about {plan.seconds:.0f} s"
            print(
                f"{setup.codename}: {len(plan.added)} tasks new or changed, {len(plan.dropped)} dropped; "
                f"{cells} cells of {len(plan.missing)} rows are missing ({cost})."
            )
            if gone := sum(row.file_hash is None for row in plan.missing):
                print(f"  The files of {gone} rows are gone; they are fetched again from EvalAI first.")
            if revealed and plan.changed:
                print(f"  {setup.codename} was revealed: its next board shows the new tasks to everybody.")
            if not yes:
                print("  Nothing was done. Add --yes to do it.")
                continue
            with progress_bar(f"Rescoring {setup.codename}", "submissions") as progress:
                changed = carry_out(session, plan, reason=reason, progress=progress, tell=print)
            follows = _closed(session, setup.codename) or " The daemon publishes the board."
            print(f"  Done: {changed} answers changed; the daemon posts them.{follows}")


@challenge.command()
def rules(
    *,
    config: ConfigOption,
    reason: Reason,
    phase: Annotated[str | None, typer.Option(help="Only this phase.")] = None,
) -> None:
    """Take up changed rules of the board; until then a phase keeps the rules that it was recorded with.

    The rules are selection, ladder_step, shown, visibility, eligible_if_scored_in, baselines, baselines_weigh, ghost_task, decimals and
    hidden_teams. The next board follows the new ones; boards that are frozen stay as they are, and so do answers that were posted, unless a
    ladder or the keeping back of values begins or ends.

    Example: neuco-worker challenge rules --reason "announced on 1 June" --config challenge.yaml
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
            told = f"takes up {', '.join(changed)}." if changed else "nothing to do."
            print(f"{codename}: {told}{closed}")


@challenge.command()
def choose(pk: Pk, *, config: ConfigOption, reason: Reason) -> None:
    """Let a submission count for its team, where the phase's selection is `chosen`.

    Example: neuco-worker challenge choose 123 --reason "asked by the team before the deadline" --config challenge.yaml
    """
    from worker.organizer import decisions
    from worker.organizer.session import open_session

    with open_session(config) as session:
        closed = _closed(session, decisions.choose(session, pk, reason))
    print(f"Submission {pk} counts now.{closed}")


@challenge.command()
def disqualify(
    pk: Pk,
    *,
    config: ConfigOption,
    reason: Reason,
    undo: Annotated[bool, typer.Option("--undo", help="Let it count again.")] = False,
) -> None:
    """Take a submission off the board; EvalAI's own leaderboard is the host's to correct.

    Example: neuco-worker challenge disqualify 123 --reason "used test data" --config challenge.yaml
    """
    from worker.organizer import decisions
    from worker.organizer.session import open_session

    hint = ""
    with open_session(config) as session:
        if undo:
            phase, complete = decisions.reinstate(session, pk, reason)
            if not complete:
                hint = " It was not scored on tasks that came meanwhile: `challenge rescore` does that."
        else:
            phase = decisions.disqualify(session, pk, reason)
        closed = _closed(session, phase)
    print(f"Submission {pk} {'counts again' if undo else 'no longer counts'}.{hint}{closed}")


@challenge.command()
def rename_team(
    *,
    config: ConfigOption,
    team: Annotated[
        str, typer.Option(help="The team: its name, or EvalAI's number of it.", show_default=False)
    ],
    pseudonym: Annotated[
        str, typer.Option("--as", help="What it is called from now on.", show_default=False)
    ],
    reason: Annotated[str, typer.Option(help="Why, in public; do not name the team.", show_default=False)],
) -> None:
    """Remove a team's name on request: boards, pages and reveals show a pseudonym, whatever EvalAI says later.

    It cannot be taken back. What was pushed before stays in the history of the repository, and in the older lines of history.jsonl.

    Example: neuco-worker challenge rename-team --team "Jane Doe" --as "Team 12" --reason "asked for by its members" --config challenge.yaml
    """
    from worker.organizer.renaming import rename
    from worker.organizer.session import open_session

    with open_session(config) as session:
        number = rename(session, team, pseudonym.strip(), reason.strip())
    print(f"Team {number} is called {pseudonym.strip()} from now on; a running daemon publishes that.")
    print("Commits from before and the older lines of history.jsonl keep the name.")


@challenge.command()
def retry(pk: Pk, *, config: ConfigOption) -> None:
    """Try a submission again now that waits for its next try, or is held.

    For after you fixed what kept it waiting; a running worker takes it up within a minute. It does not score anything a second time: what
    was answered is re-run at EvalAI, by a host.

    Example: neuco-worker challenge retry 123 --config challenge.yaml
    """
    from worker.organizer import decisions
    from worker.organizer.session import open_session

    with open_session(config) as session:
        row = decisions.retry(session, pk)
    if row.disputed:
        print(
            f"Submission {pk} is held: {row.hold_reason} EvalAI is asked again; if that is settled, it goes on."
        )
    elif row.tries:
        print(f"Submission {pk} ({row.state}) is tried again at once, after {row.tries} failed tries.")
    else:
        print(f"Submission {pk} ({row.state}) waits for nothing but its turn.")


def _closed(session: OrganizerSession, phase: str | None) -> str:
    """Say so if a phase's board is frozen, and will not follow."""
    from worker.organizer.decisions import is_frozen

    if not is_frozen(session, phase):
        return ""
    return f" The board of {phase} is frozen and stays as it is (`board freeze --undo` lets it move)."


def _mode(config: Path, mode: Literal["pause", "drain"] | None, action: str, sentence: str) -> None:
    from worker.organizer.decisions import set_mode
    from worker.organizer.session import open_session

    with open_session(config) as session:
        set_mode(session, mode, action)
    print(sentence)


@challenge.command()
def pause(*, config: ConfigOption) -> None:
    """Start no further evaluation; submissions are still received, answers still leave.

    Example: neuco-worker challenge pause --config challenge.yaml
    """
    _mode(config, "pause", "paused", "Paused: nothing new is scored until `challenge resume`.")


@challenge.command()
def drain(*, config: ConfigOption) -> None:
    """Finish what was received, and receive nothing more: before an upgrade or a move.

    Example: neuco-worker challenge drain --config challenge.yaml
    """
    _mode(config, "drain", "draining", "Draining: what was received is finished, nothing more is received.")


@challenge.command()
def resume(*, config: ConfigOption) -> None:
    """End a pause or a drain.

    Example: neuco-worker challenge resume --config challenge.yaml
    """
    _mode(config, None, "resumed", "Resumed.")


@challenge.command()
def audit(*, config: ConfigOption) -> None:
    """Print who scored what, when, with which protocol, versions and hashes: one JSON object a line.

    Example: neuco-worker challenge audit --config challenge.yaml > audit.jsonl
    """
    from worker.organizer.auditing import records
    from worker.organizer.session import open_session

    with open_session(config) as session:
        for record in records(session.store):
            print(json.dumps(record, sort_keys=True))


@challenge.command()
def backup(
    archive: Annotated[
        Path,
        typer.Argument(
            help="File to write, .tar.gz; or a folder for one with a name of its own.", show_default=False
        ),
    ],
    *,
    config: ConfigOption,
    force: Annotated[bool, typer.Option("--force", help="Replace an archive that is there already.")] = False,
) -> None:
    """Write database, stored files, configuration and secret into one archive; works while the daemon runs.

    The archive is as secret as the challenge: it holds its secret and all submissions. Tokens are not in it.

    Example: neuco-worker challenge backup /backup/challenge.tar.gz --config challenge.yaml
    """
    from worker.organizer.archiving import named, write_backup
    from worker.organizer.session import open_session

    with open_session(config) as session:
        archive = named(archive, config, now=session.now)
        with progress_bar("Backing up", "files") as progress:
            size = write_backup(session, config, archive, replace=force, progress=progress)
        with session.store.write() as tx:
            tx.log("backup", actor=session.actor, now=session.now, bytes=size)
    print(f"{archive}: {size / 1e6:.1f} MB. It holds the challenge's secret: keep it as safe as that.")


@challenge.command()
def restore(
    archive: Annotated[
        Path, typer.Argument(help="An archive that `challenge backup` wrote.", show_default=False)
    ],
    directory: Annotated[Path, typer.Argument(help="An empty or new folder.", show_default=False)],
) -> None:
    """Unpack a backup into a new folder, ready to run.

    Example: neuco-worker challenge restore /backup/challenge.tar.gz ./challenge
    """
    from worker.challenge.configuration import load
    from worker.organizer.archiving import missing_secrets, read_backup

    place = read_backup(archive, directory)
    print(f"Restored to {directory}.")
    if missing := missing_secrets(load(place)):
        print("No backup holds tokens and keys. Before the worker starts:")
        for one in missing:
            print(f"  {one}")
    print(f"Next: neuco-worker doctor --config {place}")


@challenge.command()
def mark_restored(*, config: ConfigOption) -> None:
    """Say that the state on a database server was put back from a dump, before a worker is started on it.

    What was answered since the dump is then named in an alert, and the public log of receipts is gone on from. `restore` does this itself.

    Example: neuco-worker challenge mark-restored --config challenge.yaml
    """
    from worker.organizer.archiving import mark_restored as mark
    from worker.organizer.session import open_session

    with open_session(config) as session, session.store.write() as tx:
        mark(tx, session.now.isoformat())
        tx.log("restored", actor=session.actor, now=session.now)
    print("Noted. Start the workers; an alert names what was answered since the dump.")

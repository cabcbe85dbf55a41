"""The decision to reveal phases: publish, after they have ended, everything with which anybody can check them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scoring.errors import OrganizerError
from worker.challenge.configuration import Configuration
from worker.challenge.setups import has_scores
from worker.challenge.signing import signer
from worker.fairness.register import register, withholds
from worker.organizer.board_by_hand import publish_now
from worker.organizer.disclosure import prepare_files, remove_undue
from worker.organizer.session import OrganizerSession, Tell
from worker.publishing import files_branch
from worker.publishing.reveals import open_news
from worker.state import Completed, Transaction


def choose(
    session: OrganizerSession, named: Sequence[str] | None, *, open_too: bool
) -> tuple[list[str], list[str]]:
    """Choose the phases to reveal: the named ones, or all that are closed.

    Once a phase's tasks are public, anyone who may still submit to it can train on them, and that cannot be undone. Nobody can submit to an
    abandoned phase, but it may have been removed by mistake, so it must be named, and all others must be closed.

    Args:
        session: The challenge.
        named: Phases that the organizer named, if any.
        open_too: Whether phases that are not closed may be revealed; one that still withholds its values never may.

    Returns:
        The phases to reveal, and those that are left out because they are still open or abandoned.

    Raises:
        OrganizerError: If a phase does not exist; if a named phase is open, or every phase is, and that is not allowed.
    """
    configuration = session.configuration
    with session.store.read() as tx:
        abandoned = _abandoned(tx, configuration)
        for name in set(named or ()) - abandoned:
            session.check_phase(name)
        names = list(named or configuration.phases)
        left_out = _still_open(tx, configuration, names, open_too=open_too)
        if left_out and (named or left_out == names):
            raise _refusal(tx, left_out)
        unnamed = abandoned - {*names, *tx.revealed()}
    return [name for name in names if name not in left_out], [*left_out, *sorted(unnamed)]


def _abandoned(tx: Transaction, configuration: Configuration) -> set[str]:
    """Return the phases that were removed from the configuration before anything was scored in them, such as one with a wrong name."""
    return {name for name in tx.phases() if name not in configuration.phases and not has_scores(tx, name)}


def _still_open(
    tx: Transaction, configuration: Configuration, names: Collection[str], *, open_too: bool
) -> list[str]:
    if any(name not in configuration.phases for name in names):
        names = configuration.phases  # an abandoned phase may have the tasks of any other
    closed = {name for name in names if (row := tx.phase_record(name)) and row.closed_at}
    return [name for name in names if withholds(tx, name) or not (open_too or name in closed)]


def _refusal(tx: Transaction, left_out: Sequence[str]) -> OrganizerError:
    return OrganizerError(
        f"Still open: {', '.join(left_out)}. After the reveal, teams could train on the tasks and submit again.",
        hint=f"Close a phase before you reveal it: neuco-worker board close --phase {left_out[0]}."
        + ("" if withholds(tx, left_out[0]) else " To reveal it anyway, add --open."),
        code="reveal.open",
    )


def publish_revealed(
    session: OrganizerSession,
    phases: Collection[str],
    *,
    labels: bool,
    open_too: bool = False,
    named: Collection[str] = (),
    tell: Tell,
) -> tuple[list[str], Completed, int]:
    """Publish the last boards, which are revealed too, and then what :func:`reveal` reveals.

    Returns:
        What :func:`reveal` returns, the last push, and how many parts of published files could not be pushed yet.

    Raises:
        NeucoError: As :func:`reveal`, :func:`worker.organizer.board_by_hand.publish_now` and
            :func:`worker.organizer.disclosure.prepare_files`.
    """
    publish_now(session, tell=tell)
    prepare_files(session, phases, tell=tell)
    fresh = reveal(session, phases, labels=labels, open_too=open_too, named=named)
    published = publish_now(session, tell=tell)
    with session.store.read() as tx:
        return fresh, published, len(files_branch.missing(tx, session.configuration))


def reveal(
    session: OrganizerSession,
    phases: Collection[str],
    *,
    labels: bool,
    open_too: bool = False,
    named: Collection[str] = (),
) -> list[str]:
    """Reveal phases; no commitment, board or rescore can come between their documents.

    Phases that were revealed before are opened again if something was added to them. So is every entry of the log, once nothing is hidden
    any more.

    Args:
        session: The challenge.
        phases: Phase codenames.
        labels: Whether the label rows are published, or only their hashes. It says nothing of phases that were revealed before.
        open_too: As for :func:`choose`; the phases may have been opened again since.
        named: Phases of which it says so nevertheless.

    Returns:
        The phases with something revealed that was not revealed before.

    Raises:
        OrganizerError: If a phase is open or not recorded, or the secret is not the one of its record.
    """
    configuration = session.configuration
    with session.store.write() as tx:
        if left_out := _still_open(tx, configuration, phases, open_too=open_too):
            raise _refusal(tx, left_out)
        for name in phases:
            remove_undue(tx, session, name)
        now = tx.attestation_time(register(tx, session.clock()))
        wanted = {name: labels for name in phases if name in named or name not in tx.revealed()}
        fresh = open_news(tx, configuration, signer(tx, configuration), now=now, reveal=wanted)
        tx.request_publish()
    return fresh

"""The decision to reveal phases: publish, after they have ended, everything with which anybody can check them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scoring.errors import OrganizerError
from worker.challenge.signing import signer
from worker.fairness.register import register, withholds
from worker.organizer.session import OrganizerSession
from worker.publishing.reveals import open_news


def choose(
    session: OrganizerSession, named: Sequence[str] | None, *, open_too: bool
) -> tuple[list[str], list[str]]:
    """Choose the phases to reveal: the named ones, or all that are closed.

    Once a phase's tasks are public, anyone who may still submit to it can train on them, and that cannot be undone.

    Args:
        session: The challenge.
        named: Phases that the organizer named, if any.
        open_too: Whether phases that are not closed may be revealed; one that still withholds its values never may.

    Returns:
        The phases to reveal, and those that are left out because they are still open.

    Raises:
        OrganizerError: If a phase does not exist; if a named phase is open, or every phase is, and that is not allowed.
    """
    for name in named or ():
        session.check_phase(name)
    names = list(named or session.configuration.phases)
    with session.store.read() as tx:
        withheld = {name for name in names if withholds(tx, name)}
        closed = {name for name in names if (row := tx.phase_record(name)) and row.closed_at}
    left_out = [name for name in names if name in withheld or not (open_too or name in closed)]
    if left_out and (named or left_out == names):
        raise OrganizerError(
            f"Still open: {', '.join(left_out)}. After the reveal, teams could train on the tasks and submit again.",
            hint=f"Close a phase before you reveal it: neuco-worker board close --phase {left_out[0]}."
            + ("" if left_out[0] in withheld else " To reveal it anyway, add --open."),
            code="reveal.open",
        )
    return [name for name in names if name not in left_out], left_out


def reveal(session: OrganizerSession, phases: Collection[str], *, labels: bool) -> list[str]:
    """Reveal phases; no commitment, board or rescore can come between their documents.

    Phases that were revealed before are opened again if something was added to them. So is every entry of the log, once nothing is hidden
    any more.

    Args:
        session: The challenge.
        phases: Phase codenames.
        labels: Whether the label rows are published, or only their hashes.

    Returns:
        The phases with something revealed that was not revealed before.

    Raises:
        OrganizerError: If a phase is not recorded, or the secret is not the one of its record.
    """
    configuration = session.configuration
    with session.store.write() as tx:
        now = tx.attestation_time(register(tx, session.clock()))
        wanted = dict.fromkeys(phases, labels)
        fresh = open_news(tx, configuration, signer(tx, configuration), now=now, reveal=wanted)
        tx.request_publish()
    return fresh

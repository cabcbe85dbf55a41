"""Commitments on command: to the present secret and tasks, or to splits into which the announced value was mixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scoring.errors import OrganizerError
from worker.challenge.canonical import digest
from worker.challenge.files import read_secret
from worker.fairness import commitments, draws
from worker.fairness.recording import name_draw
from worker.organizer.session import OrganizerSession
from worker.state import Transaction


def commit(session: OrganizerSession, phases: Sequence[str], *, reason: str) -> dict[str, Any] | None:
    """Record phases without scores as their files are, commit to them and have that published; return the commitment's public part.

    Raises:
        OrganizerError: If their files cannot be read, or the configured public value may be known already.
    """
    secret = read_secret(session.configuration)
    read, rule = [session.phase(name) for name in phases], session.configuration.fairness.publish_files
    draw = name_draw(session.configuration, session.now)
    with session.store.write() as tx:
        public = commitments.begin(
            tx,
            secret,
            read,
            reason=reason,
            now=session.now,
            draw=draw,
            publish_files=rule,
            receipts_every=session.configuration.leaderboard.receipts_every,
        )
        if public is not None:
            _publish(tx, session, "committed", public)
    return public


def enter_value(session: OrganizerSession, value: str) -> dict[str, Any]:
    """Mix the value that was named for phases into their splits, and have that published; return the commitment's public part.

    Raises:
        OrganizerError: If no phase waits for a value, or its moment has not come yet.
    """
    public = _mix_in(session, value)
    with session.store.write() as tx:
        _publish(tx, session, "committed", public)
    return public


def renew_key(session: OrganizerSession, *, reason: str) -> dict[str, Any]:
    """Replace the signing key with a new one that the old key signs, and have that published; return the commitment's public part.

    No phase is read again: the commitment to the tasks stays, whatever their files contain now.

    Args:
        session: The challenge.
        reason: Why, in public.

    Raises:
        OrganizerError: If there is no key that could sign the new one, or the secret is not the committed one.
    """
    secret = read_secret(session.configuration)
    with session.store.write() as tx:
        entries = tx.commitments()
        if not entries:
            raise OrganizerError(
                "The challenge does not have a key yet.",
                cure="Start the worker. It creates the first key, with a commitment.",
                code="commit.no_key",
            )
        if entries[-1][1]["opening"]["secret"] != digest("secret", secret):
            raise OrganizerError(
                "The challenge's secret is not the one in the commitment.",
                cure="Restore the old secret. A new key does not need a new secret.",
                code="secret.changed",
            )
        public = commitments.commit(tx, secret, (), reason=reason, now=session.now, new_key=True)
        _publish(tx, session, "key_replaced", public)
    return public


def _publish(tx: Transaction, session: OrganizerSession, action: str, public: dict[str, Any]) -> None:
    """Record a commitment in the audit trail, and have it pushed."""
    told = {"commitment": public["commitment"], "reason": public["reason"], "key": public["key"]}
    tx.log(action, actor=session.actor, now=session.now, **told)
    tx.request_publish()


def _mix_in(session: OrganizerSession, value: str) -> dict[str, Any]:
    """Mix in the value that was named for phases, if its moment has come."""
    with session.store.read() as tx:
        awaited = draws.waiting(tx.public_commitments()).values()
    named = [draw for draw in awaited if draw.chain is None]
    if not named:
        raise OrganizerError(
            "No phase waits for a public value that you enter.",
            cure="Do nothing. `neuco-worker status` shows which values the worker itself waits for.",
            code="commit.not_awaited",
        )
    latest = max(draw.at for draw in named)
    if latest > session.now:
        raise OrganizerError(
            f"{named[0].source} publishes its value on {latest:%Y-%m-%d at %H:%M} UTC.",
            cure="Wait until then.",
            code="commit.too_early",
        )
    drawn = {draw.phase: {"value": value, "round": None, "signature": None} for draw in named}
    reason = f"the value of {named[0].source} was mixed in"
    with session.store.write() as tx:
        secret = read_secret(session.configuration)
        return commitments.mix_in(tx, secret, drawn, reason=reason, now=session.now)

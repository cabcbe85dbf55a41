"""Renaming: at a team's request, a pseudonym replaces its name in everything that the challenge publishes from now on."""

from __future__ import annotations

import re
from dataclasses import replace

from leaderboard.ranking import from_json, to_json
from leaderboard.rendering import display_name
from scoring.errors import OrganizerError
from worker.fairness import events
from worker.fairness.membership import add, pseudonyms
from worker.fairness.register import note, register
from worker.organizer.reveal import reveal_again
from worker.organizer.session import OrganizerSession
from worker.state import SubmissionRow, Transaction


def is_done(session: OrganizerSession, team: str, pseudonym: str) -> bool:
    """Return whether a team has this pseudonym already.

    Raises:
        OrganizerError: If it is not exactly one team.
    """
    with session.store.read() as tx:
        return pseudonyms(tx).get(_rows(tx, team)[0].team_key or 0) == pseudonym


def rename(session: OrganizerSession, team: str, pseudonym: str, reason: str) -> int:
    """Replace a team's name with a pseudonym, also in stored boards and reveals; return EvalAI's number of the team.

    Args:
        session: The challenge.
        team: Its name, or EvalAI's number of it.
        pseudonym: Its name from now on.
        reason: Why, in public.

    Raises:
        OrganizerError: If it is not exactly one team of participants, its name cannot be removed, or the pseudonym is not allowed.
    """
    with session.store.write() as tx:
        rows = _rows(tx, team)
        key = rows[0].team_key or 0
        names = _names(tx, key) | {row.team for row in rows if row.team}
        _check(tx, rows, names, pseudonym, reason)
        add(tx, key, pseudonym)
        _rewrite_boards(tx, key, pseudonym)
        text = f"the name of team {key} was removed, and it is called {pseudonym} ({reason})"
        note(tx, events.RENAMED, text, now=session.clock(), team_key=key, pseudonym=pseudonym)
        register(tx, session.clock())
        reveal_again(session, tx)
        tx.request_publish()
    return key


def _rows(tx: Transaction, team: str) -> list[SubmissionRow]:
    """Return the submissions of the team that an organizer named."""
    rows = [row for row in tx.submissions() if row.team_key is not None]
    keys = sorted({row.team_key or 0 for row in rows if team in (row.team, str(row.team_key))})
    if len(keys) != 1:
        raise OrganizerError(
            f"Several teams have this name: {', '.join(map(str, keys))}."
            if keys
            else f"No submission comes from a team called {team!r}.",
            cure="Write the team's name as EvalAI shows it, or its number there.",
            code="rename.team",
        )
    return [row for row in rows if row.team_key == keys[0]]


def _names(tx: Transaction, key: int) -> set[str]:
    """Return all names under which a team was registered."""
    registered = (event.fields for event in tx.events())
    return {fields["team"] for fields in registered if fields.get("team_key") == key and fields.get("team")}


def _check(tx: Transaction, rows: list[SubmissionRow], names: set[str], pseudonym: str, reason: str) -> None:
    """Check that a name can be removed, and that the pseudonym is allowed."""
    key = rows[0].team_key or 0
    if key in pseudonyms(tx):
        raise OrganizerError(
            f"Team {key} already has a pseudonym: {pseudonyms(tx)[key]}.",
            cure="Do nothing. The team's name was already replaced.",
            code="rename.again",
        )
    if any(row.own or row.baseline for row in rows):
        raise _baselines(key)
    rules = (event.fields["rules"] for event in tx.events() if event.kind == events.PHASE)
    if any(not names.isdisjoint(rule["hidden_teams"]) for rule in rules):
        raise OrganizerError(
            "The registered rules contain this team's name, because it was in `leaderboard.hidden_teams` at some time.",
            cure="Rules are revealed unchanged, so the name cannot be removed. Tell the team.",
            code="rename.in_rules",
        )
    words = "|".join(re.escape(form) for name in names for form in {name, display_name(name)})
    if re.search(rf"(?<!\w)(?:{words})(?!\w)", f"{pseudonym}\n{reason}"):
        raise OrganizerError(
            "The pseudonym or the reason contains the team's name.",
            cure="Write both without the name, because both are published.",
            code="rename.named",
        )
    others = {display_name(row.team) for row in tx.submissions() if row.team and row.team_key != key}
    changed_form = display_name(pseudonym)
    if pseudonym != changed_form or pseudonym in others | set(pseudonyms(tx).values()):
        raise OrganizerError(
            f"Another team is already called {pseudonym!r}."
            if pseudonym == changed_form
            else f"{pseudonym!r} cannot be shown unchanged: it would appear as {changed_form!r}.",
            cure=f"Choose another pseudonym, for example “Team {key}”.",
            code="rename.pseudonym",
        )


def _baselines(key: int) -> OrganizerError:
    return OrganizerError(
        f"Team {key} belongs to the organizers, or has or had a baseline. Baselines are identified by their names.",
        cure="Rename only teams of participants without baselines.",
        code="rename.own",
    )


def _rewrite_boards(tx: Transaction, key: int, pseudonym: str) -> None:
    """Write the pseudonym into all stored boards, from which everything published is made."""
    for phase in tx.phases():
        for text in tx.boards(phase):
            board = from_json(text)
            own = [row for row in board.standings if row.team_key == key]
            if any(row.method for row in own):
                raise _baselines(key)
            if own:
                rows = (
                    replace(row, team=pseudonym) if row.team_key == key else row for row in board.standings
                )
                tx.save_board(phase, board.sequence, to_json(replace(board, standings=tuple(rows))))

"""What a participant holds in their hands: a signed receipt, against the log, the register and the final board."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from leaderboard import Board, Standing
from worker.challenge.records import PhaseRules
from worker.fairness import commitments, events, membership, receipts
from worker.fairness.signing import is_signed
from worker.fairness.verify.decisions import without_hiding
from worker.fairness.verify.places import place
from worker.fairness.verify.public import PublicRepository
from worker.fairness.verify.registered import CADENCES
from worker.fairness.verify.replay import Register
from worker.fairness.verify.revealed import (
    RevealedPhase,
    phases,
    public_commitments,
    read_phase,
    revealed_phases,
)
from worker.fairness.verify.verdict import Verdict, believed, consistent, contradicted, not_revealed


def claims(
    repository: PublicRepository,
    receipt: Mapping[str, Any],
    told: float | None,
    *,
    check: str,
    now: datetime,
) -> Iterator[Verdict]:
    """Check a receipt of format 2.

    Args:
        repository: The public files.
        receipt: As EvalAI showed it.
        told: Mean Q beside it.
        check: What the verdicts are called.
        now: The time, by which a batch may be overdue.

    Raises:
        LookupError, ValueError, TypeError, AttributeError: If what it is held against cannot be read.
    """
    if not receipts.is_genuine(receipt) or (told is not None and told != receipt["q_mean"]):
        yield believed(check, "This receipt is not as it was signed: it proves nothing.")
        return
    entries = public_commitments(repository)
    lines = list(repository.lines(receipts.PATH))
    waits = len(lines) <= int(receipt["batch"]) and not _is_overdue(
        lines, begun_at=_made_at(entries[0]), now=now
    )
    named = receipt["challenge"] in {entry.get("commitment") for entry in entries}
    if str(receipt["key"]) not in commitments.keys_in(entries):
        yield (
            not_revealed(
                check,
                "Neither the key that signed your receipt nor the commitment that it names is public: if the challenge has a new key, it"
                " comes before the next batch.",
            )
            if waits and not named
            else contradicted(check, "The key that signed your receipt is not one of this challenge.")
        )
        return
    if _is_of_a_replaced_key(receipt, entries, lines):
        yield believed(
            check,
            "Your receipt names what came after the key that signed it had been replaced: somebody else has made it. It proves nothing.",
        )
        return
    yield consistent(check, "Your receipt carries the challenge's signature.")
    if not named:
        yield (
            not_revealed(
                check, "The commitment in your receipt is not public yet; it comes before the next batch."
            )
            if waits
            else contradicted(
                check, "The commitment in your receipt is not in the repository: history was rewritten."
            )
        )
    revealed = [read_phase(repository, name) for name in revealed_phases(repository)]
    registered = [phase for phase in revealed if phase.is_registered]
    lost = frozenset(line for phase in registered for line in phase.register.lost_lines)
    yield _in_the_log(receipt, lines, lost, check, waits=waits)
    all_revealed = set(phases(repository)) <= {phase.name for phase in revealed}
    yield from _on_the_board(receipt, registered, check, all_revealed=all_revealed)


def _is_of_a_replaced_key(
    receipt: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], chain: Sequence[Mapping[str, Any]]
) -> bool:
    """Tell whether a receipt names a commitment or a line that a later key has signed: only somebody else can have made it.

    One that names nothing so young stays evidence, whatever is said of its key. Otherwise a new key would be a way to get rid of receipts.
    """
    keys = commitments.keys_in(entries)
    later = keys[keys.index(str(receipt["key"])) + 1 :]
    named = next((entry for entry in entries if entry.get("commitment") == receipt["challenge"]), {})
    if named.get("key") in later:
        return True
    place = int(receipt["batch"])
    line = chain[place - 1] if 0 < place <= len(chain) else {}
    return any(is_signed(key, receipts.BATCH, line.get("head"), line.get("signature")) for key in later)


def _in_the_log(
    receipt: Mapping[str, Any],
    chain: Sequence[Mapping[str, Any]],
    lost: Collection[int],
    check: str,
    *,
    waits: bool,
) -> Verdict:
    """Look for the entry of a receipt in the log.

    Args:
        receipt: The receipt.
        chain: The log.
        lost: Its lines that were lost with a restored state.
        check: What the verdict is called.
        waits: Whether the line that is due is not published yet, and not overdue either.
    """
    place = int(receipt["batch"])
    if waits and place > len(chain):  # the worker answers before it has pushed what it has closed
        return not_revealed(
            check, f"Your receipt names line {place} of the public log, which is not public yet."
        )
    reached = str(chain[place - 1]["head"]) if 0 < place <= len(chain) else receipts.GENESIS
    if place > len(chain) or reached != receipt["chain"]:
        return contradicted(check, "The public log was changed after you were answered.")
    found = [line for line in chain if receipt["commitment"] in receipts.entries_of(line)]
    if found and (found[0]["sequence"] == place + 1 or place + 1 in lost):
        return consistent(
            check, f"Your score was committed to in line {found[0]['sequence']} of the public log."
        )
    if len(chain) > place:
        return contradicted(
            check, f"Your score is not in line {place + 1} of the public log, where it was due."
        )
    if waits:
        return not_revealed(check, "Your score is not in the public log yet; it comes with the next batch.")
    return contradicted(
        check, "Your score is not in the public log, and the batch that was to bring it is overdue."
    )


def _is_overdue(chain: Sequence[Mapping[str, Any]], *, begun_at: datetime, now: datetime) -> bool:
    """Tell whether a line should long have followed the last one; the first follows the beginning of the challenge."""
    last = chain[-1] if chain else {}
    since = _made_at(last) if last else begun_at
    return now > since + CADENCES * timedelta(seconds=receipts.cadence(last))


def _made_at(line: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(line["made_at"])


def _on_the_board(
    receipt: Mapping[str, Any], registered: Sequence[RevealedPhase], check: str, *, all_revealed: bool
) -> Iterator[Verdict]:
    for phase in registered:
        for opening, (commitment, fields) in zip(phase.each_opening(), phase.events, strict=True):
            if commitment == receipt["commitment"]:
                registers = {one.name: one.register for one in registered}
                yield from _claim(phase, opening, fields, receipt, check, registers=registers)
                return
    if all_revealed:
        yield contradicted(check, "Every phase is revealed, but your score is in none of them.")
    else:
        yield not_revealed(check, "Your score belongs to a phase that is not revealed yet.")


def _claim(
    phase: RevealedPhase,
    opening: Mapping[str, Any],
    fields: events.Fields,
    receipt: Mapping[str, Any],
    check: str,
    *,
    registers: Mapping[str, Register],
) -> Iterator[Verdict]:
    if "submission" not in fields:
        nonce = bytes.fromhex(receipt["nonce"])
        public = events.field_hash("public_at_first", True, events.salt(nonce, "public_at_first"))
        if opening["hidden"].get("public_at_first") == public:
            yield phase.contradicted(
                check,
                "your submission was public when it was scored, and is revealed as a private one",
            )
        else:
            yield phase.consistent(
                check, "your submission is private, and revealed as such: it counts on no board"
            )
        return
    if (fields["submission"], fields["q_mean"]) != (receipt["submission"], receipt["q_mean"]):
        yield phase.contradicted(check, "the score that was revealed for you is not that of your receipt")
        return
    yield _place(phase, fields, check, registers)


def _place(
    phase: RevealedPhase, score: events.Fields, check: str, registers: Mapping[str, Register]
) -> Verdict:
    """Say where a scored submission stands on the final board, or which decision has taken it off."""
    register, pk = phase.register, int(score["submission"])
    facts = register.submissions[score["entry"]].events[-1]
    team = str(facts["team"] or score["team"])
    entry = {"submission": pk, "team": team}
    rows = phase.boards[-1].standings if phase.boards else ()
    if any(row.submission == pk for row in rows):
        return place(phase, entry, check)
    who, rules = f"submission {pk} of team {team} is not on the final board", register.rules(register.end)
    if rules is None:
        return phase.contradicted(check, f"{who}: no rules are registered")
    reason = membership.kept_off(facts, rules)
    if reason == membership.PRIVATE:
        return phase.consistent(check, f"submission {pk} of team {team} is private: it counts on no board")
    if reason is not None:
        since = _since(register, score["entry"], rules)
        return phase.contradicted(check, f"{who}: {reason}, registered on {since}")
    if team in rules.hidden_teams:
        would_be = _standing(without_hiding(phase, registers), pk)
        effect = (
            ""
            if would_be is None
            else f"; without that rule it would be at rank {would_be.rank} with mean Q {would_be.q_mean:.3f}"
        )
        since = _hidden_since(register, team)
        return phase.contradicted(check, f"{who}: the rules hide this team since {since}{effect}")
    return place(phase, entry, check)


def _standing(board: Board | None, submission: int) -> Standing | None:
    rows = () if board is None else board.standings
    return next((row for row in rows if row.submission == submission), None)


def _since(register: Register, entry: str, rules: PhaseRules) -> str:
    """Return when the newest facts about an entry that keep it off the board were first registered."""
    moment = ""
    for facts in reversed(register.submissions[entry].events):
        if membership.kept_off(facts, rules) is None:
            break
        moment = facts["at"]
    return moment[:16]


def _hidden_since(register: Register, team: str) -> str:
    moment, reason = "", ""
    for fields in reversed(register.decisions.events):
        if team not in fields["rules"]["hidden_teams"]:
            break
        moment, reason = fields["at"], fields["reason"]
    return f"{moment[:16]} ({reason})" if reason else moment[:16]

"""From stored boards to a pushed commit, and what others have done to the branch since the last push."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from leaderboard import Site
from leaderboard.git import README, Files, Published, Publisher, PublisherSettings
from leaderboard.rendering import HISTORY, render, unrecorded
from scoring.documents import UNREADABLE
from scoring.errors import NeucoError, OrganizerError
from scoring.printable import count_of
from worker.challenge.configuration import Configuration
from worker.challenge.context import Context
from worker.fairness import commitments, published, receipts
from worker.fairness.beacon import PUBLIC_SINCE
from worker.fairness.disclosure import FILES_PATH, reveal_path
from worker.fairness.register import note
from worker.publishing.boards import Cycle, check_boards
from worker.runtime.acts import Act, Result
from worker.state import ALERT_AFTER_TRIES, Completed, State, Transaction

OVERWRITTEN = "leaderboard.overwritten"
REWRITTEN = "leaderboard.rewritten"
_LAST_COMMIT = "last_commit"
REPLACES_FOREIGN = "replaces_foreign"  # a fact: where a first push may replace files of others


@dataclass(kw_only=True, eq=False, repr=False)
class PushAct(Act[Publisher, Result]):
    """An act on the repository, which ends under the configuration under which it began: another one may name another repository.

    Attributes:
        context: The worker's surroundings.
        tries: How many of its kind failed in a row before this one.
        configuration: As it was when the act was made.
    """

    time_out_s = 130.0  # in total; a single git process has less
    context: Context
    tries: int
    configuration: Configuration = field(init=False)

    def __post_init__(self) -> None:
        self.configuration = self.context.configuration

    def needs_organizer(self, error: NeucoError) -> bool:
        """Return whether the organizer is told of a failure: the error is theirs, or failures go on."""
        return isinstance(error, OrganizerError) or self.tries + 1 >= ALERT_AFTER_TRIES

    def give_up(self, resource: Publisher) -> None:
        """Kill git and all its child processes; this publisher accepts no more work."""
        resource.stop()


def not_shown(branch: str, shown: str | None) -> OrganizerError:
    """Return the error that visitors of the repository do not see the branch with the board, but another one, or none."""
    return OrganizerError(
        f"The board is pushed to the branch {branch}, but the repository's default branch is {shown or 'one that does not exist'}."
        " Its page and a clone of it do not show the board.",
        hint=f"Make {branch} the default branch in the repository's settings (on a server of your own: git symbolic-ref HEAD"
        f" refs/heads/{branch}), or correct leaderboard.branch.",
        code="leaderboard.not_shown",
    )


def site_files(cycle: Cycle, key: str, check_lead: Callable[[], None], existing: Files, own: Files) -> Files:
    """Return the files that the branch should have: the site, rendered on its tip.

    Args:
        cycle: What is published.
        key: The challenge's key.
        check_lead: Checks that this process leads, after the tip was read: once another leader has pushed, ours is refused.
        existing: The files in the branch.
        own: The files as the challenge published them last.

    Raises:
        Deposed: As ``check_lead``.
        StateIsBehind: If the challenge has published something that the state lacks.
    """
    check_lead()
    attestations = cycle.attestations
    published.check_state((existing, own), attestations, key=key, restored=False)
    check_boards(
        own.get(HISTORY), {site.codename: site.history for site in cycle.site.phases}, cycle.lost_boards
    )
    return {**render(cycle.site, readme=existing.get(README), history=own.get(HISTORY)), **attestations}


def message(site: Site, before: Files, after: Files) -> str:
    """Describe what a commit changes, decisions of the organizers first.

    It follows from the files before and after, so it describes its own commit, even if an earlier push was lost or somebody else has
    pushed. It uses only numbers and the organizer's phase codenames: no names, no scores, and no text of participants.

    Args:
        site: What is published.
        before: The files as they are in the branch.
        after: The files as they will be.
    """
    decisions, counts = [], []
    new_boards = unrecorded(before.get(HISTORY), site)
    for phase in site.phases:
        name, page = phase.codename, f"leaderboard/{phase.codename}.json"
        if reveal_path(name) in after.keys() - before.keys():
            decisions.append(f"Reveal phase {name}")
        elif before.get(reveal_path(name)) != after.get(reveal_path(name)):
            counts.append(f"Open what is new in phase {name}")
        if (closed := _is_closed(after.get(page))) != _is_closed(before.get(page)):
            decisions.append(f"{'Close' if closed else 'Open'} the board of phase {name}")
        triggers = [board.triggers for board in new_boards if board.phase == name]
        if triggers:
            counted = set().union(*triggers)
            facts = f"{count_of(len(counted), 'submission')} counted" if counted else "the entries changed"
            counts.append(f"{name}: {facts}")
    others = {
        commitments.PATH: "Publish a commitment",
        receipts.PATH: "Publish receipts",
        FILES_PATH: "Name the published files",
    }
    counts += [words for path, words in others.items() if before.get(path) != after.get(path)]
    subject, *more = [*decisions, *counts] or ["Update the page"]
    return "\n".join([subject, *([""] if more else []), *more, ""])


def _is_closed(document: bytes | None) -> bool:
    """Return whether a phase's file says that its board is closed; a file that is not ours says nothing."""
    try:
        return json.loads(document or b"{}").get("closed_at") is not None
    except UNREADABLE:
        return False


def record_push(
    tx: Transaction, configuration: Configuration, cycle: Cycle, pushed: Published, *, now: datetime
) -> None:
    """Record that the repository shows a cycle."""
    _record_commit(tx, configuration, pushed, now=now)
    for row in cycle.posted:
        tx.move(row.pk, State.POSTED, State.PUBLISHED)
    tx.set_fact(published.BEHIND, None)
    tx.set_fact("pushed_at", now.isoformat())
    since, public = json.loads(tx.fact(PUBLIC_SINCE) or "[]"), cycle.attestations.get(commitments.PATH, b"[]")
    tx.set_fact(PUBLIC_SINCE, json.dumps(since + [now.isoformat()] * (len(json.loads(public)) - len(since))))
    tx.complete_publish(Completed(generation=cycle.generation, commit=pushed.commit, changed=pushed.changed))
    tx.resolve_alert("leaderboard.push")
    branch, was_there = configuration.leaderboard.branch, pushed.own is not None and not pushed.rewritten
    if pushed.shown == branch or (pushed.shown is None and not was_there):
        tx.resolve_alert("leaderboard.shown")
    else:
        tx.report("leaderboard.shown", not_shown(branch, pushed.shown), now=now)


def last_commit(tx: Transaction, configuration: Configuration) -> str | None:
    """Return the commit that was last pushed to the configured branch; None if none was, or another branch is configured now."""
    last = tx.document(_LAST_COMMIT)
    return last.get("commit") if last.get("place") == place(configuration) else None


def _record_commit(
    tx: Transaction, configuration: Configuration, published: Published, *, now: datetime
) -> None:
    """Record the pushed commit, and report what others had done to the branch."""
    if published.rewritten:
        last = last_commit(tx, configuration) or ""
        event = f"The history of the leaderboard's branch was rewritten: commit {last[:10]}, which was pushed last, was no longer in it."
        tx.raise_alert(
            REWRITTEN,
            REWRITTEN,
            f"{event} The worker pushed everything again. Find out who forced a push or removed the branch, and protect it.",
            now=now,
            happened=True,
        )
        note(tx, "rewritten", event, now=now)  # anyone with an older clone can see it anyway
    if published.others:
        tx.raise_alert(
            OVERWRITTEN,
            OVERWRITTEN,
            f"Someone else changed the worker's files in the leaderboard's repository ({published.others}). The worker has restored"
            " them. Find out who it was, and allow only the worker's account to push to the branch.",
            now=now,
            happened=True,
        )
    if published.changed or published.rewritten:
        tx.set_fact(_LAST_COMMIT, json.dumps({"place": place(configuration), "commit": published.commit}))


def place(configuration: Configuration) -> str:
    """Return a hash of where the configuration says to push, which a record of what was pushed there names."""
    address = f"{configuration.repository_url}\0{configuration.leaderboard.branch}"
    return hashlib.sha256(address.encode()).hexdigest()


def publisher_settings(configuration: Configuration) -> PublisherSettings:
    """Return where to push, and as whom.

    Raises:
        OrganizerError: If a secret is missing.
    """
    leaderboard = configuration.leaderboard
    token = configuration.secret(leaderboard.token, "leaderboard.token") if leaderboard.token else None
    return PublisherSettings(
        repository=configuration.repository_url,
        branch=leaderboard.branch,
        state_dir=configuration.state_dir / "leaderboard",
        token=token.get_secret_value() if token is not None else None,
        ssh_key=configuration.secret_path(leaderboard.ssh_key, "leaderboard.ssh_key")
        if leaderboard.ssh_key
        else None,
        known_hosts=(
            configuration.secret_path(leaderboard.known_hosts, "leaderboard.known_hosts")
            if leaderboard.known_hosts
            else None
        ),
    )

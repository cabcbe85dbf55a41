"""Checks of the leaderboard's repository and of the alerts; nothing is pushed and nothing is posted."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

from leaderboard.rendering import BEGIN, END
from scoring.loopback import is_loopback
from worker.fairness import commitments
from worker.organizer.doctor.check import Checks, Finding, fail, note, warn
from worker.organizer.doctor.examination import Examination
from worker.publishing.last_push import last_commit
from worker.state import LOG_UNSEEN

CONNECT_S = 5.0
README, HISTORY = "README.md", "leaderboard/history.jsonl"
CHECKS = Checks()


@CHECKS.add("board.git", "git is installed and new enough")
def _git(exam: Examination) -> Iterator[Finding]:
    yield note("git is version {}.{}.".format(*exam.git_version))


@CHECKS.add("board.address", "The leaderboard repository's address and credentials can be used")
def _address(exam: Examination) -> Iterator[Finding]:
    yield note(f"Branch {exam.configuration.leaderboard.branch} of {_shown(exam)}.")
    exam.publisher  # noqa: B018 - this reads the credentials, and raises an error if they are wrong


@CHECKS.add("board.host_keys", "The host keys of an ssh server are pinned")
def _host_keys(exam: Examination) -> Iterator[Finding]:
    over_ssh = re.match(r"ssh://|[\w.-]+@[\w.-]+:", exam.repository)
    if over_ssh and exam.configuration.leaderboard.known_hosts is None:
        yield warn(
            "leaderboard.known_hosts is not set: pushes rely on the known_hosts file of the user that runs the worker.",
            "Write the server's published host keys into a file and name it in leaderboard.known_hosts.",
        )


@CHECKS.add(
    "board.push",
    "The repository would take a push (tried without sending anything)",
    remote=True,
)
def _push(exam: Examination) -> Iterator[Finding]:
    exam.published  # noqa: B018 - this raises an error
    yield from ()


@CHECKS.add("board.readme", "The repository's README has room for the board", remote=True)
def _readme(exam: Examination) -> Iterator[Finding]:
    text = exam.published.get(README)
    if text is None:
        yield note("There is no README.md yet. The first push creates it.")
        return
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines()]
    begins, ends = lines.count(BEGIN), lines.count(END)
    if (begins, ends) == (0, 0):
        yield note("README.md has no markers, so the board will be appended to it.")
    elif (begins, ends) != (1, 1) or lines.index(BEGIN) > lines.index(END):
        yield warn(
            f"README.md has {begins} opening and {ends} closing markers instead of one pair. The board may be written to the"
            " wrong place.",
            f"Keep one pair, each marker on its own line: {BEGIN} and {END}",
        )


@CHECKS.add("board.history", "The repository has no earlier challenge", remote=True)
def _history(exam: Examination) -> Iterator[Finding]:
    if HISTORY not in exam.published:
        return
    with exam.state() as tx:
        has_boards = tx is not None and any(tx.last_board(name) for name in exam.configuration.phases)
    if not has_boards:
        yield warn(
            f"{HISTORY} is in the repository already, but this state has no boards. The board would continue another challenge's history.",
            "Use another branch or an empty repository, or restore the state that the history belongs to.",
        )


@CHECKS.add(
    "board.commitments",
    "The repository promises nothing that this state does not know",
    remote=True,
)
def _commitments(exam: Examination) -> Iterator[Finding]:
    public = exam.published.get(commitments.PATH)
    if public is not None:
        with exam.state() as tx:
            ours = commitments.commitment_file(tx) if tx else None
            settled = tx is not None and last_commit(tx, exam.configuration) is not None
            restored = tx is not None and tx.fact(LOG_UNSEEN) is not None
            commitments.check_growth(public, ours, settled=settled and not restored)
    yield from ()


@CHECKS.add("alerts.webhook", "Alerts are sent to a person")
def _webhook(exam: Examination) -> Iterator[Finding]:
    if exam.configuration.alerts.webhook is None:
        yield warn(
            "alerts.webhook is not set, so alerts appear only in the log and in `status`.",
            "Create an incoming webhook (Slack, Mattermost), write its address into webhook.token,"
            " and set alerts.webhook: file:./webhook.token",
        )
        return
    address = exam.webhook
    if address.scheme != "https" and not is_loopback(address.hostname):
        yield fail(
            "The address of the alert webhook does not begin with https://.", "Copy the whole address."
        )


@CHECKS.add(
    "alerts.reachable",
    "The alert webhook's server takes connections (nothing is posted)",
    remote=True,
)
def _reachable(exam: Examination) -> Iterator[Finding]:
    address = exam.webhook
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.hostname or "", port), timeout=CONNECT_S).close()
    except OSError as error:
        # The address is a secret; its host is not.
        yield fail(
            f"{address.hostname}, the host of the alert webhook, does not accept a connection ({type(error).__name__}).",
            "Check the address, and whether a firewall blocks connections to it.",
        )


def _shown(exam: Examination) -> str:
    """Return the repository's address without a password."""
    return re.sub(r"(?<=://)[^/@]*@", "", exam.configuration.repository_url)

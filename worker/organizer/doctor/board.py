"""Checks of the leaderboard's repository, alerts, public random value and proxies; nothing is pushed and nothing is posted."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from leaderboard.git import ForeignFiles, without_credentials
from leaderboard.rendering import HISTORY
from scoring.documents import is_loopback
from scoring.errors import OrganizerError
from scoring.printable import duration_of
from worker.challenge.configuration import Configuration
from worker.challenge.signing import challenge_key, read_signer
from worker.fairness import commitments, published
from worker.fairness.beacon import ask
from worker.fairness.recording import CHOOSE_DRAND, WITHOUT, drand_chain
from worker.organizer.doctor.check import Finding, fail, note, skipped, warn
from worker.organizer.doctor.subjects import CheckedChallenge, CheckedRepository, check_git
from worker.publishing.boards import attestation_files
from worker.publishing.pushing import REPLACES_FOREIGN, last_commit, not_shown, place
from worker.runtime.http import HttpSession, proxy_of
from worker.state import LOG_UNSEEN

CONNECT_S = 5.0


def address(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Read address and credentials."""
    check_git()
    over_ssh = re.match(r"ssh://|[\w.-]+@[\w.-]+:", challenge.repository)
    challenge.publisher()  # raises an error if they are wrong
    if over_ssh and challenge.configuration.leaderboard.known_hosts is None:
        yield warn(
            "leaderboard.known_hosts is not set: pushes rely on the known_hosts file of the user that runs the worker.",
            "Write the server's published host keys into a file and name it in leaderboard.known_hosts.",
        )


def examined(repository: CheckedRepository) -> Iterator[Finding]:
    """Say which branch was read, and what a dry run cannot find; compare it with the one that visitors and clones see."""
    configuration = repository.configuration
    with repository.challenge.state() as tx:
        commit = tx and last_commit(tx, configuration)
    pushed = (
        f"the worker's last push, commit {commit[:10]}, succeeded"
        if commit
        else "nothing has been pushed yet, and a protected branch or a hook shows only at the first real push"
        " (`neuco-worker board publish`)"
    )
    shown = without_credentials(configuration.repository_url)
    yield note(
        f"Branch {configuration.leaderboard.branch} of {shown}: a dry run of a push succeeded; {pushed}."
    )
    branch, default = configuration.leaderboard.branch, repository.default_branch
    if default == branch and Path(configuration.repository_url, ".git").is_dir():
        yield warn(
            f"The repository is not bare, and {branch} is checked out in it. By default, git refuses a push there.",
            "Use a bare one, which `git clone --bare` makes of it.",
        )
    if repository.files and default != branch:
        error = not_shown(branch, default)
        yield warn(error.sentence, error.hint)


def history(repository: CheckedRepository) -> Iterator[Finding]:
    """Look for boards and commitments that this state does not know, and for another challenge's."""
    challenge, public = repository.challenge, repository.files.get(commitments.PATH)
    with challenge.state() as tx:
        has_boards = tx is not None and any(tx.newest_board(name) for name in challenge.configuration.phases)
        ours = attestation_files(tx) if tx else {}
        restored = tx is not None and tx.fact(LOG_UNSEEN) is not None
    if repository.files.get(HISTORY, b"").strip() and not has_boards:
        yield warn(
            f"{HISTORY} is in the repository already, but this state has no boards. The board would continue another challenge's history."
        )
    key = read_signer(challenge.configuration).public
    if not restored:
        published.check_state([repository.files], ours, key=key, restored=False)
    if challenge_key(public) not in (None, key):
        yield warn(
            "The commitments in the repository are signed with another key, so `verify` finds two keys that claim it.",
            "If another challenge used the repository, use an empty one.",
        )


def foreign(repository: CheckedRepository) -> Iterator[Finding]:
    """Name the files that a first push would replace or remove."""
    configuration = repository.configuration
    with repository.challenge.state() as tx:
        known = tx and (last_commit(tx, configuration) or tx.fact(REPLACES_FOREIGN) == place(configuration))
    if not known and repository.in_our_places:
        error = ForeignFiles(repository.in_our_places)
        yield fail(error.sentence, error.hint)


def _connect(address: SplitResult) -> None:
    place = (address.hostname or "", address.port or (443 if address.scheme == "https" else 80))
    socket.create_connection(place, timeout=CONNECT_S).close()


def _webhook(configuration: Configuration, reference: str) -> SplitResult:
    """Return the address of the alerts.

    Raises:
        OrganizerError: If it is not an encrypted one with a server.
    """
    with suppress(ValueError):
        address = urlsplit(configuration.secret(reference, "alerts.webhook").get_secret_value())
        if address.hostname and (address.scheme == "https" or is_loopback(address.hostname)):
            return address
    raise OrganizerError(
        "The address of the alert webhook does not begin with https:// and a server.",
        hint="Copy the whole address.",
        code="secret.form",
    )


def webhook(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Check the address of the alerts, and connect to its server."""
    reference = challenge.configuration.alerts.webhook
    if reference is None:
        yield warn("alerts.webhook is not set, so alerts appear only in the log and in `status`.")
        return
    address = _webhook(challenge.configuration, reference)
    if proxy_of(address.geturl()):
        yield skipped("Alerts go through a proxy. Only `doctor --alert` finds out whether they arrive.")
        return
    try:
        _connect(address)
    except (OSError, ValueError) as error:
        # The address is a secret; its host is not.
        yield fail(
            f"{address.hostname}, the host of the alert webhook, does not accept a connection ({type(error).__name__}).",
            "Check the address, and whether a firewall blocks connections to it.",
        )


def beacon(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Say who could choose the splits, and for what the first score will wait."""
    fairness = challenge.configuration.fairness
    if fairness.beacon == "none":
        yield warn(WITHOUT, CHOOSE_DRAND)
        return
    yield note(
        f"In a new phase, scoring begins at least {duration_of(fairness.beacon_notice)} after the commitment to the phase."
        " Submissions are downloaded meanwhile.",
    )


def drand(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Ask the servers of drand."""
    fairness = challenge.configuration.fairness
    if fairness.beacon == "none":
        yield skipped("fairness.beacon is none.")
        return
    chain = drand_chain(challenge.configuration)
    with HttpSession() as session:
        answering = [server for server in fairness.drand_servers if ask(session, server, chain, "latest")]
    if not answering:
        yield fail(f"No server of {chain.name} answers, so no phase could begin.")


def proxies(challenge: CheckedChallenge) -> Iterator[Finding]:
    """Say what goes through which proxy, and connect to each."""
    configuration = challenge.configuration
    addresses = {
        "EvalAI": [configuration.evalai.server],
        "files of submissions": [f"https://{host}" for host in configuration.evalai.media_hosts],
        "drand": [] if configuration.fairness.beacon == "none" else configuration.fairness.drand_servers,
        "pushes": re.findall(r"^https?://.+", configuration.repository_url),
    }
    if (reference := configuration.alerts.webhook) is not None:
        addresses["alerts"] = [_webhook(configuration, reference).geturl()]
    uses: dict[str, list[str]] = {}
    for what, asked in addresses.items():
        for proxy in dict.fromkeys(map(proxy_of, asked)):
            uses.setdefault(proxy, []).append(what)
    direct = uses.pop("", [])
    for proxy, through in uses.items():
        yield note(f"Through the proxy {proxy}: {', '.join(through)}.")
        if proxy.startswith("socks") and find_spec("socks") is None:  # git can, requests cannot
            yield fail(
                f"The proxy {proxy} speaks SOCKS, for which the package PySocks is missing.",
                "Install it: pip install pysocks. Or name a proxy that speaks HTTP.",
            )
            continue
        try:
            _connect(urlsplit(proxy if "://" in proxy else f"http://{proxy}"))
        except (OSError, ValueError) as error:
            yield fail(f"The proxy {proxy} does not accept a connection ({type(error).__name__}).")
    if uses and direct:
        yield note(f"Without a proxy: {', '.join(direct)}.")

"""Turn git's messages on stderr into our errors, which say who can fix the fault, and how."""

from __future__ import annotations

import re

from leaderboard.git.remote import Remote
from scoring.errors import InfrastructureError, OrganizerError

_HOST_KEY = r"host key verification failed|no .* host key is known|remote host identification has changed"
_REFUSED = (
    r"authentication failed|could not read (username|password)|terminal prompts disabled|permission denied|invalid credentials|"
    r"returned error: 40[13]|http basic: access denied|permission to .* denied|write access to repository not granted"
)
_NOT_FOUND = (
    r"repository .*not found|not found: did you run|does not appear to be a git repository|returned error: 404|no such file or directory|"
    r"project you were looking for could not be found|repository .* does not exist|not a git repository"
)
# The first pattern that matches decides, so they go from the most specific to the vaguest.
_REFUSALS = (
    (
        _HOST_KEY,
        "leaderboard.host_key",
        "The host key of the leaderboard's server is unknown, or differs from the known one.",
        "Compare the server's published key with the file in leaderboard.known_hosts. If that is not set, write the published key into a"
        " file, and name the file there.",
    ),
    (
        _REFUSED,
        "leaderboard.auth_refused",
        "The leaderboard's repository refused the credentials.",
        "Check that leaderboard.token or leaderboard.ssh_key is valid, has not expired, and is allowed to write to the repository.",
    ),
    (
        _NOT_FOUND,
        "leaderboard.repository_not_found",
        "The leaderboard's repository was not found.",
        "Check leaderboard.repository, and whether the credentials may read it. Servers hide private repositories from other accounts.",
    ),
)
_PUSH_REFUSED = re.compile(
    r"hook declined|protected branch|GH00\d|GH013|denyCurrentBranch|branch is currently checked out|prohibited|not allowed",
    re.I,
)
_MOVED = re.compile(
    r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to update ref|incorrect old value|reference already exists",
    re.I,
)
_DAMAGED = re.compile(
    r"\.lock'|corrupt|bad object|loose object|missing blob|missing tree|unable to read|index-pack|shallow"
)


class TipMoved(Exception):
    """The branch moved between reading and pushing; the caller must build on the new tip."""


class CloneDamaged(Exception):
    """The local clone cannot be read or written; the caller must make a new one."""


def sort_fault(remote: Remote, verb: str, message: str) -> Exception:
    """Return the error for git's message when ``git <verb>`` failed with a remote."""
    if verb == "push":
        if _PUSH_REFUSED.search(message):
            return OrganizerError(
                "The leaderboard's repository refused the push: a rule or hook protects the branch.",
                cure="Allow the account of the token or key to push to leaderboard.branch, or set another branch.",
                code="leaderboard.push_refused",
            )
        if _MOVED.search(message):
            return TipMoved(message)
    if reason := remote.fault():
        return reason
    for pattern, code, sentence, cure in _REFUSALS:
        if re.search(pattern, message, re.IGNORECASE):
            return OrganizerError(sentence, cure=cure, code=code)
    if _DAMAGED.search(message):
        return CloneDamaged(message)
    return InfrastructureError(
        f"git {verb} failed at the leaderboard's repository, probably because the server cannot be reached.",
        cure="The worker tries again. If this continues, check the network and the server's status page.",
        code="leaderboard.unreachable",
    )

"""The codes under which something is reported to the organizer; ``deploy/RUNBOOK.md`` has a heading with each of them."""

from __future__ import annotations

ALERT_CODES = frozenset(
    {
        "act.timed_out",
        "beacon.*",
        "board.folds_differ",
        "child.start",
        "disk.*",
        "download.broken",
        "download.host",
        "download.redirected",
        "engine.*",
        "evalai.challenge_differs",
        "evalai.email_unverified",
        "evalai.hosts_unknown",
        "evalai.metric_differs",
        "evalai.not_found",
        "evalai.not_permitted",
        "evalai.phase_unknown",
        "evalai.redirected",
        "evalai.rejected",
        "evalai.result_invalid",
        "evalai.server_address",
        "evalai.split_unknown",
        "evalai.throttled",
        "evalai.token_form",
        "evalai.token_refused",
        "evalai.unintelligible",
        "evalai.unreachable",
        "evaluate.*",
        "facts.author_differs",
        "facts.author_not_in_team",
        "facts.file_elsewhere",
        "facts.file_replaced",
        "facts.phase_differs",
        "facts.phase_unconfigured",
        "facts.team_differs",
        "fetch.*",
        "file.link_expired",
        "leaderboard.*",
        "leaderboard.overwritten",
        "leaderboard.rewritten",
        "machine.descriptors",
        "memory",
        "phase.not_recorded",
        "queue.foreign",
        "record.*",
        "restore.answered_since",
        "secret.*",
        "state.*",
        "submission.answered_elsewhere",
        "submission.set_back",
        "submission.unreadable",
        "unexpected",
        "upload.unfinished",
    }
)
"""Codes, and families of codes whose errors say themselves what to do."""

UNEXPECTED = "unexpected"


def alert_code(code: str) -> str:
    """Return the code under which an error is reported: its own if the runbook explains it, else that of unexpected errors."""
    family = f"{code.partition('.')[0]}.*"
    return code if not ALERT_CODES.isdisjoint((code, family)) else UNEXPECTED

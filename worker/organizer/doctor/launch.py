"""Checks of whether participants can find the challenge at EvalAI and submit to it, now and until the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from worker.organizer.doctor.check import Finding, fail, note, warn
from worker.organizer.doctor.subjects import CheckedEvalAI
from worker.organizer.doctor.told import Setting, Told, each, filled

USUAL_PHASES = 2
MINUTE = "%Y-%m-%d %H:%M"
LAUNCH = (
    Setting(
        "published",
        False,
        "The challenge is not published, so only its hosts can see it.",
        "Publish it on EvalAI after its approval, on the day on which its first phase begins for participants.",
    ),
    Setting(
        "approved_by_admin",
        False,
        "EvalAI's administrators have not approved the challenge (approved_by_admin), so participants cannot find it.",
        "Submit a baseline to each phase as a host, and let the worker answer. When each phase has a finished submission, request the"
        " approval on EvalAI.",
    ),
    Setting(
        "is_registration_open",
        False,
        "Registration is closed (is_registration_open), so no further team can take part.",
        "Open it on EvalAI, unless all teams are registered.",
    ),
    Setting(
        "is_submission_paused",
        True,
        "The challenge is paused on EvalAI (is_submission_paused) and accepts no submissions.",
        "Resume it on EvalAI before the launch.",
    ),
    Setting(
        "allowed_email_domains",
        True,
        "Only participants with e-mail addresses of certain domains can take part (allowed_email_domains).",
        "Remove the domains on EvalAI, unless that is intended.",
        reader=filled,
    ),
    Setting(
        "blocked_email_domains",
        True,
        "Participants with e-mail addresses of certain domains cannot take part (blocked_email_domains).",
        "Remove the domains on EvalAI, unless that is intended.",
        reader=filled,
    ),
    Setting(
        "banned_email_ids",
        True,
        "EvalAI refuses teams with certain members (banned_email_ids), and leaves them out of its own leaderboard only.",
        "Remove the e-mail addresses on EvalAI, unless that is intended. `neuco-worker challenge disqualify` takes entries off the board.",
        reader=filled,
    ),
)
"""What EvalAI shows of the challenge by its number."""
ADMITTED = Setting(
    "allowed_email_ids",
    True,
    "Only the e-mail addresses in a list may submit to {0.name} (allowed_email_ids).",
    "Remove the list on EvalAI, unless that is intended.",
    reader=filled,
)


def launch(evalai: CheckedEvalAI) -> Iterator[Finding]:
    """Say what is missing until participants can submit, and compare the dates with now."""
    now, phases, challenge = evalai.challenge.clock(), evalai.configured, evalai.behind_queue
    configured, closed = evalai.configuration.phases, evalai.challenge.closed()
    if configured.keys() - closed:
        yield from each([_dates(challenge, phases.values(), now)])
    yield from each(
        _closed(challenge, phase, now)
        if codename in closed
        else _begins(challenge, phases.values(), phase, configured[codename].opens, now)
        for codename, phase in phases.items()
    )
    yield from each(ADMITTED.compare(phase) for phase in phases.values())
    page = evalai.page
    yield from each([*(setting.compare(page) for setting in LAUNCH), _before_approval(page, len(phases))])


def _before_approval(challenge: Told, phases: int) -> Iterator[Finding]:
    """Say what EvalAI may want from hosts besides finished submissions."""
    if challenge.flag("approved_by_admin"):
        return
    yield note(
        "Ask EvalAI about the price: its documentation of July 2025 names 100 $ a month for remote evaluation, and challenges are `paid` by"
        " default since May 2026."
    )
    if phases > USUAL_PHASES:
        yield note(f"More than {USUAL_PHASES} phases may need the consent of EvalAI's administrators.")


def _dates(challenge: Told, phases: Iterable[Told], now: datetime) -> Iterator[Finding]:
    start, end = challenge.moment("start_date"), challenge.moment("end_date")
    if end <= max(start, now):
        when = (
            f"ended on {end:{MINUTE}} UTC" if end <= now else f"ends on {end:{MINUTE}} UTC, before it begins"
        )
        yield fail(f"The challenge {when}; EvalAI takes no submissions.")
        return
    if longer := [phase.name for phase in phases if phase.moment("end_date") > end]:
        yield warn(
            f"EvalAI accepts nothing after {end:{MINUTE}} UTC, when the challenge ends, but shows later ends of {', '.join(longer)}.",
            "Correct the dates on EvalAI.",
        )
    if start > now:
        yield warn(
            f"The challenge begins on {start:{MINUTE}} UTC. Until then, EvalAI accepts no submissions, not even from hosts.",
            "Leave it if that is intended. An earlier date can be set on EvalAI only before the approval.",
        )


def _closed(challenge: Told, phase: Told, now: datetime) -> Iterator[Finding]:
    end = min(phase.moment("end_date"), challenge.moment("end_date"))
    if now < end and _is_open(phase, now):
        yield warn(
            f"EvalAI accepts submissions to {phase.name} until {end:{MINUTE}} UTC, but they do not count, because the phase is closed.",
            "Move its end date on EvalAI into the past.",
        )


def _begins(
    challenge: Told, phases: Iterable[Told], phase: Told, opens: datetime | None, now: datetime
) -> Iterator[Finding]:
    """Compare the dates of a phase with now, and with whether it is public; one that waits is in order while another one is open.

    Args:
        challenge: The challenge, which bounds its dates.
        phases: All phases.
        phase: This one.
        opens: When it opens for participants by the configuration; None if that does not say.
        now: The time.
    """
    public, early = phase.flag("is_public"), opens is not None and now < opens
    end, start = phase.moment("end_date"), phase.moment("start_date")
    later, opened, last = start > now, max(start, opens or start), min(end, challenge.moment("end_date"))
    is_open = any(_is_open(other, now) for other in phases)
    if end <= now:
        yield warn(
            f"EvalAI accepts no more submissions to {phase.name}, which ended on {end:{MINUTE}} UTC.",
            "Move its end date on EvalAI, or close it if it was meant to end then: neuco-worker board close.",
        )
    elif last <= opened:
        yield fail(
            f"EvalAI accepts submissions to {phase.name} only until {last:{MINUTE}} UTC, but it opens on {opened:{MINUTE}} UTC.",
            "Correct its dates and those of the challenge on EvalAI, or `opens` in the configuration.",
        )
        return
    if public and (early or later):
        yield warn(
            f"EvalAI shows {phase.name} to everybody (is_public), although it opens only on {opens if early else start:{MINUTE}} UTC.",
            "Unset is_public on EvalAI until that day. The worker scores what participants send before `opens` only then.",
        )
        return
    if later:
        sentence = f"EvalAI accepts no submissions to {phase.name} yet, which begins on {start:{MINUTE}} UTC."
        hint = "Leave it if that is intended. Hosts cannot send a baseline to it either, and the approval needs one in every phase."
        yield note(f"{sentence} {hint}") if is_open else warn(sentence, hint)
    if not (public or later or early):
        sentence = f"EvalAI accepts submissions to {phase.name} only from hosts, because it is not public (is_public)."
        if opens is None:
            hint = "Make it public on EvalAI on the day on which it opens for participants, and enter that day as `opens`."
            yield note(f"{sentence} {hint}") if is_open else warn(sentence, hint)
        else:
            yield fail(sentence, f"Make it public on EvalAI: by `opens`, it opened on {opens:{MINUTE}} UTC.")


def _is_open(phase: Told, now: datetime) -> bool:
    return phase.moment("start_date") <= now < phase.moment("end_date") and phase.flag("is_public")

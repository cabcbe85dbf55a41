"""Checks of the token and of the challenge at EvalAI, with a few calls that only read; no message is received."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, timedelta
from urllib.parse import urlsplit

from scoring.errors import OrganizerError
from scoring.printable import count_of
from worker.evalai import Challenge
from worker.fetching.download import check_address
from worker.organizer.doctor.check import Checks, Finding, Flag, fail, note, skipped, warn
from worker.organizer.doctor.examination import Examination

SOON = timedelta(days=30)
ALLOWED_PER_MINUTE = 60
SKEW_WARN_S, SKEW_FAIL_S = 10.0, 120.0
CHECKS = Checks()


@CHECKS.add("evalai.token", "The EvalAI token is there and has the form of one")
def _token(exam: Examination) -> Iterator[Finding]:
    kind = (
        "a JSON web token"
        if exam.remote.expiry is not None
        else "40 hexadecimal digits, which expire 365 days after the login"
    )
    yield note(f"The token is {kind}.")


@CHECKS.add("evalai.expiry", "The EvalAI token outlives the challenge")
def _expiry(exam: Examination) -> Iterator[Finding]:
    expiry, now = exam.remote.expiry, exam.clock()
    if expiry is None:
        yield skipped("The token does not say when it expires.")
    elif expiry <= now:
        yield fail(
            f"The EvalAI token expired on {expiry:%Y-%m-%d}.", "Copy a new one from the EvalAI profile page."
        )
    elif expiry <= now + SOON:
        yield warn(
            f"The EvalAI token expires on {expiry:%Y-%m-%d}, in {count_of((expiry - now).days, 'day')}.",
            "Renew it on the EvalAI profile page before the launch.",
        )
    else:
        yield note(f"The token expires on {expiry:%Y-%m-%d}.")


@CHECKS.add("evalai.server", "EvalAI answers, and accepts token and queue", remote=True)
def _server(exam: Examination) -> Iterator[Finding]:
    yield note(f"Challenge {exam.challenge.pk}: “{exam.challenge.title}”.")


@CHECKS.add("evalai.challenge", "The queue belongs to the configured challenge", remote=True)
def _challenge(exam: Examination) -> Iterator[Finding]:
    found, wanted = exam.challenge.pk, exam.configuration.evalai.challenge
    if found != wanted:
        yield fail(
            f"The queue belongs to challenge {found}, not to {wanted}.",
            "Correct evalai.challenge or evalai.queue.",
        )


FLAGS: tuple[Flag[Challenge], ...] = (
    Flag(
        "evalai.remote_evaluation",
        "EvalAI leaves the evaluation to the worker",
        lambda challenge: not challenge.remote_evaluation,
        fail,
        "The challenge is not set to remote evaluation, so EvalAI would evaluate submissions itself.",
        "Upload the bundle with remote_evaluation: True, or ask EvalAI's administrators to set it.",
    ),
    Flag(
        "evalai.docker",
        "Participants submit files",
        lambda challenge: challenge.is_docker_based,
        fail,
        "The challenge is docker-based (is_docker_based). Participants would submit images, which the worker cannot score.",
        "Upload the bundle with is_docker_based: False, or ask EvalAI's administrators to unset it.",
    ),
    Flag(
        "evalai.published",
        "Participants can find the challenge",
        lambda challenge: not challenge.published,
        warn,
        "The challenge is not published, so only its hosts can see it.",
        "Publish it on EvalAI after its approval, on the day on which its first phase begins for participants.",
    ),
    Flag(
        "evalai.approved",
        "EvalAI's administrators have approved the challenge",
        lambda challenge: not challenge.approved,
        warn,
        "EvalAI's administrators have not approved the challenge (approved_by_admin), so only its hosts can submit.",
        "Submit a baseline to each phase as a host, and let the worker answer. When each phase has a finished submission, request the"
        " approval on EvalAI.",
    ),
    Flag(
        "evalai.manual_approval",
        "Teams can submit as soon as they have joined",
        lambda challenge: challenge.manual_participant_approval,
        warn,
        "A team can submit only after a host has approved it (manual_participant_approval).",
        "Approve each team on EvalAI's page of the challenge, or unset it there.",
    ),
    Flag(
        "evalai.resubmissions",
        "Only hosts can run a submission again",
        lambda challenge: challenge.allow_participants_resubmissions,
        warn,
        "Participants may run their submissions again (allow_participants_resubmissions). Each run is a new submission to score, and does"
        " not use up the limits of its phase.",
        "Ask EvalAI's administrators to unset it.",
    ),
    Flag(
        "evalai.fifo",
        "The queue gives messages in any order",
        lambda challenge: challenge.use_fifo,
        warn,
        "The challenge has a FIFO queue (use_fifo_sqs): each message of a team waits until the team's previous one is deleted, so many"
        " submissions of one team arrive slowly.",
        "No submission is lost, because the worker also reads EvalAI's listing. To avoid the delay, ask EvalAI's administrators"
        " for a standard queue.",
    ),
)
CHECKS.add_flags(lambda exam: [exam.challenge], FLAGS, remote=True)


@CHECKS.add("evalai.dates", "The challenge has not ended", remote=True)
def _dates(exam: Examination) -> Iterator[Finding]:
    challenge, now = exam.challenge, exam.clock()
    if challenge.end_date is not None and challenge.end_date <= now:
        yield fail(
            f"The challenge ended on {challenge.end_date:%Y-%m-%d %H:%M} UTC; EvalAI takes no submissions.",
            "Move the end date on EvalAI.",
        )
    elif challenge.start_date is not None and challenge.start_date > now:
        yield note(f"It begins on {challenge.start_date.astimezone(UTC):%Y-%m-%d %H:%M} UTC.")
    expiry = exam.remote.expiry
    if expiry is not None and challenge.end_date is not None and now < expiry < challenge.end_date:
        yield warn(
            f"The EvalAI token expires on {expiry:%Y-%m-%d}, before the challenge ends ({challenge.end_date:%Y-%m-%d}).",
            "Renew it on the EvalAI profile page in time. If evalai.token names a file, reload the worker afterwards;"
            " otherwise restart it.",
        )


@CHECKS.add("evalai.clock", "This machine's clock agrees with EvalAI's", remote=True)
def _clock(exam: Examination) -> Iterator[Finding]:
    exam.challenge  # noqa: B018 - any answer has the server's time
    skew_s = exam.remote.skew_s
    if skew_s is None:
        yield skipped("The server does not send its time.")
    elif abs(skew_s) > SKEW_WARN_S:
        say = fail if abs(skew_s) > SKEW_FAIL_S else warn
        yield say(
            f"This machine's clock is {abs(skew_s):.0f} s {'behind' if skew_s > 0 else 'ahead of'} EvalAI's.",
            "Let it follow a time server: sudo timedatectl set-ntp true",
        )


@CHECKS.add("evalai.files", "Files may come from where EvalAI stores them", remote=True)
def _files(exam: Examination) -> Iterator[Finding]:
    exam.challenge  # noqa: B018 - this answer has the address
    url = exam.remote.script_url
    evalai = exam.configuration.evalai
    if not url or not urlsplit(url).netloc:
        yield skipped("EvalAI does not say where it stores files.")
        return
    try:
        check_address(url, [urlsplit(evalai.server).netloc, *evalai.media_hosts])
    except OrganizerError:
        host = urlsplit(url).netloc
        yield fail(
            f"EvalAI stores files on {host}, which the worker may not download from.",
            f"Set evalai.media_hosts: [{host}]",
        )


@CHECKS.add("evalai.budget", "The worker stays within EvalAI's rate limit")
def _budget(exam: Examination) -> Iterator[Finding]:
    asked = exam.configuration.evalai.requests_per_minute
    if asked > ALLOWED_PER_MINUTE:
        yield warn(
            f"evalai.requests_per_minute is {asked}; EvalAI allows an account {ALLOWED_PER_MINUTE} and refuses more for the rest"
            " of the minute.",
            "Set it to 50.",
        )

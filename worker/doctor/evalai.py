"""Checks of the challenge on EvalAI: a handful of reading calls; nothing is received and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, timedelta
from urllib.parse import urlsplit

from scoring.errors import NeucoError, OrganizerError
from worker.doctor.check import Check, Finding, check, fail, note, skipped, warn
from worker.doctor.examination import Examination
from worker.download import check_address
from worker.evalai import NotFound, NotPermitted, TokenRefused

SOON = timedelta(days=30)
ALLOWED_PER_MINUTE = 60
SKEW_WARN_S, SKEW_FAIL_S = 10.0, 120.0
PUBLIC = 3
TOKEN = ("configuration.file", "evalai.token")
SERVER = (*TOKEN, "evalai.server")
HOST = (*SERVER, "evalai.accepted", "evalai.host", "evalai.queue")
PHASES = (*HOST, "evalai.phases")
SPLITS = (*PHASES, "evalai.splits")


@check("evalai.token", "The EvalAI token is there and has the form of one")
def _token(exam: Examination) -> Iterator[Finding]:
    kind = (
        "a JSON web token"
        if exam.remote.expiry is not None
        else "40 hexadecimal digits, which end 365 days after the login"
    )
    yield note(f"The token is {kind}.")


@check("evalai.expiry", "The EvalAI token outlives the challenge", needs=TOKEN)
def _expiry(exam: Examination) -> Iterator[Finding]:
    expiry, now = exam.remote.expiry, exam.clock()
    if expiry is None:
        yield skipped("The token does not tell when it ends.")
    elif expiry <= now:
        yield fail(
            f"The EvalAI token ended on {expiry:%Y-%m-%d}.", "Take a new one from the EvalAI profile page."
        )
    elif expiry <= now + SOON:
        yield warn(
            f"The EvalAI token ends on {expiry:%Y-%m-%d}, in {(expiry - now).days} days.",
            "Renew it on the EvalAI profile page before the launch.",
        )
    else:
        yield note(f"It ends on {expiry:%Y-%m-%d}.")


@check("evalai.server", "EvalAI answers", needs=TOKEN, remote=True)
def _server(exam: Examination) -> Iterator[Finding]:
    greeting = exam.remote.greeting
    if isinstance(greeting, NeucoError) and not isinstance(greeting, TokenRefused | NotPermitted | NotFound):
        yield fail(greeting.sentence, greeting.cure)


@check("evalai.accepted", "EvalAI accepts the token", needs=SERVER, remote=True)
def _accepted(exam: Examination) -> Iterator[Finding]:
    if isinstance(exam.remote.greeting, TokenRefused):
        yield fail(exam.remote.greeting.sentence, exam.remote.greeting.cure)


@check(
    "evalai.host",
    "The token belongs to a host of the challenge",
    needs=(*SERVER, "evalai.accepted"),
    remote=True,
)
def _host(exam: Examination) -> Iterator[Finding]:
    if isinstance(exam.remote.greeting, NotPermitted):
        yield fail(exam.remote.greeting.sentence, exam.remote.greeting.cure)


@check(
    "evalai.queue",
    "EvalAI has the configured queue",
    needs=(*SERVER, "evalai.accepted", "evalai.host"),
    remote=True,
)
def _queue(exam: Examination) -> Iterator[Finding]:
    if isinstance(exam.remote.greeting, NotFound):
        yield fail(
            f"EvalAI has no challenge with the queue {exam.configuration.evalai.queue}.",
            "Copy evalai.queue from the challenge's Manage tab on EvalAI; it is there as soon as the bundle is uploaded.",
        )


@check("evalai.challenge", "The queue belongs to the configured challenge", needs=HOST, remote=True)
def _challenge(exam: Examination) -> Iterator[Finding]:
    found, wanted = exam.remote.challenge.pk, exam.configuration.evalai.challenge
    if found != wanted:
        yield fail(
            f"The queue belongs to challenge {found}, not to {wanted}.",
            "Correct evalai.challenge or evalai.queue.",
        )
    else:
        yield note(f"Challenge {found}: “{exam.remote.challenge.title}”.")


@check("evalai.remote_evaluation", "EvalAI leaves the evaluation to the worker", needs=HOST, remote=True)
def _remote_evaluation(exam: Examination) -> Iterator[Finding]:
    if not exam.remote.challenge.remote_evaluation:
        yield fail(
            "The challenge is not set to remote evaluation: EvalAI would evaluate submissions itself.",
            "Upload the bundle with remote_evaluation: True, or ask EvalAI's admins to set it.",
        )


@check("evalai.dates", "The challenge has not ended", needs=HOST, remote=True)
def _dates(exam: Examination) -> Iterator[Finding]:
    challenge, now = exam.remote.challenge, exam.clock()
    if challenge.end_date is not None and challenge.end_date <= now:
        yield fail(
            f"The challenge ended on {challenge.end_date:%Y-%m-%d %H:%M} UTC; EvalAI takes no submissions.",
            "Move its end on EvalAI.",
        )
    elif challenge.start_date is not None and challenge.start_date > now:
        yield note(f"It begins on {challenge.start_date.astimezone(UTC):%Y-%m-%d %H:%M} UTC.")
    expiry = exam.remote.expiry
    if expiry is not None and challenge.end_date is not None and now < expiry < challenge.end_date:
        yield warn(
            f"The EvalAI token ends on {expiry:%Y-%m-%d}, before the challenge does ({challenge.end_date:%Y-%m-%d}).",
            "Renew it on the EvalAI profile page in time; SIGHUP makes a running worker read it.",
        )


@check("evalai.clock", "This machine's clock agrees with EvalAI's", needs=SERVER, remote=True)
def _clock(exam: Examination) -> Iterator[Finding]:
    skew_s = exam.remote.skew_s
    if skew_s is None:
        yield skipped("The server does not tell its time.")
    elif abs(skew_s) > SKEW_WARN_S:
        say = fail if abs(skew_s) > SKEW_FAIL_S else warn
        yield say(
            f"This machine's clock is {abs(skew_s):.0f} s {'behind' if skew_s > 0 else 'ahead of'} EvalAI's.",
            "Let it follow a time server: sudo timedatectl set-ntp true",
        )


@check("evalai.files", "Files may come from where EvalAI stores them", needs=HOST, remote=True)
def _files(exam: Examination) -> Iterator[Finding]:
    url = exam.remote.script_url
    evalai = exam.configuration.evalai
    if not url or not urlsplit(url).netloc:
        yield skipped("EvalAI does not tell where it stores files.")
        return
    try:
        check_address(url, [urlsplit(evalai.server).netloc, *evalai.media_hosts])
    except OrganizerError:
        host = urlsplit(url).netloc
        yield fail(
            f"EvalAI stores files on {host}, which the worker may not download from.",
            f"Set evalai.media_hosts: [{host}]",
        )


@check("evalai.budget", "The worker stays within EvalAI's limit of calls")
def _budget(exam: Examination) -> Iterator[Finding]:
    asked = exam.configuration.evalai.requests_per_minute
    if asked > ALLOWED_PER_MINUTE:
        yield warn(
            f"evalai.requests_per_minute is {asked}; EvalAI allows an account {ALLOWED_PER_MINUTE} and then refuses calls for a minute.",
            "Set it to 50.",
        )


@check("evalai.phases", "EvalAI has every configured phase", needs=HOST, remote=True)
def _phases(exam: Examination) -> Iterator[Finding]:
    known = exam.remote.phases
    for codename in exam.configuration.phases:
        if codename not in known:
            yield fail(
                f"EvalAI has no phase with the codename {codename}; it has {', '.join(sorted(known)) or 'none'}.",
                "Use the codenames of the challenge bundle under phases.",
            )


@check("evalai.other_phases", "Every phase on EvalAI is configured", needs=PHASES, remote=True)
def _other_phases(exam: Examination) -> Iterator[Finding]:
    for codename in sorted(set(exam.remote.phases) - set(exam.configuration.phases)):
        yield warn(
            f"EvalAI has a phase {codename} that is not configured: its submissions would be held.",
            f"Add phases.{codename}, or remove the phase there.",
        )


@check("evalai.open", "No phase is paused on EvalAI", needs=PHASES, remote=True)
def _open(exam: Examination) -> Iterator[Finding]:
    for codename in exam.configuration.phases:
        if exam.remote.phases[codename].is_submission_paused:
            yield warn(
                f"Phase {codename} takes no submissions: it is paused on EvalAI.",
                "Resume it on EvalAI before the launch.",
            )


@check("evalai.logs", "Participants can read what is wrong with their files", needs=PHASES, remote=True)
def _logs(exam: Examination) -> Iterator[Finding]:
    for codename in exam.configuration.phases:
        if exam.remote.phases[codename].disable_logs:
            yield warn(
                f"Phase {codename} has disable_logs set: participants may not see their score's details or what is wrong with a file.",
                "Unset it on EvalAI; the worker's answers hold nothing that a participant may not know.",
            )


@check(
    "evalai.visibility", "Submissions are public unless their team says otherwise", needs=PHASES, remote=True
)
def _visibility(exam: Examination) -> Iterator[Finding]:
    for codename in exam.configuration.phases:
        if not exam.remote.phases[codename].is_submission_public:
            yield warn(
                f"Submissions to phase {codename} are private by default, and only public ones count for the board.",
                "Set is_submission_public on EvalAI, or tell the participants.",
            )


@check("evalai.partial", "No phase asks for partial evaluation", needs=PHASES, remote=True)
def _partial(exam: Examination) -> Iterator[Finding]:
    for codename in exam.configuration.phases:
        if exam.remote.phases[codename].partial_evaluation:
            yield warn(
                f"Phase {codename} has partial evaluation enabled, which the worker does not use.",
                "Unset is_partial_submission_evaluation_enabled on EvalAI.",
            )


@check("evalai.splits", "Every phase has the configured dataset split", needs=PHASES, remote=True)
def _splits(exam: Examination) -> Iterator[Finding]:
    for codename, phase in exam.configuration.phases.items():
        pk = exam.remote.phases[codename].pk
        if (pk, phase.split) not in exam.remote.splits:
            there = sorted(split for of, split in exam.remote.splits if of == pk)
            yield fail(
                f"Phase {codename} has no dataset split {phase.split} on EvalAI; it has {', '.join(there) or 'none'}.",
                f"Correct phases.{codename}.split.",
            )


@check(
    "evalai.metric", "EvalAI's leaderboards have exactly the metric that is posted", needs=SPLITS, remote=True
)
def _metric(exam: Examination) -> Iterator[Finding]:
    for codename, phase in exam.configuration.phases.items():
        split = exam.remote.splits[exam.remote.phases[codename].pk, phase.split]
        if split.labels != (phase.metric,):
            yield fail(
                f"The leaderboard of phase {codename} has the metrics {', '.join(split.labels)}, the worker posts {phase.metric}.",
                f"Correct phases.{codename}.metric, or the schema of the bundle: labels: [{phase.metric}].",
            )


@check("evalai.leaderboard", "Participants see EvalAI's own leaderboard", needs=SPLITS, remote=True)
def _leaderboard(exam: Examination) -> Iterator[Finding]:
    for codename, phase in exam.configuration.phases.items():
        there = exam.remote.phases[codename]
        split = exam.remote.splits[there.pk, phase.split]
        if split.visibility != PUBLIC or not there.leaderboard_public:
            yield warn(
                f"EvalAI's leaderboard of phase {codename} is not public: participants see mean Q in their own submissions only.",
                "Set leaderboard_public and visibility: 3 on EvalAI, unless that is meant.",
            )


CHECKS: tuple[Check, ...] = (
    _token,
    _expiry,
    _server,
    _accepted,
    _host,
    _queue,
    _challenge,
    _remote_evaluation,
    _dates,
    _clock,
    _files,
    _budget,
    _phases,
    _other_phases,
    _open,
    _logs,
    _visibility,
    _partial,
    _splits,
    _metric,
    _leaderboard,
)

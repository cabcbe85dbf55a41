"""EvalAI's client against the sandbox over real HTTP: its endpoints, EvalAI's oddities, and the errors for each failure."""

from __future__ import annotations

import base64
import json
import socket
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import flask
import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import InfrastructureError, NeucoError, OrganizerError
from tests.waiting import LIMIT_S
from tests.worker.harness.answering import Answering
from worker.evalai import (
    Client,
    NotFound,
    NotPermitted,
    Rejected,
    Throttled,
    TokenRefused,
    Unintelligible,
    Unreachable,
    records,
)
from worker.evalai.errors import failure
from worker.evalai.transport import token_expiry
from worker.sandbox import (
    Fault,
    ManualClock,
    Sandbox,
    SandboxSettings,
)

CSV = b"id,0\na,1\n"
SETTINGS = SandboxSettings(
    title="Remote",
    queue="a queue.fifo",
    throttle_per_minute=100_000,
    visibility_timeout_s=30,
    teams={"Team Alice": ("alice", "carol"), "Team Bob": ("bob",)},
)


@pytest.fixture
def sandbox(clock: ManualClock) -> Iterator[Sandbox]:
    """Return a running sandbox."""
    with Sandbox(SETTINGS, clock=clock.clock()) as server:
        yield server


@pytest.fixture
def connect(sandbox: Sandbox, clock: ManualClock) -> Iterator[Callable[..., Client]]:
    """Return a function that makes clients, which are closed at the end."""
    made: list[Client] = []

    def make(**changes: Any) -> Client:
        chosen: dict[str, Any] = {
            "server": sandbox.url,
            "token": sandbox.token(),
            "challenge": sandbox.challenge,
            "queue": sandbox.queue,
            "clock": clock.now,
        }
        made.append(Client(**(chosen | changes)))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(connect: Callable[..., Client]) -> Client:
    """Return the host's client."""
    return connect()


def dev(sandbox: Sandbox) -> int:
    """Return the primary key of the dev phase."""
    return sandbox.phase_pk("dev")


def test_hex_and_jwt_tokens_both_authenticate(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """Forty hexadecimal digits are sent as Token, a JSON web token as Bearer; both work."""
    for token in (sandbox.world.user("host").hex_token, sandbox.token(), f" {sandbox.token()}\n"):
        assert connect(token=token).challenge().pk == sandbox.challenge


@pytest.mark.parametrize("fault", [f for f in Fault if f not in (Fault.SLOW, Fault.STORM)])
def test_every_fault_is_infrastructure(sandbox: Sandbox, client: Client, fault: Fault) -> None:
    """Whatever the fault, the error is Unreachable, for reading and for writing."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    for call in (client.submission, client.set_running):
        sandbox.faults.force(fault)
        with pytest.raises(Unreachable) as problem:
            call(pk)
        assert isinstance(problem.value, InfrastructureError)
        assert f"{sandbox.url}/api/jobs/" in problem.value.sentence  # the address that was asked


# Who may do what


class Stripping(requests.Session):
    """A proxy that removes the token."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:  # noqa: D102
        del request.headers["Authorization"]
        return super().send(request, **options)


def test_a_phase_counts_as_open_unless_evalai_denies_it() -> None:
    """Nothing is closed because EvalAI does not say that it is open."""
    said = {"id": 11, "codename": "dev", "challenge": 7}
    shown = [
        records.parse(records.Phase, said | more, "phase").is_active for more in ({}, {"is_active": False})
    ]
    assert shown == [True, False]


def test_what_was_read_stays_read_when_a_later_call_fails(sandbox: Sandbox, client: Client) -> None:
    """A start that reads the challenge, its phases and splits succeeds although half of its calls fail; a later one reads all again."""

    def starts() -> bool:
        try:
            with client.keeping():
                client.challenge(), client.phases(), client.splits()
        except Unreachable:
            return False
        return True

    for asked in (1, 2):
        sandbox.faults.force(*[Fault.ERROR_BEFORE, None] * 5)
        assert [starts() for _ in range(6)] == [False] * 5 + [True]
        answered = [entry.path for entry in sandbox.journal.requests("GET") if entry.status == 200]
        assert sorted(Counter(answered).values()) == [asked] * 5


def test_what_does_not_fit_is_read_again(sandbox: Sandbox, client: Client) -> None:
    """An error that an organizer corrects at EvalAI is not kept."""

    def start() -> None:
        with client.keeping():
            client.phases()
            raise OrganizerError("The phases are wrong.")

    with pytest.raises(OrganizerError):
        start()
    sandbox.set_phase("dev", disable_logs=True)
    assert [phase.disable_logs for phase in client.phases()] == [True, False]


def expired_digits(sandbox: Sandbox) -> str:
    """Return a login's digits that have expired."""
    digits = sandbox.world.user("host").hex_token
    sandbox.world.tokens[digits].expires -= timedelta(days=366)
    return digits


def replaced(sandbox: Sandbox) -> str:
    """Return a token that was replaced by a newer one."""
    token = sandbox.token()
    sandbox.refresh_token()
    return token


@pytest.mark.parametrize(
    ("token", "options", "words"),
    [
        (lambda sandbox: sandbox.issue_token("host", lifetime=timedelta(days=-1)), {}, "has expired"),
        (expired_digits, {}, "has expired"),
        (replaced, {}, "was replaced"),
        (lambda sandbox: sandbox.issue_token("host", kind="access"), {}, "the wrong kind"),
        (lambda sandbox: sandbox.token()[:-4] + "AAAA", {}, "does not know"),
        (lambda _: "0" * 40, {}, "does not know"),
        (lambda sandbox: sandbox.token(), {"session": Stripping()}, "did not receive"),
    ],
)
def test_refused_tokens_say_why(
    sandbox: Sandbox,
    connect: Callable[..., Client],
    token: Callable[[Sandbox], str],
    options: dict[str, Any],
    words: str,
) -> None:
    """Expired, replaced, wrong, unknown and removed tokens are distinguished; each has a hint."""
    client = connect(token=token(sandbox), **options)
    with pytest.raises(TokenRefused, match=words) as problem:
        client.receive()
    assert (problem.value.code, bool(problem.value.hint)) == ("evalai.token_refused", True)


def test_missing_permission_differs_from_a_bad_token(
    sandbox: Sandbox, connect: Callable[..., Client]
) -> None:
    """A valid token of a user who is no host is NotPermitted on every endpoint; one of an unverified account has a code of its own."""
    pk = sandbox.submit("Team Alice", "dev", CSV)
    sandbox.world.user("unverified").verified = False
    codes = {}
    for user in ("bob", "otherhost", "mallory", "unverified"):
        client = connect(token=sandbox.token(user))
        calls: list[Callable[[], object]] = [
            client.receive,
            lambda c=client: c.delete_message("x"),
            client.challenge,
            client.phases,
            client.submissions,
            lambda c=client: c.submission(pk),
            lambda c=client: c.set_running(pk),
            lambda c=client: c.fail(pk, dev(sandbox), stderr=""),
        ]
        for call in calls:
            with pytest.raises(NotPermitted) as problem:
                call()
            codes[user] = problem.value.code
    assert (codes.pop("unverified"), set(codes.values())) == (
        "evalai.email_unverified",
        {"evalai.not_permitted"},
    )


def test_missing_things_are_not_found(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """Unknown submissions, queues and splits are NotFound."""
    client = connect()
    lost = connect(queue="nope")
    calls: list[Callable[[], object]] = [
        lambda: client.submission(99),
        lambda: client.set_running(99),
        lambda: client.dataset_split(99),
        lost.receive,
        lost.challenge,
        lambda: lost.delete_message("x"),
    ]
    for call in calls:
        with pytest.raises(NotFound) as problem:
            call()
        assert problem.value.code == "evalai.not_found"


# Servers that are not EvalAI


@pytest.fixture
def other() -> Iterator[Answering]:
    """Return a server that answers what the test chooses."""
    with closing(Answering()) as server:
        yield server


ODD_ANSWERS: list[tuple[int, bytes, type[NeucoError]]] = [
    (200, b"<html>log in first</html>", Unreachable),
    (200, b'{"body": {"submission_pk": 4', Unreachable),
    (200, b"", Unreachable),
    (200, b"[" * 100_000, Unreachable),
    (200, b"null", Unintelligible),
    (200, b"[]", Unintelligible),
    (200, b'{"body": {"submission_pk": "x"}, "receipt_handle": "h"}', Unintelligible),
    (200, b'{"body": {"submission_pk": 4}, "receipt_handle": null}', Unintelligible),
    (200, b'{"body": [], "receipt_handle": "h"}', Unintelligible),
    (301, b"", Rejected),
    (302, b"", Rejected),
    (400, b'{"error": "no"}', Rejected),
    (404, b"<html>no such page</html>", Unreachable),
    (405, b'{"detail": "Method \\"GET\\" not allowed."}', Rejected),
    (408, b"{}", Unreachable),
    (413, b'{"detail": "too large"}', Rejected),
    (429, b"<html>slow down</html>", Throttled),
    (500, b"<html>Error 500</html>", Unreachable),
    (503, b'{"detail": "maintenance"}', Unreachable),
]


@pytest.mark.parametrize(("status", "body", "kind"), ODD_ANSWERS)
def test_odd_answers_have_a_type(
    other: Answering,
    connect: Callable[..., Client],
    status: int,
    body: bytes,
    kind: type[NeucoError],
) -> None:
    """Every answer that a queue would not give becomes exactly one type of error, and redirects are not followed."""
    other.reply = flask.Response(body, status, {"Location": f"{other.url}/elsewhere"})
    with pytest.raises(kind) as problem:
        connect(server=other.url).receive()
    assert type(problem.value) is kind
    assert [asked.path for asked in other.asked] == ["/api/jobs/challenge/queues/a queue.fifo/"]


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7), ("", 60), ("soon", 60), ("-1", 60), ("999999999", 3600)]
)
def test_retry_after_is_read_with_care(
    other: Answering, connect: Callable[..., Client], value: str, seconds: float
) -> None:
    """A wait that is no number of seconds counts as a minute, a very long one as an hour."""
    other.reply = flask.Response("{}", 429, {"Retry-After": value})
    with pytest.raises(Throttled) as problem:
        connect(server=other.url).receive()
    assert problem.value.retry_after_s == seconds


def test_unknown_keys_and_missing_optional_ones_are_tolerated(
    other: Answering, connect: Callable[..., Client]
) -> None:
    """Answers of newer or older EvalAI versions can be read; primary keys may be strings."""
    document = {
        "id": "4",
        "status": "queued",
        "challenge_phase": "11",
        "participant_team": 2,
        "novelty": {"a": []},
    }
    document |= {"\ud800": 1, "is_public": "yes", "input_file": 7}
    other.reply.data = json.dumps(document | {"submitted_at": "2026-01-01T12:00:00Z"})
    read = connect(server=other.url).submission(4)
    assert (read.pk, read.phase_pk, read.input_file, read.is_public) == (4, 11, None, False)
    for name in ("id", "status", "challenge_phase", "submitted_at"):
        other.reply.data = json.dumps({k: v for k, v in document.items() if k != name})
        with pytest.raises(Unintelligible):
            connect(server=other.url).submission(4)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYS = (
    "id",
    "status",
    "challenge_phase",
    "participant_team",
    "submitted_at",
    "codename",
    "labels",
    "creator",
    "created_by",
    "members",
    "username",
    "pk",
    "results",
)
KINDS: tuple[type[Any], ...] = (
    records.Submission,
    records.Challenge,
    records.Phase,
    records.PhaseSplit,
    records.DatasetSplit,
    records.Page,
    records.HostTeam,
)
READERS: tuple[Callable[[Any], Any], ...] = (
    records.read_message,
    *(partial(records.parse, kind, record="record") for kind in KINDS),
)
SHAPED = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON)) | JSON


@given(SHAPED)
@settings(max_examples=150, deadline=None)
def test_no_json_breaks_the_readers(document: Any) -> None:
    """Any JSON is either read or Unintelligible, and no other exception is raised; texts fit into UTF-8."""
    for read in READERS:
        try:
            value = read(document)
        except Unintelligible:
            continue
        repr(value).encode()


@given(st.integers(100, 599), st.binary(max_size=40) | JSON.map(lambda v: json.dumps(v).encode()))
@settings(max_examples=150, deadline=None)
def test_no_answer_breaks_the_reading_of_failures(status: int, body: bytes) -> None:
    """Any status and body give one of our errors or none, with a short printable sentence."""
    error = failure(status=status, headers={}, body=body, what="try", address="https://evalai.test/api")
    assert error is None or (isinstance(error, NeucoError) and len(error.sentence) < 500)
    if status >= 500:
        assert isinstance(error, Unreachable)


# The token


def test_addresses_that_must_not_get_the_token_are_refused(connect: Callable[..., Client]) -> None:
    """Plain http beyond loopback, names and passwords in the address, and nonsense are refused before any call."""
    for server in (
        "http://eval.ai",
        "ftp://eval.ai",
        "eval.ai",
        "https://u:p@eval.ai",
        "https://",
        "http://[::1",
    ):
        with pytest.raises(OrganizerError) as problem:
            connect(server=server)
        assert problem.value.code == "evalai.server_address"
    for server in ("https://eval.ai/", "http://localhost:1", "http://[::1]:1", "http://127.0.0.1"):
        connect(server=server)


@pytest.mark.parametrize("token", ["", "abc", "0" * 39, "a.b", "a.b.c.d", "ä.b.c", "a b.c.d"])
def test_a_token_of_no_known_form_is_refused_at_once(connect: Callable[..., Client], token: str) -> None:
    """A token that is neither 40 hexadecimal digits nor three dotted parts is a fault of the configuration."""
    with pytest.raises(OrganizerError) as problem:
        connect(token=token)
    assert problem.value.code == "evalai.token_form"
    assert token == "" or token not in str(problem.value)


def test_expiry_is_read_from_the_token(sandbox: Sandbox, client: Client, clock: ManualClock) -> None:
    """The end of a JSON web token is read without its key; digits and garbage have none."""
    assert token_expiry(sandbox.token()) == clock.now() + timedelta(days=365)
    assert client.expiry == token_expiry(sandbox.token())
    for payload in (b"{}", b"[]", b'{"exp": "soon"}', b'{"exp": 1e30}', b"\xff", b"{"):
        middle = base64.urlsafe_b64encode(payload).decode().rstrip("=")
        assert token_expiry(".".join((sandbox.token().split(".")[0], middle, "c"))) is None
    assert token_expiry("0" * 40) is None


def our_frames(error: BaseException) -> str:
    """Render a traceback with the variables of every frame that is not the test's."""
    test = sys._getframe(1).f_code
    seen: list[str] = []
    link: BaseException | None = error
    while link is not None:
        for frame, _ in traceback.walk_tb(link.__traceback__):
            if frame.f_code is not test:
                seen.append(repr(frame.f_locals))
        seen.append(repr(link) + str(link))
        link = link.__cause__ or link.__context__
    return "".join(seen)


def test_no_failure_shows_the_token(
    sandbox: Sandbox, other: Answering, connect: Callable[..., Client]
) -> None:
    """No error, repr, chained exception or frame variable of a failed call contains the token."""
    secret = sandbox.token()
    other.reply = flask.Response('{"error": "no"}', 400)
    broken = connect(server="http://127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        silent = connect(server=f"http://127.0.0.1:{mute.getsockname()[1]}", timeout_s=(LIMIT_S, 0.001))
        for client in (broken, silent, connect(server=other.url)):
            with pytest.raises(NeucoError) as problem:
                client.receive()
            assert problem.value.__context__ is None
            shown = our_frames(problem.value) + repr(client) + repr(vars(client))
            assert secret not in shown
            assert secret.split(".")[2] not in shown


def test_time_outs_are_on_every_call(sandbox: Sandbox, connect: Callable[..., Client]) -> None:
    """Each method sends with time-outs, without following redirects, and to the documented addresses."""
    sent: list[tuple[str, str]] = []
    patience_s = LIMIT_S, LIMIT_S + 1

    class Watching(requests.Session):
        def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
            assert options["timeout"] == patience_s
            assert options["allow_redirects"] is False
            sent.append((method, url.removeprefix(sandbox.url)))
            return super().request(method, url, **options)

    pk = sandbox.submit("Team Alice", "dev", CSV)
    client = connect(session=Watching(), timeout_s=patience_s)
    message = client.receive()
    client.submission(pk)
    client.submissions(submitted_after=datetime(2026, 1, 1, tzinfo=UTC))
    client.challenge()
    client.phases()
    client.phase_splits()
    client.dataset_split(51)
    client.set_running(pk)
    client.finish(pk, dev(sandbox), stdout="", result={"q_mean": 1}, split="dev_split")
    client.fail(pk, dev(sandbox), stderr="row 3 lacks an id\x00 \ud800")
    assert sandbox.text(pk, "stderr_file") == "row 3 lacks an id\ufffd ?"
    client.delete_message(message.receipt_handle if message else "")
    assert sent == [
        ("GET", "/api/jobs/challenge/queues/a%20queue.fifo/"),
        ("GET", f"/api/jobs/submission/{pk}"),
        ("GET", "/api/jobs/challenge/7/submission/?submitted_after=2026-01-01T00%3A00%3A00.000000Z"),
        ("GET", "/api/challenges/challenge/queues/a%20queue.fifo/"),
        ("GET", "/api/challenges/7/phases/"),
        ("GET", "/api/challenges/7/challenge_phase_split"),
        ("GET", "/api/challenges/challenge/create/dataset_split/51/"),
        ("PATCH", "/api/jobs/challenge/7/update_submission/"),
        ("PUT", "/api/jobs/challenge/7/update_submission/"),
        ("PUT", "/api/jobs/challenge/7/update_submission/"),
        ("POST", "/api/jobs/queues/a%20queue.fifo/"),
    ]

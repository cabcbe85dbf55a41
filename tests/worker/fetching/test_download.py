"""Downloads: complete or an error, limited, hashed, from known hosts only, and without credentials."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import flask
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.errors import InfrastructureError, NeucoError, OrganizerError, ParticipantError
from tests.waiting import LIMIT_S
from tests.worker.harness.answering import Answering
from worker.fetching.download import check_address, download

BODY = bytes(range(256)) * 40


@pytest.fixture
def store() -> Iterator[Answering]:
    """Return a running file store."""
    with closing(Answering()) as server:
        server.reply.data = BODY
        yield server


@pytest.fixture
def fetch(store: Answering, tmp_path: Path) -> Callable[..., str]:
    """Return a function that downloads the store's file into an otherwise empty folder."""

    def run(**changes: Any) -> str:
        host = store.url.removeprefix("http://")
        chosen: dict[str, Any] = {"max_bytes": 1 << 20, "allowed_hosts": [host], "timeout_s": LIMIT_S}
        return download(
            f"{store.url}/file", tmp_path / "file", given_up=threading.Event(), **(chosen | changes)
        )

    return run


def test_a_file_arrives_whole(store: Answering, fetch: Callable[..., str], tmp_path: Path) -> None:
    """SHA-256 is that of the bytes; nothing else is in the folder."""
    assert fetch() == hashlib.sha256(BODY).hexdigest()
    assert (tmp_path / "file").read_bytes() == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_content_encoding_is_not_undone(store: Answering, fetch: Callable[..., str], tmp_path: Path) -> None:
    """A compressed answer cannot expand beyond the limit, because the bytes are kept as they arrive."""
    bomb = gzip.compress(b"\0" * 2_000_000)
    store.reply = flask.Response(bomb, headers={"Content-Encoding": "gzip"})
    assert fetch(max_bytes=10_000) == hashlib.sha256(bomb).hexdigest()
    assert (tmp_path / "file").read_bytes() == bomb
    assert store.asked[0].headers["Accept-Encoding"] == "identity"


def endless() -> Iterator[bytes]:
    """Yield more than any limit, without announcing the size."""
    while True:
        yield b"x" * 10_000


def test_a_file_over_the_limit_is_the_participants_fault(
    store: Answering, fetch: Callable[..., str], tmp_path: Path
) -> None:
    """Announced or not, a larger file is refused with a message for the participant."""
    for body in (BODY, endless()):
        store.reply = flask.Response(body)
        with pytest.raises(ParticipantError) as problem:
            fetch(max_bytes=5_000)
        assert problem.value.code == "file.too_large"
        assert "0.005 MB" in problem.value.sentence
        assert str(tmp_path) not in problem.value.message


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (403, InfrastructureError, "file.link_expired"),
        (404, InfrastructureError, "file.link_expired"),
        (302, OrganizerError, "download.redirected"),
        (500, InfrastructureError, "download.broken"),
        (204, InfrastructureError, "download.broken"),
        (206, InfrastructureError, "download.broken"),
        (200, InfrastructureError, "download.broken"),
    ],
)
def test_every_failure_has_a_type(
    store: Answering,
    fetch: Callable[..., str],
    status: int,
    kind: type[NeucoError],
    code: str,
) -> None:
    """Also that of a body that ends before its announced length; redirects are not followed."""
    headers = {"Content-Length": "100", "Location": f"{store.url}/again"}
    store.reply = flask.Response(iter([b"no"]), status=status, headers=headers)
    with pytest.raises(kind) as problem:
        fetch()
    assert (problem.value.code, problem.value.__context__) == (code, None)
    assert ("was deleted" in problem.value.sentence) is (code == "file.link_expired")
    assert len(store.asked) == 1


def test_no_credentials_are_sent(
    store: Answering, fetch: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No Authorization header is sent, not even the one that a .netrc would add."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    fetch()
    assert "Authorization" not in store.asked[0].headers


ALLOWED = ["eval.ai", "evalai.s3.amazonaws.com", "127.0.0.1:8000", "localhost", "store.example:8443"]


@pytest.mark.parametrize(
    "url",
    [
        "https://eval.ai/media/x",
        "https://EVAL.ai:443/media/x",
        "https://evalai.s3.amazonaws.com/media/x?X-Amz-Signature=y",
        "http://127.0.0.1:8000/media/x",
        "http://localhost:8001/x",
        "https://store.example:8443/x",
    ],
)
def test_known_hosts_are_allowed(url: str) -> None:
    """A host without a port allows that of https, and any port of this machine; a host with a port allows only that port."""
    check_address(url, ALLOWED)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///etc/passwd",
        "ftp://eval.ai/x",
        "http://eval.ai/x",
        "https://eval.ai.evil.example/x",
        "https://evil.example/eval.ai",
        "https://eval.ai@evil.example/x",
        "https://me:pw@eval.ai/x",
        "http://127.0.0.1:8001/x",
        "http://169.254.169.254/latest",
        "https://store.example/x",
        "https://eval.ai:22/x",
        "https://eval.ai:80/x",
        "https://localhost:8001/x",
        "https://[::1/x",
        "https://eval.ai:99999/x",
        "//eval.ai/x",
        "https://evil.example\\@eval.ai/x",
        "https://eval.ai\\.evil.example/x",
        "https://eval.ai\n.evil.example/x",
        " https://eval.ai/x",
    ],
)
def test_other_addresses_are_refused(url: str, tmp_path: Path) -> None:
    """Other hosts, ports, schemes, plain http beyond loopback and tricks with names are refused before any call."""
    with pytest.raises(OrganizerError) as problem:
        download(
            url,
            tmp_path / "file",
            max_bytes=1,
            allowed_hosts=ALLOWED,
            timeout_s=1.0,
            given_up=threading.Event(),
        )
    assert problem.value.code == "download.host"
    assert "pw" not in problem.value.sentence
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_no_address_breaks_the_check(text: str) -> None:
    """Any text is allowed or refused, never another exception; nothing is allowed by an empty list."""
    for url in (text, f"https://{text}", f"http://{text}/x"):
        with pytest.raises(OrganizerError):
            check_address(url, [])
        with pytest.raises(OrganizerError):
            check_address(url, [text.replace("/", "") + ".invalid"])

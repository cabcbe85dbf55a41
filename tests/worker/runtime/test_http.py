"""Requests on loopback use no proxy, whatever the environment says; all others use the one that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import requests

from tests.worker.harness.answering import Answering
from worker.evalai import Client
from worker.fairness.beacon import ask
from worker.organizer.rehearsal.practice_draw import practice_chain, served
from worker.runtime.http import HttpSession, proxy_of
from worker.sandbox import Sandbox

GENESIS = 1_700_000_000
PLACES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answering]:
    """The proxy that the environment names for everything."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with closing(Answering()) as proxy:
        proxy.reply.data = json.dumps({"signature": "from the proxy"})
        for name in PLACES:
            monkeypatch.setenv(name, proxy.url)
        yield proxy


def test_loopback_uses_no_proxy(proxy: Answering) -> None:
    """EvalAI's sandbox and a practice draw are reached directly."""
    with Sandbox() as evalai:
        settings = {"server": evalai.url, "token": evalai.token("host"), "queue": evalai.queue}
        with closing(Client(challenge=evalai.challenge, **settings)) as client:
            assert client.challenge().pk == evalai.challenge
    chain = practice_chain(genesis=GENESIS)
    with served(chain) as address, HttpSession() as session:
        assert ask(session, address, chain, 1) is not None
    assert proxy.asked == []


def test_drand_is_reached_through_the_proxy_without_credentials(
    proxy: Answering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if a .netrc has some for its server."""
    (tmp_path / "netrc").write_text("machine drand.example login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    chain = practice_chain(genesis=GENESIS)
    with HttpSession() as session:
        assert ask(session, "http://drand.example", chain, 7) == "from the proxy"
        monkeypatch.setenv("NO_PROXY", "drand.example")
        monkeypatch.setenv("no_proxy", "drand.example")
        assert ask(session, "http://drand.example", chain, 8) is None
    (asked,) = proxy.asked
    assert (asked.host, asked.path) == ("drand.example", f"/{chain.hash}/public/7")
    assert "Authorization" not in asked.headers


def test_a_proxy_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address on loopback has none."""
    for name in PLACES:
        monkeypatch.setenv(name, "http://me:p@ss@proxy.example:3128")
    assert proxy_of("https://eval.ai/api/") == "http://proxy.example:3128"
    assert proxy_of("http://localhost:8000") == proxy_of("http://[::1]:8000") == ""


@pytest.mark.parametrize("name", ["eval..ai", f"{'a' * 64}.ai"])
def test_a_name_that_no_host_can_have_is_an_error_like_all_others(name: str) -> None:
    """A typing error in the server's address or the webhook's is not a defect."""
    with HttpSession() as session, pytest.raises(requests.exceptions.InvalidURL):
        session.get(f"https://{name}/")

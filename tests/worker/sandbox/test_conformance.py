"""The sandbox answers recorded requests as the real EvalAI server did."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from worker.sandbox import ManualClock, PhaseSettings, Sandbox, SandboxSettings

STORY = json.loads(
    (Path(__file__).parent / "conformance" / "evalai_conformance.json").read_text(encoding="utf-8")
)
MATCHERS = {
    "<int>": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "<number>": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "<str>": lambda v: isinstance(v, str) and v != "",
    "<datetime>": lambda v: (
        isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", v)
    ),
    "<url>": lambda v: isinstance(v, str) and urlsplit(v).scheme in ("http", "https") and urlsplit(v).netloc,
}
NAME = re.compile(r"\{(\w+)(:str)?\}")


def stage(clock: ManualClock, throttle: int) -> Sandbox:
    """Build the set-up of the recording."""
    settings = SandboxSettings(
        title="Remote Challenge",
        challenge=77,
        queue="remote-challenge-queue",
        phases=(
            PhaseSettings(
                codename="dev",
                name="Dev phase",
                split="dev_split",
                fields={"max_concurrent_submissions_allowed": 100},
            ),
            PhaseSettings(
                codename="eval",
                name="Eval phase",
                split="eval_split",
                fields={"max_concurrent_submissions_allowed": 1},
            ),
        ),
        teams={"Team Alice": ("alice", "carol"), "Team Bob": ("bob",)},
        visibility_timeout_s=STORY["setup"]["visibility_timeout_seconds"],
        throttle_per_minute=throttle,
    )
    sandbox = Sandbox(settings, clock=clock.clock())
    sandbox.world.user("unverified").verified = False
    return sandbox


class Replay:
    """Sends the recorded requests and compares the answers."""

    def __init__(self, sandbox: Sandbox, clock: ManualClock) -> None:
        self.sandbox = sandbox
        self.clock = clock
        self.http = requests.Session()
        dev, evaluation = sandbox.world.phase("dev"), sandbox.world.phase("eval")
        self.names: dict[str, Any] = {
            "challenge": sandbox.challenge,
            "queue": sandbox.queue,
            "dev": dev.pk,
            "eval": evaluation.pk,
            "dev_split": dev.split_pk,
            "eval_split": evaluation.split_pk,
            "dev_dataset_split": dev.dataset_split_pk,
            "eval_dataset_split": evaluation.dataset_split_pk,
        }

    def close(self) -> None:
        """Close the connection pool."""
        self.http.close()

    def fill(self, value: Any) -> Any:
        """Replace names by the known values."""
        if isinstance(value, dict):
            return {key: self.fill(v) for key, v in value.items()}
        if isinstance(value, list):
            return [self.fill(v) for v in value]
        if not isinstance(value, str):
            return value
        whole = NAME.fullmatch(value)
        if whole and whole[1] in self.names:
            known = self.names[whole[1]]
            return str(known) if whole[2] else known
        return NAME.sub(lambda m: str(self.names[m[1]]) if m[1] in self.names else m[0], value)

    def authorization(self, step: dict[str, Any]) -> dict[str, str]:
        """Build the header of a step."""
        user = step["as"]
        if user == "anonymous":
            return {}
        issue, hex_token = self.sandbox.issue_token, self.sandbox.world.user(user).hex_token
        match step.get("auth"):
            case None:
                header = f"Bearer {self.sandbox.token(user)}"
            case "hex":
                header = f"Token {hex_token}"
            case "JWT under Token":
                header = f"Token {self.sandbox.token(user)}"
            case "hex under Bearer":
                header = f"Bearer {hex_token}"
            case "access JWT":
                header = f"Bearer {issue(user, kind='access')}"
            case "expired JWT":
                header = f"Bearer {issue(user, lifetime=timedelta(seconds=-1))}"
            case "expired hex":
                self.sandbox.world.tokens[hex_token].expires -= timedelta(days=366)
                header = f"Token {hex_token}"
            case "unknown hex":
                header = f"Token {'0' * 40}"
            case other:
                pytest.fail(f"unknown kind of authorization {other}")
        return {"Authorization": header}

    def send(self, step: dict[str, Any]) -> requests.Response:
        """Send one step."""
        path = self.fill(step["path"])
        url = path if path.startswith("http") else self.sandbox.url + path
        body: dict[str, Any] = {}
        headers = self.authorization(step)
        if "file" in step:
            body["files"] = {k: (f["name"], f["content"].encode()) for k, f in step["file"].items()}
            body["data"] = self.fill(step["form"])
        elif "form" in step:
            body["data"] = self.fill(step["form"])
        elif "json" in step:
            body["json"] = self.fill(step["json"])
        elif "text" in step:
            body["data"] = step["text"].encode()
            headers["Content-Type"] = step["content_type"]
        return self.http.request(
            step["method"], url, headers=headers, allow_redirects=False, timeout=60, **body
        )

    def play(self, step: dict[str, Any]) -> None:
        """Send a request and check its answer."""
        self.clock.advance(step.get("wait", 0))
        for _ in range(step.get("repeat", 1)):
            answer = self.send(step)
            self.check(step, answer)
        for name, path in step.get("save", {}).items():
            self.names[name] = dig(answer.json(), path)

    def check(self, step: dict[str, Any], answer: requests.Response) -> None:
        """Compare an answer with the recorded one."""
        expect, name = step["expect"], step["name"]
        assert answer.status_code == expect["status"], f"{name}: {answer.text[:300]}"
        if "content_type" in expect:
            assert answer.headers["Content-Type"].split(";")[0] == expect["content_type"], name
        for header, value in expect.get("headers", {}).items():
            found = answer.headers.get(header)
            if value is None:
                assert found is None, f"{name}: {header}"
            elif value == "<int>":
                assert (found or "").isdigit(), f"{name}: {header}"
            else:
                assert found == self.fill(value), f"{name}: {header}"
        if "text" in expect:
            assert answer.content.decode() == expect["text"], name
        if "json" in expect:
            problem = difference(self.fill(expect["json"]), answer.json(), "$")
            assert problem is None, f"{name}: {problem}"
        for path, value in expect.get("differs", {}).items():
            assert dig(answer.json(), path) != self.fill(value), name


def dig(value: Any, path: str) -> Any:
    """Follow a dotted path into JSON."""
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def difference(expected: Any, found: Any, at: str) -> str | None:
    """Return where two values differ, None if they are equal."""
    if isinstance(expected, dict) and set(expected) == {"<has>"}:
        expected = expected["<has>"]
        if not isinstance(found, dict) or not set(expected) <= set(found):
            return f"{at}: {found!r} lacks keys of {list(expected)}"
        found = {key: found[key] for key in expected}
    if isinstance(expected, dict) and set(expected) == {"<any order>"}:
        return any_order(expected["<any order>"], found, at)
    if isinstance(expected, dict):
        if not isinstance(found, dict) or set(expected) != set(found):
            return f"{at}: keys {sorted(found) if isinstance(found, dict) else found!r}"
        return next((p for k in expected if (p := difference(expected[k], found[k], f"{at}.{k}"))), None)
    if isinstance(expected, list):
        if not isinstance(found, list) or len(expected) != len(found):
            return f"{at}: {found!r}"
        pairs = enumerate(zip(expected, found, strict=True))
        return next((p for i, (e, f) in pairs if (p := difference(e, f, f"{at}.{i}"))), None)
    if isinstance(expected, str) and expected in MATCHERS:
        return None if MATCHERS[expected](found) else f"{at}: {found!r} is no {expected}"
    if isinstance(expected, str) and "<int>" in expected:
        pattern = re.escape(expected).replace(re.escape("<int>"), r"\d+")
        return None if isinstance(found, str) and re.fullmatch(pattern, found) else f"{at}: {found!r}"
    same = expected == found and isinstance(expected, bool) == isinstance(found, bool)
    return None if same else f"{at}: expected {expected!r}, found {found!r}"


def any_order(expected: list[Any], found: Any, at: str) -> str | None:
    """Compare two lists without their order."""
    if not isinstance(found, list) or len(found) != len(expected):
        return f"{at}: {found!r}"
    rest = list(found)
    for item in expected:
        hit = next((f for f in rest if difference(item, f, at) is None), None)
        if hit is None:
            return f"{at}: nothing like {item!r} in {rest!r}"
        rest.remove(hit)
    return None


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that the recording advances."""
    return ManualClock()


@pytest.fixture
def replay(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Replay]:
    """Return a player on a new server with the throttle that the test asks for."""
    with stage(clock, request.param) as sandbox:
        player = Replay(sandbox, clock)
        yield player
        player.close()


@pytest.mark.parametrize("replay", [STORY["setup"]["throttle_per_minute"]], indirect=True)
def test_sandbox_tells_the_recorded_story(replay: Replay) -> None:
    """Every recorded request gets the recorded answer."""
    for step in STORY["steps"]:
        replay.play(step)


@pytest.mark.parametrize("replay", [60], indirect=True)
def test_sandbox_throttles_as_recorded(replay: Replay) -> None:
    """The sixty-first call of a user in a minute is refused, on the endpoints that count."""
    for step in STORY["throttle"]["steps"]:
        replay.play(step)


def test_a_wrong_answer_is_noticed() -> None:
    """The comparison finds a missing key, another value and a Boolean instead of a number."""
    assert difference({"<has>": {"a": 1}}, {"b": 1}, "$")
    assert difference({"a": "<int>"}, {"a": True}, "$")
    assert difference({"a": 1}, {"a": True}, "$")
    assert difference({"<any order>": [{"<has>": {"a": 1}}, {"<has>": {"a": 2}}]}, [{"a": 1}, {"a": 1}], "$")
    assert difference("wait <int> seconds", "wait 5 seconds", "$") is None

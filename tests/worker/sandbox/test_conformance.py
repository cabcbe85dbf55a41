"""The sandbox answers recorded requests as the real EvalAI server did."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import requests

from worker.sandbox import ManualClock, PhaseSettings, Sandbox, SandboxSettings

STORY = json.loads(
    (Path(__file__).parent / "conformance" / "evalai_conformance.json").read_text(encoding="utf-8")
)
SETTINGS = SandboxSettings(
    title="Remote Challenge",
    challenge=77,
    queue="remote-challenge-queue",
    phases=tuple(
        PhaseSettings(
            codename=codename,
            name=f"{codename.capitalize()} phase",
            split=f"{codename}_split",
            fields={"max_concurrent_submissions_allowed": at_once},
        )
        for codename, at_once in (("dev", 100), ("eval", 1))
    ),
    teams={"Team Alice": ("alice", "carol"), "Team Bob": ("bob",)},
    visibility_timeout_s=STORY["setup"]["visibility_timeout_seconds"],
)
PATTERNS: dict[str, Callable[[Any], object]] = {
    "<int>": lambda v: type(v) is int,
    "<number>": lambda v: type(v) in (int, float),
    "<str>": lambda v: isinstance(v, str) and v != "",
    "<datetime>": lambda v: re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", v),
    "<url>": lambda v: re.match(r"https?://[^/]", v),
}
NAME = re.compile(r"\{(\w+)(:str)?\}")


class Like:
    """Equal to every value that fits a pattern of the recording."""

    def __init__(self, pattern: object, fits: Callable[[Any], object]) -> None:
        self._pattern = pattern
        self._fits = fits

    def __eq__(self, other: object) -> bool:
        return bool(self._fits(other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._pattern)


def like(pattern: Any) -> Any:
    """Return what is equal to every answer that fits a recorded one."""
    match pattern:
        case {"<has>": keys, "<fields>": names}:
            return Like(
                pattern,
                lambda v: (
                    isinstance(v, dict) and v.keys() == set(names.split()) and like({"<has>": keys}) == v
                ),
            )
        case {"<has>": keys}:
            return Like(
                pattern, lambda v: isinstance(v, dict) and like(keys) == {k: v.get(k, Like) for k in keys}
            )
        case {"<any order>": items}:
            return Like(pattern, lambda v: any(like(items) == list(order) for order in permutations(v)))
        case dict():
            return {key: like(value) for key, value in pattern.items()}
        case list():
            return [like(value) for value in pattern]
        case bool() | int():
            return Like(pattern, lambda v: v == pattern and isinstance(v, bool) is isinstance(pattern, bool))
        case str() if pattern in PATTERNS:
            return Like(pattern, PATTERNS[pattern])
        case str() if "<int>" in pattern:
            return Like(pattern, lambda v: re.fullmatch(re.escape(pattern).replace("<int>", r"\d+"), v))
    return pattern


def test_a_wrong_answer_is_noticed() -> None:
    """The comparison finds a missing key, a Boolean instead of a number, and a wrong value among several."""
    assert like({"a": "<int>", "b": {"<has>": {"c": 1}}}) == {"a": 5, "b": {"c": 1, "d": 2}}
    for pattern, answer in (
        ({"<has>": {"a": None}}, {"b": 1}),
        ({"<has>": {"a": 1}, "<fields>": "a b"}, {"a": 1}),
        ({"<has>": {"a": 1}, "<fields>": "a"}, {"a": 1, "b": 2}),
        ({"a": "<int>"}, {"a": True}),
        ({"a": 1}, {"a": True}),
        ({"<any order>": [{"a": 1}, {"a": 2}]}, [{"a": 1}, {"a": 1}]),
    ):
        assert like(pattern) != answer


class Replay:
    """Sends the recorded requests and compares the answers."""

    def __init__(self, sandbox: Sandbox, clock: ManualClock) -> None:
        self.sandbox = sandbox
        self.clock = clock
        self.names: dict[str, Any] = {"challenge": sandbox.challenge, "queue": sandbox.queue}
        self.names["other_challenge"] = sandbox.world.elsewhere.pk
        for codename in ("dev", "eval"):
            phase = sandbox.world.phase(codename)
            self.names |= {codename: phase.pk, f"{codename}_split": phase.split_pk}
            self.names[f"{codename}_dataset_split"] = phase.dataset_split_pk

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
            return str(self.names[whole[1]]) if whole[2] else self.names[whole[1]]
        return NAME.sub(lambda name: str(self.names.get(name[1], name[0])), value)

    def authorization(self, user: str, kind: str | None) -> str:
        """Return the header of a step."""
        issue, digits = self.sandbox.issue_token, self.sandbox.world.user(user).hex_token
        if kind == "expired hex":
            self.sandbox.world.tokens[digits].expires -= timedelta(days=366)
        return {
            None: f"Bearer {self.sandbox.token(user)}",
            "hex": f"Token {digits}",
            "JWT under Token": f"Token {self.sandbox.token(user)}",
            "hex under Bearer": f"Bearer {digits}",
            "access JWT": f"Bearer {issue(user, kind='access')}",
            "expired JWT": f"Bearer {issue(user, lifetime=timedelta(seconds=-1))}",
            "expired hex": f"Token {digits}",
            "unknown hex": f"Token {'0' * 40}",
        }[kind]

    def send(self, step: dict[str, Any]) -> requests.Response:
        """Send one step."""
        path = self.fill(step["path"])
        url = path if path.startswith("http") else self.sandbox.url + path
        headers = {"Content-Type": step["content_type"]} if "content_type" in step else {}
        if step["as"] != "anonymous":
            headers["Authorization"] = self.authorization(step["as"], step.get("auth"))
        return requests.request(
            step["method"],
            url,
            headers=headers,
            allow_redirects=False,
            data=step["text"].encode() if "text" in step else self.fill(step.get("form")),
            json=self.fill(step.get("json")),
            files={k: (f["name"], f["content"].encode()) for k, f in step.get("file", {}).items()},
        )

    def play(self, step: dict[str, Any]) -> None:
        """Send a request, and compare its answer with the recorded one."""
        self.clock.advance(step.get("wait", 0))
        expect, name = self.fill(step["expect"]), step["name"]
        types = {"Content-Type": expect["content_type"]} if "content_type" in expect else {}
        headers = types | expect.get("headers", {})
        for _ in range(step.get("repeat", 1)):
            answer = self.send(step)
            assert answer.status_code == expect["status"], f"{name}: {answer.text[:300]}"
            for header, value in headers.items():
                shown = answer.headers.get(header, "").split(";")[0]
                assert (int(shown) if shown.isdigit() else shown or None) == like(value), f"{name}: {header}"
            assert expect.get("text", answer.content.decode()) == answer.content.decode(), name
            if "json" in expect:
                assert answer.json() == like(expect["json"]), name
        for path, value in expect.get("differs", {}).items():
            assert dig(answer.json(), path) != value, name
        self.names |= {key: dig(answer.json(), path) for key, path in step.get("save", {}).items()}


def dig(value: Any, path: str) -> Any:
    """Follow a dotted path into JSON."""
    for part in path.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


@pytest.mark.parametrize(
    ("throttle", "steps"),
    [
        (STORY["setup"]["throttle_per_minute"], STORY["steps"]),
        (60, STORY["throttle"]["steps"]),
    ],
    ids=["story", "throttle"],
)
def test_sandbox_tells_the_recorded_story(throttle: int, steps: list[dict[str, Any]]) -> None:
    """Every recorded request gets the recorded answer; with EvalAI's rate limit, the sixty-first call of a minute is refused."""
    clock = ManualClock()
    with Sandbox(replace(SETTINGS, throttle_per_minute=throttle), clock=clock.clock()) as sandbox:
        sandbox.world.user("unverified").verified = False
        replay = Replay(sandbox, clock)
        for step in steps:
            replay.play(step)

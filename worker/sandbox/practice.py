"""Submit a file to a running sandbox as one of its teams."""

from __future__ import annotations

import json
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

import requests

from scoring.errors import InfrastructureError, OrganizerError

TIMEOUT_S = 60.0
ENDED = frozenset({"finished", "failed", "cancelled"})


class PracticeTeam:
    """A team of a sandbox.

    Args:
        server: The sandbox's address.
        name: Name of the team; None for the first team of participants.

    Raises:
        InfrastructureError: If there is no sandbox at that address.
        OrganizerError: If it has no such team.
    """

    def __init__(self, server: str, name: str | None = None) -> None:
        self._server = server.rstrip("/")
        facts = self._answer("GET", "/sandbox/")
        self._challenge, self._phases = facts["challenge"], facts["phases"]
        teams = facts["teams"]
        self.name = _one_of(name or next(iter(teams)), teams, "team")
        self._headers = {"Authorization": f"Token {teams[self.name]}"}

    def submit(self, file: Path, *, phase: str, method: str, public: bool) -> int:
        """Submit a file and return the submission's number.

        Raises:
            OrganizerError: If there is no such phase, or the sandbox refuses the submission.
        """
        number = self._phases[_one_of(phase, self._phases, "phase")]
        path = f"/api/jobs/challenge/{self._challenge}/challenge_phase/{number}/submission/"
        fields = {"status": "submitting", "method_name": method, "is_public": json.dumps(public)}
        files = {"input_file": (file.name, file.read_bytes())}
        return int(self._answer("POST", path, data=fields, files=files)["id"])

    def outcome(self, number: int) -> tuple[str, str] | None:
        """Return the status and the text that EvalAI shows of a submission; None until it has ended."""
        submission = self._answer("GET", f"/api/jobs/submission/{number}")
        if submission["status"] not in ENDED:
            return None
        addresses = [submission[name] for name in ("stdout_file", "stderr_file") if submission.get(name)]
        texts = (requests.get(address, timeout=TIMEOUT_S).text.strip() for address in addresses)
        return str(submission["status"]), "\n".join(text for text in texts if text)

    def _answer(self, method: str, path: str, **what: Any) -> Any:
        """Return the document that answers a call, which is repeated after the wait that the sandbox asks for."""
        headers = getattr(self, "_headers", {})
        try:
            while True:
                answer = requests.request(
                    method, self._server + path, headers=headers, timeout=TIMEOUT_S, **what
                )
                if answer.status_code != HTTPStatus.TOO_MANY_REQUESTS:
                    break
                time.sleep(int(answer.headers["Retry-After"]))
            document = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise InfrastructureError(
                f"No sandbox answers at {self._server} ({type(error).__name__}).",
                cure="Start one with `neuco-worker sandbox`, or name its address with --server.",
                code="sandbox.unreachable",
            ) from None
        if not answer.ok:
            raise OrganizerError(
                f"The sandbox refused the request ({answer.status_code}): {json.dumps(document)}",
                cure="Correct what the answer names, and run the command again.",
                code="sandbox.refused",
            )
        return document


def _one_of(name: str, names: Any, what: str) -> str:
    if name in names:
        return name
    raise OrganizerError(
        f"The sandbox has no {what} {name!r}.", cure=f"It has: {', '.join(names)}.", code="sandbox.unknown"
    )

"""EvalAI's client: one method for every endpoint that a remote evaluation worker needs.

Addresses are built exactly (some end in a slash, some must not), redirects are never followed (they turn POST into GET and drop bodies),
every call has time-outs, and every failure is one of the types in :mod:`worker.evalai.errors`. The client neither retries nor waits:
the caller decides.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import requests

from scoring.errors import InfrastructureError
from worker.evalai.errors import ODD_ANSWER, NotFound, Unintelligible
from worker.evalai.records import (
    Author,
    Challenge,
    DatasetSplit,
    Described,
    HostTeam,
    Message,
    Page,
    Phase,
    PhaseSplit,
    Submission,
    clean,
    parse,
    read_message,
)
from worker.evalai.transport import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, Transport
from worker.runtime.http import HttpSession


class Client(Transport):
    """A challenge host's access to one challenge on one EvalAI server.

    Not for several threads at a time. Its ``repr`` and its errors never show the token.

    Args:
        server: Address of the server; ``http://`` only on loopback.
        token: The profile's JSON web token, or the 40 hexadecimal digits of the login; the scheme follows from the form.
        challenge: Primary key of the challenge; all writes go to this one.
        queue: Name of its queue.
        session: Connection pool; without one, a new one is made.
        timeout_s: Time-outs for connecting and for each read.
        clock: Returns the time, to tell an expired token from an unknown one.

    Raises:
        OrganizerError: If the server's address or the token is invalid.
    """

    def __init__(
        self,
        *,
        server: str,
        token: str,
        challenge: int,
        queue: str,
        session: requests.Session | None = None,
        timeout_s: tuple[float, float] = (CONNECT_TIMEOUT_S, READ_TIMEOUT_S),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(server=server, token=token, session=session, timeout_s=timeout_s, clock=clock)
        self._challenge = challenge
        self._queue = quote(queue, safe="")
        self._keeping = False
        self._kept: dict[str, Any] = {}

    def again(self) -> Client:
        """Return a client with the same token and connections of its own, which was not given up."""
        fresh = copy.copy(self)
        fresh._session, fresh._given_up = HttpSession(), False
        fresh._keeping, fresh._kept = False, {}
        return fresh

    # Queue ------------------------------------------------------------------------------------

    def receive(self) -> Message | None:
        """Receive at most one message; None does not prove that the queue is empty.

        GET /api/jobs/challenge/queues/<queue>/. The message is hidden for 30 s, then it comes back under a new receipt handle.
        """
        path = f"/api/jobs/challenge/queues/{self._queue}/"
        return read_message(self.call("GET", path, "receive a message"))

    def delete_message(self, receipt_handle: str) -> None:
        """Delete a message by its newest receipt handle; a second time does no harm.

        POST /api/jobs/queues/<queue>/.
        """
        body = {"receipt_handle": receipt_handle}
        self.call("POST", f"/api/jobs/queues/{self._queue}/", "delete a message", body)

    # Reading ----------------------------------------------------------------------------------

    def submission(self, pk: int) -> Submission:
        """Read one submission. GET /api/jobs/submission/<pk>, without a slash at the end."""
        path = f"/api/jobs/submission/{int(pk)}"
        return parse(Submission, self.call("GET", path, f"read submission {pk}"), "submission")

    def submissions(self, *, submitted_after: datetime | None = None) -> list[Submission]:
        """List the submissions of all phases in one call, oldest first, including soft-deleted ones.

        GET /api/jobs/challenge/<c>/submission/. This finds everything that the queue or the worker may have lost.
        """
        path = f"/api/jobs/challenge/{self._challenge}/submission/"
        if submitted_after is not None:
            moment = submitted_after.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            path += f"?{urlencode({'submitted_after': moment})}"
        listed = _items(self.call("GET", path, "list the submissions"))
        submissions = [parse(Submission, item, "submission") for item in listed]
        return sorted(submissions, key=lambda s: (s.submitted_at, s.pk))

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep what is read of the challenge, its phases and its splits if a later call inside fails; the next try reads only the rest.

        With a server that fails often, five readings in a row would rarely succeed. After a try without a failed call, all is read again.
        """
        self._keeping, kept = True, {}
        try:
            yield
        except InfrastructureError:
            kept = self._kept
            raise
        finally:
            self._keeping, self._kept = False, kept

    def _read(self, path: str, what: str) -> Any:
        """Return the answer to a reading call, from an earlier try if it is kept."""
        answer = self._kept[path] if path in self._kept else self.call("GET", path, what)
        if self._keeping:
            self._kept[path] = answer
        return answer

    def challenge(self) -> Challenge:
        """Read the challenge behind the queue, which checks token, queue and primary key in one call.

        GET /api/challenges/challenge/queues/<queue>/.
        """
        path = f"/api/challenges/challenge/queues/{self._queue}/"
        answer = self._read(path, "read the challenge of the queue")
        return parse(Challenge, answer, "challenge")

    def page(self) -> Described:
        """Read the challenge by its number, which shows other settings than by its queue. GET /api/challenges/challenge/<c>/."""
        path = f"/api/challenges/challenge/{self._challenge}/"
        return parse(Described, self.call("GET", path, "read the challenge"), "challenge")

    def host_names(self, team_pk: int) -> frozenset[str]:
        """Read the names of the challenge's hosts. GET /api/hosts/challenge_host_team/<pk>, without a slash at the end."""
        path = f"/api/hosts/challenge_host_team/{int(team_pk)}"
        return parse(HostTeam, self.call("GET", path, "read the host team"), "host team").names

    def authors(self, phase_pk: int, *, page: int = 1) -> dict[int, Author]:
        """Read who sent the submissions to a phase: submission to author, newest first, in pages of 150; empty after the last page.

        GET /api/challenges/<c>/challenge_phase/<p>/submissions, without a slash at the end; no other endpoint gives authors by name.
        """
        path = f"/api/challenges/{self._challenge}/challenge_phase/{int(phase_pk)}/submissions?page={page}"
        try:
            listed = parse(Page, self.call("GET", path, "list a phase's submissions"), "page")
        except NotFound:
            return {}
        return {author.submission_pk: author for author in listed.results}

    def phases(self) -> list[Phase]:
        """List the challenge's phases. GET /api/challenges/<c>/phases/."""
        path = f"/api/challenges/{self._challenge}/phases/"
        listed = _items(self._read(path, "list the phases"))
        return [parse(Phase, item, "phase") for item in listed]

    def phase_splits(self) -> list[PhaseSplit]:
        """List the phases' splits with their metric labels. GET /api/challenges/<c>/challenge_phase_split, without a slash."""
        path = f"/api/challenges/{self._challenge}/challenge_phase_split"
        listed = _items(self._read(path, "list the phase splits"))
        return [parse(PhaseSplit, item, "phase split") for item in listed]

    def split_settings(self, pk: int) -> Described:
        """Read what only hosts see of a phase split. GET /api/challenges/challenge/create/challenge_phase_split/<id>/."""
        path = f"/api/challenges/challenge/create/challenge_phase_split/{int(pk)}/"
        return parse(Described, self.call("GET", path, f"read phase split {pk}"), "phase split")

    def dataset_split(self, pk: int) -> DatasetSplit:
        """Read a dataset split, for its codename. GET /api/challenges/challenge/create/dataset_split/<id>/."""
        path = f"/api/challenges/challenge/create/dataset_split/{int(pk)}/"
        answer = self._read(path, f"read dataset split {pk}")
        return parse(DatasetSplit, answer, "dataset split")

    def splits(self) -> dict[tuple[int, str], PhaseSplit]:
        """Read the phases' splits by phase pk and split codename, in one call and one more per dataset split."""
        listed = self.phase_splits()
        codenames = {pk: self.dataset_split(pk).codename for pk in {s.dataset_split_pk for s in listed}}
        return {(split.phase_pk, codenames[split.dataset_split_pk]): split for split in listed}

    # Writing ----------------------------------------------------------------------------------

    def set_running(self, pk: int) -> Submission:
        """Set a submission to running; its start time is reset each time.

        PATCH /api/jobs/challenge/<c>/update_submission/. EvalAI does not protect a finished or cancelled submission from this.
        """
        body = {"submission": int(pk), "submission_status": "running"}
        return parse(Submission, self._update("PATCH", f"set submission {pk} to running", body), "submission")

    def finish(
        self,
        pk: int,
        phase_pk: int,
        *,
        stdout: str,
        result: Mapping[str, float] | None,
        split: str,
    ) -> None:
        """Post the result of a submission: one entry of finite numbers, shown to the participant; none while values are withheld.

        PUT /api/jobs/challenge/<c>/update_submission/. Repeating it is harmless. EvalAI does not check what it is given: the result must
        have exactly the labels of its split.
        """
        entry = {"split": split, "show_to_participant": True, "accuracies": result}
        body = {
            "challenge_phase": int(phase_pk),
            "submission": int(pk),
            "submission_status": "finished",
            "stdout": clean(stdout),
            "stderr": "",
            "result": json.dumps([] if result is None else [entry], allow_nan=False),
            "metadata": "",
        }
        self._update("PUT", f"post the result of submission {pk}", body)

    def fail(self, pk: int, phase_pk: int, *, stderr: str) -> None:
        """End a submission as failed; the participant can read ``stderr``. PUT to the same address as ``finish``."""
        body = {
            "challenge_phase": int(phase_pk),
            "submission": int(pk),
            "submission_status": "failed",
            "stdout": "",
            "stderr": clean(stderr),
        }
        self._update("PUT", f"post the failure of submission {pk}", body)

    def _update(self, method: str, what: str, body: Mapping[str, Any]) -> Any:
        path = f"/api/jobs/challenge/{self._challenge}/update_submission/"
        return self.call(method, path, what, body)


def _items(document: Any) -> list[Any]:
    if not isinstance(document, list):
        raise Unintelligible("EvalAI answered with something that is not a list.", hint=ODD_ANSWER)
    return document

r"""An EvalAI server on loopback that behaves as the real one does towards a remote evaluation worker.

It is the test double of the project and the organizers' rehearsal stage. Requests, answers, status codes and oddities follow the real
server; a recorded story of requests is replayed against it in the tests. State is in memory and gone at the end::

    from worker.sandbox import Sandbox, SandboxSettings

    with Sandbox(SandboxSettings(throttle_per_minute=100_000, visibility_timeout_s=2)) as evalai:
        pk = evalai.submit("Team Alice", "dev", b"id,0,1\na,1,2\n", method_name="mean")
        run_worker(server=evalai.url, token=evalai.token("host"), challenge=evalai.challenge,
                   queue=evalai.queue, media_hosts=[evalai.media_host])
        evalai.submission(pk)["status"]          # "finished"
        evalai.text(pk, "stdout_file")           # what the participant reads
        evalai.leaderboard("dev")                # EvalAI's own board
        evalai.journal.posts()[pk]               # every accepted final PUT, in order
        evalai.queue_length()                    # messages that nobody deleted

Files come from another origin (``media_url``), as in production; the journal notes whether a token reached it. A large upload comes in
steps: ``begin_upload`` makes the submission with EvalAI's placeholder, ``finish_upload`` puts the file in its place and sends the message;
participants do the same with the four calls of their command line. Faults are settings
(``SandboxSettings(faults=FaultPlan(probability=0.2))``), forced one by one (``evalai.faults.force(Fault.ERROR_AFTER)``) or changed on
the way (``evalai.set_faults``). With ``clock=ManualClock().clock()`` throttle, visibility and token expiry need no sleeping.
"""

from __future__ import annotations

from worker.sandbox.clock import Clock, ManualClock, system_clock
from worker.sandbox.faults import Fault, FaultPlan
from worker.sandbox.journal import Journal, JournalEntry
from worker.sandbox.practice import PracticeTeam
from worker.sandbox.queue import QueueFaults
from worker.sandbox.replies import Refusal
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.settings import PhaseSettings, SandboxSettings, TeamSettings, from_challenge

__all__ = [
    "Clock",
    "Fault",
    "FaultPlan",
    "Journal",
    "JournalEntry",
    "ManualClock",
    "PhaseSettings",
    "PracticeTeam",
    "QueueFaults",
    "Refusal",
    "Sandbox",
    "SandboxSettings",
    "TeamSettings",
    "from_challenge",
    "system_clock",
]

r"""An EvalAI server on loopback that behaves towards a remote evaluation worker as the real one does.

The tests, the demo and the rehearsal use it instead of EvalAI. Requests, answers, status codes and oddities follow the real server; the
tests replay recorded requests against it. The state is in memory, and is lost at the end::

    from worker.sandbox import Sandbox, SandboxSettings

    with Sandbox(SandboxSettings(throttle_per_minute=100_000, visibility_timeout_s=2)) as evalai:
        pk = evalai.submit("Team Alice", "dev", b"id,0,1\na,1,2\n", method_name="mean")
        run_worker(server=evalai.url, token=evalai.token("host"), challenge=evalai.challenge,
                   queue=evalai.queue, media_hosts=[evalai.media_host])
        evalai.submission(pk)["status"]          # "finished"
        evalai.text(pk, "stdout_file")           # what the participant can read
        evalai.leaderboard("dev")                # EvalAI's own board
        evalai.journal.posts()[pk]               # every accepted final PUT, in order
        evalai.queue_length()                    # messages that were not deleted

Files come from another origin (``media_url``), as in production; the journal notes whether a token reached it. A large upload comes in
steps: ``begin_upload`` makes the submission with EvalAI's placeholder, ``finish_upload`` replaces it with the file and sends the message.
A second challenge, of ``otherhost``, is for what outsiders can do to ours: EvalAI compares hosts with the challenge in the address only.
Each endpoint shows exactly EvalAI's fields. ``set_challenge``, ``set_phase``, ``change_hosts``, ``give_up`` and ``flatten`` change what
hosts, administrators, maintenance and time can change.
Faults are drawn (``evalai.set_faults(FaultPlan(probability=0.2))``) or forced one by one (``evalai.faults.force(Fault.ERROR_AFTER)``).
With ``clock=ManualClock().clock()``, tests of throttle, visibility and token expiry need no sleeping.
"""

from __future__ import annotations

from worker.sandbox.application import Listener
from worker.sandbox.call import Refusal
from worker.sandbox.faults import Fault, FaultPlan
from worker.sandbox.journal import Clock, Journal, JournalEntry, ManualClock
from worker.sandbox.sandbox import Sandbox
from worker.sandbox.settings import PhaseSettings, SandboxSettings, from_challenge

__all__ = [
    "Clock",
    "Fault",
    "FaultPlan",
    "Journal",
    "JournalEntry",
    "Listener",
    "ManualClock",
    "PhaseSettings",
    "Refusal",
    "Sandbox",
    "SandboxSettings",
    "from_challenge",
]

"""The queue for the host: receive a message, delete a message."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from worker.sandbox.call import Call
from worker.sandbox.replies import Breakdown, error

NOT_AUTHORIZED = "Sorry, you are not authorized to access this resource"

views = Blueprint("queue", __name__)


@views.get("/api/jobs/challenge/queues/<queue>/")
def receive(call: Call, queue: str) -> dict[str, Any]:
    """Deliver at most one message; null values if none is available."""
    world = call.world
    call.require_queue(queue)
    call.require_host(401, NOT_AUTHORIZED)
    delivery = world.queue.receive(world.clock.monotonic())
    if delivery is None:
        return {"body": None, "receipt_handle": None}
    body, handle = delivery
    world.effect("message_received", int(body["submission_pk"]), receipt=handle[:12])
    return {"body": dict(body), "receipt_handle": handle}


@views.post("/api/jobs/queues/<queue>/")
def delete(call: Call, queue: str) -> dict[str, Any]:
    """Delete the message with a receipt handle."""
    world = call.world
    call.require_queue(queue, "exists")
    if "receipt_handle" not in call.data:
        raise Breakdown("KeyError: receipt_handle")
    handle = call.data["receipt_handle"]
    if not handle:
        raise error(400, "Please add message receipt handle in the body")
    call.require_host(401, NOT_AUTHORIZED)
    outcome = world.queue.delete(str(handle))
    if outcome == "unknown":
        raise Breakdown("ReceiptHandleIsInvalid")
    world.effect("message_deleted" if outcome == "deleted" else "delete_ignored", receipt=str(handle)[:12])
    return {"success": f"Message deleted successfully from the queue: {queue}"}

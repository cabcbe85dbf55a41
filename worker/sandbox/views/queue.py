"""The queue as the host sees it: receive a message, delete a message."""

from __future__ import annotations

from worker.sandbox.replies import Breakdown, Reply, error
from worker.sandbox.routing import Call, Route

NOT_AUTHORIZED = "Sorry, you are not authorized to access this resource"


def receive(call: Call, queue: str) -> Reply:
    """Deliver at most one message; null values when nothing is available."""
    world = call.world
    call.require_own_queue()
    if queue != world.settings.queue:
        raise error(400, f"Challenge with queue name {queue} does not exist")
    call.require_host(401, NOT_AUTHORIZED)
    delivery = world.queue.receive(world.clock.monotonic())
    if delivery is None:
        return Reply(body={"body": None, "receipt_handle": None})
    body, handle = delivery
    world.effect("message_received", int(body["submission_pk"]), receipt=handle[:12])
    return Reply(body={"body": dict(body), "receipt_handle": handle})


def delete(call: Call, queue: str) -> Reply:
    """Delete the message that was delivered under a receipt handle."""
    world = call.world
    call.require_own_queue()
    if queue != world.settings.queue:
        raise error(400, f"Challenge with queue name {queue} does not exists")
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
    return Reply(body={"success": f"Message deleted successfully from the queue: {queue}"})


ROUTES = (
    Route(path="/api/jobs/challenge/queues/<queue>/", views={"GET": receive}),
    Route(path="/api/jobs/queues/<queue>/", views={"POST": delete}),
)

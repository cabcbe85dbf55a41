"""``neuco-worker alerts …``: check that alerts reach the organizer."""

from __future__ import annotations

import time

from scoring.errors import OrganizerError
from scoring.printable import printable
from worker.cli.commands import Commands
from worker.cli.options import ConfigOption

alerts = Commands(name="alerts", help="Check that alerts reach you.")

TEST_TEXT = "This is a test: alerts of this challenge arrive here."


@alerts.callback()
def _alerts() -> None:
    """Check that alerts reach you."""


@alerts.command("test")
def send_test(*, config: ConfigOption) -> None:
    """Send a test alert to the webhook, in the same way as the worker does, and print the webhook's answer.

    Exits with 1 if the webhook did not accept it, and with 2 if no webhook is configured.

    Example: neuco-worker alerts test --config challenge.yaml
    """
    from worker.challenge.configuration import load
    from worker.daemon import alerts as sending

    configuration = load(config)
    if configuration.alerts.webhook is None:
        raise OrganizerError(
            "alerts.webhook is not set, so alerts appear only in the log and in `status`.",
            cure="Create an incoming webhook (Slack, Mattermost), write its address into webhook.token,"
            " and set alerts.webhook: file:./webhook.token",
            code="alerts.no_webhook",
        )
    began = time.monotonic()
    answer = sending.send(configuration, TEST_TEXT, "alerts.test")
    print(
        f"The webhook answered {printable(answer)} after {time.monotonic() - began:.1f} s. Check that this alert"
        " has arrived:"
    )
    print(f"  [{printable(configuration.challenge.title)}] {TEST_TEXT} (alerts.test)")

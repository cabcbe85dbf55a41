"""``neuco-worker alerts …``: whether alerts reach you."""

from __future__ import annotations

import time

from scoring.errors import OrganizerError
from scoring.printable import printable
from worker.cli.commands import Commands
from worker.cli.options import ConfigOption

alerts = Commands(name="alerts", help="Try whether alerts reach you.")

TEST_TEXT = "This is a test: alerts of this challenge reach you here."


@alerts.callback()
def _alerts() -> None:
    """Try whether alerts reach you."""


@alerts.command("test")
def send_test(*, config: ConfigOption) -> None:
    """Send a test alert to the webhook, as the worker sends its own, and say what came back.

    Ends with 1 if it did not arrive, 2 if no webhook is configured.

    Example: neuco-worker alerts test --config challenge.yaml
    """
    from worker.challenge.configuration import load
    from worker.daemon import alerts as sending

    configuration = load(config)
    if configuration.alerts.webhook is None:
        raise OrganizerError(
            "alerts.webhook is not set: alerts show in the log and in `status` only.",
            cure="Make an incoming webhook (Slack, Mattermost) and set alerts.webhook: file:./webhook.token",
            code="alerts.no_webhook",
        )
    began = time.monotonic()
    answer = sending.send(configuration, TEST_TEXT, "alerts.test")
    print(
        f"The webhook answered {printable(answer)} after {time.monotonic() - began:.1f} s. Look whether the alert is there:"
    )
    print(f"  [{printable(configuration.challenge.title)}] {TEST_TEXT} (alerts.test)")

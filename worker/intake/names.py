"""Names of teams that look the same. Anybody may give a team a name whose letters only look like those of another team's name."""

from __future__ import annotations

from datetime import datetime

from leaderboard.rendering import names_alike
from scoring.printable import printable
from worker.state import Transaction

ALIKE = "team.name_alike"


def compare(tx: Transaction, *, now: datetime) -> None:
    """Tell of teams whose names look the same, although their letters differ; the later one has a number after its name on the board."""
    teams = tx.team_names()
    alike = {f"name:{key}": (first, key) for first, *others in names_alike(teams) for key in others}
    for alert in tx.alerts():
        if alert.code == ALIKE and alert.key not in alike:
            tx.resolve_alert(alert.key)
    for key, pair in alike.items():
        first, later = (f"{printable(teams[team])!r} (team {team})" for team in pair)
        text = (
            f"The name of {later} looks like that of {first}. On the board, the later one gets a number after its name. If this misleads"
            " readers, ask the team to rename itself at EvalAI."
        )
        tx.raise_alert(key, ALIKE, text, now=now)

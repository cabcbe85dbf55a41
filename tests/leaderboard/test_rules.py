"""The rules of a phase: one model for all who store, obey or show them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from leaderboard import PhaseRules, StatedRules
from leaderboard.ranking import counted, fingerprint
from leaderboard.rules import sentences
from tests.leaderboard.harness.phases import phase, steady

OTHER: dict[str, dict[str, Any]] = {
    "selection": {"selection": "best"},
    "ladder_step": {"selection": "ladder", "ladder_step": 0.25},
    "shown": {"shown": "at_end"},
    "eligible_if_scored_in": {"eligible_if_scored_in": "dev"},
    "baselines": {"baselines": ["another"]},
    "baselines_weigh": {"baselines_weigh": False},
    "ghost_task": {"ghost_task": 0.5},
    "decimals": {"decimals": 2},
    "replicates": {"replicates": 200},
}
"""For each rule, rules in which it is not the default."""
SAID = {
    "selection": "with the highest mean Q counts",
    "ladder_step": "is more than 0.25 above the value shown",
    "shown": "Values and ranks are shown only after",
    "eligible_if_scored_in": "Teams without a score in the phase dev are out of competition.",
    "baselines": "whose method is called “another”",
    "baselines_weigh": "do not affect ranks or weights",
    "ghost_task": "Another task, of spread 0.5",
    "decimals": "shown with 2 decimal places",
    "replicates": "from 200 resamplings",
}
"""For each rule, what people are told with these rules, and not with the defaults."""
STATED = PhaseRules().model_dump(mode="json")


@pytest.mark.parametrize("name", PhaseRules.model_fields)
def test_each_rule_counts_wherever_rules_are_compared(name: str) -> None:
    """A change of any rule is named, told as it is, stored and read back, and gives a board another fingerprint."""
    rules = PhaseRules(**OTHER[name])
    assert SAID[name] in " ".join(sentences(rules))
    assert SAID[name] not in " ".join(sentences(PhaseRules()))
    assert name in PhaseRules().changed(rules)
    assert TypeAdapter(StatedRules).validate_python(rules.model_dump(mode="json")) == rules
    entries = steady(1, 1, 10, 20), steady(2, 2, 30, 5)
    marks = set()
    for stated in (PhaseRules(), rules):
        snapshot = phase(*entries, **stated.model_dump())
        marks.add(fingerprint(snapshot, counted(snapshot)))
    assert len(marks) == 2


@pytest.mark.parametrize(
    "change",
    [
        *({name: ...} for name in STATED),
        {"unknown": 1},
        {"selection": "first"},
        {"ladder_step": 0.5},
        {"decimals": "3"},
        {"decimals": True},
        {"replicates": 1},
        {"replicates": 10_001},
        {"baselines": ["b", "a"]},
        {"ghost_task": float("nan")},
        {"baselines_weigh": 0},
    ],
    ids=str,
)
def test_documents_state_all_rules_in_one_form(change: dict[str, Any]) -> None:
    """A missing or unknown rule, an impossible value, and another way to write a value are refused."""
    stated = {name: value for name, value in {**STATED, **change}.items() if value is not ...}
    with pytest.raises(ValidationError):
        TypeAdapter(StatedRules).validate_python(stated)
    with pytest.raises(ValidationError):
        TypeAdapter(StatedRules).validate_json(json.dumps(stated))

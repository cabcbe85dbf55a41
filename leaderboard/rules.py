"""The rules of a phase: one model, which the configuration contains, the record and the register store, boards obey and the page shows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from scoring import metrics
from scoring.printable import count_of

REPLICATES = 2000
Decimals = Annotated[int, Field(ge=0, le=12)]


class Selection(StrEnum):
    """How the one submission that counts is selected from a team's scored public ones."""

    LAST = "last"  # the greatest (submitted_at, pk)
    BEST = "best"  # the highest unrounded mean Q, or the earlier one on a tie
    LADDER = "ladder"  # the last one that beat the team's previous value by a step (Blum and Hardt, 2015)


class Shown(StrEnum):
    """When values and ranks are shown."""

    AT_ONCE = "at_once"  # with each answer
    AT_END = "at_end"  # once the phase was closed


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """How mean Q is shown."""

    decimals: int = 3
    ladder_step: float | None = None  # values are shown as multiples of this step

    def value(self, q_mean: float) -> float:
        """Return mean Q as it is shown."""
        return metrics.shown(q_mean, self.decimals, self.ladder_step)


class PhaseRules(BaseModel):
    """What decides a phase's board and how its values are shown."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        validate_default=True,
        json_schema_serialization_defaults_required=True,
    )

    selection: Selection = Field(
        Selection.LAST,
        description="Which of a team's public submissions counts: the `last`, the `best` or, with `ladder`, the last whose mean Q exceeded"
        " the value shown before by more than `ladder_step`; a team that improves by less sees its previous value again.",
    )
    ladder_step: Annotated[float, Field(gt=0)] | None = Field(
        0.5, description="With `selection: ladder`: the step; values are rounded to multiples of it."
    )
    shown: Shown = Field(
        Shown.AT_ONCE,
        description="When values and ranks are shown: with each answer (`at_once`), or after `board close` (`at_end`); until then, answers"
        " only say that the file was scored, and the board lists the teams.",
    )
    eligible_if_scored_in: str | None = Field(
        None,
        description="Only teams with a score in this other phase get a rank; others are shown out of competition.",
    )
    baselines: Annotated[tuple[str, ...], AfterValidator(lambda names: tuple(sorted(set(names))))] = Field(
        ("Baseline mean embeddings", "Baseline random embeddings"),
        description="Method names that make a submission of the hosts a baseline.",
    )
    baselines_weigh: bool = Field(
        True, description="Whether baselines count in task weights and ranks per task."
    )
    ghost_task: float = Field(
        0, ge=0, description="δ0 in the weights of the dynamic rank (Eq. 8 of the NeuCo-Bench paper)."
    )
    decimals: Decimals = Field(3, description="Decimal places of mean Q, on the board and at EvalAI.")
    replicates: int = Field(
        REPLICATES,
        ge=100,
        le=10_000,
        description="Replicates of each bootstrap: over folds, for intervals and groups, and over tasks.",
    )

    @field_validator("ladder_step")
    @classmethod
    def _only_on_a_ladder(cls, step: float | None, info: ValidationInfo) -> float | None:
        """Drop a step that has no effect, so that rules with the same effect are equal."""
        return step if info.data.get("selection") is Selection.LADDER else None

    @model_validator(mode="after")
    def _fit(self) -> Self:
        if self.selection is not Selection.LADDER:
            return self
        finest = 10.0**-self.decimals
        if self.ladder_step is None:
            raise ValueError("selection: ladder needs a ladder_step")
        if self.ladder_step < finest:
            raise ValueError(
                f"ladder_step is {self.ladder_step:g}, and decimals shows nothing finer than {finest:g}"
            )
        if self.shown is Shown.AT_END:
            raise ValueError(
                "selection: ladder is of no use with shown: at_end, which shows no values to climb by"
            )
        return self

    @property
    def rounding(self) -> Rounding:
        """How mean Q is shown by these rules."""
        return Rounding(decimals=self.decimals, ladder_step=self.ladder_step)

    def changed(self, other: PhaseRules) -> tuple[str, ...]:
        """Return the names of the rules that differ from another set of rules."""
        return tuple(name for name in type(self).model_fields if getattr(self, name) != getattr(other, name))


def sentences(rules: PhaseRules) -> tuple[str, ...]:
    """Say the rules, as plain text: what the page, README.md and the pages at EvalAI have in common.

    The names of baselines are the organizers' text.
    """
    step, elsewhere = f"{rules.ladder_step or 0:g}", rules.eligible_if_scored_in
    counts = {
        Selection.LAST: "A team's last scored public submission counts.",
        Selection.BEST: "A team's scored public submission with the highest mean Q counts.",
        Selection.LADDER: "A team's first scored public submission counts. A later one counts instead only if its mean Q, before"
        f" rounding, is more than {step} above the value shown for the one that counts (the Ladder). If it is not, the team is told so, and"
        f" shown that value again. Values are rounded to multiples of {step}, which the sign ≈ says. The same rule compares a team's"
        " submissions that are not public, but only with one another.",
    }[rules.selection]
    eligible = f" Teams without a score in the phase {elsewhere} are out of competition." if elsewhere else ""
    names = " or ".join(f"“{name}”" for name in rules.baselines)
    baselines = (
        f"Baselines are submissions of the organizers whose method is called {names}; they"
        if names
        else "Baselines"
    )
    weigh = "affect ranks and weights." if rules.baselines_weigh else "do not affect ranks or weights."
    ghost = (
        f" Another task, of spread {rules.ghost_task:g} and without scores, shares the weights."
        if rules.ghost_task
        else ""
    )
    at_end = ("Values and ranks are shown only after the organizers have closed this phase.",)
    return (
        f"{counts}{eligible}",
        *(at_end if rules.shown is Shown.AT_END else ()),
        f"{baselines} {weigh}{ghost}",
        f"Mean Q is shown with {count_of(rules.decimals, 'decimal place')}; intervals and groups come from {rules.replicates} resamplings.",
    )


def _stated(value: Any) -> PhaseRules:
    if isinstance(value, PhaseRules):
        return value
    rules = PhaseRules.model_validate_json(json.dumps(value), strict=True)
    if rules.model_dump(mode="json") != value:
        raise ValueError("a rule is missing, or not written as the worker writes it")
    return rules


StatedRules = Annotated[PhaseRules, BeforeValidator(_stated)]
"""Rules as documents state them: all of them, in one form."""

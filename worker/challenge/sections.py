"""The sections of the configuration: every key with its type, its limits, its default and what it means."""

from __future__ import annotations

import difflib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from scoring.loopback import is_loopback
from scoring.protocol import Recipe

NAMED_AFTER = "named_after_the_phase"
"""What a phase's key has if nothing is said: a text with the phase's codename in it."""
BEACONS = ("drand", "none")  # besides SOURCE@TIME
EXAMPLE_SOURCE = "Lotto 6 aus 49@2026-12-05T19:30+01:00"


class Section(BaseModel):
    """Keys that belong together; one that is not here is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Challenge(Section):
    """What the challenge is called and where its secret is."""

    title: str = Field(min_length=1, description="Title on the board and in alerts.")
    secret: Path = Field(
        Path("./challenge.secret"),
        description="File with 32 random bytes in hex, mode 0600, made by `init`; or credential:NAME (systemd).",
    )


class EvalAI(Section):
    """How to reach the challenge on EvalAI."""

    server: str = Field("https://eval.ai", description="URL of the EvalAI server; http:// only on loopback.")
    challenge: int = Field(
        ge=0, description="The number in the challenge's address at EvalAI; 0 as long as it has none."
    )
    queue: str = Field(
        min_length=1, description="Name of the challenge's queue, on EvalAI's Manage tab from the upload on."
    )
    token: str = Field(
        "env:EVALAI_TOKEN", description="A host's token: env:NAME, file:PATH or credential:NAME."
    )
    poll_every: float = Field(60, gt=0, description="Seconds between looks at the queue when idle.")
    reconcile_every: float = Field(
        600, gt=0, description="Seconds between comparisons with EvalAI's listing."
    )
    requests_per_minute: int = Field(
        50, ge=6, description="Our share of the account's budget; EvalAI allows 60."
    )
    media_hosts: list[str] = Field(
        [], description="Hosts (host or host:port) that input files may come from, besides the server."
    )

    @field_validator("server")
    @classmethod
    def _server(cls, value: str) -> str:
        parts = urlsplit(value)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.query
            or parts.fragment
            or parts.username
        ):
            raise ValueError("must be a URL such as https://eval.ai")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise ValueError(
                "must begin with https:// (http:// is accepted on loopback only: the token would travel in the clear)"
            )
        return value.rstrip("/")


class Phase(Section):
    """One EvalAI phase with its hidden tasks."""

    @classmethod
    def named_after(cls, codename: str) -> dict[str, str]:
        """Return the values of keys that are called after the phase where nothing is said."""
        extras = {key: field.json_schema_extra for key, field in cls.model_fields.items()}
        return {
            key: str(extra[NAMED_AFTER]).format(codename=codename)
            for key, extra in extras.items()
            if isinstance(extra, dict)
        }

    split: str = Field(
        min_length=1,
        json_schema_extra={NAMED_AFTER: "{codename}_split"},
        description="EvalAI dataset split codename.",
    )
    metric: str = Field("q_mean", min_length=1, description="Key in the EvalAI leaderboard schema.")
    tasks: Path = Field(
        json_schema_extra={NAMED_AFTER: "./tasks/{codename}"},
        description="Folder with <task>__<type>.csv files (columns id,label) or task packages.",
    )
    ids: Path = Field(
        json_schema_extra={NAMED_AFTER: "./ids/{codename}.txt"},
        description="Public id list, one per line.",
    )
    folds: int = Field(40, ge=1, description="Number K of random splits.")
    selection: Literal["last", "best", "chosen", "ladder"] = Field(
        "last",
        description="Which of a team's public submissions counts: the `last`, the `best`, the one that the organizers have `chosen`; or "
        "`ladder`: one that does not beat the team's standing value by `ladder_step` does not count, and is shown that value again.",
    )
    ladder_step: float = Field(
        0.5,
        gt=0,
        description="By how much a submission has to beat its team's standing value, with `selection: ladder`; values are shown as "
        "multiples of it.",
    )
    shown: Literal["at_once", "at_end"] = Field(
        "at_once",
        description="When values and ranks are shown: with each answer, or when the phase is closed (`board freeze`). Until then answers "
        "say that the file was scored, and the board lists the teams.",
    )
    visibility: Literal["at_submission", "current"] = Field(
        "at_submission", description="Whether the visibility at first sight counts, or the present one."
    )
    eligible_if_scored_in: str | None = Field(
        None, description="Phase in which a team must have a score; others are shown out of competition."
    )

    @model_validator(mode="after")
    def _ladder_holds(self) -> Phase:
        if self.selection == "ladder" and self.visibility == "current":
            raise ValueError(
                "selection: ladder needs visibility: at_submission; otherwise a team could take a value down to climb again"
            )
        if self.selection == "ladder" and self.shown == "at_end":
            raise ValueError(
                "selection: ladder is of no use with shown: at_end, which shows no values to climb by"
            )
        return self


class Submission(Section):
    """What a submission may be and cost."""

    embedding_dim: int = Field(1024, ge=1, description="Public dimension of an embedding.")
    max_megabytes: float = Field(
        1024, gt=0, description="Download cap; four times as much is the cap of what it expands to."
    )
    deadline: float = Field(1800, gt=0, description="Seconds for one evaluation.")
    memory_gigabytes: float = Field(
        8,
        gt=0,
        description="Memory ceiling of one evaluation; at least 0.25 and 24 bytes for each value of a phase's embeddings.",
    )
    answer_grid: float = Field(
        30,
        ge=0,
        description="Answers leave at multiples of so many seconds after `running`, and a team's next file waits for that; 0 at once.",
    )
    keep_days: float = Field(
        400,
        gt=0,
        description="How long submitted files are kept for re-scoring; a rescore has those that are gone fetched again from EvalAI. Those"
        " that `fairness.publish_files` may ask for are kept at least until their phase is revealed.",
    )
    disk_reserve_gigabytes: float = Field(
        5, ge=0, description="Free disk space below which nothing more is fetched."
    )


class Scoring(Section):
    """Where and how probes are trained."""

    engine: Literal["local", "ray", "torch"] = Field(
        "local",
        description=(
            "What trains the probes: `local` the compiled kernel, `ray` the same on a cluster, "
            "`torch` PyTorch, on CUDA if there is any."
        ),
    )
    ray_address: str = Field("auto", description="Address of the Ray cluster, for engine: ray.")
    at_once: int = Field(
        1,
        ge=1,
        description="Submissions that are scored at the same time; more than 1 only with engine: ray.",
    )
    probe: Literal["linear"] = Field("linear", description="The probe of the protocol.")
    epochs: int = Field(20, ge=1, description="Epochs E per fold; the best one counts.")
    batch_size: int = Field(64, ge=1, description="Rows per step.")
    learning_rate: float = Field(0.001, gt=0, description="AdamW's learning rate.")
    test_size: float = Field(0.1, gt=0, lt=1, description="Share of rows held out per fold.")
    standardize_embeddings: bool = Field(
        True, description="One global mean and standard deviation over the phase's ids."
    )
    normalize_labels: bool = Field(True, description="Min-max labels of regression tasks to [0, 1].")
    epsilon: float = Field(0.02, gt=0, description="The epsilon of Q = 100·ε·mean/(std + ε).")
    max_failed_folds: int = Field(
        3, ge=0, description="More non-finite folds than this in one task fail the submission."
    )
    threads: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto", description="Threads of the local engine."
    )

    @model_validator(mode="after")
    def _room(self) -> Scoring:
        if self.at_once > 1 and self.engine != "ray":
            raise ValueError(
                f"at_once is {self.at_once}, which needs engine: ray; on one machine each submission would only take longer,"
                " and show the others' time as its own"
            )
        return self

    def recipe(self) -> Recipe:
        """Return the keys that decide a number, for the protocol."""
        return Recipe(**{key: getattr(self, key) for key in Recipe.__dataclass_fields__})


class Leaderboard(Section):
    """Where the board is published and by which rules."""

    repository: str = Field(min_length=1, description="Any git URL, or the path of a local bare repository.")
    branch: str = Field(
        "main", pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]*$", description="Branch that holds the board."
    )
    token: str | None = Field(None, description="For https URLs: env:NAME, file:PATH or credential:NAME.")
    ssh_key: str | None = Field(None, description="For ssh URLs: file:PATH or credential:NAME.")
    known_hosts: str | None = Field(None, description="File with the pinned host keys, for ssh URLs.")
    publish_every: float = Field(
        60, ge=0, description="Minimum seconds between two pushes; `once` pushes at its end all the same."
    )
    receipts_every: float = Field(
        3600, gt=0, le=86400, description="Seconds between two batches of the public log of receipts."
    )
    publish: list[Literal["intervals", "stable_views"]] = Field(
        [], description="What is released before the reveal."
    )
    baselines: list[str] = Field(
        ["Baseline mean embeddings", "Baseline random embeddings"],
        description="Method names of the hosts' own submissions that are shown without a number, under these names; "
        "so is what EvalAI marks as a baseline.",
    )
    hidden_teams: list[str] = Field([], description="Teams that never appear on the board.")
    baselines_weigh: bool = Field(
        True, description="Whether baselines take part in the task weights, as in 2025."
    )
    ghost_task: float = Field(0, ge=0, description="δ0 of the paper's Eq. 8; 0 = off.")
    decimals: int = Field(3, ge=0, le=12, description="Decimals of mean Q, on the board and at EvalAI.")


def read_source(rule: str) -> tuple[str, datetime]:
    """Read ``SOURCE@TIME``.

    Raises:
        ValueError: If it is not that; the time needs its distance to UTC.
    """
    source, sign, text = (part.strip() for part in rule.rpartition("@"))
    if not sign:
        meant = difflib.get_close_matches(rule.lower(), BEACONS, n=1)
        raise ValueError(
            f"it says `{rule}`; it must be {' or '.join(BEACONS)}, or SOURCE@TIME such as `{EXAMPLE_SOURCE}`"
            + (f"; did you mean {meant[0]}?" if meant else "")
        )
    if not source:
        raise ValueError(f"`{rule}` names no source in front of the @; write it as `{EXAMPLE_SOURCE}`")
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        wrong = "is no date and time" if at is None else "does not say its distance to UTC"
        raise ValueError(
            f"the time of {source}, `{text}`, {wrong}; write it as in `{EXAMPLE_SOURCE}` (with +00:00 for UTC)"
        )
    return source, at


class Fairness(Section):
    """What lets anybody check the challenge."""

    publish_files: str = Field(
        "baselines",
        pattern=r"^(baselines|top:[1-9][0-9]*|all)$",
        description="Whose embeddings a phase's reveal publishes, so that anybody can compute their scores again: `baselines`; `top:N`, "
        "also those of the first N rows of the final board; `all`, those of every row. A phase keeps what held when it was first "
        "committed to.",
    )
    beacon: str = Field(
        "none",
        description="The public value that decides a phase's splits together with the secret, so that nobody can choose them: `drand` "
        "(a round of the League of Entropy's, made some minutes after the phase is committed to), `SOURCE@TIME` (a value that SOURCE "
        f"publishes at TIME, such as `{EXAMPLE_SOURCE}`; it comes with `challenge commit --beacon`), or `none`. "
        "Nothing is scored in a phase before its value is known.",
    )
    beacon_notice: float = Field(
        600, gt=0, description="How long before its moment a round of drand is named, in seconds."
    )
    drand_servers: list[str] = Field(
        [
            "https://api.drand.sh",
            "https://api2.drand.sh",
            "https://api3.drand.sh",
            "https://drand.cloudflare.com",
        ],
        description="Where rounds of drand are read, tried in this order. What they say is checked.",
    )
    drand_chain: Path | None = Field(
        None, description="JSON file that describes another chain of drand, for practice."
    )

    @field_validator("beacon")
    @classmethod
    def _names_a_value(cls, rule: str) -> str:
        if rule not in BEACONS:
            read_source(rule)
        return rule


class Alerts(Section):
    """Who hears of what needs a person."""

    webhook: str | None = Field(
        None, description="Slack-compatible webhook URL: env:NAME, file:PATH or credential:NAME."
    )


class Metrics(Section):
    """Where figures for monitoring go."""

    listen: str | None = Field(
        None, pattern=r"^(127\.0\.0\.1|localhost|\[::1\]):\d{1,5}$", description="host:port on loopback."
    )
    textfile: Path | None = Field(None, description="Prometheus text file, written by `once`.")

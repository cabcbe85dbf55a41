"""The sections of the configuration: every key with its type, its limits, its default and what it means."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

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

from leaderboard import PhaseRules
from scoring.documents import is_loopback, not_a_switch
from scoring.engines import CHUNK, EngineName
from scoring.inputs.limits import MOST_MEGABYTES
from scoring.protocol import LEAST_RATE, MOST_NUMBERS, MOST_RATE, MOST_REPEATS, Recipe

CODENAME = "<codename>"
"""Stands for the phase's codename in the defaults of its keys."""
Beacon = Literal["drand", "none"]
LAST_YEAR = 9000  # of an opening, from which later dates are computed


def _utc(value: Any) -> Any:
    """Return a date, with or without a time, as aware UTC; YAML has read it already, unless it is quoted."""
    if value is None:
        return None
    try:
        read = datetime.fromisoformat(str(value))
        read = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be written like 2026-12-12 00:00:00") from None
    if read.year > LAST_YEAR:
        raise ValueError(f"must not be after the year {LAST_YEAR}")
    return read


def _one_line(value: Any) -> Any:
    """Return a text without line breaks, which YAML's blocks end with."""
    return " ".join(value.split()) if isinstance(value, str) else value


def _with_ports(values: list[str]) -> list[str]:
    for value in values:
        _ = urlsplit(value if "//" in value else f"//{value}").port  # raises if there is no such port
    return values


Addresses = Annotated[list[str], AfterValidator(_with_ports)]
"""Addresses of hosts or servers, whose ports exist."""


def _is_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(map(_is_number, get_args(annotation)))


class Section(BaseModel):
    """Keys that belong together; one that is not here is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _switches(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse `yes` or `off` in place of a number."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        return not_a_switch(value) if _is_number(annotation) else value


class ChallengeSection(Section):
    """The challenge's title, its secret and its signing key."""

    title: Annotated[str, BeforeValidator(_one_line)] = Field(
        min_length=1, description="Title on the board and in alerts."
    )
    secret: Path = Field(
        Path("./challenge.secret"),
        description="File with 32 random bytes in hexadecimal, made by `init`; or `credential:NAME`.",
    )
    signing_key: Path = Field(
        Path("./signing.key"),
        description="File with the key that signs everything that is published, made by `init`; or `credential:NAME`.",
    )


class EvalAISection(Section):
    """How to reach the challenge on EvalAI, and how often."""

    server: str = Field(
        "https://eval.ai", description="URL of the EvalAI server; `http://` only on loopback."
    )
    challenge: int = Field(
        ge=0,
        description="The challenge's number, part of its address at EvalAI; 0 until it has one.",
    )
    queue: str = Field(
        min_length=1,
        description="Name of the challenge's queue, from the challenge's Manage tab at EvalAI.",
    )
    token: str = Field(
        "env:EVALAI_TOKEN", description="A host's EvalAI token: `env:NAME`, `file:PATH` or `credential:NAME`."
    )
    poll_every: float = Field(
        5,
        ge=0.1,
        le=86400,
        description="Seconds between checks of an empty queue. A submission can be edited at EvalAI until the worker reads it.",
    )
    reconcile_every: float = Field(
        600, ge=0.1, le=86400, description="Seconds between comparisons with EvalAI's list of submissions."
    )
    requests_per_minute: int = Field(
        50,
        ge=6,
        description="Calls to EvalAI per minute; EvalAI allows an account 60 in all. An idle worker makes about 14.",
    )
    media_hosts: Addresses = Field(
        [],
        description="Hosts, besides the server, that submitted files may come from: `host` (port 443 only) or `host:port`.",
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
        _ = parts.port  # raises if there is no such port
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise ValueError(
                "must begin with https:// (http:// is accepted on loopback only: the token would travel in the clear)"
            )
        return value.rstrip("/")


class PhaseTasks(Section):
    """What a phase's submissions are scored on, what EvalAI calls it, and when it opens."""

    split: str = Field(
        f"{CODENAME}_split", min_length=1, description="Codename of the dataset split at EvalAI."
    )
    metric: str = Field(
        "q_mean", min_length=1, description="Name of the value in EvalAI's leaderboard schema."
    )
    tasks: Path = Field(
        Path("./tasks", CODENAME),
        description="Folder of the hidden tasks: files `<task>__<type>.csv` (columns `id,label`) or task packages.",
    )
    ids: Path = Field(
        Path("./ids", f"{CODENAME}.txt"),
        description="Public ids, one per line; a submission must have a row for each.",
    )
    folds: int = Field(40, ge=1, le=MOST_REPEATS, description="Folds (random train/test splits) per task.")
    opens: Annotated[datetime | None, BeforeValidator(_utc)] = Field(
        None,
        description="When the phase opens for participants, UTC, such as `2026-12-12 00:00:00`. Their files that come earlier are scored"
        " then; the hosts' own are scored at once. `null`: as soon as EvalAI accepts files.",
    )

    def opens_later(self, now: datetime) -> bool:
        """Return whether the files of participants still wait for the opening."""
        return self.opens is not None and now < self.opens


class PhaseSection(PhaseRules, PhaseTasks):
    """A phase: its hidden tasks and rules. `<codename>` is its codename at EvalAI."""

    def named(self, codename: str) -> PhaseSection:
        """Return the phase with its codename in those of its keys that contain it by default."""
        texts = {
            key: str(getattr(self, key)).replace(CODENAME, codename) for key in ("split", "tasks", "ids")
        }
        paths = {key: Path(texts[key]) for key in ("tasks", "ids")}
        return self.model_copy(update=texts | paths)

    @property
    def rules(self) -> PhaseRules:
        """The phase's rules alone."""
        return PhaseRules(**{name: getattr(self, name) for name in PhaseRules.model_fields})


class SubmissionSection(Section):
    """Limits of a submission."""

    embedding_dim: int = Field(1024, ge=1, le=MOST_NUMBERS, description="Public dimension of the embeddings.")
    max_megabytes: float = Field(
        MOST_MEGABYTES,
        gt=0,
        description="Size limit of a file; four times as much after decompression.",
    )
    deadline: float = Field(1800, gt=0, le=604800, description="Seconds until an evaluation is stopped.")
    memory_gigabytes: float = Field(
        8,
        gt=0,
        description="Memory limit of an evaluation; at least 0.25 GB plus 24 bytes × public ids × dimension.",
    )
    answer_grid: float = Field(
        30,
        ge=0,
        le=86400,
        description="Answers are sent only at multiples of this many seconds after EvalAI shows `running`, so that their time says nothing"
        " about the tasks. A team's next submission waits for the answer. 0: at once.",
    )
    keep_days: float = Field(
        400,
        gt=0,
        le=36500,
        description="Days that files are kept; a rescore needs those that count. Files that `fairness.publish_files` may publish"
        " stay until their phase is revealed.",
    )
    disk_reserve_gigabytes: float = Field(
        5, ge=0, description="Free disk space below which nothing is downloaded."
    )


class ScoringSection(Section):
    """How the linear probes are trained. `neuco-worker score` has other probes.

    Only with the defaults can scores be compared with those of 2025.
    """

    engine: EngineName = Field(
        "local",
        description="What trains the probes: a compiled kernel on this machine (`local`) or on a Ray cluster (`ray`), or PyTorch (`torch`),"
        " which can use a GPU, or the plain loop (`reference`) that defines a score and takes 100 to 700 times as long.",
    )
    ray_address: str = Field("auto", description="With `engine: ray`: address of the Ray cluster.")
    at_once: int = Field(
        1,
        ge=1,
        description="Submissions that are scored at the same time; more than 1 needs `engine: ray`.",
    )
    device: Literal["cpu", "cuda"] = Field("cpu", description="With `engine: torch`: where PyTorch computes.")
    chunk: int = Field(
        CHUNK,
        ge=1,
        description="With `engine: torch`: folds that are trained together. More keep a GPU busier, need more memory, and may change scores"
        " by rounding.",
    )
    epochs: int = Field(
        20, ge=1, le=MOST_REPEATS, description="Epochs per fold; the one with the best test score counts."
    )
    batch_size: int = Field(64, ge=1, le=MOST_NUMBERS, description="Samples per training step.")
    learning_rate: float = Field(0.001, ge=LEAST_RATE, le=MOST_RATE, description="Learning rate of AdamW.")
    test_size: float = Field(0.1, gt=0, lt=1, description="Share of the samples in the test part.")
    standardize_embeddings: bool = Field(
        True,
        description="Whether embeddings are standardized, with one mean and one standard deviation.",
    )
    normalize_labels: bool = Field(True, description="Whether regression labels are scaled to [0, 1].")
    epsilon: float = Field(0.02, gt=0, description="The ε in Q = 100 · ε · mean / (std + ε).")
    max_failed_folds: int = Field(
        3,
        ge=0,
        description="A submission fails if more folds of a task than this give no finite score.",
    )
    threads: Literal["auto"] | Annotated[int, Field(ge=1)] = Field(
        "auto",
        description="Threads of `local`, on which scores do not depend, and of `torch` on a CPU; `auto`: one per core.",
    )

    @model_validator(mode="after")
    def _room(self) -> ScoringSection:
        if self.at_once > 1 and self.engine != "ray":
            raise ValueError(
                f"at_once is {self.at_once}, which needs engine: ray; on one machine each submission would only take longer,"
                " and show the others' time as its own"
            )
        return self

    def engine_options(self) -> dict[str, Any]:
        """Return the keys that an engine is made with, besides its name."""
        return self.model_dump(include={"threads", "ray_address", "device", "chunk"})

    def recipe(self) -> Recipe:
        """Return the keys that decide a number, for the protocol."""
        return Recipe(**{key: getattr(self, key) for key in Recipe.__dataclass_fields__})


class LeaderboardSection(Section):
    """Where and when the board is published."""

    repository: str = Field(min_length=1, description="Git URL, or path of a local bare repository.")
    page: str = Field(
        "",
        pattern=r"^(https?://[^\s\"'<>`]+)?$",
        examples=["https://organizer.github.io/challenge-leaderboard/"],
        description="Address at which `index.html` of the repository is served, such as the one of GitHub Pages. README.md and EvalAI's "
        "pages link to it; without it, EvalAI's pages link to the repository.",
    )
    branch: str = Field(
        "main",
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*$",
        examples=["main"],
        description="Branch that the board is pushed to.",
    )
    token: str | None = Field(
        None, description="For `https` URLs: `env:NAME`, `file:PATH` or `credential:NAME`."
    )
    ssh_key: str | None = Field(None, description="For `ssh` URLs: `file:PATH` or `credential:NAME`.")
    known_hosts: str | None = Field(None, description="For `ssh` URLs: file with the server's host keys.")
    publish_every: float = Field(
        60,
        ge=0,
        le=86400,
        description="Minimum seconds between pushes, at most `receipts_every`; `once` always pushes.",
    )
    receipts_every: float = Field(
        3600,
        gt=0,
        le=86400,
        description="Seconds between lines of the public log, `receipts.jsonl`; fixed by the first commitment.",
    )

    @field_validator("repository")
    @classmethod
    def _server(cls, repository: str) -> str:
        """Refuse an address that has no readable server or port."""
        try:
            _with_ports([repository] if "://" in repository else [])
        except ValueError:
            raise ValueError("must be written like https://SERVER/PATH or ssh://git@SERVER/PATH") from None
        return repository

    @field_validator("branch")
    @classmethod
    def _free(cls, branch: str) -> str:
        """Refuse what git, or a reveal, takes for something else."""
        if branch.partition("/")[0] in ("files", "HEAD", "refs"):
            raise ValueError("must be the short name of a branch other than `files`, which reveals need")
        return branch


class FairnessSection(Section):
    """How anyone can check the challenge afterwards."""

    publish_files: str = Field(
        "baselines",
        pattern=r"^(baselines|top:[1-9][0-9]*)$",
        examples=["baselines", "top:3"],
        description="Whose files the reveal publishes, so that anyone can recompute their scores: `baselines`; `top:N`: also the first N"
        " other rows of the final board. The phase's first commitment fixes this value.",
    )
    access: str = Field(
        "",
        max_length=2000,
        examples=["The organizers' group at X has the labels. Its members do not compete."],
        description="Who knows the hidden tasks, and whether they compete, in your words. Shown on the board, by `verify` and in EvalAI's"
        " terms; fixed by the first commitment.",
    )
    beacon: Beacon = Field(
        "none",
        description="The public random value on which the splits also depend, so that nobody can choose them. `drand`: from the League"
        " of Entropy; a phase is not scored before its value is known. `none`: the splits depend on the secret alone, so that the"
        " organizers did not try several secrets is taken on trust.",
    )
    beacon_notice: float = Field(
        600,
        gt=0,
        le=604800,  # EvalAI cancels what has waited for 14 days
        description="With `beacon: drand`: seconds from a commitment until drand publishes its value.",
    )
    drand_servers: Addresses = Field(
        [
            "https://api.drand.sh",
            "https://api2.drand.sh",
            "https://api3.drand.sh",
            "https://drand.cloudflare.com",
        ],
        description="With `beacon: drand`: servers, in order. Every answer is checked.",
    )
    drand_chain: Path | None = Field(
        None, description="Description (JSON) of another drand chain, for rehearsals."
    )


class AlertsSection(Section):
    """Where alerts are sent."""

    webhook: str | None = Field(
        None, description="URL of a Slack-compatible webhook: `env:NAME`, `file:PATH` or `credential:NAME`."
    )

"""The configuration: one YAML file per challenge, read once, checked whole.

Every key has a default except those without which nothing can run. Unknown keys are errors that name the nearest known key. Relative
paths are relative to the file. Secrets are references (see :mod:`worker.challenge.secrets`) and are resolved only where they are used.
"""

from __future__ import annotations

import difflib
import types
import typing
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from scoring.errors import OrganizerError
from scoring.inputs.documents import read_yaml
from scoring.protocol import Recipe
from worker.challenge import secrets

Codename = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
SERVER = "postgresql+psycopg://"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Challenge(_Section):
    """What the challenge is called and where its secret is."""

    title: str = Field(min_length=1, description="Title on the board and in alerts.")
    secret: Path = Field(
        Path("./challenge.secret"),
        description="File with 32 random bytes in hex, mode 0600, made by `init`; or credential:NAME (systemd).",
    )


class EvalAI(_Section):
    """How to reach the challenge on EvalAI."""

    server: str = Field("https://eval.ai", description="URL of the EvalAI server; http:// only on loopback.")
    challenge: int = Field(gt=0, description="Challenge primary key.")
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
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise ValueError(
                "must begin with https:// (http:// is accepted on loopback only: the token would travel in the clear)"
            )
        return value.rstrip("/")


class Phase(_Section):
    """One EvalAI phase with its hidden tasks."""

    split: str = Field(min_length=1, description="EvalAI dataset split codename.")
    metric: str = Field("q_mean", min_length=1, description="Key in the EvalAI leaderboard schema.")
    tasks: Path = Field(
        description="Folder with <task>__<type>.csv files (columns id,label) or task packages."
    )
    ids: Path = Field(description="Public id list, one per line.")
    folds: int = Field(40, ge=1, description="Number K of random splits.")
    selection: Literal["last", "best", "chosen"] = Field(
        "last", description="Which of a team's public submissions counts."
    )
    visibility: Literal["at_submission", "current"] = Field(
        "at_submission", description="Whether the visibility at first sight counts, or the present one."
    )
    eligible_if_scored_in: str | None = Field(
        None, description="Phase in which a team must have a score; others are shown out of competition."
    )


class Submission(_Section):
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
        description="How long submitted files are kept for re-scoring; a rescore has those that are gone fetched again from EvalAI.",
    )
    disk_reserve_gigabytes: float = Field(
        5, ge=0, description="Free disk space below which nothing more is fetched."
    )


class Scoring(_Section):
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


class Leaderboard(_Section):
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
        86400, gt=0, description="Seconds between two batches of the public log of receipts."
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


class Alerts(_Section):
    """Who hears of what needs a person."""

    webhook: str | None = Field(
        None, description="Slack-compatible webhook URL: env:NAME, file:PATH or credential:NAME."
    )


class Metrics(_Section):
    """Where figures for monitoring go."""

    listen: str | None = Field(
        None, pattern=r"^(127\.0\.0\.1|localhost|\[::1\]):\d{1,5}$", description="host:port on loopback."
    )
    textfile: Path | None = Field(None, description="Prometheus text file, written by `once`.")


class Configuration(_Section):
    """The whole file."""

    challenge: Challenge
    evalai: EvalAI
    phases: dict[Codename, Phase] = Field(min_length=1)
    submission: Submission = Submission()
    scoring: Scoring = Scoring()
    leaderboard: Leaderboard
    alerts: Alerts = Alerts()
    metrics: Metrics = Metrics()
    state: str = Field(
        "sqlite:///./state/worker.db",
        description="SQLite file, or postgresql+psycopg://… URL, where a second worker can stand by.",
    )
    _base: Path = PrivateAttr(default=Path())  # folder of the file, set by load()

    @model_validator(mode="after")
    def _phases_exist(self) -> Configuration:
        for name, phase in self.phases.items():
            other = phase.eligible_if_scored_in
            if other is not None and (other not in self.phases or other == name):
                raise ValueError(
                    f"phases.{name}.eligible_if_scored_in names {other!r}, which is not another phase"
                )
        return self

    def path(self, relative: Path) -> Path:
        """Resolve a path of the file against the file's folder; ``credential:NAME`` is a file that systemd hands over."""
        kind, _, name = str(relative).partition(":")
        if kind == "credential":
            return secrets.credential_path(name, key="challenge.secret")
        return (self._base / relative.expanduser()).resolve()

    @property
    def state_dir(self) -> Path:
        """Folder for everything durable besides the database: stored files, the clone, temporary folders."""
        prefix = "sqlite:///"
        if self.state.startswith(prefix):
            return self.path(Path(self.state.removeprefix(prefix))).parent
        return self.path(Path("./state"))

    @property
    def shared_state(self) -> bool:
        """Whether the state is on a database server, where a second worker may stand by."""
        return self.state.startswith(SERVER)

    @property
    def database_url(self) -> str:
        """URL for SQLAlchemy, its SQLite path made absolute."""
        prefix = "sqlite:///"
        if self.state.startswith(prefix):
            return prefix + str(self.path(Path(self.state.removeprefix(prefix))))
        return self.state

    @property
    def repository_url(self) -> str:
        """The leaderboard repository; a local path made absolute."""
        text = self.leaderboard.repository
        if text.startswith(("./", "../", "/", "~")):
            return str(self.path(Path(text)))
        return text

    def secret_path(self, reference: str, key: str) -> Path:
        """Resolve a reference to a file that another program reads itself, such as an ssh key."""
        return secrets.resolve_path(reference, base=self._base, key=key)

    def secret(self, reference: str, key: str) -> SecretStr:
        """Resolve a reference of this file, see :func:`worker.challenge.secrets.resolve`."""
        return secrets.resolve(reference, base=self._base, key=key)


def load(path: Path) -> Configuration:
    """Read and check a configuration file.

    Raises:
        OrganizerError: In one sentence what is wrong, where, and how to mend it; all faults of the file at once.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise OrganizerError(
            f"There is no configuration file at {path}.",
            cure="Make one with `neuco-worker init DIR`.",
            code="config.missing",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise OrganizerError(
            f"{path} cannot be read ({type(error).__name__}).",
            cure="It must be a readable UTF-8 text file.",
            code="config.unreadable",
        ) from None
    try:
        document = read_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise OrganizerError(
            f"{path} is not valid YAML:{place or ' somewhere'}.",
            cure="Check indentation, colons and quotes there.",
            code="config.yaml",
        ) from None
    if not isinstance(document, dict):
        raise OrganizerError(
            f"{path} holds no keys.", cure="Compare it with config/challenge.yaml.", code="config.empty"
        )
    try:
        configuration = Configuration.model_validate(document)
    except ValidationError as error:
        faults = _sentences(error)
        raise OrganizerError(
            f"{path}: {' '.join(faults)}", cure="See config/README.md for every key.", code="config.invalid"
        ) from None
    if unsupported := not_yet_supported(configuration):
        raise OrganizerError(
            f"{path}: this version does not have {' and '.join(unsupported)}.",
            cure="Take the key out, or set it to its default.",
            code="config.unsupported",
        )
    configuration._base = path.resolve().parent
    return configuration


def _sentences(error: ValidationError) -> list[str]:
    sentences = []
    for fault in error.errors():
        location = [str(part) for part in fault["loc"] if not str(part).endswith("[key]")]
        key = ".".join(location)
        if fault["type"] == "extra_forbidden":
            nearest = difflib.get_close_matches(location[-1], _known_keys(location[:-1]), n=1, cutoff=0.0)
            hint = f"; did you mean {nearest[0]}?" if nearest else "."
            sentences.append(f"unknown key {key}{hint}")
        elif fault["type"] == "missing":
            sentences.append(f"{key} is missing.")
        else:
            reason = fault["msg"].removeprefix("Value error, ")
            sentences.append(f"{key}: {reason[:1].lower()}{reason[1:]}." if key else f"{reason}.")
    return sentences


def _known_keys(location: list[str]) -> list[str]:
    model: Any = Configuration
    free_name = False
    for part in location:
        if free_name:  # a phase's codename
            free_name = False
            continue
        annotation = model.model_fields[part].annotation
        free_name = typing.get_origin(annotation) is dict
        model = _section(annotation)
    return list(model.model_fields)


def _section(annotation: Any) -> Any:
    if typing.get_origin(annotation) in (dict, typing.Union, types.UnionType):
        for argument in reversed(typing.get_args(annotation)):
            if isinstance(argument, type) and issubclass(argument, BaseModel):
                return argument
    return annotation


def not_yet_supported(configuration: Configuration) -> list[str]:
    """List the keys that are set to something whose feature this version does not have."""
    keys = []
    if not configuration.state.startswith(("sqlite:///", SERVER)):
        keys.append("a state elsewhere than in sqlite:/// or postgresql+psycopg://")
    return keys

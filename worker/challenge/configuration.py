"""The configuration: one YAML file per challenge, which is read once and checked as a whole.

Every key has a default except those that the organizer must decide. Unknown keys are errors. Relative paths are relative to the file.
Secrets are references (see :mod:`worker.challenge.secrets`) and are resolved only where they are used.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import (
    BeforeValidator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from scoring.documents import read_text, read_yaml, yaml_fault
from scoring.errors import OrganizerError
from worker.challenge import secrets
from worker.challenge.faults import fault_lines
from worker.challenge.sections import (
    AlertsSection,
    ChallengeSection,
    EvalAISection,
    FairnessSection,
    LeaderboardSection,
    PhaseSection,
    ScoringSection,
    Section,
    SubmissionSection,
)

EXAMPLE_REPOSITORY = "git@github.com:organizer/challenge-supplement.git"  # in config/challenge.yaml
_PORT = r"([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"  # 1 to 65535
_ADDRESS = re.compile(
    r"(?:(?P<scheme>https|ssh)://(?:[^@/]*@)?(?P<server>[\w.-]+)(?P<port>:\d+)?/+|(?:[\w.-]+@)?(?P<host>[\w.-]+):)"
    r"(?P<path>(?:[\w.~-]+/)+[\w.~-]+?)(?:\.git)?/*"
)


def github_pages(repository: str) -> str | None:
    """Return the address at which GitHub serves a repository's page once that is turned on; None if it is not at GitHub."""
    _, _, path = (web_address(repository) or "").partition("https://github.com/")
    owner, _, name = path.partition("/")
    return f"https://{owner.lower()}.github.io/{name}/" if name else None


def web_address(repository: str) -> str | None:
    """Return the https address of a repository's page; None for the example's, a local path and anything unreadable.

    A user name or password in the address is dropped, and so is the port of ssh.
    """
    parts = None if repository == EXAMPLE_REPOSITORY else _ADDRESS.fullmatch(repository)
    if parts is None or "." not in (host := parts["server"] or parts["host"]):
        return None
    port = parts["port"] or ""
    return f"https://{host}{port if parts['scheme'] == 'https' else ''}/{parts['path']}"


CODENAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
Codename = Annotated[str, Field(pattern=CODENAME.pattern)]


def _keys(phase: Any) -> Any:
    """Take a phase without keys, such as `dev:`, for one with the defaults."""
    return {} if phase is None else phase


SQLITE = "sqlite:///"
SERVER = "postgresql+psycopg://"


class Configuration(Section):
    """The whole configuration file."""

    challenge: ChallengeSection
    evalai: EvalAISection
    phases: dict[Codename, Annotated[PhaseSection, BeforeValidator(_keys)]] = Field(min_length=1)
    submission: SubmissionSection = SubmissionSection()
    scoring: ScoringSection = ScoringSection()
    leaderboard: LeaderboardSection
    fairness: FairnessSection = FairnessSection()
    alerts: AlertsSection = AlertsSection()
    healthz: str | None = Field(
        None,
        pattern=rf"^(127\.0\.0\.1|localhost|\[::1\]):{_PORT}$",
        examples=["127.0.0.1:9464"],
        description="Address at which `run` serves `/healthz` for monitoring: `host:port` on loopback, such as `127.0.0.1:9464`.",
    )
    state: str = Field(
        "sqlite:///./state/worker.db",
        pattern=f"^({SQLITE}|{SERVER})".replace("+", r"\+"),
        examples=[f"{SQLITE}./state/worker.db", f"{SERVER}USER@HOST/DATABASE"],
        description="The database: a SQLite file, or a `postgresql+psycopg://…` URL.",
    )
    _base: Path = PrivateAttr(default=Path())  # folder of the file, set by load()

    @field_validator("phases")
    @classmethod
    def _phases(cls, phases: dict[str, PhaseSection]) -> dict[str, PhaseSection]:
        return {name: phase.named(name) for name, phase in phases.items()}

    @model_validator(mode="after")
    def _phases_exist(self) -> Configuration:
        for name, phase in self.phases.items():
            other = phase.eligible_if_scored_in
            if other is not None and (other not in self.phases or other == name):
                raise ValueError(
                    f"phases.{name}.eligible_if_scored_in is `{other}`, which is not another phase; the phases are {', '.join(self.phases)}"
                )
            if any(name != key and name.casefold() == key.casefold() for key in self.phases):
                raise ValueError(f"phases.{name} differs from another phase only in case")
        return self

    def path(self, relative: Path) -> Path:
        """Resolve a path relative to the file's folder."""
        return secrets.located(relative, base=self._base)

    @property
    def challenge_secret(self) -> Path:
        """The file of the challenge's secret; ``credential:NAME`` is one that systemd provides."""
        return secrets.place(str(self.challenge.secret), base=self._base, key=secrets.SECRET)

    @property
    def signing_key(self) -> Path:
        """The file of the key that signs what is published; ``credential:NAME`` as for the secret."""
        return secrets.place(str(self.challenge.signing_key), base=self._base, key=secrets.SIGNING_KEY)

    @property
    def database_file(self) -> Path | None:
        """The file of a SQLite state; None if the state is on a database server."""
        if not self.state.startswith(SQLITE):
            return None
        return self.path(Path(self.state.removeprefix(SQLITE)))

    @property
    def state_dir(self) -> Path:
        """The folder for everything durable besides the database: stored files, the clone, temporary folders."""
        file = self.database_file
        return self.path(Path("./state")) if file is None else file.parent

    @property
    def database_url(self) -> str:
        """URL for SQLAlchemy, its SQLite path made absolute."""
        file = self.database_file
        return self.state if file is None else f"{SQLITE}{file}"

    @property
    def repository_url(self) -> str:
        """The leaderboard repository; a local path made absolute."""
        text = self.leaderboard.repository
        return text if re.match("[^/]+:", text) else str(self.path(Path(text)))

    @property
    def board_address(self) -> str | None:
        """The address of the leaderboard's page or, if it is not configured, of its repository; None if a browser can open neither."""
        return self.leaderboard.page or web_address(self.leaderboard.repository)

    def references(self) -> dict[str, str]:
        """Return the references to secrets by key, without those that are not set."""
        references = {
            "evalai.token": self.evalai.token,
            "leaderboard.token": self.leaderboard.token,
            "leaderboard.ssh_key": self.leaderboard.ssh_key,
            "alerts.webhook": self.alerts.webhook,
        }
        return {key: reference for key, reference in references.items() if reference is not None}

    def private_values(self) -> dict[str, str]:
        """Return the contents of the secret, of tokens and of keys by key of this file, without those that cannot be read here."""
        values = {}
        made = {secrets.SECRET: self.challenge.secret, secrets.SIGNING_KEY: self.challenge.signing_key}
        places = {
            key: str(place) if str(place).startswith("credential:") else f"file:{place}"
            for key, place in made.items()
        }
        for key, reference in {**places, **self.references()}.items():
            with suppress(OrganizerError):
                values[key] = self.secret(reference, key).get_secret_value()
        return values

    def private_places(self) -> list[Path]:
        """Return the files and folders that must not leave this machine, whether or not they exist."""
        places = [
            self.challenge_secret,
            self.signing_key,
            *(self.path(phase.tasks) for phase in self.phases.values()),
            self.state_dir,
        ]
        files = [
            reference.removeprefix("file:")
            for reference in self.references().values()
            if reference.startswith("file:")
        ]
        return list(dict.fromkeys([*places, *(self.path(Path(file)) for file in files)]))

    def secret_path(self, reference: str, key: str) -> Path:
        """Resolve a reference to a file that another program reads, such as an ssh key.

        Raises:
            OrganizerError: If there is no such file.
        """
        path = secrets.place(reference, base=self._base, key=key)
        if not path.is_file():
            raise OrganizerError(
                f"{key} points to {path}, which is not a file.",
                hint="Create the file, or correct the key.",
                code="secret.missing",
            )
        return path

    def secret(self, reference: str, key: str) -> SecretStr:
        """Resolve a reference of this file, see :func:`worker.challenge.secrets.resolve`."""
        return secrets.resolve(reference, base=self._base, key=key)


def load(path: Path) -> Configuration:
    """Read and check a configuration file.

    Raises:
        OrganizerError: As :func:`read`, or if the file cannot be read.
    """
    hint = "Change to the challenge's folder, name its file (--config FILE), or create a challenge with `neuco-worker init DIR`."
    try:
        text = read_text(path)
    except FileNotFoundError:
        raise OrganizerError(
            f"There is no configuration file at {path}.", hint=hint, code="config.missing"
        ) from None
    except OSError as error:
        raise OrganizerError(
            f"{path} cannot be read: {error.strerror}.", hint=hint, code="config.unreadable"
        ) from None
    if not text.strip():
        raise OrganizerError(
            f"{path} is empty.",
            hint="Restore it from a backup, or write it again: `neuco-worker init DIR` makes one to start from.",
            code="config.empty",
        )
    return read(text, path)


def read(text: str, path: Path) -> Configuration:
    """Check the text of a configuration file.

    Args:
        text: The text.
        path: Where the file is, or will be.

    Raises:
        OrganizerError: With all faults of the text at once: what is wrong, where, and how to fix it.
    """
    try:
        document = read_yaml(text)
    except yaml.YAMLError as error:
        raise OrganizerError(
            yaml_fault(error, path),
            hint="Check indentation, colons and quotes there.",
            code="config.yaml",
        ) from None
    try:
        configuration = Configuration.model_validate(document)
    except ValidationError as error:
        lines = fault_lines(error, text, Configuration)
        raise OrganizerError(
            f"{path}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{path}:", *lines]),
            hint="docs/configuration.md describes every key.",
            code="config.invalid",
        ) from None
    configuration._base = base = secrets.located(path, base=Path()).parent
    if str(base) != str(base).encode(errors="replace").decode():  # neither JSON nor a database could hold it
        raise OrganizerError(
            f"The name of the folder {base} is not UTF-8.",
            hint="Rename the folder, or move the challenge into another one.",
            code="config.folder",
        )
    return configuration

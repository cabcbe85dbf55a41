"""What `init` writes: the configuration, the challenge secret, and the folders of a new challenge."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import cycle
from pathlib import Path

from scoring.errors import OrganizerError
from scoring.files import write_files
from worker.challenge.configuration import CODENAME, EXAMPLE_REPOSITORY, Configuration, github_pages, read
from worker.challenge.secrets import KEY_FILE, SECRET_FILE, make
from worker.challenge.sections import Beacon
from worker.organizer import demo_data, shipped
from worker.organizer.bundle import (
    pack,
    proposed_opening,
    read_sources,
    renewed_sources,
    sources,
)
from worker.organizer.bundle_check import bundle_faults
from worker.organizer.configuration_text import scalar

EXAMPLE_QUEUE = "name-of-the-queue"
SCHEMA = "challenge.schema.json"
SECRETS = (SECRET_FILE, KEY_FILE)
WRITTEN = ("challenge.yaml", SCHEMA, *SECRETS, ".gitignore", "tasks", "ids", "bundle", "bundle.zip")
GITIGNORE = """# Only these may be published. The others (secret, keys, tokens, tasks, state, backups, reports) show the hidden tasks.
/*
!/.gitignore
!/bundle/
!/challenge.schema.json
!/challenge.yaml
!/ids/
"""


@dataclass(frozen=True, kw_only=True)
class NewChallenge:
    """The organizer's decisions at the start.

    Attributes:
        title: The challenge's title.
        phases: Codename to folds, in order.
        dim: Numbers in one embedding.
        repository: Where the leaderboard is pushed; None if there is no repository yet.
        beacon: What decides the splits together with the secret, as ``fairness.beacon``.
    """

    title: str
    phases: Mapping[str, int]
    dim: int
    repository: str | None = None
    beacon: Beacon = "drand"


def with_folds(phases: Sequence[str], folds: Sequence[int]) -> dict[str, int]:
    """Return each phase's number of folds; a single number is for all phases.

    Raises:
        OrganizerError: If the counts do not fit, or a phase is named twice.
    """
    if len(folds) not in (1, len(phases)):
        raise OrganizerError(
            f"The numbers of folds ({len(folds)}) do not match the phases ({len(phases)}).",
            hint="Use --folds once for all phases, or once for each phase.",
            code="init.folds",
        )
    wrong = [name for name in phases if not CODENAME.fullmatch(name)]
    if wrong:
        raise OrganizerError(
            f"{wrong[0]!r} cannot be a phase's codename.",
            hint="Use letters a to z, digits, '_', '-' and '.', beginning with a letter or digit.",
            code="init.phases",
        )
    if len({name.casefold() for name in phases}) < len(phases):
        raise OrganizerError(
            "Two phases have the same codename, or codenames that differ only in case.",
            hint="Use a different codename for each phase.",
            code="init.phases",
        )
    return dict(zip(phases, cycle(folds), strict=False))


def create(directory: Path, new: NewChallenge, *, now: datetime) -> list[Path]:
    """Write the files of a new challenge; return their paths relative to the working directory.

    The example tasks are the demo's digits, so that the new challenge can be rehearsed before it has label files of its own.

    Raises:
        OrganizerError: If a file to be written already exists (then nothing is written), or the decisions do not make a valid
            configuration.
    """
    check_free(directory)
    text = new_configuration(new, now=now)
    configuration = read(text, directory / "challenge.yaml")
    schema = json.dumps(Configuration.model_json_schema(), indent=1, ensure_ascii=False)
    made = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    keys: list[Path] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name in SECRETS:
            make(directory / name)  # of two that begin at the same time, one fails here
            keys.append(directory / name)
        bundle = sources(configuration, now=now)
        files = {
            SCHEMA: f"{schema}\n".encode(),  # for editors
            ".gitignore": GITIGNORE.encode(),
            "bundle.zip": _packed(bundle, configuration, directory),
            **{f"bundle/{name}": content for name, content in bundle.items()},
        }
        dev, last = demo_data.load()
        for codename in new.phases:
            example = last if codename == list(new.phases)[-1] else dev
            files |= example.files(codename)
        # The configuration last: nothing takes the folder for a challenge before.
        write_files(directory, {**files, "challenge.yaml": text.encode()}, private=("tasks/",))
    except BaseException:
        with suppress(OSError):
            for key in keys:
                key.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()
        raise
    return [directory / name for name in WRITTEN]


def examples_left(configuration: Configuration) -> dict[str, list[Path]]:
    """Return the example tasks and ids that are still in place: the files of each phase that has any, as :func:`create` wrote them."""
    written = {content for phase in demo_data.load() for content in phase.files("").values()}
    left = {}
    for codename, phase in configuration.phases.items():
        paths = [configuration.path(phase.ids), *sorted(configuration.path(phase.tasks).glob("*.csv"))]
        examples = [path for path in paths if path.is_file() and path.read_bytes() in written]
        if examples:
            left[codename] = examples
    return left


def check_free(directory: Path) -> None:
    """Check that no file of a new challenge exists already.

    Raises:
        OrganizerError: If one does.
    """
    existing = [directory / name for name in WRITTEN if (directory / name).exists()]
    if existing:
        raise OrganizerError(
            f"{existing[0]} exists already, so nothing was written.",
            hint="Choose another folder. Existing files are never overwritten.",
            code="init.exists",
        )


def pack_bundle(directory: Path, configuration: Configuration, *, now: datetime) -> list[str]:
    """Renew what follows from the configuration in ``bundle/``, which is written if it does not exist, and pack it into ``bundle.zip``.

    Returns:
        The names of the sources that were renewed.

    Raises:
        OrganizerError: If EvalAI would refuse it, or it does not fit ``challenge.yaml``; nothing is then written.
    """
    folder = directory / "bundle"
    files, written = {}, sources(configuration, now=now)
    if folder.exists():
        files = read_sources(folder)
        written = renewed_sources(files, configuration, now=now)
    packed = _packed({**files, **written}, configuration, directory)
    renewed = {f"bundle/{name}": content for name, content in written.items()}
    write_files(directory, {**renewed, "bundle.zip": packed})
    return sorted(written)


def _packed(files: Mapping[str, bytes], configuration: Configuration, directory: Path) -> bytes:
    """Return the zip of the bundle's sources, checked.

    Raises:
        OrganizerError: If EvalAI would refuse it, or it does not fit ``challenge.yaml``.
    """
    packed = pack(files, configuration)
    faults = bundle_faults(io.BytesIO(packed), configuration)
    if faults:
        raise OrganizerError(
            "\n  ".join(["The bundle would not work:", *faults]),
            hint=f"Fix it in {directory}/bundle and pack it again: neuco-worker bundle {shlex.quote(str(directory))}",
            code="bundle.invalid",
        )
    return packed


def new_configuration(new: NewChallenge, *, now: datetime) -> str:
    """Return a configuration with only the keys that an organizer decides.

    It proposes days for the openings, and rules against climbing by repeated submissions: the Ladder, and no values before the end in the
    last of several phases. SECURITY.md has the measurements behind these rules.
    """
    import jinja2

    environment = jinja2.Environment(
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - YAML, whose values the filter quotes
    )
    environment.filters["yaml"] = scalar
    return environment.from_string(
        shipped("config/new-challenge.yaml.j2").read_text(encoding="utf-8")
    ).render(
        new=new,
        opens=[proposed_opening(number, now) for number in range(len(new.phases))],
        schema=SCHEMA,
        queue=EXAMPLE_QUEUE,
        repository=new.repository or EXAMPLE_REPOSITORY,
        page=github_pages(new.repository or ""),
    )

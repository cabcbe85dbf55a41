"""The EvalAI challenge bundle: the zip file that creates the challenge at EvalAI, made from the configuration.

Its sources are in a folder, where the organizer edits texts and dates, and are packed from there. It never contains labels: EvalAI wants
an annotation file for each phase, and gets a placeholder.
"""

from __future__ import annotations

import html
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from leaderboard.rules import sentences
from scoring.documents import read_yaml
from scoring.inputs.formats import SUFFIXES, listed
from worker.challenge.configuration import Configuration, web_address
from worker.challenge.signing import fingerprint, read_signer
from worker.fairness.disclosure import BASELINES, TOP
from worker.organizer import shipped
from worker.organizer.bundle_parts import TIME, renewed, stated_phases, with_added_phases

CONFIG_NAME = "challenge_config.yaml"
SCRIPT_FOLDER = "evaluation_script"
PAGES = ("description", "evaluation_details", "terms_and_conditions", "submission_guidelines")
PLACEHOLDER = "This challenge is evaluated remotely. There are no annotations here.\n"
PHASE_WEEKS = 4
DAYS_UNTIL_OPENING = 14
UNLIMITED = 100_000  # EvalAI's own default
PER_DAY, PER_MONTH = 10, 310  # in 2025: ten a day in the development phase …
IN_ALL = 3  # … and three in total in the last phase
# In the pages' sources; packing replaces them with the fingerprint and with addresses or, if these are unknown, with words.
LEADERBOARD, REPOSITORY, FINGERPRINT = (
    "ADDRESS-OF-THE-LEADERBOARD",
    "ADDRESS-OF-THE-REPOSITORY",
    "FINGERPRINT-OF-THE-KEY",
)
UNKNOWN = "an address that the organizers announce"
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # a fixed time, so that equal sources make equal zips


def read_sources(folder: Path) -> dict[str, bytes]:
    """Return the files in the bundle's folder by path, without hidden ones and what Python has compiled."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and not any(part.startswith((".", "__")) for part in path.relative_to(folder).parts[:-1])
        and not path.name.startswith(".")
    }


def renewed_sources(
    files: Mapping[str, bytes], configuration: Configuration, *, now: datetime
) -> dict[str, bytes]:
    """Return the sources to write so that the bundle says what configuration and dates say: marked parts, and added phases.

    Other texts stay. What is not readable as pages and YAML is left to the check.
    """
    try:
        text = files[CONFIG_NAME].decode()
        document = read_yaml(text)
    except (KeyError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    made = sources(configuration, now=now, stated=document)
    changed = {
        name: renewed(files[name].decode(errors="surrogateescape"), page.decode()).encode(
            errors="surrogateescape"
        )
        for name, page in made.items()
        if name.endswith(".html") and name in files
    }
    before, phases = list(stated_phases(document)), list(configuration.phases)
    if before and before == phases[: len(before)]:
        changed[CONFIG_NAME] = with_added_phases(text, made[CONFIG_NAME].decode()).encode()
        for phase in phases[len(before) :]:
            added = (f"phase_{phase}.html", f"annotations/{phase}.txt")
            changed |= {name: made[name] for name in added if name not in files}
    return {name: content for name, content in changed.items() if files.get(name) != content}


def sources(configuration: Configuration, *, now: datetime, stated: Any = None) -> dict[str, bytes]:
    """Return the bundle's sources by path: YAML, pages, placeholders, logo and evaluation script.

    Codenames, metrics, dimension, decimals and the days of the openings come from the configuration. Names, limits and other dates are
    the stated ones or, for a phase that is not stated, a proposal: for participants, phases of four weeks.

    Args:
        configuration: The challenge.
        now: Aware time at which the proposal begins.
        stated: The content of ``challenge_config.yaml``, whatever it is; None if there is none.
    """
    import jinja2

    templates = shipped("config/bundle")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([templates, templates / "pages"]),
        autoescape=jinja2.select_autoescape(enabled_extensions=("html.j2",)),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    # A YAML string, readable.
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    known = stated_phases(stated)
    phases = bundle_phases(configuration, known, now=now)
    dates = stated if isinstance(stated, dict) else {}
    end = _date(dates, "end_date")
    ends = [phase["end"] for phase in phases if phase["codename"] not in known or end is None]
    facts = {
        **_facts(configuration, phases),
        "file_types": ", ".join(SUFFIXES),
        "formats": listed(details=True),
        "start": _date(dates, "start_date") or f"{_midnight(now):{TIME}}",
        "end": max([*ends, end or ""]),
    }
    names = [CONFIG_NAME, *(f"{page}.html" for page in PAGES)]
    texts = {name: environment.get_template(f"{name}.j2").render(facts) for name in names}
    for phase in phases:
        page = environment.get_template("phase.html.j2").render(facts, phase=phase)
        texts |= {
            f"phase_{phase['codename']}.html": page,
            f"annotations/{phase['codename']}.txt": PLACEHOLDER,
        }
    scripts = (templates / SCRIPT_FOLDER).glob("*.py")
    return {
        **{name: f"{text.removesuffix(chr(10))}\n".encode() for name, text in texts.items()},
        "logo.png": (templates / "logo.png").read_bytes(),
        **{f"{SCRIPT_FOLDER}/{script.name}": script.read_bytes() for script in scripts},
    }


def bundle_phases(
    configuration: Configuration, stated: Mapping[str, Mapping[str, Any]], *, now: datetime
) -> list[dict[str, Any]]:
    """Return what the sources say of the phases.

    For a phase that is not stated, propose dates and the limits of 2025: ten submissions a day, and three in total in the last of
    several phases.

    At EvalAI, every phase begins with the challenge, so that hosts can submit to each before EvalAI's approval. It is opened for
    participants by making it public. Times are UTC text in EvalAI's format.
    """
    phases = []
    for number, (codename, phase) in enumerate(configuration.phases.items()):
        opens = phase.opens or proposed_opening(number, now)
        limited = 0 < number == len(configuration.phases) - 1
        limits = {
            "max_submissions_per_day": IN_ALL if limited else PER_DAY,
            "max_submissions_per_month": IN_ALL if limited else PER_MONTH,
            "max_submissions": IN_ALL if limited else UNLIMITED,
        }
        known = stated.get(codename, {})
        limits |= {key: known[key] for key in limits if type(known.get(key)) is int and known[key] > 0}
        name = known.get("name")
        phases.append(
            {
                "codename": codename,
                "name": name
                if isinstance(name, str) and name
                else f"{codename[:1].upper()}{codename[1:]} phase",
                "split": phase.split,
                "metric": phase.metric,
                "opens": phase.opens and f"{opens:{TIME}}",
                "end": _date(known, "end_date")
                or f"{opens + timedelta(weeks=PHASE_WEEKS, seconds=-1):{TIME}}",
                **limits,
                "limits": limits_sentence(*limits.values()),
                "rules": sentences(phase.rules),
                "decimals": phase.decimals,
                "at_end": phase.shown == "at_end",
            }
        )
    return phases


def proposed_opening(number: int, now: datetime) -> datetime:
    """Propose when a phase opens for participants, by its place among the phases: one after another, from two weeks after now."""
    return _midnight(now) + timedelta(days=DAYS_UNTIL_OPENING, weeks=PHASE_WEEKS * number)


def limits_sentence(per_day: int, per_month: int, total: int) -> str:
    """Say for the phase's page how many submissions a team may send, without limits that follow from another one."""
    said = {
        f"{per_day} a day": per_day < total,
        f"{per_month} a month": per_month < min(31 * per_day, total),
        f"{total} in all": total < UNLIMITED,
    }
    limits = " and ".join(limit for limit, needed in said.items() if needed)
    return f"Submissions of one team: at most {limits}." if limits else ""


def pack(files: Mapping[str, bytes], configuration: Configuration) -> bytes:
    """Return the zip of a bundle's sources, which contains the zipped evaluation script. Equal files make an equal zip.

    Args:
        files: The sources.
        configuration: Has the addresses of the leaderboard and the signing key, for the pages that name them.

    Raises:
        OrganizerError: If the signing key cannot be read.
    """
    prefix = f"{SCRIPT_FOLDER}/"
    script = {name.removeprefix(prefix): data for name, data in files.items() if name.startswith(prefix)}
    packed = {
        name: with_addresses(data, configuration) if name.endswith(".html") else data
        for name, data in files.items()
        if not name.startswith(prefix)
    }
    return _zip({**packed, **({f"{SCRIPT_FOLDER}.zip": _zip(script)} if script else {})})


def verification(configuration: Configuration) -> str:
    """Return the command with which anyone can check the challenge.

    Raises:
        OrganizerError: If the signing key cannot be read.
    """
    repository = web_address(configuration.leaderboard.repository) or "REPOSITORY"
    return f"neuco-worker verify {repository} --key {fingerprint(read_signer(configuration).public)}"


def with_addresses(page: bytes, configuration: Configuration) -> bytes:
    """Return a page with the key's fingerprint and the addresses of the leaderboard or, if these are unknown, with words."""
    address = configuration.board_address
    if address is None:
        page = page.replace(f'<a href="{LEADERBOARD}">{LEADERBOARD}</a>'.encode(), UNKNOWN.encode())
    texts = {
        LEADERBOARD: address or UNKNOWN,
        REPOSITORY: web_address(configuration.leaderboard.repository) or "REPOSITORY",
        FINGERPRINT: fingerprint(read_signer(configuration).public),
    }
    for placeholder, text in texts.items():
        page = page.replace(placeholder.encode(), html.escape(text).encode())
    return page


def _facts(configuration: Configuration, phases: Sequence[Mapping[str, Any]]) -> Mapping[str, object]:
    title = configuration.challenge.title
    return {
        "title": title,
        "short_description": f"{title}: embeddings, scored on hidden downstream tasks.",
        "leaderboard_description": "Each team's submission with the highest mean quality score (mean Q) over the hidden tasks."
        " The leaderboard that counts is the one that the organizers publish.",
        "dim": configuration.submission.embedding_dim,
        "max_megabytes": f"{configuration.submission.max_megabytes:g}",
        "epsilon": f"{configuration.scoring.epsilon:g}",
        "standardized": configuration.scoring.standardize_embeddings,
        "test_percent": f"{100 * configuration.scoring.test_size:g}",
        "metrics": list(dict.fromkeys(phase["metric"] for phase in phases)),
        "at_end": [phase["name"] for phase in phases if phase["at_end"]],
        "phases": phases,
        "leaderboard": LEADERBOARD,
        "repository": REPOSITORY,
        "fingerprint": FINGERPRINT,
        "access": " ".join(configuration.fairness.access.split()),
        "published": published(configuration.fairness.publish_files),
    }


def published(rule: str) -> str:
    """Say for the terms whose embeddings the reveal of a phase publishes."""
    if rule == BASELINES:
        return "their baselines, but not those of participants"
    if rule == f"{TOP}1":
        return "their baselines, and of the counting submission of the first team on the final board"
    return f"their baselines, and of the counting submissions of the first {rule.removeprefix(TOP)} teams on the final board"


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _date(stated: Mapping[str, Any], key: str) -> str | None:
    """Return a stated date as EvalAI reads it; None if it is not one, which the check reports."""
    value = stated.get(key)
    return f"{value:{TIME}}" if isinstance(value, datetime) and value.tzinfo is None else None


def _zip(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, ZIP_TIME)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED)
    return buffer.getvalue()

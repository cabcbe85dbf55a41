"""Check an EvalAI challenge bundle before its upload, because EvalAI's own checks take long and report one fault at a time."""

from __future__ import annotations

import html
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from scoring.inputs.documents import read_yaml
from worker.challenge.configuration import Configuration
from worker.fairness.disclosure import ALL, BASELINES, TOP
from worker.organizer.bundle import CONFIG_NAME, LEADERBOARD, published

PAGES = ("description", "evaluation_details", "terms_and_conditions", "submission_guidelines")
TERMS = "terms_and_conditions.html"
SENTENCES = ("title", "short_description", "leaderboard_description")
DOMAINS = ("CV", "NLP", "RL", "MM", "AL", "TAB")
IMAGES = {".png": b"\x89PNG", ".jpg": b"\xff\xd8\xff", ".jpeg": b"\xff\xd8\xff"}
CHALLENGE_FLAGS = ("remote_evaluation", "is_docker_based", "published")
PHASE_FLAGS = (
    "leaderboard_public",
    "is_public",
    "is_submission_public",
    "is_active",
    "disable_logs",
    "is_restricted_to_select_one_submission",
    "is_partial_submission_evaluation_enabled",
)
LIMITS = ("max_submissions_per_day", "max_submissions_per_month", "max_submissions")
CONCURRENT = "max_concurrent_submissions_allowed"
SPLIT_FLAGS = (
    "is_leaderboard_order_descending",
    "show_leaderboard_by_latest_submission",
    "show_execution_time",
)
META_TYPES = ("text", "radio", "checkbox", "boolean")
MAX_TAGS = 4
VISIBILITIES = (1, 2, 3)
PLACEHOLDER_BYTES = 1000
TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")
FILE_TYPES = re.compile(r"\.\w+(\.\w+)*(\s*,\s*\.\w+(\.\w+)*)*")

Document = Mapping[str, Any]


def bundle_faults(archive: Path, configuration: Configuration | None = None) -> list[str]:
    """Return what EvalAI would refuse, and what does not fit the configuration; empty if the bundle is good.

    Args:
        archive: The zip.
        configuration: The worker's configuration, whose codenames, splits and metrics the bundle must contain.
    """
    try:
        files = _files(archive)
    except (OSError, zipfile.BadZipFile):
        return [f"{archive} is not a zip file."]
    configs = [name for name in files if name.endswith((".yaml", ".yml"))]
    if len(configs) != 1:
        return [f"The bundle must hold exactly one YAML file, not {len(configs)}."]
    try:
        document = read_yaml(files[configs[0]])
    except yaml.YAMLError as error:
        return [f"{configs[0]} is not valid YAML: {str(error).splitlines()[0]}."]
    if not isinstance(document, dict):
        return [f"{configs[0]} contains no keys."]
    base = posixpath.dirname(configs[0])
    check = _Check(document, {posixpath.relpath(name, base or "."): data for name, data in files.items()})
    faults = list(check.faults())
    if configuration is not None and not faults:
        faults += _disagreements(document, configuration)
        faults += _leaks(files, configuration)
    return faults


def pages_to_fill_in(archive: Path) -> list[str]:
    """Return the names of the pages that still lack the leaderboard's address."""
    files = _files(archive)
    return [name for name in files if name.endswith(".html") and LEADERBOARD.encode() in files[name]]


def stated_rule(archive: Path) -> str | None:
    """Return the rule of ``fairness.publish_files`` that a bundle's terms state; an empty one if they do not state it in our words.

    Returns:
        None if there are no terms to read.
    """
    try:
        terms = [data for name, data in _files(archive).items() if posixpath.basename(name) == TERMS]
    except (OSError, zipfile.BadZipFile):
        return None  # another check reports this
    if not terms:
        return None
    page = " ".join(html.unescape(terms[0].decode("utf-8", "replace")).split())
    for rule in (BASELINES, ALL, f"{TOP}1"):
        if published(rule) in page:
            return rule
    before, after = published(f"{TOP}0").split("0")
    found = re.search(f"{re.escape(before)}([1-9][0-9]*){re.escape(after)}", page)
    return f"{TOP}{found[1]}" if found else ""


def stated_phases(archive: Path) -> Mapping[str, Document]:
    """Return the phases of a bundle by codename; none if it cannot be read, which another check reports."""
    try:
        document = read_yaml(_files(archive)[CONFIG_NAME])
        return {str(phase["codename"]): phase for phase in document["challenge_phases"]}
    except (OSError, zipfile.BadZipFile, yaml.YAMLError, KeyError, TypeError):
        return {}


def _files(archive: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist() if not name.endswith("/")}


class _Check:
    """A bundle's document and files, by their paths relative to the YAML file."""

    def __init__(self, document: Document, files: Mapping[str, bytes]) -> None:
        self.document = document
        self.files = files

    def faults(self) -> Iterator[str]:
        yield from self._challenge()
        yield from self._times(self.document, "challenge")
        for section in ("leaderboard", "challenge_phases", "dataset_splits", "challenge_phase_splits"):
            if not self._entries(section):
                yield f"{section} must be a list with at least one entry."
        for section in ("leaderboard", "challenge_phases", "dataset_splits"):
            yield from self._unique(section, "id")
        for section in ("challenge_phases", "dataset_splits"):
            yield from self._unique(section, "codename")
        for board in self._entries("leaderboard"):
            yield from _schema_faults(board)
        for phase in self._entries("challenge_phases"):
            yield from self._phase(phase)
        yield from self._phase_splits()

    def _challenge(self) -> Iterator[str]:
        document = self.document
        yield from _wrong(document, SENTENCES, _is_text, "a text")
        for key in PAGES:
            yield from self._page(document, key)
        image = document.get("image")
        suffix = Path(str(image)).suffix.lower()
        if suffix not in IMAGES:
            yield "image must be a .png, .jpg or .jpeg file."
        elif not self.files.get(str(image), b"").startswith(IMAGES[suffix]):
            yield f"image: {image} is missing, or is not a picture."
        yield from _wrong(document, CHALLENGE_FLAGS, _is_flag, "True or False")
        if document.get("remote_evaluation") is False:
            yield "remote_evaluation must be True, or the submissions never reach the worker."
        if document.get("is_docker_based") is True:
            yield "is_docker_based must be False: participants submit files."
        tags = document.get("tags", [])
        if not isinstance(tags, list) or len(tags) > MAX_TAGS:
            yield f"tags must be a list of at most {MAX_TAGS}."
        script = document.get("evaluation_script")
        if not str(script).endswith(".zip") or str(script) not in self.files:
            yield "evaluation_script must name a zip in the bundle (EvalAI wants one although it never runs)."
        if document.get("domain") not in DOMAINS:
            yield f"domain must be one of {', '.join(DOMAINS)}."

    def _page(self, holder: Document, key: str, where: str = "") -> Iterator[str]:
        name = holder.get(key)
        if not _is_text(name) or not str(name).endswith(".html"):
            yield f"{where}{key} must name an HTML file."
        elif not self.files.get(posixpath.normpath(str(name)), b"").strip():
            yield f"{where}{key}: {name} is missing or empty."

    def _times(self, holder: Document, where: str) -> Iterator[str]:
        start, end = _time(holder.get("start_date")), _time(holder.get("end_date"))
        if start is None or end is None:
            yield f"{where}: start_date and end_date must be YYYY-MM-DD HH:MM:SS (UTC)."
        elif start >= end:
            yield f"{where}: start_date must be before end_date."

    def _phase(self, phase: Document) -> Iterator[str]:
        where = f"phase {phase.get('codename')}: "
        yield from _wrong(phase, ("name", "codename"), _is_text, "a text", where)
        yield from self._page(phase, "description", where)
        yield from self._times(phase, where.removesuffix(": "))
        annotation = self.files.get(str(phase.get("test_annotation_file")))
        if annotation is None:
            yield f"{where}test_annotation_file must name a file in the bundle, a placeholder."
        elif len(annotation) > PLACEHOLDER_BYTES:
            yield f"{where}test_annotation_file is not a placeholder ({len(annotation)} bytes); labels must not leave your machine."
        yield from _wrong(phase, PHASE_FLAGS, _is_flag, "True or False", where)
        if (
            phase.get("is_restricted_to_select_one_submission") is True
            and phase.get("is_submission_public") is True
        ):
            yield f"{where}is_restricted_to_select_one_submission excludes is_submission_public."
        yield from _limit_faults(phase, where)
        types = phase.get("allowed_submission_file_types")
        if not isinstance(types, str) or not FILE_TYPES.fullmatch(types.strip()):
            yield f"{where}allowed_submission_file_types must be a text such as '.csv, .gz'."
        yield from _attribute_faults(phase, where)

    def _phase_splits(self) -> Iterator[str]:
        known = {
            key: {entry.get("id") for entry in self._entries(section)}
            for key, section in (
                ("challenge_phase_id", "challenge_phases"),
                ("leaderboard_id", "leaderboard"),
                ("dataset_split_id", "dataset_splits"),
            )
        }
        seen = set()
        for entry in self._entries("challenge_phase_splits"):
            triple = tuple(entry.get(key) for key in known)
            where = f"challenge_phase_splits {triple}: "
            for key, ids in known.items():
                if entry.get(key) not in ids:
                    yield f"{where}{key} names nothing that exists."
            if triple in seen:
                yield f"{where}occurs twice."
            seen.add(triple)
            if entry.get("visibility") not in VISIBILITIES:
                yield f"{where}visibility must be 1, 2 or 3."
            if not _is_count(entry.get("leaderboard_decimal_precision"), least=0):
                yield f"{where}leaderboard_decimal_precision must be a whole number."
            yield from _wrong(entry, SPLIT_FLAGS, _is_flag, "True or False", where)
        for lost in sorted(map(str, known["challenge_phase_id"] - {triple[0] for triple in seen})):
            yield f"challenge_phase_splits: phase {lost} has no leaderboard."

    def _unique(self, section: str, key: str) -> Iterator[str]:
        values = [entry.get(key) for entry in self._entries(section)]
        if None in values:
            yield f"{section}: every entry needs a {key}."
        if len({str(value) for value in values}) < len(values):
            yield f"{section}: every {key} must be unique."

    def _entries(self, section: str) -> list[Document]:
        value = self.document.get(section)
        if not isinstance(value, list):
            return []
        return [entry for entry in value if isinstance(entry, dict)]


def _schema_faults(board: Document) -> Iterator[str]:
    schema = board.get("schema")
    labels = schema.get("labels") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(labels, list) or not labels:
        yield f"leaderboard {board.get('id')}: schema must have labels."
        return
    if schema.get("default_order_by") not in labels:
        yield f"leaderboard {board.get('id')}: default_order_by must be one of the labels."


def _limit_faults(phase: Document, where: str) -> Iterator[str]:
    limits = [phase.get(key) for key in LIMITS]
    if not all(_is_count(limit) for limit in limits):
        yield f"{where}{', '.join(LIMITS)} must be whole numbers from 1."
    elif sorted(limits, key=int) != limits:  # type: ignore[arg-type]
        yield f"{where}a day may not allow more submissions than a month, nor a month more than the phase."
    if not _is_count(phase.get(CONCURRENT)):
        yield f"{where}{CONCURRENT} must be a whole number from 1."


def _attribute_faults(phase: Document, where: str) -> Iterator[str]:
    attributes = phase.get("submission_meta_attributes") or []
    if not isinstance(attributes, list):
        yield f"{where}submission_meta_attributes must be a list."
        return
    for attribute in attributes:
        if not isinstance(attribute, dict) or not all(
            _is_text(attribute.get(key)) for key in ("name", "description")
        ):
            yield f"{where}every one of submission_meta_attributes needs name and description."
        elif attribute.get("type") not in META_TYPES:
            yield f"{where}{attribute['name']}: type must be one of {', '.join(META_TYPES)}."
        elif attribute["type"] in ("radio", "checkbox") and not attribute.get("options"):
            yield f"{where}{attribute['name']}: {attribute['type']} needs options."


def _disagreements(document: Document, configuration: Configuration) -> Iterator[str]:
    phases = {phase["id"]: phase["codename"] for phase in document["challenge_phases"]}
    splits = {split["id"]: split["codename"] for split in document["dataset_splits"]}
    labels = {board["id"]: board["schema"]["labels"] for board in document["leaderboard"]}
    held = {
        (phases[entry["challenge_phase_id"]], splits[entry["dataset_split_id"]]): labels[
            entry["leaderboard_id"]
        ]
        for entry in document["challenge_phase_splits"]
    }
    for lost in sorted(set(map(str, phases.values())) ^ set(configuration.phases)):
        yield f"Phase {lost} is in only one of bundle and configuration; codenames must agree."
    for codename, phase in configuration.phases.items():
        if codename not in phases.values():
            continue
        metrics = held.get((codename, phase.split))
        if metrics is None:
            yield f"Phase {codename} has no split {phase.split} in the bundle."
        elif metrics != [phase.metric]:
            yield f"Phase {codename}: its leaderboard must have the one label {phase.metric}, which the worker posts."


def _leaks(files: Mapping[str, bytes], configuration: Configuration) -> Iterator[str]:
    """Yield a fault for each label file in the bundle, which would end the challenge before it begins."""
    hidden = {
        source.read_bytes()
        for phase in configuration.phases.values()
        for source in configuration.path(phase.tasks).glob("*__*.csv")
    }
    for name, data in files.items():
        if data in hidden:
            yield f"{name} is a label file of a hidden task; take it out."


def _wrong(
    holder: Document, keys: Iterable[str], is_right: Callable[[object], bool], expected: str, where: str = ""
) -> Iterator[str]:
    return (f"{where}{key} must be {expected}." for key in keys if not is_right(holder.get(key)))


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_count(value: object, *, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _time(value: object) -> datetime | None:
    if isinstance(value, datetime):  # YAML reads an unquoted time as a datetime
        return value.replace(tzinfo=None)
    if isinstance(value, str) and TIME.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    return None

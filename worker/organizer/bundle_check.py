"""Check an EvalAI challenge bundle before its upload, because EvalAI's own checks take long and report one fault at a time.

It is compared with the bundle that the configuration makes: texts, dates, limits and switches may differ, but not what the worker needs.
"""

from __future__ import annotations

import html
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import yaml

from scoring.documents import read_yaml, yaml_fault
from worker.challenge.configuration import Configuration
from worker.organizer.bundle import CONFIG_NAME, PAGES, SCRIPT_FOLDER, published, sources, with_addresses
from worker.organizer.bundle_parts import stale, stated_phases, unmarked

TERMS = "terms_and_conditions.html"
FIXED = {
    *PAGES, "evaluation_script", "remote_evaluation", "is_docker_based", "labels", "default_order_by", "id", "codename",
    "test_annotation_file", "challenge_phase_id", "dataset_split_id", "leaderboard_id",
    "disable_logs",
}  # fmt: skip
"""Keys with values that the bundle's files or the worker rely on."""
FREE_LISTS = {"tags", "submission_meta_attributes"}
FORMS = {bool: "True or False", int: "a whole number", str: "a text", datetime: "YYYY-MM-DD HH:MM:SS (UTC)"}
LIMITS = ("max_submissions_per_day", "max_submissions_per_month", "max_submissions")
CONCURRENT = "max_concurrent_submissions_allowed"
LEAST = 16  # bytes of a file of a task that are looked for in others; shorter ones are anywhere
IMAGES = (b"\x89PNG", b"\xff\xd8\xff")  # PNG and JPEG

Document = Mapping[str, Any]


def bundle_faults(archive: Path | BytesIO, configuration: Configuration) -> list[str]:
    """Return what EvalAI would refuse, and what does not fit the configuration; empty if the bundle is good."""
    try:
        files = _files(archive)
        document = read_yaml(files[CONFIG_NAME])
    except (OSError, zipfile.BadZipFile):
        return [f"{archive} is not a zip file."]
    except KeyError:
        return [f"The bundle does not contain {CONFIG_NAME}."]
    except yaml.YAMLError as error:
        return [yaml_fault(error, CONFIG_NAME)]
    made, phases = sources(configuration, now=datetime.now(UTC), stated=document), stated_phases(document)
    if phases and list(phases) != list(configuration.phases):
        return [
            f"{CONFIG_NAME} has the phases {', '.join(phases)}, but challenge.yaml has {', '.join(configuration.phases)}. Write the"
            " same codenames in the same order; a phase that comes last in challenge.yaml is added for you."
        ]
    faults = [*_differences(document, read_yaml(made[CONFIG_NAME])), *_file_faults(files, made)]
    if not faults:
        faults = [*_image_faults(document, files), *_date_faults(document)]
    return [
        *faults,
        *_stale(files, made, configuration),
        *_rule_faults(files, configuration.fairness.publish_files),
        *_leaks(files, made, document, configuration),
    ]


def has_text(archive: Path, text: str) -> bool:
    """Return whether a page of a bundle has a text, such as an address."""
    escaped = html.escape(text).encode()
    return any(escaped in data for name, data in _files(archive).items() if name.endswith(".html"))


def packed_phases(archive: Path) -> Mapping[str, Document]:
    """Return the phases of a bundle by codename; none if it cannot be read, which another check reports."""
    try:
        return stated_phases(read_yaml(_files(archive)[CONFIG_NAME]))
    except (OSError, zipfile.BadZipFile, yaml.YAMLError, KeyError):
        return {}


def own_parts(files: Mapping[str, bytes], configuration: Configuration) -> list[str]:
    """Return the places where pages no longer have a marked part, so that only the organizer can keep them right.

    Args:
        files: The bundle's sources, with a valid ``challenge_config.yaml``.
        configuration: The challenge.
    """
    made = sources(configuration, now=datetime.now(UTC), stated=read_yaml(files[CONFIG_NAME]))
    return [
        f"{name} ({part})"
        for name, page in _pages(files, made)
        for part in unmarked(page, made[name].decode())
    ]


def _pages(files: Mapping[str, bytes], made: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield the pages that the configuration makes, too, with their texts, by name."""
    for name in sorted(made.keys() & files.keys()):
        if name.endswith(".html"):
            yield name, files[name].decode("utf-8", "replace")


def _files(archive: Path | BytesIO) -> dict[str, bytes]:
    """Return the files of a bundle, those of the zip inside it, too."""
    with zipfile.ZipFile(archive) as opened:
        files = {name: opened.read(name) for name in opened.namelist() if not name.endswith("/")}
    script = files.get(f"{SCRIPT_FOLDER}.zip", b"")
    if zipfile.is_zipfile(BytesIO(script)):
        with zipfile.ZipFile(BytesIO(script)) as inner:
            files |= {f"{SCRIPT_FOLDER}/{name}": inner.read(name) for name in inner.namelist()}
    return files


def _differences(value: Any, wanted: Any, key: str = "", place: str = CONFIG_NAME) -> Iterator[str]:
    """Compare a value of the document with the one that the configuration makes."""
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            yield f"{place} must have the keys {', '.join(wanted)}."
            return
        for name in wanted:
            yield from _differences(
                value.get(name), wanted[name], name, f"{place}: {name}" if not key else f"{place}.{name}"
            )
    elif isinstance(wanted, list) and key not in FREE_LISTS:
        if not isinstance(value, list) or len(value) != len(wanted):
            yield f"{place} must be a list of {len(wanted)}, as the configuration has phases and metrics."
            return
        for number, (inner, made) in enumerate(zip(value, wanted, strict=True), start=1):
            yield from _differences(inner, made, key, f"{place} {number}")
    elif type(value) is not type(wanted) or getattr(value, "tzinfo", None):
        yield f"{place} must be {FORMS.get(type(wanted), 'a list')}."
    elif key in FIXED and value != wanted:
        yield f"{place} must be {wanted}, which configuration and files agree on."
    elif value == "" or (type(value) is int and value < min(wanted, 1)):
        yield f"{place} must not be {value!r}."


def _file_faults(files: Mapping[str, bytes], made: Mapping[str, bytes]) -> Iterator[str]:
    for name in (*made, f"{SCRIPT_FOLDER}.zip"):
        if name.startswith("annotations/") and files.get(name) != made[name]:
            yield f"{name} is not the placeholder that `bundle` writes; labels must not leave your machine."
        elif not name.startswith((f"{SCRIPT_FOLDER}/", "logo")) and not files.get(name, b"").strip():
            yield f"{name} is missing or empty."


def _image_faults(document: Document, files: Mapping[str, bytes]) -> Iterator[str]:
    if not files.get(document["image"], b"").startswith(IMAGES):
        yield f"image: {document['image']} is missing, or is not a PNG or JPEG picture."


def _date_faults(document: Document) -> Iterator[str]:
    """Compare dates and limits, of which all have the right type."""
    phases: Sequence[Document] = document["challenge_phases"]
    for holder in (document, *phases):
        where = f"phase {holder['codename']}" if "codename" in holder else "challenge"
        if holder["start_date"] >= holder["end_date"]:
            yield f"{where}: start_date must be before end_date."
    for phase in phases:
        if phase["end_date"] > document["end_date"]:
            yield (
                f"phase {phase['codename']} ends on {phase['end_date']}, after the challenge, whose end_date is {document['end_date']}."
            )
        limits = [phase[key] for key in LIMITS]
        if limits != sorted(limits):
            yield f"phase {phase['codename']}: a day may not allow more submissions than a month, nor a month more than the phase."
        if phase["is_restricted_to_select_one_submission"] and phase["is_submission_public"]:
            yield f"phase {phase['codename']}: is_restricted_to_select_one_submission excludes is_submission_public."


def _stale(
    files: Mapping[str, bytes], made: Mapping[str, bytes], configuration: Configuration
) -> Iterator[str]:
    """Compare the marked parts of the pages with the configuration and the dates."""
    for name, page in _pages(files, made):
        if old := stale(page, with_addresses(made[name], configuration).decode()):
            yield f"{name} does not say what challenge.yaml and {CONFIG_NAME} say now (part {', '.join(old)}); `bundle` renews it."


def _rule_faults(files: Mapping[str, bytes], rule: str) -> Iterator[str]:
    """Compare the terms with ``fairness.publish_files``: participants agree to what the terms say is published."""
    terms = " ".join(html.unescape(files.get(TERMS, b"").decode("utf-8", "replace")).split())
    if published(rule) not in terms:
        yield (
            f"{TERMS} does not say what fairness.publish_files: {rule} means: “the organizers publish the embeddings of {published(rule)}”."
        )


def _leaks(
    files: Mapping[str, bytes], made: Mapping[str, bytes], document: Any, configuration: Configuration
) -> Iterator[str]:
    """Yield a fault for each file with something hidden, which would end the challenge before it begins, or that EvalAI does not need."""
    private = {key: value.encode() for key, value in configuration.private_values().items()}
    labels = {
        path.read_bytes().strip()
        for phase in configuration.phases.values()
        for path in configuration.path(phase.tasks).rglob("*")
        if path.is_file()
    }
    picture = str(document.get("image")) if isinstance(document, dict) else ""
    needed = {*made, f"{SCRIPT_FOLDER}.zip", picture}
    for name, data in files.items():
        held = [key for key, value in private.items() if value in data]
        if held:
            yield f"{name} contains {', '.join(held)}; take that out. If you have uploaded it anywhere, replace what it contains."
        elif any(len(content) >= LEAST and content in data for content in labels):
            yield f"{name} contains a file of a hidden task; take it out."
        elif name not in needed:
            yield f"{name} is not a file that EvalAI needs; take it out of bundle/."

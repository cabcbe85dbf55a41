"""Checks of this machine: state, disk, memory, processors, service, monitoring."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from scoring.printable import count_of
from worker.organizer import unit
from worker.organizer.doctor.check import Finding, fail, note, warn
from worker.organizer.doctor.subjects import Challenge
from worker.runtime.limits import GIGABYTE


def state(challenge: Challenge) -> Iterator[Finding]:
    """Check that the state can be kept in its folder, and only its owner can look into it."""
    folder = challenge.configuration.state_dir
    there = _existing(folder)
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield fail(
            f"The state cannot be kept in {folder}: {there} is not a folder that this user may write to.",
            "Create the folder for the user that runs the worker, or correct the key state.",
        )
    elif there == folder and folder.stat().st_mode & stat.S_IRWXO:
        yield fail(
            f"Every user of this machine can look into {folder}, where submissions and fold scores are kept.",
            f"Run: chmod 700 {folder}",
        )


def database(challenge: Challenge) -> Iterator[Finding]:
    """Open the database, and let SQLite check it."""
    path = challenge.database()
    if challenge.configuration.database_file is None:
        with challenge.state():
            yield note("The database server answers.")
    elif path is None:
        yield note("There is no state yet. The first start creates it.")
    else:
        yield note(f"The database is {path}.")


def disk(challenge: Challenge) -> Iterator[Finding]:
    """Compare the free space with the reserve and one submission."""
    limits = challenge.configuration.submission
    free = shutil.disk_usage(_existing(challenge.configuration.state_dir)).free / GIGABYTE
    reserve, largest = limits.disk_reserve_gigabytes, limits.max_megabytes / 1000
    if free < reserve + largest:
        yield fail(
            f"{free:.1f} GB are free, too little for the reserve of {reserve:g} GB and one submission of {largest:g} GB."
        )
    else:
        yield note(f"{free:.1f} GB are free.")


def memory(challenge: Challenge) -> Iterator[Finding]:
    """Compare this machine's memory with what evaluations may use."""
    import psutil

    configuration = challenge.configuration
    total = psutil.virtual_memory().total / GIGABYTE
    at_once = configuration.scoring.at_once
    allowed = configuration.submission.memory_gigabytes * at_once
    if total < allowed:
        yield warn(
            f"This machine has {total:.1f} GB of memory, but {count_of(at_once, 'evaluation')} at once may take {allowed:g} GB."
        )
    else:
        yield note(
            f"{total:.1f} GB of memory, of which {count_of(at_once, 'evaluation')} may take {allowed:g} GB."
        )


def service(challenge: Challenge) -> Iterator[Finding]:
    """Check that the service's units open every place that the configuration names."""
    instance = unit.instance_of(challenge.exam.path)
    if instance is None or not instance.units():
        yield note("No service of this machine runs this configuration.")
    elif missing := unit.not_open(challenge.configuration, instance):
        named = ", ".join(f"{place.path} ({place.key})" for place in missing)
        yield fail(
            f"The units of the service do not open what the configuration names: {named}.",
            f"Run: sudo neuco-challenge {instance.name} paths; then restart the service, if it runs.",
        )


def processors(challenge: Challenge) -> Iterator[Finding]:
    """Compare the threads with the processors."""
    threads, cores = challenge.configuration.scoring.threads, len(os.sched_getaffinity(0))
    if threads != "auto" and threads > cores:
        yield warn(f"scoring.threads is {threads}, but this process may use {count_of(cores, 'processor')}.")
    else:
        yield note(f"{count_of(cores, 'processor')}.")


def cache(_: Challenge) -> Iterator[Finding]:
    """Look for a folder for compiled code."""
    from scoring.jit import cache_candidates, cache_directory

    if cache_directory() is None:
        tried = ", ".join(map(str, cache_candidates()))
        yield warn(
            f"No folder for compiled code can be written to (tried: {tried}). Every evaluation has to compile again."
        )


def metrics(challenge: Challenge) -> Iterator[Finding]:
    """Try the port and the folder for metrics."""
    settings = challenge.configuration.metrics
    if settings.listen is not None:
        host, _, port = settings.listen.rpartition(":")
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host.strip("[]"), int(port)))
            except (OSError, OverflowError):
                yield warn(
                    f"metrics.listen: {settings.listen} cannot be opened. Perhaps the worker itself uses it, or it is not a port.",
                    "If the worker is not running, choose another port.",
                )
    if settings.textfile is not None:
        folder = challenge.configuration.path(settings.textfile).parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            yield fail(
                f"metrics.textfile is in {folder}, which is not a folder that this user may write to.",
                "Create the folder, or correct metrics.textfile.",
            )


def _existing(path: Path) -> Path:
    """Return the nearest part of a path that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path

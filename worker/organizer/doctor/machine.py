"""Checks of this machine: state, disk, memory, processors, monitoring."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from scoring.printable import count_of
from worker.organizer import unit
from worker.organizer.doctor.check import Checks, Finding, fail, note, skipped, warn
from worker.organizer.doctor.examination import Examination
from worker.runtime.limits import GIGABYTE, check_memory

CHECKS = Checks()


@CHECKS.add("machine.state", "The state directory is ours alone and can be written to")
def _state(exam: Examination) -> Iterator[Finding]:
    folder = exam.configuration.state_dir
    there = existing(folder)
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


@CHECKS.add("machine.database", "The state's database can be opened")
def _database(exam: Examination) -> Iterator[Finding]:
    path = exam.configuration.database_file
    if path is None:
        yield skipped(
            "The database is on a server. The worker checks at its start whether it can be reached."
        )
        return
    if not path.is_file():
        yield note("There is no state yet. The first start creates it.")
        return
    yield note(f"The database is {exam.database}.")


@CHECKS.add("machine.disk", "There is room on the disk")
def _disk(exam: Examination) -> Iterator[Finding]:
    limits = exam.configuration.submission
    free = shutil.disk_usage(existing(exam.configuration.state_dir)).free / GIGABYTE
    reserve, largest = limits.disk_reserve_gigabytes, limits.max_megabytes / 1000
    if free < reserve + largest:
        yield fail(
            f"{free:.1f} GB are free, too little for the reserve of {reserve:g} GB and one submission of {largest:g} GB.",
            "Use a larger disk, or lower submission.disk_reserve_gigabytes or submission.max_megabytes.",
        )
    else:
        yield note(f"{free:.1f} GB are free.")


@CHECKS.add(
    "machine.memory",
    "This machine has the memory that evaluations may use",
)
def _memory(exam: Examination) -> Iterator[Finding]:
    import psutil

    allowed = exam.configuration.submission.memory_gigabytes
    for codename, ids in exam.ids.items():
        check_memory(
            allowed, phase=codename, rows=len(ids), columns=exam.configuration.submission.embedding_dim
        )
    total = psutil.virtual_memory().total / GIGABYTE
    at_once = exam.configuration.scoring.at_once
    what = "an evaluation" if at_once == 1 else f"{at_once} evaluations at once"
    lower = (
        "submission.memory_gigabytes" if at_once == 1 else "submission.memory_gigabytes or scoring.at_once"
    )
    if total < allowed * at_once:
        yield warn(
            f"This machine has {total:.1f} GB of memory, but {what} may take {allowed * at_once:g} GB.",
            f"Lower {lower}, or use a machine with more memory.",
        )
    else:
        yield note(f"{total:.1f} GB of memory, of which {what} may take {allowed * at_once:g} GB.")


@CHECKS.add("machine.service", "The service may reach every place that the configuration names")
def _service(exam: Examination) -> Iterator[Finding]:
    instance = unit.instance_of(exam.path)
    views = [unit.view(template, instance) for template in instance.units()] if instance is not None else []
    if instance is None or not views:
        yield note("No service of this machine runs this configuration.")
        return
    for place in unit.places(exam.configuration, instance):
        unit.check(place)
        closed = [view.unit for view in views if not view.may(place)]
        if closed:
            yield fail(
                f"{place.key} names {place.path}, which {' and '.join(closed)} may not {'write to' if place.written else 'see'}.",
                f"Run: sudo neuco-challenge {instance.name} paths; then restart the service, if it runs.",
            )


@CHECKS.add("machine.threads", "No more threads are asked for than there are processors")
def _threads(exam: Examination) -> Iterator[Finding]:
    threads, cores = exam.configuration.scoring.threads, len(os.sched_getaffinity(0))
    if threads != "auto" and threads > cores:
        yield warn(
            f"scoring.threads is {threads}, but this process may use {count_of(cores, 'processor')}.",
            "Set scoring.threads: auto",
        )
    else:
        yield note(f"{count_of(cores, 'processor')}.")


@CHECKS.add("machine.cache", "Compiled code can be kept")
def _cache(_: Examination) -> Iterator[Finding]:
    from scoring.jit import cache_candidates, cache_directory

    if cache_directory() is None:
        tried = ", ".join(map(str, cache_candidates()))
        yield warn(
            f"No folder for compiled code can be written to (tried: {tried}). Every evaluation has to compile again.",
            "Set NUMBA_CACHE_DIR to a folder of the user that runs the worker.",
        )


@CHECKS.add("machine.metrics", "The places for metrics can be used")
def _metrics(exam: Examination) -> Iterator[Finding]:
    metrics = exam.configuration.metrics
    if metrics.listen is not None:
        host, _, port = metrics.listen.rpartition(":")
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host.strip("[]"), int(port)))
            except (OSError, OverflowError):
                yield warn(
                    f"metrics.listen: {metrics.listen} cannot be opened. Perhaps the worker itself uses it, or it is not a port.",
                    "If the worker is not running, choose another port.",
                )
    if metrics.textfile is not None:
        folder = exam.configuration.path(metrics.textfile).parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            yield fail(
                f"metrics.textfile is in {folder}, which is not a folder that this user may write to.",
                "Create the folder, or correct metrics.textfile.",
            )


def existing(path: Path) -> Path:
    """Return the nearest part of a path that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path

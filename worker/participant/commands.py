"""``validate``, the worker's check of a submission, and ``template``, the table that a participant fills in.

Participants who install nothing else run them as ``neuco-check``.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn

import typer
from typer.exceptions import TyperException

from scoring.errors import InfrastructureError, NeucoError, OrganizerError, ParticipantError
from scoring.inputs.formats import listed
from scoring.printable import count_of, printable_lines

if TYPE_CHECKING:
    from scoring.inputs.embeddings import Embeddings
    from worker.participant.challenge import Asked


IdsOption = Annotated[
    Path | None,
    typer.Option(
        "--ids",  # a name that equals metavar but for its case would become --IDS with Typer 0.27
        help="The phase's public id list, one per line.",
        metavar="IDS",
        show_default=False,
    ),
]
DimOption = Annotated[
    int | None,
    typer.Option(
        help="Number of values in one embedding, such as 1024.",
        min=1,
        max=1_000_000,
        metavar="N",
        show_default=False,
    ),
]
ChallengeOption = Annotated[
    str | None,
    typer.Option(
        help="The challenge's leaderboard repository, which has ids and dimension: a git URL or a folder.",
        metavar="URL",
        show_default=False,
    ),
]
PhaseOption = Annotated[
    str | None,
    typer.Option(
        help="Codename of the phase; needed with --challenge if there are several.",
        metavar="NAME",
        show_default=False,
    ),
]


def template(
    out: Annotated[Path, typer.Argument(help="CSV file to write, such as submission.csv.", metavar="OUT")],
    *,
    challenge: ChallengeOption = None,
    phase: PhaseOption = None,
    ids: IdsOption = None,
    dim: DimOption = None,
) -> None:
    """Write an empty submission to fill in: one row per public id, one column per dimension.

    Next: fill in the file, then run `neuco-worker validate`.

    Example: `neuco-worker template submission.csv --challenge https://github.com/organizer/challenge-leaderboard --phase dev`
    """
    from worker.participant.challenge import asked

    wanted = asked(ids, dim, challenge, phase)
    _write(out, wanted.ids, wanted.embedding_dim)
    typer.echo(
        f"Wrote {out}: {count_of(len(wanted.ids), 'row')} with the columns id and 0 to {wanted.embedding_dim - 1}."
    )
    typer.echo("Fill every cell with a finite number, then check the file with `validate`.")


def _write(path: Path, ids: Sequence[str], columns: int) -> None:
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            try:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(["id", *range(columns)])
                writer.writerows([identifier, *[""] * columns] for identifier in ids)
                file.flush()
            except BaseException:
                path.unlink()  # half a table
                raise
    except FileExistsError:
        raise OrganizerError(
            f"{path} exists already.",
            hint="Choose another file name, or remove the file.",
            code="file.exists",
        ) from None
    except OSError as error:
        raise OrganizerError(
            f"{path} cannot be written: {error.strerror}.",
            hint="Choose another place, or check its permissions.",
            code="file.unwritable",
        ) from error


class NoVerdict(InfrastructureError):
    """The command itself failed, so that nothing is known of what it should have checked."""

    exit_code: ClassVar[int] = 2  # 1 may be a verdict


@contextlib.contextmanager
def no_verdict() -> Iterator[None]:
    """Give a check that fails itself another exit status than a check that finds something.

    Raises:
        NoVerdict: In place of an infrastructure error, or if memory is short.
    """
    try:
        yield
    except (InfrastructureError, MemoryError) as error:
        reason = error if isinstance(error, InfrastructureError) else _out_of_memory()
        raise NoVerdict(reason.sentence, hint=reason.hint, code=reason.code) from error


def _out_of_memory() -> InfrastructureError:
    return InfrastructureError(
        "This needs more memory than it may use.",
        hint="End other programs, raise the limit (ulimit -v), or use a larger machine.",
        code="memory",
    )


@no_verdict()
def validate(
    file: Annotated[
        Path,
        typer.Argument(
            help=f"Submission: {listed(details=True)}.",
            exists=True,
            metavar="FILE",
        ),
    ],
    *,
    challenge: ChallengeOption = None,
    phase: PhaseOption = None,
    ids: IdsOption = None,
    dim: DimOption = None,
    max_megabytes: Annotated[
        float, typer.Option(help="Largest file that the challenge accepts, in MB.", min=0.001, max=1_000_000)
    ] = 1024.0,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check a submission file as the challenge would, with the same messages. Nothing is sent.

    Exits with 0 if the file would be scored, 1 if it would be refused, and 2 if it could not be checked.

    Next: submit the file at EvalAI.

    Example: `neuco-worker validate embeddings.csv --challenge https://github.com/organizer/challenge-leaderboard --phase dev`
    """
    from worker.participant.challenge import asked

    try:
        wanted = asked(ids, dim, challenge, phase)
        embeddings = _embeddings(file, wanted, max_megabytes)
    except ModuleNotFoundError as error:
        raise OrganizerError(
            f"Reading this file needs the package {error.name}.",
            hint=f"Install it: pip install {error.name}. Or save the file as CSV.",
            code="validate.package",
        ) from None
    except ParticipantError as error:
        if not json_output:
            raise
        typer.echo(json.dumps({"valid": False, "code": error.code, "message": error.message}))
        raise typer.Exit(1) from None
    if json_output:
        typer.echo(json.dumps(_document(embeddings, wanted)))
    else:
        _show(embeddings, wanted)


def _embeddings(file: Path, wanted: Asked, max_megabytes: float) -> Embeddings:
    from scoring.inputs.limits import largest_expanded, largest_file, too_large
    from scoring.inputs.tables import read_submission

    # The worker would not download it at all.
    if file.is_file() and file.stat().st_size > largest_file(max_megabytes):
        raise too_large(largest_file(max_megabytes))
    most = largest_expanded(max_megabytes)
    return read_submission(file, wanted.ids, wanted.embedding_dim, max_expanded_bytes=most)


def _document(embeddings: Embeddings, wanted: Asked) -> dict[str, object]:
    return {
        "valid": True,
        "ids": len(embeddings.ids),
        "dimension": wanted.embedding_dim,
        "content_hash": embeddings.content_hash,
        "zarr_suffix_removed": embeddings.zarr_suffix_removed,
        "notes": list(embeddings.notes),
        **({"phase": wanted.phase} if wanted.phase else {}),
    }


def _show(embeddings: Embeddings, wanted: Asked) -> None:
    what = f"{count_of(len(embeddings.ids), 'embedding')} with {count_of(wanted.embedding_dim, 'value')} each"
    where = f" for phase {wanted.phase}" if wanted.phase else ""
    typer.echo(f"The file is valid{where}: {what}.")
    for note in embeddings.notes:
        typer.echo(f"Note: {note}.")
    typer.echo(f"Content hash: {embeddings.content_hash}")
    typer.echo("  Files with the same ids and values have the same hash, and get the same score.")


def alive(
    challenge: Annotated[
        str,
        typer.Argument(help="The challenge's leaderboard repository: a git URL or a folder.", metavar="URL"),
    ],
) -> None:
    """Say whether a challenge is alive: how old the last line of its public log is, to which it adds one at a fixed interval.

    Exits with 1 if it has been silent for more than three intervals.
    """
    from worker.participant.challenge import last_written, opened

    with opened(challenge) as read:
        sentence, silent = last_written(read, datetime.now(UTC))
    typer.echo(printable_lines(sentence))
    if silent:
        typer.echo("The challenge is silent: write to the organizers.")
        raise typer.Exit(1)


INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""
ENDING = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command."""
UNWRITABLE = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EBADF}
"""Errors of an output that takes no more: its reader has ended, a disk, a quota or a file's limit is full, or it is closed."""

FREE = "Free space, or write to another place, and run the command again."

app = typer.Typer(
    name="neuco-check",
    help="Check a submission to an embedding challenge before you send it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
commands: dict[str, Callable[..., None]] = {"validate": validate, "template": template, "status": alive}
for name, command in commands.items():
    app.command(name, help=(command.__doc__ or "").replace("neuco-worker", "neuco-check"))(command)


def main() -> None:
    """Run a command; the process's exit status is 0 (done), 1 (refused or failed), 2 (wrong usage) or 130 (Ctrl-C)."""
    hear_of_children()
    end_in_order()
    try:
        status = run(app, sys.argv[1:])
    except NeucoError as error:
        status = report("neuco-check", error)
    end(status)


def hear_of_children() -> None:
    """Learn how child processes end, also if the caller ignores that for this process: each would seem to have succeeded."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def end_in_order() -> None:
    """On SIGTERM, or if the terminal is closed, leave all contexts first, so that no temporary folder and no child process stays."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as after nohup
            signal.signal(number, _leave)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    for other in ENDING:  # a shell and the system each send SIGHUP when a terminal is closed
        signal.signal(other, lambda *_: None)  # SIG_IGN would hold for child processes too
    sys.exit(128 + number)


def end(status: int) -> NoReturn:
    """End the process with an exit status, whatever of its messages cannot be written."""
    try:
        sys.stderr.flush()
    except OSError:  # Python would try again, and end with a status of its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sys.exit(status)


def run(program: Callable[..., Any], arguments: list[str]) -> int:
    """Run a command and return its exit status; wrong usage is reported here.

    Raises:
        NeucoError: If the command ended with it, its output cannot be written, or the system refused a file or memory.
    """
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal need not have every character
            stream.reconfigure(errors="replace")
    try:
        status = _status(program, arguments)
        sys.stdout.flush()
    except MemoryError as error:
        raise _out_of_memory() from error
    except OSError as error:
        if error.strerror is None:  # not the system's
            raise
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise _refused(error) from error
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        # Otherwise Python writes what is left when it ends, and fails again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader, such as a pager or head, has ended
            return NoVerdict.exit_code
        raise NoVerdict(
            f"The output of the command cannot be written: {error.strerror}.",
            hint=FREE,
            code="output.unwritable",
        ) from error
    return status


def _open_closed_streams() -> None:
    """Put the null device in place of each standard stream that is closed; what is printed to a closed stdout is an error."""
    for name, mode, access in (
        ("stdin", "r", os.O_RDONLY),
        ("stdout", "w", os.O_RDONLY),  # which refuses to be written
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode, encoding="utf-8"))


def _refused(error: OSError) -> NeucoError:
    """Return what the system refused, with the path if it is known, and the system's reason."""
    if error.errno in UNWRITABLE:
        return NoVerdict(
            f"{error.filename} cannot be written: {error.strerror}.", hint=FREE, code="file.unwritable"
        )
    if "No usable temporary directory" in str(error):  # Python's own words, followed by a list of folders
        return NoVerdict(
            f"{error.strerror}.",
            hint="Free space there, or let TMPDIR name a folder that can be written to, and run the command again.",
            code="file.unwritable",
        )
    # only the current folder can be missing without a name: it was deleted
    place = error.filename or ("The current folder" if error.errno == errno.ENOENT else "A file")
    return OrganizerError(
        f"{place} cannot be used: {error.strerror}.",
        hint="Check the path and its permissions, or name another place, and run the command again.",
        code="file.unusable",
    )


def _status(program: Callable[..., Any], arguments: list[str]) -> int:
    try:
        status = int(program(arguments, standalone_mode=False) or 0)
        if status != INTERRUPTED:
            return status
        raise KeyboardInterrupt
    except typer.Exit as ending:
        return ending.exit_code
    except SystemExit as ending:  # Typer ends with 1 if the reader of stdout has ended
        if isinstance(ending.__context__, BrokenPipeError):
            raise ending.__context__ from None
        raise
    except TyperException as error:
        error.message = error.message.replace("Value error, ", "")
        show = getattr(error, "show", None)
        if show is None:
            print(error, file=sys.stderr)
        else:
            show()
        return 2
    except (typer.Abort, KeyboardInterrupt):
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED


def report(name: str, error: NeucoError) -> int:
    """Print what ended a command, and what to do about it; return the exit status."""
    with contextlib.suppress(OSError):  # stderr need not be writable either
        print(f"{name}: {printable_lines(error.sentence)}", file=sys.stderr)
        if error.hint:
            print(f"  {printable_lines(error.hint)}", file=sys.stderr)
    return error.exit_code

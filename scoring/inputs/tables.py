"""Read a table of any accepted kind, of embeddings or of labels, and refuse it with one message that says what is wrong."""

from __future__ import annotations

import errno
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, BinaryIO, NamedTuple

from scoring.errors import InfrastructureError, OrganizerError, ParticipantError
from scoring.inputs.archives import Capped, open_zip
from scoring.inputs.embeddings import Embeddings
from scoring.inputs.faults import GROUP_NAMES, ID_NAMES, Faults, Unreadable
from scoring.inputs.formats import CSV, GZIP, PARQUET, ZIP, Format
from scoring.inputs.lines import MISSING, fields_of
from scoring.inputs.matrix_builder import MatrixBuilder
from scoring.inputs.sniffing import refuse_folder, sniff, sniff_text
from scoring.inputs.tabular import blocks, read_csv, read_header
from scoring.printable import count_of

HEAD_BYTES = 4096
ANY_SIZE = 1 << 62


def read_submission(
    path: Path,
    public_ids: Sequence[str],
    embedding_dim: int,
    *,
    max_expanded_bytes: int = 4_096_000_000,
) -> Embeddings:
    """Read and check a submission.

    The kind of the file is detected from its content, because EvalAI does not keep its name. Memory is limited to the public matrix (n x N
    float32) and a few blocks, whatever the file holds.

    Args:
        path: The file.
        public_ids: Ids that must be embedded, in any order.
        embedding_dim: Number N of values per id.
        max_expanded_bytes: Most bytes that are read from the file, after decompression; usually four times the download limit.

    Raises:
        ParticipantError: If the file is wrong; its message lists all faults.
        InfrastructureError: If the file cannot be opened or the disk fails.
    """
    builder = MatrixBuilder(public_ids, embedding_dim, Faults())
    read_table(path, builder, max_expanded_bytes=max_expanded_bytes)
    return builder.finish()


def read_table(path: Path, builder: MatrixBuilder, *, max_expanded_bytes: int, is_part: bool = False) -> None:
    """Read a table into a builder, or one of its parts after those before it.

    Raises:
        ParticipantError: If reading cannot go on; its message lists all faults up to there. Also if a part is not Parquet.
        InfrastructureError: If the file cannot be opened or the disk fails.
    """
    faults = builder.faults
    with opened(path, faults) as (file, kind):
        if is_part and kind is not PARQUET:
            sniff_text(file.read(HEAD_BYTES), faults, nested=False)
            raise faults.fatal("file.part")
        if kind.reader:
            resolve_name(kind.reader)(file, builder, max_expanded_bytes=max_expanded_bytes)
        else:
            read_csv(open_text(file, kind, faults, max_expanded_bytes=max_expanded_bytes), builder)


@contextmanager
def opened(path: Path, faults: Faults) -> Iterator[tuple[BinaryIO, Format]]:
    """Open a file, and turn what ends its reading into an error with the faults.

    Raises:
        ParticipantError: If the file is wrong.
        InfrastructureError: If it cannot be opened or the disk fails.
    """
    try:
        if path.is_dir():
            raise refuse_folder(path, faults)
        if not path.exists() and path.is_symlink() and "annex" in str(path.readlink()):
            raise faults.fatal("file.pointer", "git-annex wrote it")
        with path.open("rb") as file:
            if not file.seekable():
                raise OSError(
                    errno.ESPIPE, "it is a pipe, and formats are told apart by reading a file twice"
                )
            yield file, sniff(file, faults)
    except Unreadable:
        raise faults.verdict() from None
    except OSError as error:
        raise InfrastructureError(
            f"The file cannot be read: {error.strerror or 'input/output error'}.",
            hint="Check its path, its permissions and the disk, and try again.",
            code="submission.unreadable",
        ) from error


def open_text(file: BinaryIO, kind: Format, faults: Faults, *, max_expanded_bytes: int) -> Capped:
    """Open the text of a CSV file, compressed or not.

    Raises:
        Unreadable: If an archive is broken, or holds more than one file, or if it is certainly not text.
    """

    def text() -> Capped:
        content = (
            gzip.open(file) if kind is GZIP  # noqa: SIM115 - closed with the file
            else open_zip(file, faults) if kind is ZIP
            else file
        )  # fmt: skip
        return Capped(content, file, faults, max_expanded_bytes=max_expanded_bytes)

    sniff_text(text().read(HEAD_BYTES), faults, nested=kind is not CSV)
    return text()  # from the beginning


class LabelRow(NamedTuple):
    """A row of a label file: its line, id, label, and group, which is empty if the file has no column ``group``."""

    line: int
    identifier: str
    label: Any
    group: str = ""


def read_label_rows(path: Path, id_names: Sequence[str] = ID_NAMES) -> list[LabelRow]:
    """Return the rows of a label file, as text without spaces around it; ids are in the first column that has one of the names.

    Raises:
        OrganizerError: If the file is not a table with the columns id and label, a row has no group but others have, or a column seems to
            have groups.
    """
    faults = Faults(columns="id and label")
    rows = []
    try:
        with opened(path, faults) as (file, kind):
            if kind.reader:
                raise _refusal(f"{path} is {kind.name}, not CSV.")
            stream = blocks(open_text(file, kind, faults, max_expanded_bytes=ANY_SIZE), faults)
            header, first = read_header(stream, faults, most_columns=ANY_SIZE)
            names = [name.strip() for name in header]
            ids = [name for name in id_names if names.count(name) == 1]
            if not ids or names.count("label") != 1 or names.count("group") > 1:
                raise _refusal(
                    f"{path} does not begin with a header that has one column id, one column label and at most one column group."
                )
            similar = [name for name in names if name.casefold() in GROUP_NAMES and name != "group"]
            if similar:
                raise OrganizerError(
                    f"{path} has a column {similar[0]!r}, but only one called group says which samples belong together.",
                    hint="Call it group if it says so; else rename or remove it.",
                    code="labels.group_name",
                )
            columns = [names.index(name) for name in (ids[0], "label", *({"group"} & {*names}))]
            for block in chain([first], stream):
                last = block.line + block.lines - 1
                for line, record in enumerate(io.BytesIO(block.text), start=block.line):
                    fields = fields_of(record, line, faults)
                    if block.unended and 0 < len(fields or ()) < len(names) and line == last:
                        faults.add(
                            "file.cut", f"line {line} has {len(fields or ()):,} of {len(names):,} fields"
                        )
                    elif fields and len(fields) != len(names):
                        faults.add("rows.ragged", f"line {line} has {len(fields):,}, expected {len(names):,}")
                    elif fields:
                        row = LabelRow(line, *(fields[column].strip() for column in columns))
                        rows.append(row)
                        if not row.identifier:
                            faults.add("rows.no_id", f"line {line}")
            if faults:
                raise Unreadable
    except (ParticipantError, InfrastructureError) as error:
        raise OrganizerError(f"{path}: {error.sentence}", hint=error.hint, code=error.code) from None
    lacking = [row.line for row in rows if len(columns) > 2 and row.group.casefold() in MISSING]
    if lacking:
        raise OrganizerError(
            f"{path} has a column group, but none in {count_of(len(lacking), 'row')}, first on line {lacking[0]}; NA is none.",
            hint="Write the group of every sample, or remove the column.",
            code="labels.no_group",
        )
    return rows


def _refusal(sentence: str) -> OrganizerError:
    return OrganizerError(
        sentence,
        hint="Save it as CSV that begins with the line id,label and is separated by commas.",
        code="labels.columns",
    )

"""Read label files with the code that reads submissions. No error quotes a label, because labels may be secret."""

from __future__ import annotations

import io
from itertools import chain
from pathlib import Path

from scoring.errors import InfrastructureError, OrganizerError, ParticipantError
from scoring.inputs.columns import ID_NAMES
from scoring.inputs.faults import Faults, Unreadable
from scoring.inputs.lines import fields_of
from scoring.inputs.sniffing import FileKind
from scoring.inputs.submission import open_text, opened
from scoring.inputs.tabular import blocks, read_header

ANY_SIZE = 1 << 62


def read_label_rows(path: Path) -> list[tuple[int, str, str]]:
    """Return line number, id and label of each row, both without spaces around them.

    Raises:
        OrganizerError: If the file is not a table with the columns id and label.
    """
    faults = Faults(columns="id and label")
    rows = []
    try:
        with opened(path, faults) as (file, kind):
            if kind in (FileKind.PARQUET, FileKind.NPZ):
                raise _refusal(f"{path} is {kind.value}, not CSV.")
            stream = blocks(open_text(file, kind, faults, max_expanded_bytes=ANY_SIZE), faults)
            first = next(stream, None)
            if first is None:
                raise faults.fatal("file.empty")
            header, rest = read_header(first, faults, most_columns=ANY_SIZE)
            names = [name.strip() for name in header]
            ids = [name for name in ID_NAMES if names.count(name) == 1]
            if not ids or names.count("label") != 1:
                raise _refusal(
                    f"{path} does not begin with a header that has one column id and one column label."
                )
            columns = names.index(ids[0]), names.index("label")
            for block in chain([rest], stream):
                for line, record in enumerate(io.BytesIO(block.text), start=block.line):
                    fields = fields_of(record, line, faults)
                    if fields and len(fields) != len(names):
                        faults.add("rows.ragged", f"line {line} has {len(fields):,}, expected {len(names):,}")
                    elif fields:
                        identifier, label = (fields[column].strip() for column in columns)
                        rows.append((line, identifier, label))
                        if not identifier:
                            faults.add("rows.no_id", f"line {line}")
            if faults:
                raise Unreadable
    except (ParticipantError, InfrastructureError) as error:
        raise OrganizerError(f"{path}: {error.sentence}", cure=error.cure, code=error.code) from None
    return rows


def _refusal(sentence: str) -> OrganizerError:
    cure = "Save it as CSV that begins with the line id,label and is separated by commas."
    return OrganizerError(sentence, cure=cure, code="labels.columns")

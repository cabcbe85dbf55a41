"""The catalogue of faults in submitted files, and their messages.

Every text about what is inside a submitted file is put together here: fixed words from the catalogue, counts, and quotes from the file or
the public id list that went through :func:`shown`. Texts of other exceptions, paths and facts about labels never get in.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from scoring.errors import MESSAGE_LIMIT, ParticipantError
from scoring.inputs.formats import listed
from scoring.printable import count_of, printable

SHOWN = 3  # examples per fault
PIECE_LIMIT = 48  # characters of one quoted piece of the file


@dataclass(frozen=True, kw_only=True)
class FaultKind:
    """The message for one fault of a kind and for several; ``{count}`` is filled in, and examples follow after a colon."""

    singular: str
    plural: str = ""
    hint: str


CATALOGUE: dict[str, FaultKind] = {
    "file.empty": FaultKind(singular="The file is empty", hint="Write the table with the columns {columns}."),
    "file.html": FaultKind(
        singular="The file is a web page (HTML), not a table",
        hint="This is often a saved sign-in or error page. Upload the table itself.",
    ),
    "file.json": FaultKind(
        singular="The file is JSON, not a table", hint="Save it as CSV with the columns {columns}."
    ),
    "file.kind": FaultKind(
        singular=f"The file is not {listed()}",
        hint="Save it as CSV with the columns {columns}.",
    ),
    "file.table": FaultKind(
        singular=f"The file is not {listed()}",
        hint="Save the table as CSV or Parquet, with the columns {columns}.",
    ),
    "file.arrays": FaultKind(
        singular=f"The file is not {listed()}",
        hint="Load it, and write numpy.savez(file, ids=ids, embeddings=embeddings), with one row of embeddings per id.",
    ),
    "file.archive": FaultKind(
        singular=f"The file is not {listed()}",
        hint="Unpack it, and send the one table itself, or compressed with gzip or zip.",
    ),
    "file.parts": FaultKind(
        singular="The table is a folder of parts",
        hint="Write the parts into one file: with pandas, concat(parts).to_csv(file, index=False).",
    ),
    "file.part": FaultKind(
        singular="The part is not Parquet",
        hint="Write all parts as Parquet, with the same columns.",
    ),
    "file.pointer": FaultKind(
        singular="The file is a pointer to the table, not the table",
        hint="Fetch the table (git lfs pull, dvc pull or git annex get), and use that.",
    ),
    "file.utf16": FaultKind(singular="The file is UTF-16 or UTF-32 text", hint="Save it as UTF-8."),
    "file.nul": FaultKind(
        singular="1 line contains NUL bytes",
        plural="{count} lines contain NUL bytes",
        hint="Save the file as plain UTF-8 text.",
    ),
    "file.encoding": FaultKind(
        singular="1 line is not UTF-8", plural="{count} lines are not UTF-8", hint="Save the file as UTF-8."
    ),
    "file.delimiter": FaultKind(
        singular="The columns are not separated by commas",
        hint="Separate the columns with commas, and write numbers with decimal points.",
    ),
    "file.beginning": FaultKind(
        singular="The file does not begin with the column names",
        hint="Remove everything above the line of the column names.",
    ),
    "file.cut": FaultKind(
        singular="The file is cut off within its last line",
        hint="Write the file again, and let the upload or the copy finish.",
    ),
    "file.separator_line": FaultKind(
        singular="The first line tells Excel how columns are separated",
        hint="Remove it, so that the file begins with the column names.",
    ),
    "file.line_ends": FaultKind(
        singular="The lines end with carriage returns only",
        hint="Save the file with LF or CRLF line endings.",
    ),
    "file.line_too_long": FaultKind(
        singular="A line is too long", hint="Write one line per id, and end each line with a line feed."
    ),
    "file.too_large": FaultKind(
        singular="The file expands to more than the challenge accepts",
        hint="Upload only the public ids, the column id and the numbered columns.",
    ),
    "archive.damaged": FaultKind(
        singular="The archive is incomplete or damaged", hint="Create it again, and let the upload finish."
    ),
    "archive.bomb": FaultKind(
        singular="The archive expands to many times its size", hint="Upload the table without compression."
    ),
    "archive.members": FaultKind(
        singular="The zip must contain exactly one file", hint="Put only the table into the zip."
    ),
    "archive.method": FaultKind(
        singular="The zip is encrypted, or compressed by a method that is not supported",
        hint="Create it without a password, with Deflate, which most programs use by default.",
    ),
    "archive.nested": FaultKind(
        singular="The archive contains another archive or a binary file",
        hint=f"Compress the CSV file once. Upload {listed('and', text=False)} files as they are.",
    ),
    "parquet.damaged": FaultKind(
        singular="The Parquet file is cut off or damaged",
        hint="Write it again, and check that pandas can read it.",
    ),
    "parquet.unsupported": FaultKind(
        singular="The Parquet file is encrypted, or encoded in a way that is not supported",
        hint="Write it without encryption, with the default options of pandas or pyarrow, or save the table as CSV.",
    ),
    "parquet.footer": FaultKind(
        singular="The Parquet file has too many columns or row groups",
        hint="Write only the column id and the numbered columns, with the default size of row groups.",
    ),
    "npz.damaged": FaultKind(
        singular="The NPZ file is cut off or damaged", hint="Write it again with numpy.savez."
    ),
    "npz.arrays": FaultKind(
        singular="The NPZ file does not contain the arrays ids and embeddings",
        hint="Write it with numpy.savez(file, ids=ids, embeddings=embeddings).",
    ),
    "npz.pickle": FaultKind(
        singular="An array in the NPZ file is a pickled object, which is not safe to open",
        hint="Save numpy.array(ids, dtype=str) and numpy.asarray(embeddings, dtype=numpy.float32).",
    ),
    "npz.type": FaultKind(
        singular="An array in the NPZ file has the wrong type",
        hint="Save numpy.array(ids, dtype=str) and numpy.asarray(embeddings, dtype=numpy.float32).",
    ),
    "npz.shape": FaultKind(
        singular="An array in the NPZ file has the wrong shape",
        hint="The array embeddings needs one row for each entry of the array ids.",
    ),
    "columns.no_header": FaultKind(
        singular="The first line has values instead of column names",
        hint="Begin the file with a line of the column names: {columns}.",
    ),
    "columns.no_id": FaultKind(
        singular="There is no column named id", hint='Rename the column with the ids to "id", in lower case.'
    ),
    "columns.two_ids": FaultKind(singular="More than one column is named id", hint="Keep one of them."),
    "columns.type": FaultKind(
        singular="1 column has the wrong type",
        plural="{count} columns have the wrong type",
        hint="Store ids as text, and values as floating-point numbers or as one list of these per row.",
    ),
    "columns.vectors": FaultKind(
        singular="More than one column holds lists of numbers",
        hint="Keep the one with the embeddings, or name it embedding.",
    ),
    "columns.dimension": FaultKind(
        singular="The embeddings have the wrong number of columns",
        hint="Write one column for each dimension.",
    ),
    "columns.names": FaultKind(
        singular="No column has a number as its name; 1 has another name",
        plural="No column has a number as its name; {count} have other names",
        hint="Write one column for each dimension, and name it by its number.",
    ),
    "columns.missing": FaultKind(
        singular="1 numbered column is missing",
        plural="{count} numbered columns are missing",
        hint="Add a column for each dimension.",
    ),
    "columns.unexpected": FaultKind(
        singular="1 numbered column is beyond the last dimension",
        plural="{count} numbered columns are beyond the last dimension",
        hint="Remove such columns. Column numbers begin at 0.",
    ),
    "columns.duplicate": FaultKind(
        singular="1 numbered column occurs twice",
        plural="{count} numbered columns occur twice",
        hint="Keep each column once.",
    ),
    "columns.transposed": FaultKind(
        singular="The table is transposed: its columns have ids as their names",
        hint="Write one row per id and one column per dimension, with pandas as table.T.",
    ),
    "columns.too_many": FaultKind(
        singular="There are too many columns", hint="Upload only the column id and the numbered columns."
    ),
    "rows.too_many": FaultKind(singular="There are too many rows", hint="Upload one row per public id."),
    "rows.stopped": FaultKind(
        singular="Reading stopped because too many lines have errors", hint="Fix the other problems first."
    ),
    "rows.none": FaultKind(
        singular="The file has column names but no rows", hint="Add one row per public id."
    ),
    "rows.ragged": FaultKind(
        singular="1 line has the wrong number of fields",
        plural="{count} lines have the wrong number of fields",
        hint="Every line needs as many fields as there are column names.",
    ),
    "rows.commas": FaultKind(
        singular="1 line has decimal commas, which separate columns",
        plural="{count} lines have decimal commas, which separate columns",
        hint="Write numbers with decimal points.",
    ),
    "rows.quotes": FaultKind(
        singular="1 line has a misplaced quotation mark or line break",
        plural="{count} lines have a misplaced quotation mark or line break",
        hint="Close every quotation mark before the next comma, and write every row on one line.",
    ),
    "rows.no_id": FaultKind(
        singular="1 row has no id",
        plural="{count} rows have no id",
        hint="Fill in the id of every row, and remove rows that are empty.",
    ),
    "rows.header": FaultKind(
        singular="1 row repeats the column names",
        plural="{count} rows repeat the column names",
        hint="Write the column names once, at the beginning, also when you join files.",
    ),
    "rows.no_values": FaultKind(
        singular="1 row has no embedding",
        plural="{count} rows have no embedding",
        hint="Write a list of numbers in every row.",
    ),
    "rows.duplicate": FaultKind(
        singular="1 id occurs more than once", plural="{count} rows repeat an id", hint="Keep one row per id."
    ),
    "rows.missing": FaultKind(
        singular="1 id of the public list is missing",
        plural="{count} ids of the public list are missing",
        hint="Add a row for every public id.",
    ),
    "rows.form": FaultKind(
        singular="1 id of the public list is written differently in the file",
        plural="{count} ids of the public list are written differently in the file",
        hint="Write every id exactly as it is in the list.",
    ),
    "cells.text": FaultKind(
        singular="1 cell is not a number",
        plural="{count} cells are not numbers",
        hint="Write numbers such as 0.25 or 1e-3.",
    ),
    "cells.comma": FaultKind(
        singular="1 number has a decimal comma",
        plural="{count} numbers have a decimal comma",
        hint="Use a decimal point.",
    ),
    "cells.characters": FaultKind(
        singular="1 number has a sign or a digit that only looks like an ordinary one",
        plural="{count} numbers have signs or digits that only look like ordinary ones",
        hint="Write numbers with the characters 0 to 9, point, hyphen and e.",
    ),
    "cells.boolean": FaultKind(
        singular="1 cell is True or False", plural="{count} cells are True or False", hint="Write 1 and 0."
    ),
    "cells.list": FaultKind(
        singular="A cell holds a list of numbers",
        plural="{count} cells hold lists of numbers",
        hint="Give every number its own column.",
    ),
    "cells.empty": FaultKind(
        singular="1 cell is empty", plural="{count} cells are empty", hint="Fill every cell."
    ),
    "cells.nan": FaultKind(
        singular="1 cell is NaN", plural="{count} cells are NaN", hint="Write a finite number in every cell."
    ),
    "cells.infinite": FaultKind(
        singular="1 cell is infinite",
        plural="{count} cells are infinite",
        hint="Write a finite number in every cell.",
    ),
    "cells.range": FaultKind(
        singular="1 value is too large for float32",
        plural="{count} values are too large for float32",
        hint="Keep values between -3.4e38 and 3.4e38.",
    ),
    "values.constant": FaultKind(
        singular="All rows are equal, so there is nothing to learn from",
        hint="Check how the embeddings were computed.",
    ),
}


class Unreadable(Exception):
    """Reading cannot go on; the reason is in the faults."""


ID_NAMES = ("id", "file_id")  # the second is what TerraTorch writes
GROUP_NAMES = frozenset({"group", "groups"})
"""Names, in any case, of a column that could say which samples belong together."""


@dataclass(kw_only=True)
class Faults:
    """All faults of one file: for each kind a count, the first examples and an optional detail."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    columns: str = "id, 0, 1, 2 and so on"  # that a file of this kind has
    subject: str = "The file has"
    id_names: tuple[str, ...] = ID_NAMES  # of the column with the ids; the first that exists counts

    def __bool__(self) -> bool:
        return bool(self.counts)

    def add(self, code: str, *examples: str, count: int = 1) -> None:
        """Count a fault and keep the first few examples, in which quotes from the file must have gone through :func:`shown`."""
        self.counts[code] = self.counts.get(code, 0) + count
        kept = self.examples.setdefault(code, [])
        kept.extend(examples[: SHOWN - len(kept)])

    def fatal(self, code: str, example: str = "") -> Unreadable:
        """Count a fault that ends the reading, and return the exception for the caller to raise."""
        self.add(code, *([example] if example else []))
        return Unreadable(code)

    def verdict(self, codes: Collection[str] = CATALOGUE.keys()) -> ParticipantError:
        """Return one error with all faults of these kinds, one per line, in at most ``MESSAGE_LIMIT`` characters."""
        hints = {
            code: CATALOGUE[code].hint.format(columns=self.columns) for code in self.counts if code in codes
        }
        if len(hints) == 1:
            [(code, hint)] = hints.items()
            return ParticipantError(self.sentence(code) + ".", hint=hint, code=code)
        lines = [f"{self.subject} {len(hints)} problems:"]
        room = MESSAGE_LIMIT - len(lines[0]) - 40  # keeps 40 characters for the last line
        for number, (code, hint) in enumerate(hints.items()):
            line = f"- {self.sentence(code)}. {hint}"
            if len(line) + 1 > room:
                lines.append(f"- And {count_of(len(hints) - number, 'more problem')}.")
                break
            lines.append(line)
            room -= len(line) + 1
        return ParticipantError("\n".join(lines), code="file.invalid")

    def sentence(self, code: str) -> str:
        """Return what is wrong, with examples, without a full stop."""
        kind, count, examples = CATALOGUE[code], self.counts[code], self.examples[code]
        text = kind.plural.format(count=f"{count:,}") if kind.plural and count != 1 else kind.singular
        if examples:
            rest = "; and so on" if kind.plural and count > len(examples) else ""
            text = f"{text}: {'; '.join(examples)}{rest}"
        return f"{text} ({self.details[code]})" if code in self.details else text


def shown(text: str) -> str:
    """Quote a piece of the file on one line, without controls, as it is written otherwise; a long piece is shortened.

    The quote is plain text: what puts it on a web page escapes it.
    """
    whole = printable(text[: PIECE_LIMIT + 1])
    return f'"{whole}"' if len(whole) <= PIECE_LIMIT else f'"{whole[:PIECE_LIMIT]}..."'

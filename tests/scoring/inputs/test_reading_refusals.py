"""Refused files and their messages."""

from __future__ import annotations

import base64
import io
import os
import random
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig

from scoring.errors import InfrastructureError, ParticipantError
from scoring.inputs.faults import CATALOGUE, Faults, shown
from scoring.inputs.sniffing import SIGNATURES
from scoring.inputs.tables import read_submission
from scoring.printable import printable
from tests.scoring.inputs.reading_tables import (
    DIM,
    IDS,
    as_csv,
    as_npz,
    as_parquet,
    check_manners,
    from_lines,
    good,
    gzipped,
    lines_of,
    read,
    refused,
    table,
    zipped,
)


def with_cell(text: str, line: int = 3, column: int = 2) -> bytes:
    """Return the good file with one field replaced; line 3 is the second id, field 2 is column 1."""
    lines = lines_of(good())
    fields = lines[line - 1].split(",")
    fields[column] = text
    lines[line - 1] = ",".join(fields)
    return from_lines(lines)


def with_lines(change: object) -> bytes:
    """Return the good file with its list of lines changed."""
    return from_lines(change(lines_of(good())))  # type: ignore[operator]


def with_header(header: str) -> bytes:
    """Return the good file under another first line."""
    return with_lines(lambda lines: [header, *lines[1:]])


def with_lists(header: str, form: str, *, id_first: bool = True) -> bytes:
    """Return the good table with all numbers of an id in one cell of this form."""
    rows = [line.partition(",") for line in lines_of(good())[1:]]
    cells = [(name, form.format(numbers.replace(",", ", "))) for name, _, numbers in rows]
    return from_lines([header, *(",".join(pair if id_first else pair[::-1]) for pair in cells)])


def tarred(data: bytes) -> bytes:
    """Return a tar archive of one file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("x.csv")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def encrypted_zip() -> bytes:
    """Return a zip whose flags say that its file is encrypted."""
    data = bytearray(zipped(("x.csv", good())))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def wrong_sum(data: bytes) -> bytes:
    """Return a stored zip with one byte of its content changed."""
    return data.replace(b"s003", b"s993", 1)


COLUMNS: dict[str, object] = {"id": list(IDS)} | {str(column): table()[:, column] for column in range(DIM)}
ARRAYS = {"ids": np.array(IDS), "embeddings": table()}


def nan_matrix() -> np.ndarray:
    """Return embeddings with a NaN, an infinity and a value beyond float32."""
    matrix = table().astype(np.float64)
    matrix[1, 2], matrix[2, 0], matrix[3, 3] = np.nan, -np.inf, 1e39
    return matrix


def parquet_with(**columns: object) -> bytes:
    """Return the good Parquet file with some columns replaced; names without their leading letter c."""
    return as_parquet(COLUMNS | {name.removeprefix("c"): column for name, column in columns.items()})


def parquet_with_names(*names: str) -> bytes:
    """Return a Parquet file with columns of these names: ids, and numbers."""
    columns = [list(IDS), *(table(dim=len(names))[:, column] for column in range(len(names) - 1))]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([*map(pa.array, columns)], names=names), buffer)
    return buffer.getvalue()


def encrypted_parquet() -> bytes:
    """Return a Parquet file of encrypted columns, which anybody may list."""

    class Keys(KmsClient):
        """Keeps keys as they are."""

        def wrap_key(self, key: bytes, identifier: str) -> bytes:
            """Return the key."""
            return base64.b64encode(key)

        def unwrap_key(self, key: bytes, identifier: str) -> bytes:
            """Return the key."""
            return base64.b64decode(key)

    configuration = EncryptionConfiguration(
        footer_key="footer",
        column_keys={"values": [str(column) for column in range(DIM)]},
        plaintext_footer=True,
    )
    factory = CryptoFactory(lambda _: Keys())
    properties = factory.file_encryption_properties(KmsConnectionConfig(), configuration)
    return as_parquet(COLUMNS, encryption_properties=properties)


def tensors(values: np.ndarray) -> object:
    """Return rows as Arrow's tensors."""
    return pa.FixedShapeTensorArray.from_numpy_ndarray(values)


REFUSALS: dict[str, tuple[bytes, str, str]] = {
    "empty file": (
        b"",
        "file.empty",
        "The file is empty. Write the table with the columns id, 0, 1, 2 and so on.",
    ),
    "only white space": (b"\n \n", "file.empty", "The file is empty."),
    "web page": (
        b"\n<!DOCTYPE html><html><body>Sign in</body></html>",
        "file.html",
        "The file is a web page (HTML), not a table.",
    ),
    "json": (b'{"s000": [1, 2]}', "file.json", "The file is JSON, not a table."),
    "json lines": (b"[[1, 2], [3, 4]]", "file.json", "The file is JSON"),
    "utf-16 with mark": (
        good().decode().encode("utf-16"),
        "file.utf16",
        "The file is UTF-16 or UTF-32 text. Save it as UTF-8.",
    ),
    "utf-16 without mark": (
        good().decode().encode("utf-16-le"),
        "file.utf16",
        "The file is UTF-16 or UTF-32 text.",
    ),
    "latin-1": (
        with_lines(lambda lines: [*lines, "caf\xe9,1,2,3,4"]).decode().encode("latin-1"),
        "file.encoding",
        "1 line is not UTF-8: line 14.",
    ),
    "nul": (with_cell("1\0"), "file.nul", "1 line contains NUL bytes: line 3."),
    "excel": (
        zipped(("[Content_Types].xml", b"x"), ("xl/workbook.xml", b"x")),
        "file.table",
        "The file is not CSV, Parquet or NPZ: it is an Excel workbook. Save the table as CSV or Parquet, with the",
    ),
    "excel, first the properties": (
        zipped(("docProps/app.xml", b"x"), ("xl/workbook.xml", b"x")),
        "file.table",
        "it is an Excel workbook",
    ),
    "word": (zipped(("word/document.xml", b"x"), ("x", b"")), "file.table", "it is an Office document"),
    "open document": (
        zipped(("mimetype", b"x"), ("META-INF/manifest.xml", b"x")),
        "file.table",
        "it is an OpenDocument file",
    ),
    "zarr": (zipped((".zgroup", b"{}"), ("emb/.zarray", b"{}")), "file.arrays", "it is a Zarr archive"),
    "zarr 3 in a folder": (
        zipped(("a.zarr/zarr.json", b"{}"), ("a.zarr/c/0", b"x")),
        "file.arrays",
        "it is a Zarr archive",
    ),
    "zarr of thousands": (
        zipped((".zgroup", b"{}"), *((f"bands/{number:060000d}", b"") for number in range(20))),
        "file.arrays",
        "it is a Zarr archive",
    ),
    "torch": (zipped(("m/data.pkl", b"x"), ("m/data/0", b"x")), "file.arrays", "it is a PyTorch file"),
    "hdf5": (
        b"\x89HDF\r\n\x1a\n" + b"\0" * 50,
        "file.arrays",
        "The file is not CSV, Parquet or NPZ: it is HDF5 or netCDF 4. Load it, and write numpy.savez(file, ids=ids",
    ),
    "pickle": (b"\x80\x04\x95abc", "file.arrays", "it is a pickle"),
    "random bytes": (
        random.Random(7).randbytes(20_000),
        "file.kind",
        "The file is not CSV, Parquet or NPZ: it is binary data, and may be damaged.",
    ),
    "parquet without its beginning": (
        as_parquet(COLUMNS)[8:],
        "file.kind",
        "it is binary data, and may be damaged",
    ),
    "npy": (b"\x93NUMPY\1\0", "file.arrays", "it is a single NumPy array without ids"),
    "semicolons": (
        good().replace(b",", b";"),
        "file.delimiter",
        "The columns are not separated by commas: the first line has semicolons instead.",
    ),
    "semicolons between names in quotation marks": (
        with_header('"id";"0";"1";"2";"3"'),
        "file.delimiter",
        "the first line has semicolons instead",
    ),
    "names in quotation marks, as R writes them": (
        with_header('"id" "0" "1" "2" "3"'),
        "file.delimiter",
        "the first line has spaces instead",
    ),
    "tabs": (good().replace(b",", b"\t"), "file.delimiter", "the first line has tabs instead"),
    "semicolons and decimal commas": (
        good().replace(b",", b";").replace(b".", b","),
        "file.delimiter",
        "the first line has semicolons instead. Separate the columns with commas, and write numbers with decimal points.",
    ),
    "comment with commas": (
        b"\n# a, b, c\n" + good(),
        "file.beginning",
        "The file does not begin with the column names: they are on line 3. Remove everything above the line of",
    ),
    "names in a comment": (
        with_header("# id,0,1,2,3"),
        "columns.no_id",
        'found "# id".',
    ),
    "separator line of Excel": (
        b"sep=,\n" + good(),
        "file.separator_line",
        "The first line tells Excel how columns are separated. Remove it, so that the file begins with the column",
    ),
    "tar": (
        tarred(good()),
        "file.archive",
        "it is a tar archive. Unpack it, and send the one table itself, or compressed",
    ),
    "tar in gzip": (
        gzipped(tarred(good())),
        "archive.nested",
        "inside is a tar archive. Compress the CSV file once.",
    ),
    "R in gzip": (gzipped(b"X\n\0\0\0\3"), "file.table", "inside is an R object"),
    "safetensors": (
        b'\x20\0\0\0\0\0\0\0{"embeddings": {"dtype": "F32"}}' + table().tobytes(),
        "file.arrays",
        "it is safetensors. Load it, and write numpy.savez(file, ids=ids",
    ),
    "tensorflow records": (b"\x3c\0\0\0\0\0\0\0abcd\n" + b"\x3a" * 60, "file.arrays", "it is TFRecord"),
    "duckdb": (b"\1\2\3\4\5\6\7\x08DUCK\x40" + b"\0" * 99, "file.table", "it is a DuckDB database"),
    "duckdb of another version": (
        b"\1\2\3\4\5\6\7\x08DUCK\xe7\3" + b"\0" * 99,
        "file.table",
        "a DuckDB database",
    ),
    "stata": (b"r\2\1\0\6\0\x0c\0\0\0" + b"\0" * 99, "file.table", "it is a Stata file"),
    "picture in xml": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "file.kind", "it is XML"),
    "orc": (b"ORC\n\x0b\n\3\0\0", "file.table", "it is ORC"),
    "xml": (b'<?xml version="1.0"?>\n<kml/>', "file.kind", "it is XML"),
    "web page in xml": (b'<?xml version="1.0"?>\n<!DOCTYPE html>\n<html/>', "file.html", "a web page"),
    "numbers without a format": (
        table(dim=64).astype(np.float64).tobytes(),
        "file.kind",
        "it is binary data",
    ),
    "zeros": (b"\0" * 5000, "file.kind", "it is binary data"),
    **{
        kind: (b"\xb1" * position + signature + b"\0" * 99, code, f"it is {kind}.")
        for code, kind, position, signatures in SIGNATURES
        for signature in signatures[-1:]
        if kind not in ("gzip", "zip", "Parquet")
    },
    "git lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
        "file.pointer",
        "The file is a pointer to the table, not the table: Git LFS wrote it. Fetch the table (git lfs pull, dvc pull or",
    ),
    "dvc": (
        b"outs:\n- md5: a304afb96060aad90176268345e10355\n  size: 12\n  path: embeddings.csv\n",
        "file.pointer",
        "DVC wrote it",
    ),
    "git-annex": (b"/annex/objects/SHA256E-s12--4d7a.csv\n", "file.pointer", "git-annex wrote it"),
    "feather": (b"ARROW1\0\0" + b"\x10\0\0\0" * 9, "file.table", "it is Arrow or Feather"),
    "spaces": (good().replace(b",", b" "), "file.delimiter", "the first line has spaces instead"),
    "carriage returns": (
        good().replace(b"\n", b"\r"),
        "file.line_ends",
        "The lines end with carriage returns only.",
    ),
    "no header": (
        with_lines(lambda lines: lines[1:]),
        "columns.no_header",
        "The first line has values instead of column names",
    ),
    "no id column": (
        with_header("name,0,1,2,3"),
        "columns.no_id",
        'There is no column named id: found "name", "0", "1" and 2 more.',
    ),
    "capital id": (with_header("ID,0,1,2,3"), "columns.no_id", 'There is no column named id: found "ID".'),
    "two id columns": (
        with_header("id,id,1,2,3"),
        "columns.two_ids",
        "More than one column is named id: 2 of them.",
    ),
    "named columns": (
        with_header("id,a,b,c,d"),
        "columns.names",
        'No column has a number as its name; 4 have other names: column 2 is called "a"; column 3 is called "b"; '
        'column 4 is called "c"; and so on (columns must be called 0 to 3). Write one column for each dimension',
    ),
    "column names with a prefix": (
        with_header("id,emb_0,emb_1,emb_2,emb_3"),
        "columns.names",
        'column 2 is called "emb_0"',
    ),
    "one column of lists": (
        with_lists("id,embedding", '"[{}]"'),
        "cells.list",
        'A cell holds a list of numbers: line 2, column "embedding" (columns must be called 0 to 3). '
        "Give every number its own column.",
    ),
    "one numbered column of lists": (
        with_lists("id,0", '"[ {}]"'),
        "cells.list",
        'A cell holds a list of numbers: line 2, column "0" (columns must be called 0 to 3). Give every number',
    ),
    "lists without quotation marks": (
        with_lists("id,embedding", "[{}]"),
        "cells.list",
        'A cell holds a list of numbers: line 2, column "embedding" (columns must be called 0 to 3). Give every',
    ),
    "lists without quotation marks or a name that says so": (
        with_lists("0,id", "[{}]", id_first=False),
        "cells.list",
        'A cell holds a list of numbers: line 2, column "0"',
    ),
    "lists as NumPy and PyTorch print them": (
        with_lists("id,vector", '"tensor([{}])"'),
        "cells.list",
        'A cell holds a list of numbers: line 2, column "vector"',
    ),
    "lists too long for a cell": (
        ('id,0\ns000,"[' + ", ".join(["0.12345678"] * 20_000) + ']"\n').encode(),
        "cells.list",
        'A cell holds a list of numbers: line 2, column "0"',
    ),
    "a list among numbers": (
        with_cell('"[0.5, 0.25]"'),
        "cells.list",
        'A cell holds a list of numbers: line 3 (id "s001"), column 1. Give every number its own column.',
    ),
    "a list where the id should be": (
        with_lists("name,embedding", '"[{}]"'),
        "cells.list",
        'line 2, column "embedding"',
    ),
    "a column without a name": (with_header("id,,a,b,c"), "columns.names", "column 2 has no name; column 3"),
    "id alone": (
        b"id\n" + b"\n".join(name.encode() for name in IDS),
        "columns.missing",
        "found 0, expected 4",
    ),
    "column less": (
        with_header("id,0,1,2,x"),
        "columns.missing",
        "1 numbered column is missing: column 3 (found 3, expected 4; columns must be called 0 to 3; "
        'column 5 is called "x"). Add a column for each dimension.',
    ),
    "columns less": (
        with_header("id,0,1,x,y"),
        "columns.missing",
        "2 numbered columns are missing: column 2; column 3 (found 2, expected 4; columns must be called 0 to 3; "
        'column 4 is called "x"; column 5 is called "y"). Add a column',
    ),
    "column more": (
        with_lines(lambda lines: [lines[0] + ",4", *(line + ",1" for line in lines[1:])]),
        "columns.unexpected",
        '1 numbered column is beyond the last dimension: column "4" (found 5, expected 4; columns must be called 0 to 3). '
        "Remove such columns. Column numbers begin at 0.",
    ),
    "numbered from 1 with a gap": (
        with_header("id,1,2,3,5"),
        "file.invalid",
        '1 numbered column is beyond the last dimension: column "5" (found 4, expected 4; columns must be called 0 to 3).',
    ),
    "numbered from 1 with a typing error": (
        with_header("id,1,2,3,3"),
        "file.invalid",
        "1 numbered column is missing: column 0 (found 3, expected 4; columns must be called 0 to 3).",
    ),
    "transposed": (
        from_lines([",".join(["id", *IDS]), *(f"{column}{',0.5' * 12}" for column in range(DIM))]),
        "columns.transposed",
        'The table is transposed: its columns have ids as their names: "s000", "s001", "s002". Write one row per id and one',
    ),
    "transposed, with numbers as ids": (
        from_lines(
            [",".join(["id", *map(str, range(12))]), *(f"{column}{',0.5' * 12}" for column in range(DIM))]
        ),
        "file.invalid",
        "beyond the last dimension",
    ),
    "ids in the last column": (
        with_lines(lambda lines: ["0,1,2,3,name", *(line[5:] + "," + line[:4] for line in lines[1:])]),
        "columns.no_id",
        'There is no column named id: found "name", "0", "1" and 2 more. Rename',
    ),
    "ids behind numbered columns": (
        with_header("emb_0,emb_1,emb_2,emb_3,__index_level_0__"),
        "columns.no_id",
        'found "__index_level_0__", "emb_0", "emb_1" and 2 more. Rename',
    ),
    "ids in a column without a name": (
        with_header(",0,1,2,3"),
        "columns.no_id",
        'There is no column named id: found a column without a name, "0", "1" and 2 more. Rename',
    ),
    "a comment above other names": (
        b"# made by us\n" + with_header("name,0,1,2,3"),
        "file.beginning",
        'The file does not begin with the column names: it begins with "# made by us".',
    ),
    "a title": (b"Our embeddings\n\n" + good(), "file.beginning", "they are on line 3"),
    "names twice": (
        with_lines(lambda lines: [*lines[:6], lines[0], *lines[6:]]),
        "rows.header",
        "1 row repeats the column names: line 7. Write the column names once, at the beginning, also when you join files.",
    ),
    "cut off in a line": (
        good()[: good().index(b"s007") + 12],
        "file.cut",
        "The file is cut off within its last line: line 9 has 2 of 5 fields. Write the file again, and let the upload or the copy finish.",
    ),
    "cut off in a letter": (
        (good()[: good().index(b"s007")] + "caf\xe9".encode())[:-1],
        "file.cut",
        "line 9 ends within a letter",
    ),
    "cut off in a quoted id": (
        good()[: good().index(b"s007")] + b'"s0',
        "file.cut",
        "line 9 has an open quotation mark",
    ),
    "cut off in the last number of a line": (
        good()[: good().index(b"s007") - 3],
        "rows.missing",
        '"s009"; and so on (the file ends within a line, so it may be cut off). Add a row',
    ),
    "true and false": (
        with_cell("True"),
        "cells.boolean",
        '1 cell is True or False: line 3 (id "s001"), column 1: "True". Write 1 and 0.',
    ),
    "column twice": (
        with_header("id,0,1,1,2"),
        "file.invalid",
        '1 numbered column occurs twice: "1". Keep each column once.',
    ),
    "huge column number": (
        with_header(f"id,0,1,2,{'9' * 5000}"),
        "file.invalid",
        "beyond the last dimension",
    ),
    "a million columns": (
        ("id," + ",".join(map(str, range(10**6)))).encode(),
        "columns.too_many",
        "There are too many columns: found 1,000,001. Upload only",
    ),
    "header only": (b"id,0,1,2,3\n", "rows.none", "The file has column names but no rows."),
    "missing ids": (
        with_lines(lambda lines: lines[:-5]),
        "rows.missing",
        '5 ids of the public list are missing: "s007"; "s008"; "s009"; and so on.',
    ),
    "missing id": (
        with_lines(lambda lines: lines[:3] + lines[4:]),
        "rows.missing",
        '1 id of the public list is missing: "s002". Add a row',
    ),
    "other ids": (
        with_lines(lambda lines: [line.replace("s0", "t-0") for line in lines]),
        "rows.missing",
        'not in the list, but in the file: "t-000", "t-001", "t-002"',
    ),
    "numbers as ids": (
        as_csv([f"{number}.0" for number in range(len(IDS))], table()),
        "rows.missing",
        'not in the list, but in the file: "0.0", "1.0", "2.0"',
    ),
    "ids in another form": (
        good().replace(b"s0", b"S0"),
        "rows.form",
        '12 ids of the public list are written differently in the file: "S000" instead of "s000"; "S001" instead of "s001"; '
        '"S002" instead of "s002"; and so on (upper and lower case differ). Write every id exactly as it is in the list.',
    ),
    "ids as Excel keeps zeros": (
        as_csv([f'="{name}"' for name in IDS], table()),
        "rows.form",
        '"="s000"" instead of "s000"',
    ),
    "duplicate id": (
        with_lines(lambda lines: [*lines, lines[2]]),
        "rows.duplicate",
        '1 id occurs more than once: "s001" on lines 3 and 14.',
    ),
    "duplicate by suffix": (
        with_lines(lambda lines: [*lines, lines[2].replace("s001", "s001.zarr")]),
        "rows.duplicate",
        '"s001" on lines 3 and 14',
    ),
    "no id": (with_lines(lambda lines: [*lines, ",1,2,3,4"]), "rows.no_id", "1 row has no id: line 14."),
    "empty rows of a spreadsheet": (
        with_lines(lambda lines: [*lines, ",,,,", ",,,,"]),
        "rows.no_id",
        "2 rows have no id: line 14; line 15. Fill in the id of every row, and remove rows that are empty.",
    ),
    "text": (
        with_cell("abc"),
        "cells.text",
        '1 cell is not a number: line 3 (id "s001"), column 1: "abc". Write numbers such as 0.25 or 1e-3.',
    ),
    "decimal comma": (
        with_cell('"1,5"'),
        "cells.comma",
        '1 number has a decimal comma: line 3 (id "s001"), column 1: "1,5". Use a decimal point.',
    ),
    "decimal commas without quotes": (
        with_lines(lambda lines: [lines[0], *(line.replace(".", ",") for line in lines[1:])]),
        "rows.commas",
        '12 lines have decimal commas, which separate columns: line 2 (id "s000"): "0,1257302165031433"; line 3',
    ),
    "hexadecimal": (with_cell("0x1p3"), "cells.text", '"0x1p3"'),
    "text of a NumPy number": (with_cell("np.float32(0.1)"), "cells.text", '"np.float32(0.1)"'),
    "text of a tensor": (
        with_cell('"tensor(0.5, grad_fn=x)"'),
        "cells.text",
        '"tensor(0.5, grad_fn=x)"',
    ),
    "a list of one number": (with_cell("[0.5]"), "cells.text", '"[0.5]"'),
    "error of a spreadsheet": (with_cell("#DIV/0!"), "cells.text", '"#DIV/0!"'),
    "underscores": (with_cell("1_000"), "cells.text", '"1_000"'),
    "full-width digits": (with_cell("\uff11"), "cells.characters", '"\uff11"'),
    "minus sign": (
        with_cell("\u22120.5"),
        "cells.characters",
        'a sign or a digit that only looks like an ordinary one: line 3 (id "s001"), column 1: "\u22120.5". Write',
    ),
    "long text": (with_cell("x" * 300), "cells.text", '"' + "x" * 48 + '..."'),
    "endless number": (with_cell("1" * 2_000_000), "cells.range", 'column 1: "' + "1" * 48 + '..."'),
    "open quote before much text": (
        with_cell('"1') + b"s,1,2,3,4\n" * 20_000,
        "rows.quotes",
        "1 line has a misplaced quotation mark or line break: line 3.",
    ),
    "empty cell": (
        with_cell(""),
        "cells.empty",
        '1 cell is empty: line 3 (id "s001"), column 1. Fill every cell.',
    ),
    "nan": (with_cell("NaN"), "cells.nan", '1 cell is NaN: line 3 (id "s001"), column 1.'),
    "none": (with_cell("None"), "cells.nan", "1 cell is NaN"),
    "infinity": (with_cell("-inf"), "cells.infinite", '1 cell is infinite: line 3 (id "s001"), column 1.'),
    "beyond float32": (
        with_cell("3.5e38"),
        "cells.range",
        '1 value is too large for float32: line 3 (id "s001"), column 1: "3.5e38".',
    ),
    "beyond float64": (with_cell("1e400"), "cells.range", 'column 1: "1e400"'),
    "field less": (
        with_cell("1", column=4).replace(b",1\n", b"\n", 1),
        "rows.ragged",
        "1 line has the wrong number of fields: line 3 has 4, expected 5.",
    ),
    "field more": (with_cell("1,1"), "rows.ragged", "line 3 has 6, expected 5"),
    "comment after the names": (
        with_lines(lambda lines: [*lines[:6], "# the second half", *lines[6:]]),
        "rows.ragged",
        "1 line has the wrong number of fields: line 7 has 1, expected 5.",
    ),
    "after blank lines": (
        b"\n" + with_cell("abc").replace(b"\n", b"\n\n \n"),
        "cells.text",
        'line 8 (id "s001"), column 1: "abc"',
    ),
    "open quote": (
        with_cell('"1'),
        "rows.quotes",
        "1 line has a misplaced quotation mark or line break: line 3.",
    ),
    "line break in a cell": (
        with_cell('"1\n2"'),
        "file.invalid",
        "1 line has a misplaced quotation mark or line break",
    ),
    "text after quote": (
        with_cell('"1"2'),
        "rows.quotes",
        "a misplaced quotation mark or line break: line 3.",
    ),
    "constant": (
        as_csv(IDS, np.ones((len(IDS), DIM))),
        "values.constant",
        "All rows are equal, so there is nothing to learn from.",
    ),
    "equal rows, with zeros of both signs": (
        as_csv(IDS, np.array([[0.0, -0.0, 1.0, 2.0], [-0.0, 0.0, 1.0, 2.0]] * (len(IDS) // 2))),
        "values.constant",
        "All rows are equal",
    ),
    "truncated gzip": (
        gzipped(good())[:-40],
        "archive.damaged",
        "The archive is incomplete or damaged. Create it again, and let the upload finish.",
    ),
    "gzip without end": (gzipped(good())[:-3], "archive.damaged", "The archive is incomplete or damaged."),
    "gzip sum": (
        gzipped(good())[:-8] + b"\0" * 8,
        "archive.damaged",
        "The archive is incomplete or damaged.",
    ),
    "gzip and more": (gzipped(good()) + b"hello", "archive.damaged", "The archive is incomplete or damaged."),
    "gzip of nothing": (gzipped(b""), "file.empty", "The file is empty."),
    "gzip in gzip": (
        gzipped(gzipped(good())),
        "archive.nested",
        "The archive contains another archive or a binary file: inside is gzip.",
    ),
    "zip in gzip": (gzipped(zipped(("x.csv", good()))), "archive.nested", "inside is zip"),
    "parquet in zip": (zipped(("x", as_parquet(COLUMNS))), "archive.nested", "inside is Parquet"),
    "web page in gzip": (gzipped(b"<html>"), "file.html", "web page"),
    "two files": (
        zipped(("a.csv", good()), ("b.csv", good())),
        "archive.members",
        'The zip must contain exactly one file: it holds 2, first "a.csv", "b.csv".',
    ),
    "empty zip": (zipped(), "archive.members", "it holds 0."),
    "many files": (
        zipped(*((f"{number:060000d}", b"") for number in range(20))),
        "archive.members",
        "it holds thousands",
    ),
    "truncated zip": (
        zipped(("x.csv", good()))[:-30],
        "archive.damaged",
        "The archive is incomplete or damaged.",
    ),
    "zip sum": (
        wrong_sum(zipped(("x.csv", good()), method=0)),
        "archive.damaged",
        "The archive is incomplete or damaged.",
    ),
    "encrypted zip": (
        encrypted_zip(),
        "archive.method",
        "The zip is encrypted, or compressed by a method that is not supported. Create it without a password, with Deflate",
    ),
    "lzma zip": (
        zipped(("x.csv", good()), method=zipfile.ZIP_LZMA),
        "archive.method",
        "compressed by a method that is not supported",
    ),
    "hopeless": (
        b"id,0,1,2,3\n" + b"s000,x,x,x,x\n" * 30_000,
        "file.invalid",
        "Reading stopped because too many lines have errors. Fix the other problems first.",
    ),
    "a million lines": (
        b"id,0,1,2,3\n" + b"s,0,0,0,0\n" * 1_100_000,
        "rows.too_many",
        "There are too many rows: more than 1,000,000 lines.",
    ),
    "blank lines": (b"id,0,1,2,3\n" + b"\n" * 3_000_000, "rows.too_many", "more than 1,000,000 lines"),
    "gzip bomb": (
        gzipped(b"id,0,1,2,3\n" + (b"x,0,0,0," + b"0" * 100_000 + b"\n") * 400),
        "archive.bomb",
        "The archive expands to many times its size: more than 200 times.",
    ),
    "zip bomb": (
        zipped(("x", good() + (b"s,0,0,0," + b" " * 100_000 + b"0\n") * 400)),
        "archive.bomb",
        "more than 200 times",
    ),
    "one huge line": (
        b"id,0,1,2,3\ns000,1" + b"0" * 20_000_000,
        "file.line_too_long",
        "A line is too long: line 2 has more than 16,777,216 bytes.",
    ),
    "parquet cut off": (
        as_parquet(COLUMNS)[:-20],
        "parquet.damaged",
        "The Parquet file is cut off or damaged: its end is missing or wrong.",
    ),
    "parquet garbage": (
        b"PAR1" + b"\xff" * 90 + struct.pack("<I", 60) + b"PAR1",
        "parquet.damaged",
        "The Parquet file is cut off or damaged. Write it again, and check that pandas can read it.",
    ),
    "parquet long footer": (
        b"PAR1" + b"\0" * 90 + struct.pack("<I", 2**31) + b"PAR1",
        "parquet.damaged",
        "its end is missing or wrong",
    ),
    "parquet encrypted": (
        b"PARE" + b"\0" * 90 + b"PARE",
        "file.table",
        "it is encrypted Parquet",
    ),
    "parquet text column": (
        parquet_with(c1=["x"] * len(IDS)),
        "columns.type",
        '1 column has the wrong type: column 1 holds "string".',
    ),
    "parquet nested column": (parquet_with(c1=[[1.0]] * len(IDS)), "columns.type", 'column 1 holds "list<'),
    "parquet lists of lists": (
        as_parquet({"id": list(IDS), "embedding": [[row] for row in table().tolist()]}),
        "columns.type",
        '1 column has the wrong type: column "embedding" holds "list<element: list<element: double>>". Store ids as text, and values as'
        " floating-point numbers or as one list of these per row.",
    ),
    "parquet structs": (
        as_parquet({"id": list(IDS), "vector": [{"x": 0.5}] * 12, "name": list(IDS)}),
        "columns.type",
        'column "vector" holds "struct<x: double>"; column "name" holds "string"',
    ),
    "parquet tensors of two axes": (
        as_parquet({"id": list(IDS), "emb": tensors(table().reshape(12, 2, 2))}),
        "columns.type",
        'column "emb" holds tensors of 2 x 2',
    ),
    "parquet two lists": (
        as_parquet({"id": list(IDS), "vector": list(table()), "patch": list(table())}),
        "columns.vectors",
        'More than one column holds lists of numbers: "vector", "patch". Keep the one with the embeddings, or name it embedding.',
    ),
    "parquet a list that is no embedding": (
        as_parquet({"id": list(IDS), "emb_0": table()[:, 0], "bbox": list(table())}),
        "columns.names",
        'column 3 is called "bbox"',
    ),
    "parquet null for a vector": (
        as_parquet({"id": list(IDS), "embedding": [None, [], *table()[2:].tolist()]}),
        "rows.no_values",
        '2 rows have no embedding: row 1 (id "s000"); row 2 (id "s001"). Write a list of numbers in every row.',
    ),
    "parquet two lists with numbers as names": (
        as_parquet({"id": list(IDS), "0": list(table()), "1": list(table())}),
        "columns.vectors",
        '"0", "1"',
    ),
    "parquet nothing but null": (
        as_parquet({"id": list(IDS), "embedding": [None] * 12}),
        "columns.type",
        'column "embedding" holds "null"',
    ),
    "parquet encrypted columns": (
        encrypted_parquet(),
        "parquet.unsupported",
        "The Parquet file is encrypted, or encoded in a way that is not supported. Write it without encryption, with the default",
    ),
    "parquet names twice": (
        parquet_with_names("id", "0", "1", "2", "3", "3"),
        "columns.duplicate",
        '1 numbered column occurs twice: "3". Keep each column once.',
    ),
    "parquet lists as ids": (
        parquet_with(id=[[name] for name in IDS]),
        "columns.type",
        'column id holds "list<element: string>"',
    ),
    "parquet bytes as ids": (
        parquet_with(id=[b"\xff" + name.encode() for name in IDS]),
        "columns.type",
        "column id holds bytes that are not UTF-8. Store ids as text",
    ),
    "parquet ids of another type": (parquet_with(id=[0.5] * 12), "columns.type", 'column id holds "double"'),
    "parquet null": (
        parquet_with(c2=[None, *table()[1:, 2].tolist()]),
        "cells.empty",
        '1 cell is empty: row 1 (id "s000"), column 2.',
    ),
    "parquet null id": (parquet_with(id=[None, *IDS[1:]]), "file.invalid", "1 row has no id: row 1."),
    "parquet values": (
        as_parquet(COLUMNS | {str(column): nan_matrix()[:, column] for column in range(DIM)}),
        "file.invalid",
        '1 cell is NaN: row 2 (id "s001"), column 2.',
    ),
    "parquet without ids": (
        as_parquet({"name": list(IDS)} | {str(column): table()[:, column] for column in range(DIM)}),
        "columns.no_id",
        'found "name", "0", "1" and 2 more',
    ),
    "parquet with short vectors": (
        as_parquet(
            {"id": list(IDS), "embedding": [row[: DIM - (number == 2)] for number, row in enumerate(table())]}
        ),
        "columns.dimension",
        'row 3 (id "s002") has 3, expected 4',
    ),
    "parquet with vectors of another dimension": (
        as_parquet({"id": list(IDS), "embedding": list(table(dim=5))}),
        "columns.dimension",
        "found 5, expected 4",
    ),
    "parquet column less": (
        as_parquet({key: value for key, value in COLUMNS.items() if key != "3"}),
        "columns.missing",
        "1 numbered column is missing: column 3 (found 3, expected 4",
    ),
    "npz without ids": (
        as_npz(arr_0=table()),
        "npz.arrays",
        'does not contain the arrays ids and embeddings: it holds "arr_0.npy".',
    ),
    "npz pickled ids": (
        as_npz(ids=np.array(IDS, dtype=object), embeddings=table()),
        "npz.pickle",
        "a pickled object, which is not safe to open: the array ids.",
    ),
    "npz pickled values": (
        as_npz(ids=np.array(IDS), embeddings=table().astype(object)),
        "npz.pickle",
        "the array embeddings",
    ),
    "npz ids of another type": (
        as_npz(ids=np.linspace(0, 1, 12), embeddings=table()),
        "npz.type",
        'ids holds "float64"',
    ),
    "npz bfloat16": (
        as_npz(ids=np.array(IDS), embeddings=np.zeros((12, 4), dtype="V2")),
        "npz.type",
        'An array in the NPZ file has the wrong type: embeddings holds "void16", as bfloat16 is saved.',
    ),
    "npz long doubles": (
        as_npz(ids=np.array(IDS), embeddings=table().astype(np.longdouble)),
        "npz.type",
        'embeddings holds "float128"',
    ),
    "npz strings of variable length": (
        zipped(
            (
                "ids.npy",
                b"\x93NUMPY\1\0\x3e\0{'descr': '|T16', 'fortran_order': False, 'shape': (12,), } ".ljust(72),
            ),
            ("embeddings.npy", b""),
        ),
        "npz.type",
        'ids holds "|T16"',
    ),
    "npz transposed": (
        as_npz(ids=np.array(IDS), embeddings=table().T),
        "npz.shape",
        "embeddings is 4 x 12, ids has 12 entries; it is transposed",
    ),
    "npz text values": (
        as_npz(ids=np.array(IDS), embeddings=table().astype(str)),
        "npz.type",
        "embeddings holds",
    ),
    "npz records": (
        as_npz(ids=np.array(IDS), embeddings=np.zeros(12, dtype=[("a", "f4")])),
        "npz.type",
        "embeddings is not a plain array of text or numbers",
    ),
    "npz shape": (
        as_npz(ids=np.array(IDS), embeddings=table()[:7]),
        "npz.shape",
        "embeddings is 7 x 4, ids has 12 entries",
    ),
    "npz without columns": (
        as_npz(ids=np.array(IDS), embeddings=table()[:, :0]),
        "npz.shape",
        "embeddings is 12 x 0, ids has 12 entries",
    ),
    "npz flat": (
        as_npz(ids=np.array(IDS), embeddings=table().ravel()),
        "npz.shape",
        "embeddings is 48, ids has 12 entries",
    ),
    "npz dimension": (
        as_npz(ids=np.array(IDS), embeddings=table(dim=5)),
        "columns.dimension",
        "found 5, expected 4",
    ),
    "npz values": (
        as_npz(ids=np.array(IDS), embeddings=nan_matrix()),
        "file.invalid",
        '1 value is too large for float32: row 4 (id "s003"), column 3.',
    ),
    "npz values by column": (
        as_npz(ids=np.array(IDS), embeddings=np.asfortranarray(nan_matrix())),
        "file.invalid",
        '1 cell is infinite: row 3 (id "s002"), column 0.',
    ),
    "npz cut off": (as_npz(**ARRAYS)[:-30], "archive.damaged", "The archive is incomplete or damaged."),
    "npz claims more": (
        as_npz(**ARRAYS).replace(b"(12, 4)", b"(12,40)"),
        "archive.damaged",
        "The archive is incomplete or damaged.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_say_what_is_wrong(name: str, tmp_path: Path) -> None:
    """Each faulty file is refused with its code and a message that names the fault and its place."""
    data, code, words = REFUSALS[name]
    error = refused(data, tmp_path)
    assert error.code == code, error.message
    assert words in error.message


def test_every_fault_in_the_catalogue_has_a_case() -> None:
    """Each code in the catalogue is the verdict of a case, or is among several faults of one."""
    verdicts = {code for _, code, _ in REFUSALS.values()}
    among_others = {"columns.duplicate", "rows.stopped"}
    elsewhere = {
        "file.too_large",
        "rows.too_many",
        "npz.damaged",
        "file.parts",
        "file.part",
        "parquet.footer",
    }
    assert set(CATALOGUE) == (verdicts - {"file.invalid"}) | among_others | elsewhere


def test_all_faults_come_in_one_message(tmp_path: Path) -> None:
    """A file with many faults gets one message, with each fault on its own line."""
    lines = lines_of(good())
    lines[1] = "s000,x,,nan,inf"
    lines[2] = "s001,1e39,2,3"
    lines.append(lines[3])
    lines.append("s011.zarr,1,2,3,4")
    first, *faults = refused(from_lines(lines), tmp_path).message.splitlines()
    assert first == "The file has 6 problems:"
    expected = (
        "1 cell is not a number",
        "1 cell is empty",
        "1 cell is NaN",
        "1 cell is infinite",
        "1 line has the wrong number of fields",
        "2 rows repeat an id",
    )
    for fault, words in zip(faults, expected, strict=True):
        assert fault.startswith(f"- {words}: ")


def test_the_first_three_places_are_named_and_the_rest_counted(tmp_path: Path) -> None:
    """A thousand faults of one kind give one sentence."""
    lines = lines_of(good())
    lines[1:] = [f"{line.split(',')[0]},a,b,c,d" for line in lines[1:]]
    message = refused(from_lines(lines), tmp_path).message
    assert message.startswith(
        '48 cells are not numbers: line 2 (id "s000"), column 0: "a"; line 2 (id "s000"), column 1: "b"; '
    )
    assert "; and so on. Write numbers such as 0.25 or 1e-3." in message
    assert message.count("line 2") == 3


@given(text=st.text())
@settings(max_examples=300)
def test_quotes_from_the_file_are_harmless(text: str) -> None:
    """Quotes from any file are short and printable, and otherwise as they are written."""
    piece = shown(text)
    assert printable(piece) == piece
    assert len(piece) <= 53
    assert not text.isprintable() or piece[1:-1].removesuffix("...") in text


@pytest.mark.parametrize(
    "trick",
    [
        "\u202egnp.exe",
        "<script>alert(1)</script>",
        "[x](http://e.vil)",
        "a\u200bb",
        "\x1b[31m",
        "\U000e0041" * 90,
    ],
)
def test_tricks_in_ids_and_names_are_made_harmless(trick: str, tmp_path: Path) -> None:
    """Bidirectional marks and escape sequences in ids and column names never reach the message; ``refused`` checks it."""
    lines = lines_of(good())
    renamed = [f'"{trick}"{line[4:]}' for line in lines[1:]]
    for data in (
        from_lines([lines[0], *renamed]),
        from_lines([f'"{trick}",0,1,2,3', *lines[1:]]),
        from_lines([lines[0], f's000,"{trick}",1,2,3', *lines[2:]]),
        zipped((trick, good()), (trick + "2", good())),
    ):
        refused(data, tmp_path)


def test_columns_that_are_ignored_may_hold_lists(tmp_path: Path) -> None:
    """A list is a fault only in a numbered column; if columns are missing, the message is about these."""
    lines = lines_of(good())
    noted = [f"{lines[0]},bands", *(f'{line},"[1, 2]"' for line in lines[1:])]
    assert len(read(from_lines(noted), tmp_path).ids) == len(IDS)
    noted[0] = "id,0,1,2,x,bands"
    assert refused(from_lines(noted), tmp_path).code == "columns.missing"


def test_the_message_stays_within_its_limit() -> None:
    """All faults at once, with the longest examples, fit; further ones are counted."""
    faults = Faults()
    for code in CATALOGUE:
        for _ in range(3):
            faults.add(code, shown("\U0001f600" * 99) * 2)
    error = faults.verdict()
    check_manners(error)
    lines = error.message.splitlines()
    assert lines[0] == f"The file has {len(CATALOGUE)} problems:"
    assert lines[-1] == f"- And {len(CATALOGUE) - len(lines) + 2} more problems."
    assert error.code == "file.invalid"


def test_a_file_that_expands_too_far_is_refused(tmp_path: Path) -> None:
    """The limit holds for every form, before the memory is allocated."""
    matrix = table(dim=300)
    columns: dict[str, object] = {"id": list(IDS)} | {str(column): matrix[:, column] for column in range(300)}
    csv_data = as_csv(IDS, matrix)
    for data in (
        csv_data,
        gzipped(csv_data),
        zipped(("x", csv_data)),
        as_parquet(columns),
        as_npz(ids=np.array(IDS), embeddings=matrix),
    ):
        error = refused(data, tmp_path, dim=300, ceiling=10_000)
        assert error.code == "file.too_large"
        assert read(data, tmp_path, dim=300, ceiling=1_000_000).matrix.shape == (12, 300)


def test_npz_headers_are_never_evaluated(tmp_path: Path) -> None:
    """A header of any content is not evaluated and takes no memory."""
    for header in (
        b"\x93NUMPY\1\0\x10\0" + b"(" * 16,
        b"\x93NUMPY\2\0\xff\xff\xff\x7f{}",
        b"\x93NUMPY\1\0\x40\0{'descr': '<U99999', 'fortran_order': False, 'shape': (999999,)}",
        b"\x93NUMPY\1\0\x40\0{'descr': __import__('os'), 'fortran_order': False, 'shape': (1,)}",
        b"\x93NUMPY\1\0\x3a\0{'descr': '<q7', 'fortran_order': False, 'shape': (12,), } ",
        b"\x93NUMPY\1\0\x40\0{'descr': '<U4', 'fortran_order': False, 'shape': (999999,), }  ",
        b"junk",
    ):
        error = refused(zipped(("ids.npy", header), ("embeddings.npy", header)), tmp_path)
        assert error.code in {"npz.damaged", "npz.type", "rows.too_many"}


def test_parquet_rows_are_counted_before_they_are_read(tmp_path: Path) -> None:
    """Runs of equal values make a small file of a million rows, which its metadata reveals."""
    columns: dict[str, object] = {"id": ["s000"] * 1_000_001} | {
        str(column): np.zeros(1_000_001, dtype=np.float32) for column in range(DIM)
    }
    data = as_parquet(columns)
    assert len(data) < 100_000
    assert refused(data, tmp_path).code == "rows.too_many"


def test_parquet_with_very_many_columns_or_row_groups_is_not_called_damaged(tmp_path: Path) -> None:
    """Their list is too long to be read into memory; a file that ends within it is damaged."""
    many = pa.schema([(str(number), pa.float32()) for number in range(100_001)])
    pq.write_metadata(many, tmp_path / "columns", store_schema=False)
    long = 34_000_000
    for name, size in (("groups", long + 12), ("cut", long)):
        with (tmp_path / name).open("wb") as file:
            file.write(b"PAR1")
            file.seek(size - 8)
            file.write(long.to_bytes(4, "little") + b"PAR1")
    for name, code in (
        ("columns", "parquet.footer"),
        ("groups", "parquet.footer"),
        ("cut", "parquet.damaged"),
    ):
        with pytest.raises(ParticipantError) as caught:
            read_submission(tmp_path / name, IDS, DIM)
        assert caught.value.code == code


def test_metadata_of_parquet_is_never_unpickled(tmp_path: Path) -> None:
    """A schema that asks Arrow to unpickle a Python type is read without unpickling."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    marker = tmp_path / "pwned"
    evil = b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR."
    field = pa.field(
        "note",
        pa.int64(),
        metadata={"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": evil},
    )
    arrays = [pa.array(column) for column in COLUMNS.values()]
    fields = [pa.field(name, array.type) for name, array in zip(COLUMNS, arrays, strict=True)]
    made = pa.table([*arrays, pa.array([1] * len(IDS))], schema=pa.schema([*fields, field]))
    buffer = io.BytesIO()
    pq.write_table(made, buffer)
    assert len(read(buffer.getvalue(), tmp_path).ids) == len(IDS)
    assert not marker.exists()


def test_a_file_that_cannot_be_opened_is_an_infrastructure_error(tmp_path: Path) -> None:
    """This covers a missing file and a failing disk."""
    with pytest.raises(InfrastructureError):
        read_submission(tmp_path / "none", IDS, DIM, max_expanded_bytes=10**6)


def test_a_pipe_is_refused() -> None:
    """As the shell makes one of ``<(command)``."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(b"id,0\n")
    with os.fdopen(reading, "rb"), pytest.raises(InfrastructureError, match="it is a pipe"):
        read_submission(Path(f"/dev/fd/{reading}"), IDS, DIM, max_expanded_bytes=10**6)


@given(
    position=st.integers(0, 10**9),
    value=st.integers(0, 255),
    form=st.sampled_from(["gzip", "zip", "npz", "parquet"]),
)
@settings(max_examples=300, deadline=None)
def test_any_flipped_byte_of_an_archive_is_refused_or_harmless(
    position: int, value: int, form: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A damaged archive either still has the same table or gives a ParticipantError, never another exception."""
    data = bytearray(
        {
            "gzip": gzipped(good()),
            "zip": zipped(("x", good())),
            "npz": as_npz(**ARRAYS),
            "parquet": as_parquet(COLUMNS, write_page_checksum=True),
        }[form]
    )
    data[position % len(data)] = value
    folder = tmp_path_factory.getbasetemp()
    try:
        read(bytes(data), folder)
    except ParticipantError as error:
        check_manners(error)

"""Loading of hidden tasks and the public id list, and the errors for the organizer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scoring.errors import OrganizerError
from scoring.inputs.identifiers import read_ids
from scoring.protocol import Recipe, ids_hash
from scoring.randomness import Splitter, group_numbers
from scoring.tasks import TaskType, check_sizes, load_tasks

PUBLIC = tuple(f"p{number:03d}" for number in range(60))
ROWS = [(name, str(number % 7)) for number, name in enumerate(PUBLIC[:30])]
CLASSES = [(name, str(number % 2)) for number, name in enumerate(PUBLIC[:30])]


UNKNOWN_NAMED = "4 ids that are not in the public id list: q1 on line 32, q2 on line 33, q3 on line 34."


def label_file(rows: list[tuple[str, str]], header: str = "id,label") -> str:
    """Return a label file."""
    return "\n".join([header, *(f"{name},{label}" for name, label in rows)]) + "\n"


def folder_of(root: Path, **files: str) -> Path:
    """Write a tasks folder; keys are file names without .csv."""
    for name, text in files.items():
        (root / f"{name}.csv").write_text(text, encoding="utf-8")
    return root


def refusal(root: Path, name: str = "t__regr", text: str = "") -> OrganizerError:
    """Return the error for a folder with one file."""
    with pytest.raises(OrganizerError) as caught:
        load_tasks(folder_of(root, **{name: text}), PUBLIC)
    assert caught.value.hint
    return caught.value


def test_tasks_come_sorted_by_name_with_rows_sorted_by_id(tmp_path: Path) -> None:
    """The order of files and rows does not matter; dotfiles and a README are skipped."""
    (tmp_path / ".DS_Store").write_text("x")
    (tmp_path / "README.md").write_text("x")
    folder_of(tmp_path, b_2__x__regr=label_file(ROWS[::-1]), a__cls=label_file(CLASSES))
    first, second = load_tasks(tmp_path, PUBLIC[::-1])
    assert (first.name, first.type, second.name, second.type) == (
        "a",
        TaskType.CLASSIFICATION,
        "b_2__x",
        TaskType.REGRESSION,
    )
    assert second.ids == PUBLIC[:30]
    assert second.labels.tolist() == [float(label) for _, label in ROWS]
    assert second.labels.dtype == np.float64
    assert first.row_set == second.row_set == ids_hash(PUBLIC[:30])


@given(order=st.permutations(range(30)))
def test_the_version_depends_only_on_the_parsed_rows(
    order: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Row order, number formats, quotes, line ends, suffixes and further columns do not change the version."""
    root = tmp_path_factory.mktemp("labels")
    lines = [f'x,"{ROWS[row][0]}.zarr", {float(ROWS[row][1]):.3e}' for row in order]
    text = "\ufeffnote,id,label\r\n" + "\r\n".join(lines)
    folder_of(root, one__regr=label_file(ROWS), two__regr=text)
    first, second = load_tasks(root, PUBLIC)
    assert first.version == second.version


def test_another_label_id_or_type_is_another_version(tmp_path: Path) -> None:
    """The version changes with anything that could change a score."""
    changed = [*ROWS[:-1], (ROWS[-1][0], "3.5")]
    moved = [*ROWS[:-1], ("p059", ROWS[-1][1])]
    folder_of(
        tmp_path,
        a__regr=label_file(ROWS),
        b__regr=label_file(changed),
        c__regr=label_file(moved),
        d__cls=label_file(CLASSES),
        e__regr=label_file(CLASSES),
    )
    assert len({task.version for task in load_tasks(tmp_path, PUBLIC)}) == 5


GROUPED = [(name, f"{label},tile {number % 8}") for number, (name, label) in enumerate(ROWS)]
GROUPED_CLASSES = [(name, f"{label},tile {number % 8}") for number, (name, label) in enumerate(CLASSES)]
WITH_GROUPS = "id,label,group"


def test_groups_belong_to_the_task_and_its_row_set(tmp_path: Path) -> None:
    """Tasks on the same samples share groups; any other grouping is another version and another row set."""
    moved = [(GROUPED[0][0], "0,tile 3"), *GROUPED[1:]]
    folders = {name: tmp_path / name for name in ("all", "moved", "plain")}
    for folder in folders.values():
        folder.mkdir()
    [other] = load_tasks(folder_of(folders["moved"], a__regr=label_file(moved, WITH_GROUPS)), PUBLIC)
    [plain] = load_tasks(folder_of(folders["plain"], a__regr=label_file(ROWS)), PUBLIC)
    folder_of(
        folders["all"],
        a__regr=label_file(GROUPED[::-1], WITH_GROUPS),
        b__cls=label_file(GROUPED_CLASSES, WITH_GROUPS),
        c__regr=label_file(GROUPED[:29], WITH_GROUPS),
        d__regr=label_file(ROWS[:28]),
    )
    first, second, third, fourth = load_tasks(folders["all"], PUBLIC)
    assert first.groups == second.groups == tuple(f"tile {number % 8}" for number in range(30))
    assert first.row_set == second.row_set
    assert len({first.row_set, third.row_set, fourth.row_set, other.row_set, plain.row_set}) == 5
    assert len({first.version, other.version, plain.version}) == 3


def test_other_groups_of_the_same_samples_are_refused(tmp_path: Path) -> None:
    """The message names both files and the first line; it shows no group, because groups are as secret as labels."""
    moved = [*GROUPED_CLASSES[:4], (GROUPED[4][0], "0,tile 7"), *GROUPED_CLASSES[5:]]
    for second in (label_file(moved, WITH_GROUPS), label_file(CLASSES)):
        folder_of(tmp_path, a__regr=label_file(GROUPED, WITH_GROUPS), b__cls=second)
        with pytest.raises(OrganizerError) as refused:
            load_tasks(tmp_path, PUBLIC)
        assert refused.value.code == "tasks.different_groups"
        line = 6 if "tile" in second else 2
        assert f"first on line {line} of {tmp_path}/b__cls.csv" in refused.value.sentence
        assert "a__regr.csv" in refused.value.sentence
        assert "tile" not in refused.value.message


@given(
    st.lists(st.sampled_from([1, 2, 4, 6, 7]), min_size=5, max_size=8).filter(lambda sizes: sum(sizes) >= 20)
)
@example([1, 4, 4, 4, 4, 4, 4, 5])
def test_a_single_sample_is_never_a_test_part(sizes: list[int]) -> None:
    """Its score would be undefined in every such fold. Groups are refused exactly if one of many splits has such a test part."""
    groups = [str(group) for group, size in enumerate(sizes) for _ in range(size)]
    splits = Splitter(len(groups), Recipe.test_size, group_numbers(groups)).splits(1, 300)
    is_refused = False
    try:
        check_sizes(groups, "labels.csv")
    except OrganizerError as error:
        is_refused = error.code == "tasks.single_sample"
    assert is_refused == any(split.tested == 1 for split in splits)


def test_minus_one_and_one_are_classes_too(tmp_path: Path) -> None:
    """Labels -1 and 1 become 0 and 1, the same task as written with 0 and 1."""
    signed = [(name, "-1" if label == "0" else label) for name, label in CLASSES]
    folder_of(tmp_path, a__cls=label_file(signed), b__cls=label_file(CLASSES))
    a, b = load_tasks(tmp_path, PUBLIC)
    assert a.labels.tolist() == b.labels.tolist() == [float(label) for _, label in CLASSES]
    assert a.version == b.version


@pytest.mark.parametrize(
    ("name", "text", "code", "words"),
    [
        ("t__regr", label_file([]), "tasks.too_few_rows", "0 labeled rows"),
        ("t__regr", label_file([*GROUPED[:4], ("p004", "1,"), *GROUPED[5:]], WITH_GROUPS), "labels.no_group", "in 1 row, first on line 6"),
        ("t__regr", label_file([*GROUPED[:4], ("p004", "1,NA"), *GROUPED[5:]], WITH_GROUPS), "labels.no_group", "first on line 6; NA"),
        ("t__regr", label_file([(a, f"{b},{int(b) % 4}") for a, b in ROWS], WITH_GROUPS), "tasks.too_few_groups", "groups, or give none."),
        ("t__regr", label_file([(a, f"{b},{(i + 6) // 7}") for i, (a, b) in enumerate(ROWS[1:])], WITH_GROUPS), "tasks.single_sample", ""),
        ("t__regr", label_file([(a, f"{b},1,1") for a, b in ROWS], "id,label,group,group"), "labels.columns", "at most one column group"),
        ("t__regr", "", "file.empty", "The file is empty. Write the table with the columns id and label."),
        ("t__regr", label_file(ROWS, "id;label"), "file.delimiter", "the first line has semicolons instead"),
        ("t__regr", label_file(GROUPED, "id,label,Group"), "labels.group_name", "a column 'Group', but only one called group"),
        ("t__regr", label_file(GROUPED, "id,label,groups"), "labels.group_name", "a column 'groups'"),
        ("t__regr", label_file(ROWS, "id,value"), "labels.columns", "one column label"),
        ("t__regr", label_file(ROWS[:19]), "tasks.too_few_rows", "19 labeled rows, but at least 20"),
        ("t__regr", label_file([*ROWS, *((f"q{n}", "1") for n in range(1, 5))]), "tasks.unknown_ids", UNKNOWN_NAMED),
        ("t__regr", label_file([(f"q{n}", "1") for n in range(30)]), "tasks.other_ids", "Their first ids are q0 and p000."),
        ("t__regr", label_file([*ROWS, ROWS[1]]), "tasks.duplicate_ids", "1 row that repeats an id: p001 on lines 3 and 32."),
        ("t__regr", label_file([*ROWS, ("p001.zarr", "2")]), "tasks.duplicate_ids", "p001 on lines 3 and 32"),
        ("t__regr", label_file([(name, "4.0") for name, _ in ROWS]), "tasks.constant_labels", "All 30 labels in"),
        ("t__cls", label_file([(name, "1") for name, _ in ROWS]), "tasks.one_class", "only one class"),
        ("t__cls", label_file(ROWS), "tasks.not_binary", "line 4, line 5, line 6"),
        ("t__cls", label_file([*CLASSES, ("p050", "-1")]), "tasks.not_binary", "line 2"),
        ("t__regr", label_file([*ROWS, ("p050", "nan")]), "tasks.bad_label", "row whose label is not a finite number in float32: line 32"),
        ("t__regr", label_file([*ROWS, ("p050", "inf")]), "tasks.bad_label", "not a finite number"),
        ("t__regr", label_file([*ROWS, ("p050", "1e39")]), "tasks.bad_label", "not a finite number in float32: line 32"),
        ("t__regr", label_file([*ROWS, ("p050", "cat")]), "tasks.bad_label", "not a finite number"),
        ("t__regr", label_file([*ROWS, ("p050", "")]), "tasks.bad_label", "not a finite number"),
        ("t__regr", label_file([*ROWS, ("", "1")]), "rows.no_id", "1 row has no id: line 32"),
        ("t__regr", label_file([*ROWS, ("p050", "1,2")]), "rows.ragged", "line 32 has 3, expected 2"),
        ("t__regr", label_file([*ROWS, ('"p050', "1")]), "rows.quotes", "line 32"),
        ("t", label_file(ROWS), "tasks.bad_name", "not named after a task and its type"),
        ("__regr", label_file(ROWS), "tasks.bad_name", "not named"),
        ("a b__regr", label_file(ROWS), "tasks.bad_name", "not named"),
        ("t__multi", label_file(ROWS), "tasks.bad_type", "Split a task of several classes"),
    ],
)  # fmt: skip
def test_labels_that_cannot_be_scored_are_refused(
    name: str, text: str, code: str, words: str, tmp_path: Path
) -> None:
    """The error says which file is wrong, where, and what to do."""
    error = refusal(tmp_path, name, text)
    assert error.code == code, error.message
    assert words in error.message
    assert f"{name}.csv" in error.message


@pytest.mark.parametrize("name", ["labels.xlsx", "t__regr.CSV", "t__regr.csv.gz", "t__regr"])
def test_unknown_files_are_refused(name: str, tmp_path: Path) -> None:
    """An ignored file could be a task that is missing from the scores."""
    folder_of(tmp_path, t__regr=label_file(ROWS))
    target = tmp_path / name
    target.mkdir() if name == "t__regr" else target.write_text("x")
    with pytest.raises(OrganizerError) as caught:
        load_tasks(tmp_path, PUBLIC)
    assert caught.value.code == "tasks.unknown_file"
    assert name in caught.value.message


def test_a_missing_or_empty_folder_is_refused(tmp_path: Path) -> None:
    """A missing folder and an empty folder have different errors."""
    for folder, code in ((tmp_path / "none", "tasks.missing_folder"), (tmp_path, "tasks.empty_folder")):
        with pytest.raises(OrganizerError) as caught:
            load_tasks(folder, PUBLIC)
        assert caught.value.code == code


@pytest.mark.parametrize(
    "text", ["a\nb\nc", "a\nb\nc\n", "\ufeffa\r\nb\r\nc\r\n", "a \n\tb\nc.zarr\n", "a\rb\rc\r"]
)
def test_id_lists_in_any_plain_form(text: str, tmp_path: Path) -> None:
    """Byte order mark, line ends, spaces around and suffixes do not change the ids."""
    (tmp_path / "ids").write_bytes(text.encode())
    assert read_ids(tmp_path / "ids") == ("a", "b", "c")


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "ids.empty", "is empty"),
        (b"id\na\nb\n", "ids.header", "'id'"),
        (b"ID,split\na,x\n", "ids.header", "header line"),
        (b"image_id\na\nb\n", "ids.header", "'image_id'"),
        (b"# ids\na\nb\n", "ids.header", "header line"),
        (b"lat,image\n47.1,a\n47.2,b\n", "ids.columns", "has several columns; line 1 is 'lat,image'"),
        (b"a\n\nb\n\n", "ids.blank", "2 blank lines (first: 2, 4)"),
        (b"a\nb\na\n", "ids.duplicate", "a on lines 1 and 3"),
        (b"a\na.zarr\n", "ids.duplicate", "a on lines 1 and 2"),
        (b"caf\xe9\n", "ids.unreadable", "not UTF-8"),
        ("a\nb\u202ec\n".encode(), "ids.characters", "1 line (first: 2)"),
    ],
)
def test_faulty_id_lists_are_refused(data: bytes, code: str, words: str, tmp_path: Path) -> None:
    """The error says which lines to correct."""
    (tmp_path / "ids").write_bytes(data)
    with pytest.raises(OrganizerError) as caught:
        read_ids(tmp_path / "ids")
    assert caught.value.code == code
    assert words in caught.value.message
    assert caught.value.hint

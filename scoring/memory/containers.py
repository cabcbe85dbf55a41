"""Turn what a caller has in memory into arrays, data frames, series and dictionaries.

Optional libraries are never imported here: their objects are known by their module or by a protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scoring.errors import NeucoError, WrongType, WrongValue
from scoring.inputs.columns import names_an_id

Plain: TypeAlias = pd.DataFrame | pd.Series | Mapping[Any, Any] | NDArray[Any]
LARGEST_DENSE = 4 << 30  # bytes of float32, of a sparse matrix that is made dense
FORMS = "Give a numpy array, a pandas DataFrame, a dictionary or the path of a file."


def is_path(value: Any) -> bool:
    """Return whether a value names a file or folder."""
    return isinstance(value, (str, PathLike))


def is_dictionary(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether a value is a dictionary, not a table or sparse matrix that looks like one."""
    return isinstance(value, Mapping) and not (hasattr(value, "to_pandas") or hasattr(value, "nnz"))


def plain(value: Any, name: str) -> Plain:
    """Return a value as a data frame, series, dictionary or array with the machine's byte order; lists of scalars have the dtype object.

    Args:
        value: What the caller gave.
        name: The argument, for messages.

    Raises:
        WrongType: If it is neither a table nor numbers.
        WrongValue: If rows have different lengths, or it is too large to be made dense.
    """
    if isinstance(value, type):
        raise _unknown(value, name)
    if isinstance(value, (pd.DataFrame, pd.Series)):
        return value
    if is_dictionary(value):
        return {key: scalar(item) for key, item in value.items()}
    if isinstance(value, pd.api.extensions.ExtensionArray | pd.Index):
        return pd.Series(np.asarray(value) if isinstance(value, pd.MultiIndex) else value)
    if isinstance(value, (np.ndarray, memoryview)):
        return _native(np.asanyarray(value), name)
    try:
        if (converted := _of_library(value, name)) is not None:
            return converted
    except (NeucoError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - whatever another library raises
        raise _unknown(value, name) from None
    if isinstance(value, (set, frozenset)):
        raise WrongType(
            f"The {name} are a set, which has no order.",
            hint="Give a list or a dictionary.",
            code="score.type",
        )
    if (
        isinstance(value, Iterable)
        and not isinstance(value, (bytes, bytearray))
        and not hasattr(value, "read")
    ):
        return _sequence(list(value), name)
    raise _unknown(value, name)


def _of_library(value: Any, name: str) -> Plain | None:
    """Return what another library made; None if it is of Python."""
    if getattr(value, "ndim", 0) > 2 and hasattr(value, "__array__") and not hasattr(value, "detach"):
        return np.asarray(value)  # its shape is refused later
    for convert in (_tensor, _dense, _table):
        if (converted := convert(value, name)) is not None:
            return converted
    if not hasattr(value, "__array__"):
        return None
    if hasattr(value, "index"):
        raise _unknown(value, name)  # a series whose ids would be lost
    return _native(np.asarray(value), name)


def _unknown(value: Any, name: str) -> WrongType:
    kind = type(value)
    ways = () if hasattr(value, "to_pandas") else ("collect", "compute", "toPandas")
    lazy = next((way for way in ways if hasattr(value, way)), "")
    return WrongType(
        f"The {name} are of the type {kind.__module__}.{kind.__qualname__}, which cannot be read.",
        hint=f"Give what its method {lazy}() returns." if lazy else FORMS,
        code="score.type",
    )


def _native(array: NDArray[Any], name: str) -> Plain:
    if array.dtype.names:
        columns = {column: _native(array[column], name) for column in array.dtype.names}
        return pd.DataFrame(
            {
                column: part if getattr(part, "ndim", 1) == 1 else [*np.asarray(part)]
                for column, part in columns.items()
            }
        )
    if np.ma.is_masked(array):
        array = np.where(np.ma.getmaskarray(array), np.array(None), np.asarray(array))
    array = np.asarray(array)  # not np.matrix, which stays two-dimensional
    if array.dtype.kind == "V":
        if array.dtype.type.__module__.startswith("numpy"):
            raise WrongType(
                f"The {name} are raw bytes ({array.dtype}), as numpy stores bfloat16.",
                hint="Convert them to float32 before they are saved.",
                code="score.type",
            )
        array = array.astype(np.float32)  # bfloat16 and other small floats of ml_dtypes
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _tensor(value: Any, name: str) -> Plain | None:
    """Return a tensor of torch; floats as float64, which holds all of them exactly."""
    if not (hasattr(value, "detach") and hasattr(value, "cpu") and hasattr(value, "numpy")):
        return None
    tensor = value.detach().cpu()
    if str(tensor.layout) != "torch.strided":
        _judge_size(tensor.shape, name)
        tensor = tensor.to_dense()
    return np.asarray((tensor.double() if tensor.is_floating_point() else tensor).numpy())


def _dense(value: Any, name: str) -> Plain | None:
    if not (hasattr(value, "todense") and hasattr(value, "nnz")):
        return None
    _judge_size(value.shape, name)
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value.todense())


def _judge_size(shape: Sequence[int], name: str) -> None:
    if 4 * np.prod([float(length) for length in shape]) > LARGEST_DENSE:
        raise WrongValue(
            f"The {name} are sparse with the shape {tuple(shape)}, and would take more than {LARGEST_DENSE >> 30} GiB as a dense array.",
            hint="Reduce them to fewer dimensions, for example with sklearn.decomposition.TruncatedSVD.",
            code="score.sparse",
        )


def _table(value: Any, name: str) -> Plain | None:
    """Return a table of another library, with its names."""
    ways = [way for way in ("to_pandas", "__arrow_c_stream__", "__dataframe__") if hasattr(value, way)]
    if not ways:
        return None
    if hasattr(value, "drop_vars") and hasattr(value, "ndim"):
        _check_coordinates(value, name)
    for way in ways:
        try:
            if way == "to_pandas":
                table = value.to_pandas()
            else:
                import pyarrow.interchange

                read = pyarrow.table if way == "__arrow_c_stream__" else pyarrow.interchange.from_dataframe
                table = read(value).to_pandas()
        except Exception:  # noqa: BLE001, S112 - whatever another library raises; the next way may do, and the end is an error of ours
            continue
        if isinstance(table, (pd.DataFrame, pd.Series)):
            return table
    raise _unknown(value, name)


def _check_coordinates(array: Any, name: str) -> None:
    """Refuse an array of xarray with ids in a coordinate that is no index, which its data frame would lack."""
    axis = array.dims[:1]
    for called, ids in array.coords.items() if axis and axis[0] not in array.coords else ():
        texts = {*map(str, ids.to_numpy().ravel().tolist())} if ids.dtype.kind in "OSU" else ()
        if ids.dims == axis and (names_an_id(called) or len(texts) == len(ids)):
            raise WrongValue(
                f"The {name} have the coordinate {called!r}, which is no index, so these ids would be lost.",
                hint=f"Make it the index: .swap_dims({ {axis[0]: called} }); or remove it: .drop_vars({called!r}).",
                code="score.coordinate",
            )


def _sequence(items: list[Any], name: str) -> Plain:
    """Return a list of scalars, of rows, or of records."""
    if items and all(isinstance(item, Mapping) for item in items):
        return pd.DataFrame(items)
    have_several_labels = name == "labels" and any(isinstance(item, (set, frozenset)) for item in items)
    if have_several_labels or not any(has_parts(item) for item in items):
        return _objects(items)
    rows = [plain(item, name) if has_parts(item) else item for item in items]
    lengths = [len(row) if has_parts(row) else None for row in rows]
    odd = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is not None:
        if name == "labels":
            return _objects(items)
        raise WrongValue(
            f"Row 0 of the {name} has {_values(lengths[0])}, row {odd} has {_values(lengths[odd])}.",
            hint="Give rows of the same length, or a dictionary of ids and vectors; join batches with numpy.concatenate.",
            code="score.ragged",
        )
    try:
        return _native(np.stack([np.asarray(row) for row in rows]), name)
    except ValueError:
        raise WrongValue(
            f"The rows of the {name} have different shapes.",
            hint="Give rows of the same length.",
            code="score.ragged",
        ) from None


def _objects(items: list[Any]) -> NDArray[Any]:
    """Return an array that keeps numbers and texts apart, which numpy would make texts, and lists as they are."""
    array = np.empty(len(items), dtype=object)
    array[:] = [scalar(item) for item in items]
    return array


def scalar(value: Any) -> Any:
    """Return a scalar of torch or pyarrow as Python's; anything else as it is."""
    if hasattr(value, "as_py"):
        return value.as_py()
    if getattr(value, "ndim", 1) or isinstance(value, np.generic):
        return value
    return value[()] if isinstance(value, np.ndarray) else value.item()


def _values(length: int | None) -> str:
    return "no list of values" if length is None else f"{length} value{'' if length == 1 else 's'}"


def has_parts(value: Any) -> bool:
    """Return whether a value is a row or a list, not a scalar or a text."""
    return (
        isinstance(value, Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) > 0
    ) or isinstance(value, Iterator)

"""Sixteen float32 lanes as one value inside compiled functions.

**Why.** numba has no vector type, so a fast reduction usually needs ``fastmath``, which lets the compiler choose the order of a sum, and
with it the last bits. Here the order is fixed: a sum runs in 16 lanes, whose upper half is added to the lower half until one is left.
Sixteen lanes are one AVX-512 register, two AVX2 registers or four NEON registers; all do the same operations in the same order.

A product and a sum are rounded once if the processor has a fused instruction (most x86-64 since 2013, every ARM64).

**How it is used.** A compiled function calls the functions at the end of this module as if they were Python's::

    @compiled
    def dot(a, b):
        sums = spread(np.float32(0.0))
        for j in range(0, len(a), LANES):
            sums = fused(load(a, j), load(b, j), sums)
        return total(sums)

Arrays are flat, contiguous float32, and their length is a multiple of ``LANES``: nothing checks that, and a wrong index reads other memory.

**How it works.** numba compiles a function in two passes, and each function here serves both. Its name is what numba calls an *intrinsic*:

1. *Types.* numba calls it with the types of the arguments. It returns the signature, written as ``result(argument, …)``, and ``generate``.
   ``lanes_type`` is the type of 16 lanes; ``_LanesModel`` says that LLVM's ``<16 x float>`` represents it. So a value stays in registers.
2. *Code.* numba calls ``generate`` with the values of the arguments. ``builder`` (llvmlite's ``IRBuilder``) writes LLVM instructions, and
   the value that ``generate`` returns is the result; a function without a result returns ``context.get_dummy_value()``.

What is not a method of the builder is an external function of LLVM's, called by its name and type: ``llvm.fmuladd.v16f32``,
``llvm.sqrt.v16f32``, ``llvm.prefetch.p0`` (LLVM's Language Reference describes them). Loads and stores say ``align=4``, since an array of
float32 need not begin at a multiple of 64 bytes.

**If it breaks**, it is after an update of numba or llvmlite, because only these interfaces are used: ``intrinsic``, ``register_model``,
``PrimitiveModel``, ``make_array``, ``get_or_insert_function`` of numba, and ``IRBuilder`` of llvmlite.

- An error at compile time names the line of ``generate``, or prints LLVM's own message: compare the types of the instruction with those in
  the Language Reference of the LLVM that llvmlite contains.
- Other results: ``tests/scoring/engines/test_local.py`` compares the kernel with the plain loop of :mod:`scoring.reference`.
- It is slow: after a call, ``dot.inspect_asm()`` must show packed instructions, such as ``vfmadd231ps`` on x86-64 or ``fmla`` on ARM64,
  and ``dot.inspect_llvm()`` must show ``<16 x float>``. Scalar ones (``vfmadd231ss``) mean that the lanes were split. numba shows only
  what this process has compiled, so let NUMBA_CACHE_DIR name an empty folder.

A change of this file makes new compiled code (:func:`scoring.jit.sources`). An operation is added by a function as below, and a line at the
end; the order of operations in an existing one is a part of every score, and never changes.
"""

# ruff: noqa: ARG001 - numba and llvmlite call these functions with arguments that some do not need

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 16

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INDEX = ir.IntType(32)


class LanesType(types.Type):
    """The numba type of sixteen float32 lanes."""

    def __init__(self) -> None:
        super().__init__(name="Lanes16")  # type: ignore[no-untyped-call, unused-ignore]


lanes_type = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _VECTOR)  # type: ignore[no-untyped-call, unused-ignore]


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _llvm(builder: Any, name: str, *operands: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(operands))
    return builder.call(_external(builder, kind, f"llvm.{name}.v{LANES}f32"), operands)


def _external(builder: Any, kind: Any, name: str) -> Any:
    return cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call, unused-ignore]


def _load(typing: Any, array: Any, index: Any) -> Any:
    """Read 16 values of a flat float32 array, starting at ``index``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load(builder.bitcast(address, _VECTOR.as_pointer()), align=4)

    return lanes_type(array, types.intp), generate


def _store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write 16 values to a flat float32 array, starting at ``index``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], builder.bitcast(address, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes_type), generate


def _prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of ``array[index]``; the index may be out of bounds, because a prefetch has no effect on results."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _address(context, builder, signature.args[0], arguments[0], arguments[1])
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _INDEX, _INDEX, _INDEX])
        instruction = _external(builder, kind, "llvm.prefetch.p0")
        read, level_2, data = _INDEX(0), _INDEX(2), _INDEX(1)
        builder.call(instruction, [builder.bitcast(address, pointer), read, level_2, data])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _spread(typing: Any, value: Any) -> Any:
    """Put one float32 into all lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), arguments[0], _INDEX(0))
        return builder.shuffle_vector(single, ir.Constant(_VECTOR, ir.Undefined), _mask([0] * LANES))

    return lanes_type(types.float32), generate


def _fused(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _llvm(builder, "fmuladd", *arguments)

    return lanes_type(lanes_type, lanes_type, lanes_type), generate


def _of_two(emit: Callable[[Any, Any, Any], Any]) -> Any:
    """Make an operation on the lanes of two values from the method of LLVM's builder."""

    def typed(typing: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return emit(builder, *arguments)

        return lanes_type(lanes_type, lanes_type), generate

    return typed


def _root(typing: Any, a: Any) -> Any:
    """Return the square root."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _llvm(builder, "sqrt", *arguments)

    return lanes_type(lanes_type), generate


def _total(typing: Any, a: Any) -> Any:
    """Sum the lanes by adding the upper half to the lower half until one is left."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, width = arguments[0], LANES
        while width > 1:
            width //= 2
            undefined = ir.Constant(value.type, ir.Undefined)
            low = builder.shuffle_vector(value, undefined, _mask(range(width)))
            high = builder.shuffle_vector(value, undefined, _mask(range(width, 2 * width)))
            value = builder.fadd(low, high)
        return builder.extract_element(value, _INDEX(0))

    return types.float32(lanes_type), generate


def _mask(positions: Sequence[int]) -> Any:
    return ir.Constant(ir.VectorType(_INDEX, len(positions)), list(positions))


_make: Callable[[Any], Callable[..., Any]] = intrinsic
load = _make(_load)
store = _make(_store)
prefetch = _make(_prefetch)
spread = _make(_spread)
fused = _make(_fused)
product = _make(_of_two(ir.IRBuilder.fmul))
difference = _make(_of_two(ir.IRBuilder.fsub))
quotient = _make(_of_two(ir.IRBuilder.fdiv))
root = _make(_root)
total = _make(_total)

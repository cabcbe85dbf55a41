"""Eight characters of a text as one number inside compiled functions, so that digits are read eight at a time.

The first character is the lowest byte, as on every processor that numba supports.
"""

# ruff: noqa: ARG001 - numba and llvmlite call these functions with arguments that some do not need

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

_WORD = ir.IntType(64)


def _load_word(typing: Any, text: Any, position: Any) -> Any:
    """Read the eight bytes of ``text`` from ``position`` on as one number, the first as its lowest byte."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), _WORD.as_pointer())
        return builder.load(address, align=1)

    return types.uint64(text, types.intp), generate


def _digit_bits(typing: Any, word: Any) -> Any:
    """Return how many bits of a word come before its first byte that is not a digit: 0, 8, … or 64.

    Digits become 0 to 9 if the bits of "0" are flipped. Adding 118 to anything greater sets the highest bit of its byte, without a carry.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        flipped = builder.xor(arguments[0], _bytes(ord("0")))
        raised = builder.add(builder.and_(flipped, _bytes(0x7F)), _bytes(118))
        others = builder.and_(builder.or_(raised, flipped), _bytes(0x80))
        return builder.and_(builder.cttz(others, ir.Constant(ir.IntType(1), 0)), ir.Constant(_WORD, 0x78))

    return types.uint64(types.uint64), generate


def _value_of_digits(typing: Any, word: Any, bits: Any) -> Any:
    """Return the value of the digits in the lowest ``bits`` of a word: pairs, then fours, then eight are put together at once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, bits = arguments
        # Zeros go in front of the digits. A shift by all 64 bits is undefined, so it is done in halves.
        half = builder.lshr(builder.sub(ir.Constant(_WORD, 64), bits), ir.Constant(_WORD, 1))
        value = builder.shl(builder.shl(builder.xor(word, _bytes(ord("0"))), half), half)
        for size, tens, mask in (
            (8, 10, 0x00FF00FF00FF00FF),
            (16, 10**2, 0x0000FFFF0000FFFF),
            (32, 10**4, 0xFFFFFFFF),
        ):
            pairs = builder.mul(value, ir.Constant(_WORD, (tens << size) + 1))
            value = builder.and_(builder.lshr(pairs, ir.Constant(_WORD, size)), ir.Constant(_WORD, mask))
        return value

    return types.uint64(types.uint64, types.uint64), generate


def _bytes(value: int) -> Any:
    return ir.Constant(_WORD, int.from_bytes(bytes([value]) * 8, "little"))


load_word: Callable[..., Any] = intrinsic(_load_word)
digit_bits: Callable[..., Any] = intrinsic(_digit_bits)
value_of_digits: Callable[..., Any] = intrinsic(_value_of_digits)

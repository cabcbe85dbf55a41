"""drand: real rounds are accepted, and nothing else."""

from __future__ import annotations

import importlib
import json
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.challenge.secrets import value_of
from worker.fairness.drand import QUICKNET, is_signed
from worker.organizer.rehearsal.practice_draw import practice_chain, sign

# As published by https://api.drand.sh.
ROUNDS = {
    1000: (
        "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39",
        "fe290beca10872ef2fb164d2aa4442de4566183ec51c56ff3cd603d930e54fdd",
    ),
    657413: (
        "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be41076862b98fad56e91a6b85b89cd97b",
        "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587",
    ),
}


@pytest.mark.parametrize("number", ROUNDS)
def test_real_rounds_are_accepted(number: int) -> None:
    """Signature and value of rounds that the network has published."""
    signature, value = ROUNDS[number]
    assert is_signed(QUICKNET, number, signature)
    assert value_of(signature) == value


@pytest.mark.parametrize(
    ("number", "signature"),
    [
        (1001, ROUNDS[1000][0]),
        (1000, ROUNDS[657413][0]),
        (1000, ROUNDS[1000][0][:-2] + "38"),
        (1000, "c0" + "00" * 47),  # the point at infinity
        (1000, "00" * 48),
        (1000, "ff" * 48),
        (1000, "b4"),
        (1000, "no hex"),
        (-1, ROUNDS[1000][0]),
        (2**64, ROUNDS[1000][0]),
    ],
)
def test_wrong_signatures_are_rejected(number: int, signature: str) -> None:
    """Another round, another signature, a point outside the group, and bytes that are no point are all rejected."""
    assert not is_signed(QUICKNET, number, signature)


def test_a_signature_outside_the_group_is_rejected() -> None:
    """With a point of small order added, the pairing is the same but the value is not, so it could be chosen among many."""
    curve, compression = (
        importlib.import_module(f"py_ecc.{name}") for name in ("optimized_bls12_381", "bls.point_compression")
    )
    prime = curve.field_modulus
    heights = ((x, pow(x**3 + 4, (prime + 1) // 4, prime)) for x in range(1, 100))
    x, y = next((x, y) for x, y in heights if (y * y - x**3 - 4) % prime == 0)
    small = curve.multiply((curve.FQ(x), curve.FQ(y), curve.FQ(1)), curve.curve_order)
    assert not curve.is_inf(small)
    genuine = compression.decompress_G1(int(ROUNDS[1000][0], 16))
    forged = f"{compression.compress_G1(curve.add(genuine, small)):096x}"
    assert not is_signed(QUICKNET, 1000, forged)


def test_another_chain_cannot_sign_for_the_network() -> None:
    """The holder of another key cannot sign for the network."""
    ours = practice_chain(genesis=1_700_000_000)
    assert is_signed(ours, 7, sign(7))
    assert not is_signed(QUICKNET, 7, sign(7))


@given(st.integers(1, 10**9), st.integers(0, 2))
def test_rounds_and_times_correspond(number: int, late_s: int) -> None:
    """Each round is the first one at its own moment, and the next one comes after that; before the first, there is none."""
    moment = QUICKNET.made_at(number)
    assert QUICKNET.round_after(moment) == number
    assert QUICKNET.round_after(moment + timedelta(seconds=late_s)) == number + (late_s > 0)
    assert moment == datetime.fromtimestamp(1692803367 + 3 * (number - 1), UTC)
    assert QUICKNET.round_after(datetime(2020, 1, 1, tzinfo=UTC)) == 1


def test_the_recursion_limit_is_unchanged() -> None:
    """The library raises the limit; deeply nested JSON would then crash the process instead of being refused."""
    limit = sys.getrecursionlimit()
    assert is_signed(QUICKNET, 1000, ROUNDS[1000][0])
    assert sys.getrecursionlimit() == limit
    with pytest.raises(RecursionError):
        json.loads("[" * 100_000)

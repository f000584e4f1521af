"""What crosses between a solution and its test keeps its types; nothing but plain values crosses."""

import json
import math
from collections import Counter, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lab.eval.inside.codec import decode, encode, pack

hashable = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=5,
)
values = st.recursive(
    hashable | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=4) | st.sets(hashable, max_size=4) | st.dictionaries(hashable, inner, max_size=4)
    ),
    max_leaves=10,
)


def typed(value: object) -> str:
    """With types, as 1 == 1.0 == True."""
    if isinstance(value, dict):
        return f"dict {sorted((typed(key), typed(held)) for key, held in value.items())}"
    if isinstance(value, set | frozenset):
        return f"{type(value).__name__} {sorted(map(typed, value))}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} {list(map(typed, value))}"
    return f"{type(value).__name__} {value!r}"


@given(values)
def test_a_plain_value_comes_back_as_it_was(value: object):
    assert typed(decode(json.loads(pack(encode(value))))) == typed(value)


def test_numbers_that_json_has_no_names_for_come_back():
    assert math.isnan(decode(encode(math.nan)))
    assert decode(encode([math.inf, -math.inf, 10**5000])) == [math.inf, -math.inf, 10**5000]


def test_a_subclass_crosses_as_what_it_holds():
    class Loud(str):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = str.__hash__

    assert type(decode(encode(Loud("a")))) is str
    assert decode(encode(Counter("aab"))) == {"a": 2, "b": 1}
    assert decode(encode(namedtuple("Pair", "a b")(1, 2))) == (1, 2)


@pytest.mark.parametrize(
    "value", [object(), range(3), iter([]), len, {1: object()}], ids=lambda value: type(value).__name__
)
def test_anything_else_does_not_cross(value: object):
    with pytest.raises(TypeError, match="can't be compared"):
        encode(value)


@pytest.mark.parametrize("told", [1, 1.5, [], {}, {"int": "0x1", "float": "0x1p0"}, {"object": 1}, {"dict": 3}])
def test_what_is_no_value_is_refused(told: object):
    with pytest.raises((ValueError, TypeError)):
        decode(told)

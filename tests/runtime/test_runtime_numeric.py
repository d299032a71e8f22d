"""Integer helpers and input checks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import ConfigError, SizeError
from runtime.numeric import (
    MAX_SIZE,
    align,
    cdiv,
    check_bool,
    check_int,
    check_str,
    check_strs,
    clamp,
    floordiv,
    modulo,
    next_in,
)

integers = st.integers(-(2**80), 2**80)
positive = st.integers(1, 2**70)


def message(error: pytest.ExceptionInfo[Exception]) -> str:
    return str(error.value)


def test_max_size_is_that_of_a_signed_64_bit_integer() -> None:
    assert MAX_SIZE == 9223372036854775807


@given(integers, positive)
def test_align_gives_the_next_multiple(value: int, multiple: int) -> None:
    result = align(value, multiple)
    assert result % multiple == 0
    assert 0 <= result - value < multiple


@pytest.mark.parametrize("multiple", [0, -16])
def test_align_refuses_a_multiple_below_one(multiple: int) -> None:
    with pytest.raises(SizeError) as error:
        align(5, multiple)
    assert message(error) == f"align: 5 cannot be rounded to a multiple of {multiple}"


@given(integers, positive)
def test_cdiv_rounds_up(value: int, divisor: int) -> None:
    assert 0 <= cdiv(value, divisor) * divisor - value < divisor


def test_cdiv_by_zero() -> None:
    with pytest.raises(SizeError) as error:
        cdiv(7, 0)
    assert message(error) == "cdiv: 7 divided by 0 is undefined"


@given(integers, integers, integers)
def test_clamp(value: int, one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert clamp(value, low, high) == sorted((low, value, high))[1]


def test_clamp_to_an_empty_range() -> None:
    with pytest.raises(SizeError) as error:
        clamp(3, 2, 1)
    assert message(error) == "clamp: no integer is from 2 to 1, for 3"


@given(integers, integers.filter(bool))
def test_floordiv_and_modulo_are_pythons(value: int, divisor: int) -> None:
    assert floordiv(value, divisor, "x") == value // divisor
    assert modulo(value, divisor, "x") == value % divisor


def test_floordiv_by_zero() -> None:
    with pytest.raises(SizeError) as error:
        floordiv(7, 0, "max_blocks")
    assert message(error) == "max_blocks: 7 // 0 is undefined"


def test_modulo_by_zero() -> None:
    with pytest.raises(SizeError) as error:
        modulo(7, 0, "max_blocks")
    assert message(error) == "max_blocks: 7 % 0 is undefined"


@pytest.mark.parametrize(
    ("value", "expected"), [(-1, 1), (1, 1), (2, 4), (4, 4), (5, 8), (8, 8)]
)
def test_next_in(value: int, expected: int) -> None:
    assert next_in((1, 4, 8), value, "batch_sizes") == expected


def test_next_in_beyond_the_largest() -> None:
    with pytest.raises(SizeError) as error:
        next_in((1, 4, 8), 9, "batch_sizes")
    assert message(error) == "batch_sizes: nothing is at least 9, its largest is 8"


def test_next_in_nothing() -> None:
    with pytest.raises(SizeError) as error:
        next_in((), 9, "batch_sizes")
    assert message(error) == "batch_sizes: nothing is at least 9, it is empty"


def test_check_int_accepts_the_bounds() -> None:
    assert check_int("n", 0) == 0
    assert check_int("n", 10**30) == 10**30
    assert check_int("n", 1, 1, 4) == 1
    assert check_int("n", 4, 1, 4) == 4


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-1, "-1; at least 0"),
        (True, "True (bool), not an int"),
        (1.0, "1.0 (float), not an int"),
        ("1", "'1' (str), not an int"),
        (None, "None (NoneType), not an int"),
    ],
)
def test_check_int_refuses(value: object, shown: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_int("hidden_size", value)
    assert message(error) == f"hidden_size is {shown}"


@pytest.mark.parametrize("value", [0, 9])
def test_check_int_refuses_what_is_out_of_range(value: int) -> None:
    with pytest.raises(ConfigError) as error:
        check_int("n", value, 1, 8)
    assert message(error) == f"n is {value}; from 1 to 8"


def test_a_huge_value_is_cut_short() -> None:
    with pytest.raises(ConfigError) as error:
        check_int("n", 10**5000, 0, 8)
    assert message(error).startswith("n is 0x")
    assert message(error).endswith("...; from 0 to 8")
    assert len(message(error)) < 150
    with pytest.raises(ConfigError) as error:
        check_int("n", "x" * 1000)
    assert len(message(error)) < 150


def test_check_bool() -> None:
    assert check_bool("gated", True) is True
    assert check_bool("gated", False) is False


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_check_bool_refuses(value: object) -> None:
    with pytest.raises(ConfigError) as error:
        check_bool("gated", value)
    kind = type(value).__name__
    assert message(error) == f"gated is {value!r} ({kind}), not True or False"


def test_check_str() -> None:
    assert check_str("model_type", "glm") == "glm"


@pytest.mark.parametrize("value", [b"glm", 3, None])
def test_check_str_refuses(value: object) -> None:
    with pytest.raises(ConfigError) as error:
        check_str("model_type", value)
    assert message(error) == (
        f"model_type is {value!r} ({type(value).__name__}), not a str"
    )


@pytest.mark.parametrize("value", [["a", "b"], ("a", "b")])
def test_check_strs(value: object) -> None:
    assert check_strs("layer_types", value) == ("a", "b")


def test_check_strs_accepts_none_at_all() -> None:
    assert check_strs("layer_types", []) == ()


@pytest.mark.parametrize("value", ["full", 3, None, {"a": 1}, {"a"}])
def test_check_strs_refuses(value: object) -> None:
    with pytest.raises(ConfigError) as error:
        check_strs("layer_types", value)
    assert message(error) == (
        f"layer_types is {value!r} ({type(value).__name__}), not a list of str"
    )


def test_check_strs_names_the_item() -> None:
    with pytest.raises(ConfigError) as error:
        check_strs("layer_types", ["a", 3])
    assert message(error) == "layer_types[1] is 3 (int), not a str"

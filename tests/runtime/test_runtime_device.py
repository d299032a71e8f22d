"""Device pointers: an int with a NULL and guarded offsets."""

import copy
import pickle

import pytest

from runtime.device import NULL, DevicePtr
from runtime.errors import ArenaError, PointerError


def test_a_pointer_is_an_int() -> None:
    ptr = DevicePtr(0x7F00)
    assert isinstance(ptr, int)
    assert ptr == 0x7F00
    assert hash(ptr) == hash(0x7F00)
    assert type(ptr + 1) is int
    assert not hasattr(ptr, "__dict__")


def test_null() -> None:
    assert NULL is DevicePtr.NULL
    assert NULL == 0
    assert NULL.is_null
    assert not DevicePtr(1).is_null


def test_offset_gives_a_pointer() -> None:
    ptr = DevicePtr(0x1000).offset(0x20)
    assert type(ptr) is DevicePtr
    assert ptr == 0x1020
    assert DevicePtr(0x1000).offset(0) == 0x1000


@pytest.mark.parametrize("nbytes", [0, 1, -1])
def test_null_has_no_offset(nbytes: int) -> None:
    with pytest.raises(PointerError, match=r"^NULL has no offset; a buffer that is"):
        NULL.offset(nbytes)


def test_an_offset_is_not_negative() -> None:
    text = "^an offset cannot be negative, got -1 bytes$"
    with pytest.raises(PointerError, match=text):
        DevicePtr(16).offset(-1)


@pytest.mark.parametrize("nbytes", [1.0, 0.5, "1"])
def test_an_offset_is_an_integer(nbytes: object) -> None:
    with pytest.raises(TypeError):
        DevicePtr(16).offset(nbytes)  # type: ignore[arg-type]


def test_an_address_is_not_negative() -> None:
    with pytest.raises(PointerError, match=r"^an address cannot be negative, got -8$"):
        DevicePtr(-8)


def test_pointer_errors_are_value_errors() -> None:
    assert issubclass(PointerError, ArenaError)
    assert issubclass(PointerError, ValueError)


def test_repr_is_hexadecimal() -> None:
    assert repr(DevicePtr(0x7F0012345000)) == "DevicePtr(0x7f0012345000)"
    assert str(NULL) == "DevicePtr(0x0)"
    assert f"{DevicePtr(255):#x}" == "0xff"


def test_pickle_and_copy_keep_the_type() -> None:
    ptr = DevicePtr(0x10)
    for twin in (pickle.loads(pickle.dumps(ptr)), copy.copy(ptr), copy.deepcopy(ptr)):
        assert type(twin) is DevicePtr
        assert twin == ptr

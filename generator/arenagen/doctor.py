"""What this machine has for the CUDA backend of an emitted package.

Asks cuda-python and the driver; returns lines of text and whether a device can be
used. Prints nothing, and leaves no context behind.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from . import __version__
from .report import human

INSTALL = "pip install 'cuda-python>=12.9,<14'"


class _DriverError(Exception):
    pass


def diagnose() -> tuple[list[str], bool]:
    """What there is and what is missing, and whether a device is ready."""
    lines = [f"arenagen      {__version__}, Python {platform.python_version()}"]
    bindings = _version("cuda-bindings")
    if bindings is None:
        lines.append(f"cuda-python   missing; get it with: {INSTALL}")
        return lines, False
    python = _version("cuda-python")
    lines.append(f"cuda-python   {python or 'missing'}, cuda-bindings {bindings}")
    lines.append(f"cuda-core     {_version('cuda-core') or 'missing (optional)'}")
    for package in ("numpy", "ml-dtypes"):
        found = _version(package) or "missing (only for views of host memory)"
        lines.append(f"{package:<13} {found}")
    try:
        driver = import_module("cuda.bindings.driver")
        _call("cuInit", driver, 0)
        number = _call("cuDriverGetVersion", driver)
        lines.append(f"CUDA driver   {number // 1000}.{number % 1000 // 10}")
        devices = list(_devices(driver))
    except (ImportError, RuntimeError, _DriverError) as error:
        lines.append(f"CUDA driver   missing: {error}")
        lines.append(
            "              install the NVIDIA driver; libcuda.so.1 comes with it"
        )
        return lines, False
    if not devices:
        lines.append("devices       none that the driver shows")
        lines.append("              CUDA_VISIBLE_DEVICES may hide them")
    return lines + devices, bool(devices)


def _devices(driver: Any) -> Iterator[str]:
    for ordinal in range(_call("cuDeviceGetCount", driver)):
        device = _call("cuDeviceGet", driver, ordinal)
        name = _call("cuDeviceGetName", driver, 256, device)
        shown = name.split(b"\0")[0].decode(errors="replace")
        total = _call("cuDeviceTotalMem", driver, device)
        context = _call("cuDevicePrimaryCtxRetain", driver, device)
        try:
            _call("cuCtxPushCurrent", driver, context)
            free, _ = _call("cuMemGetInfo", driver)
            _call("cuCtxPopCurrent", driver)
        finally:
            _call("cuDevicePrimaryCtxRelease", driver, device)
        yield f"device {ordinal}      {shown}, {human(free)} free of {human(total)}"


def _call(name: str, driver: Any, *arguments: Any) -> Any:
    status, *values = getattr(driver, name)(*arguments)
    if status:
        _, text = driver.cuGetErrorName(status)
        raise _DriverError(f"{name}: {text.decode() if text else int(status)}")
    return values[0] if len(values) == 1 else values


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

"""Device memory: what drivers and vendors say of it, and byte counts as people write.

Free memory is less than either says: a context and its kernels take their part.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal

from .errors import ArenagenError, did_you_mean
from .record import record

GB = 10**9
MIB = 2**20


@record
class Device:
    """The memory of one device in bytes, and who says so."""

    nbytes: int
    source: Literal["driver", "vendor"]


def _reported(mebibytes: int) -> Device:
    return Device(mebibytes * MIB, "driver")


def _published(gigabytes: int) -> Device:
    return Device(gigabytes * GB, "vendor")


# What nvidia-smi and rocm-smi report of one device, as seen in public:
# A100, H100, L4, L40S: github.com/modal-labs/modal-client/pull/2797.
# H200: nvidia-smi of a node of eight, driver 570.158.01; of H200 NVL it is the same.
# B200: github.com/NVIDIA/TensorRT-LLM/issues/10278.
# RTX 4090: github.com/vllm-project/vllm/issues/7553.
# RTX 5090: github.com/noonghunna/club-3090/issues/1261.
# RTX PRO 6000 Blackwell: nvidia-smi of an Amazon EC2 G7e instance, driver 580.126.09.
# MI300X: github.com/ROCm/legacy-rocm-build/issues/4414, 201,310,208 KiB.
#
# What the vendor publishes, as decimal gigabytes, where no report was found:
# GB10: nvidia.com/en-us/products/workstations/dgx-spark, shared with the CPU; its
# driver reports none, docs.nvidia.com/dgx/dgx-spark/known-issues.html.
# MI325X, MI355X: amd.com/en/products/accelerators/instinct.
DEVICES = {
    "a100-40gb": _reported(40960),
    "a100-80gb": _reported(81920),
    "h100": _reported(81559),
    "h200": _reported(143771),
    "b200": _reported(183359),
    "gb10": _published(128),
    "l4": _reported(23034),
    "l40s": _reported(46068),
    "rtx-4090": _reported(24564),
    "rtx-5090": _reported(32607),
    "rtx-pro-6000": _reported(97887),
    "mi300x": _reported(196592),
    "mi325x": _published(256),
    "mi355x": _published(288),
}

_AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{1,9})?)\s*([a-z]*)", re.ASCII)
_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", start=1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", start=1)},
}


def parse_bytes(text: str) -> int:
    """A byte count, as in `24GiB`, `80 GB`, `1.5GiB` or `4096`; whole bytes of it.

    Raises ArenagenError for anything else.
    """
    match = _AMOUNT.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ArenagenError(
            f"{text[:40]!r} is no amount of memory; write 24GiB (1024), 24GB (1000) or "
            "plain bytes"
        )
    return int(Fraction(match[1]) * _UNITS[match[2]])


def find_device(name: str) -> Device:
    """A device by its name. Raises ArenagenError for one that is not known."""
    if name.lower() not in DEVICES:
        hint = did_you_mean(name.lower(), list(DEVICES))
        raise ArenagenError(f"no device is named {name[:40]!r}; {hint}")
    return DEVICES[name.lower()]

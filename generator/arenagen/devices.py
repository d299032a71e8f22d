"""Device memory: what vendors publish of it, and byte counts as people write them."""

from __future__ import annotations

import re
from fractions import Fraction

from .errors import ArenagenError, did_you_mean

GB = 10**9

# Memory of one device, as its vendor publishes it, taken as decimal gigabytes: what a
# driver reports is more or a little less, and free memory is less than either.
# A100: A100 Tensor Core GPU datasheet.
# H100, H200: nvidia.com/en-us/data-center/h100, .../h200.
# B200: docs.nvidia.com/dgx/dgxb200-user-guide, 1,440 GB of 8 GPUs.
# GB10: nvidia.com/en-us/products/workstations/dgx-spark, shared with the CPU.
# L4, L40S: nvidia.com/en-us/data-center/l4, .../l40s.
# RTX: nvidia.com/en-us/geforce/graphics-cards, RTX PRO 6000 Blackwell datasheet.
# MI300X, MI325X, MI355X: amd.com/en/products/accelerators/instinct.
DEVICES = {
    "a100-40gb": 40 * GB,
    "a100-80gb": 80 * GB,
    "h100": 80 * GB,
    "h200": 141 * GB,
    "b200": 180 * GB,
    "gb10": 128 * GB,
    "l4": 24 * GB,
    "l40s": 48 * GB,
    "rtx-4090": 24 * GB,
    "rtx-5090": 32 * GB,
    "rtx-pro-6000": 96 * GB,
    "mi300x": 192 * GB,
    "mi325x": 256 * GB,
    "mi355x": 288 * GB,
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


def device_bytes(name: str) -> int:
    """The memory of a device. Raises ArenagenError for one that is not known."""
    if name.lower() not in DEVICES:
        hint = did_you_mean(name.lower(), list(DEVICES))
        raise ArenagenError(f"no device is named {name[:40]!r}; {hint}")
    return DEVICES[name.lower()]

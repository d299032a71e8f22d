"""Dividing the heads of a model among tensor-parallel ranks."""

from __future__ import annotations

from .errors import ConfigError


def split_heads(name: str, heads: int, tp: int) -> int:
    """Return the heads of one of `tp` ranks; `name` is what an error calls them.

    Raise ConfigError when they do not divide evenly.
    """
    if heads % tp:
        raise ConfigError(f"{name}={heads}: cannot be divided among tp={tp} ranks")
    return heads // tp


def split_kv_heads(name: str, heads: int, tp: int) -> int:
    """Return the key and value heads of one of `tp` ranks.

    Where ranks are a multiple of the heads, each has a copy of one. Raise ConfigError
    when heads neither divide evenly nor can be copied so; `name` is what it calls them.
    """
    if heads and tp % heads == 0:
        return 1
    if heads % tp:
        raise ConfigError(
            f"{name}={heads}: can neither be divided among tp={tp} ranks nor "
            "replicated over them"
        )
    return heads // tp

"""One rank's share of a model config under tensor parallelism.

The schema says of each config field whether it is divided, and how.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import ArenagenError
from .evaluate import Value
from .model import Field, Schema


class ShardError(ArenagenError):
    """A model that cannot be divided among so many ranks."""


def shard_config(
    schema: Schema, config: Mapping[str, Value], tp: int
) -> dict[str, Value]:
    """The config of one of `tp` ranks, at least 1.

    Raises ShardError, which names the field, its value and the ranks.
    """
    if tp > 1 and not any(each.shard for each in schema.config):
        raise ShardError(
            f"tp={tp}: the schema of `{schema.arena.package}` says of no config field "
            "that ranks share it; add `shard: heads` or `shard: kv_heads` to those"
        )
    return {each.name: _share(each, config[each.name], tp) for each in schema.config}


def _share(field: Field, value: Value, tp: int) -> Value:
    if field.shard is None:
        return value
    assert isinstance(value, int)
    if field.shard == "kv_heads" and value and tp % value == 0:
        return 1
    if value % tp == 0:
        return value // tp
    if field.shard == "heads":
        why = f"cannot be divided among tp={tp} ranks"
    else:
        why = f"can neither be divided among tp={tp} ranks nor replicated over them"
    raise ShardError(f"{field.name}={value}: {why}")

"""What holds of every emitted arena, on each of the two; and both in one process.

Built, cleared, failed and released on host memory and on the simulated driver, with
the sizes of each arena's own oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from support import DENSE, DIRTY, MOE, Fields, Limits, Spy, leading_zeros, limits, read

import atlas_arena
import metrale_arena
import oracle
from driver.simulated import Driver
from expected_configs import EXPECTED
from strategies import configs
from strategies import limits as drawn_limits

pytest_plugins = ["driver.plugin"]

Q2 = {"native_q2": True, "native_q2_mmq": True}


class Arena(NamedTuple):
    """An emitted package, and what the reference says of it."""

    module: Any
    oracle: Callable[..., dict[str, int]]
    buffers: int
    zero_all: tuple[str, ...]
    zero_prefill: tuple[str, ...]
    token_major: tuple[str, ...]
    checksum: tuple[str, ...]
    # One element of norm_unit_w, little-endian BF16.
    norm_unit: bytes

    def levers(self, **switches: bool) -> Any:
        names = {"native_q2": "gguf_native_q2", "native_q2_mmq": "gguf_native_q2_mmq"}
        given = {names[name]: switches[name] for name in switches}
        return self.module.Levers(**given)

    def build(self, fields: Fields, bounds: Limits, gpu: Any, **switches: bool) -> Any:
        config = self.module.ModelConfig(**fields)
        levers = self.levers(**switches)
        return self.module.BufferArena(config, **bounds, levers=levers, gpu=gpu)


METRALE = Arena(
    metrale_arena,
    oracle.metrale_sizes,
    46,
    oracle.METRALE_ZERO_ALL,
    oracle.METRALE_ZERO_PREFILL,
    oracle.METRALE_TOKEN_MAJOR,
    oracle.METRALE_CHECKSUM,
    b"\x00\x00",
)
ATLAS = Arena(
    atlas_arena,
    oracle.atlas_sizes,
    41,
    oracle.ATLAS_ZERO_ALL,
    oracle.ATLAS_ZERO_PREFILL,
    oracle.ATLAS_TOKEN_MAJOR,
    oracle.ATLAS_CHECKSUM,
    b"\x80\x3f",
)
CASES = {"dense": (DENSE, limits(5)), "everything": (MOE, limits(20))}

every_case = pytest.mark.parametrize(("fields", "bounds"), CASES.values(), ids=CASES)


@pytest.fixture(params=[METRALE, ATLAS], ids=["metrale", "atlas"])
def arena(request: pytest.FixtureRequest) -> Arena:
    found: Arena = request.param
    return found


@pytest.fixture(params=["host", "driver"])
def gpu(arena: Arena, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A backend of the package's own, with 64 MiB."""
    if request.param == "host":
        host = arena.module.HostBackend(1 << 26)
        yield host
        assert host.live_bytes == 0
        return
    driver: Driver = request.getfixturevalue("simulated_driver")
    driver.reset(memory=1 << 26)
    yield arena.module.CudaBackend()
    assert driver.live().bytes == 0


def pointers(built: Any, names: Any) -> dict[str, Any]:
    """The buffers that have memory, by name."""
    return {name: getattr(built, name) for name in names if getattr(built, name)}


# Sizes.


@settings(max_examples=150, deadline=None)
@given(configs(), drawn_limits())
def test_every_size_of_atlas_is_the_oracles(
    fields: dict[str, Any], bounds: dict[str, int]
) -> None:
    for switches in ({}, Q2):
        sizes = atlas_arena.BufferSizes.from_config(
            atlas_arena.ModelConfig(**fields), **bounds, levers=ATLAS.levers(**switches)
        )
        expected = oracle.atlas_sizes(fields, **bounds, **switches)
        assert list(sizes.as_dict().items()) == list(expected.items())
        assert sizes.total_bytes == sum(expected.values())
        assert sizes.trimmed == 0


@pytest.mark.parametrize("tokens", [1, 2, 3, 16, 17, 4096, 8193])
@pytest.mark.parametrize("name", EXPECTED)
def test_every_size_of_atlas_is_the_oracles_for_real_configs(
    name: str, tokens: int
) -> None:
    fields, bounds = EXPECTED[name], limits(tokens, seq_len=65536)
    config = atlas_arena.ModelConfig(**fields)  # type: ignore[arg-type]
    for sm_count in (48, 132):
        sizes = atlas_arena.BufferSizes.from_config(
            config,
            **bounds,
            levers=atlas_arena.Levers(),
            target=atlas_arena.Target(sm_count=sm_count),
        )
        expected = oracle.atlas_sizes(fields, **bounds, sm_count=sm_count)
        assert sizes.as_dict() == expected


def test_where_atlas_differs_from_metrale_on_one_model() -> None:
    """Qwen3-Next at one token: what part of the table is not the same."""
    fields, bounds = EXPECTED["Qwen3-Next-80B-A3B-Thinking"], limits(1)
    found = {}
    for each in (METRALE, ATLAS):
        config = each.module.ModelConfig(**fields)
        sizes = each.module.BufferSizes.from_config(
            config, **bounds, levers=each.levers()
        )
        found[each.buffers] = sizes.as_dict()
    metrale, atlas = found[46], found[41]
    assert {name: (metrale[name], atlas.get(name)) for name in metrale} == {
        **{name: (nbytes, nbytes) for name, nbytes in metrale.items()},
        "qkv_output": (294912, 18432),  # 16 rows of 9216 BF16, and one
        "moe_output": (65536, 4096),
        "ssm_qkvz": (393216, 24576),
        "ssm_deinterleaved": (393216, 24576),
        # 160 rows of 24 bytes and 257 blocks; 2048 bytes and 96 rows of 257 blocks.
        "scratch": (201088, 32768 + 2048 + 96 * 257 * 4),
        "expert_gate_out": (163840, 3 * 10 * 512 * 2),
        "expert_up_out": (163840, 3 * 10 * 512 * 2),
        "expert_down_out": (655360, 3 * 10 * 2048 * 2),
        "fp8_act": (65536, 4096),
        "fp8_act_scale": (2048, 32 * 4),
        "ffn_act_scale_kmajor": (0, None),
        "ffn_gate_up_fused": (0, None),
        "moe_fp8_scratch": (136964, None),
        "fp8_act_scale_kmajor": (2048, None),
        "ssm_rowwise_w_bf16": (0, None),
    }


def atlas(name: str, tokens: int, batch: int = 32) -> dict[str, int]:
    config = atlas_arena.ModelConfig(**EXPECTED[name])  # type: ignore[arg-type]
    bounds = limits(tokens, batch=batch)
    levers = atlas_arena.Levers()
    sizes = atlas_arena.BufferSizes.from_config(config, **bounds, levers=levers)
    found: dict[str, int] = sizes.as_dict()
    return found


def test_no_row_of_atlas_is_padded() -> None:
    found = atlas("Llama-3.1-8B", 8193)  # h 4096, q 32, kv 8, hd 128, ffn 14336
    assert found["qkv_output"] == 8193 * (32 + 2 * 8) * 128 * 2
    assert found["moe_output"] == found["ssm_deinterleaved"] == 8193 * 4096 * 2
    assert found["ssm_qkvz"] == 2 * 8193 * 8 * 128 * 2  # keys, then values
    assert found["expert_gate_out"] == found["expert_up_out"] == 8193 * 14336 * 2
    assert found["expert_down_out"] == 8193 * 4096 * 2
    assert found["ffn_act_a"] == 8193 * 14336
    assert found["ffn_act_scale"] == 8193 * 448 * 4
    assert found["fp8_act"] == 8193 * 4096
    assert found["fp8_act_scale"] == 8193 * 32 * 4


@pytest.mark.parametrize(("tokens", "rows"), [(1, 3), (2, 3), (3, 3), (4, 4)])
def test_expert_rows_of_atlas_are_at_least_three(tokens: int, rows: int) -> None:
    found = atlas("Llama-3.1-8B", tokens)
    assert found["expert_gate_out"] == found["expert_up_out"] == rows * 14336 * 2
    assert found["expert_down_out"] == rows * 4096 * 2


@pytest.mark.parametrize(("batch", "rows"), [(1, 96), (95, 96), (96, 97), (192, 193)])
def test_logits_rows_of_atlas(batch: int, rows: int) -> None:
    found = atlas("Qwen3-Next-80B-A3B-Thinking", 8192, batch)
    assert found["logits"] == rows * 151936 * 2


def test_what_is_narrower_in_atlas() -> None:
    # 5 tokens; two GDN value heads of 300 are wider than the residual stream of 100.
    fields = {"hidden_size": 100, "hc_mult": 4}
    fields |= {"linear_num_value_heads": 2, "linear_value_head_dim": 300}
    found = {}
    for each in (METRALE, ATLAS):
        config = each.module.ModelConfig(**fields)
        sizes = each.module.BufferSizes.from_config(
            config, **limits(5), levers=each.levers()
        )
        found[each.buffers] = (sizes.fp8_act, sizes.fp8_act_scale, sizes.hc_streams)
    assert found[46] == (16 * 600, 16 * 5 * 4, 5 * 4 * 100 * 4)
    assert found[41] == (5 * 100, 5 * 1 * 4, 5 * 4 * 100 * 2)


def test_no_family_is_trimmed_in_atlas() -> None:
    glm = atlas("GLM-5.3-Flash", 5)
    assert glm["qkv_output"] == 5 * 64 * 3 * 256 * 2  # 64 heads of 256, and as many KV
    assert atlas_arena.BUFFERS.keys() == glm.keys()


def test_the_verify_block_of_atlas_is_metadata_then_its_table() -> None:
    with ATLAS.build(DENSE, limits(5), None) as built:
        verify = built.scratch.verify()
        meta, table = verify.meta, verify.block_table
        assert (meta.offset, meta.nbytes, meta.dtype) == (32768, 2048, "u8")
        assert (table.offset, table.dtype, table.shape) == (34816, "i32", (96, 257))
        assert verify.nbytes == 34816 + 96 * 257 * 4


def test_the_declarations_are_the_references(arena: Arena) -> None:
    declared = arena.module.BUFFERS
    assert len(declared) == arena.buffers

    def members(group: str) -> tuple[str, ...]:
        return tuple(name for name in declared if group in declared[name].groups)

    assert members("zero_all") == arena.zero_all
    assert members("zero_prefill_essentials") == arena.zero_prefill
    probed = tuple(name for name, info in declared.items() if info.checksum)
    assert probed == arena.checksum
    leading = tuple(name for name, info in declared.items() if info.token_major)
    assert leading == arena.token_major


def test_the_documented_differences_of_atlas() -> None:
    declared = atlas_arena.BUFFERS
    assert declared["hc_streams"].dtype == "bf16"
    assert declared["norm_unit_w"].fill == b"\x80\x3f"
    assert atlas_arena.VERIFY_ROW_CAP == 96
    variables = {
        "ATLAS_GGUF_NATIVE_Q2": "gguf_native_q2",
        "ATLAS_GGUF_NATIVE_Q2_MMQ": "gguf_native_q2_mmq",
        "ATLAS_SSM_SAVE_DUMP": "ssm_save_dump",
    }
    for variable, lever in variables.items():
        wanted = atlas_arena.Levers(**{lever: True})
        assert atlas_arena.Levers.from_env({variable: "1"}) == wanted
        assert atlas_arena.Levers.from_env({f"METRALE{variable[5:]}": "1"}) != wanted
    assert set(atlas_arena.Levers()._asdict()) == set(variables.values())


# The life of an arena.


@every_case
def test_it_is_built_at_the_oracles_sizes_and_gives_all_back(
    arena: Arena, gpu: Any, fields: Fields, bounds: Limits
) -> None:
    expected = arena.oracle(fields, **bounds, **Q2)
    spy = Spy(gpu)
    built = arena.build(fields, bounds, spy, **Q2)
    assert [each for (each,) in spy.made("alloc")] == [
        nbytes for nbytes in expected.values() if nbytes
    ]
    for name, nbytes in expected.items():
        ptr = getattr(built, name)
        assert isinstance(ptr, arena.module.DevicePtr)
        assert getattr(built, f"{name}_bytes") == nbytes
        assert ptr.is_null == (nbytes == 0), name
    weight = expected["norm_unit_w"]
    assert read(gpu, built.norm_unit_w, weight) == arena.norm_unit * (weight // 2)
    held = set(pointers(built, expected).values())
    built.release()
    built.release()
    assert {ptr for (ptr,) in spy.made("free")} == held
    assert len(spy.made("free")) == len(held)
    assert pointers(built, expected) == {}


@every_case
def test_an_allocation_that_fails_anywhere_frees_all_before_it(
    arena: Arena, gpu: Any, fields: Fields, bounds: Limits
) -> None:
    live = [name for name, nbytes in arena.oracle(fields, **bounds).items() if nbytes]
    for place, name in enumerate(live):

        def fail(call: Any, earlier: int, place: int = place) -> None:
            if call.method == "alloc" and earlier == place:
                raise RuntimeError("refused")

        spy = Spy(gpu, fail)
        with pytest.raises(arena.module.AllocationError) as caught:
            arena.build(fields, bounds, spy)
        assert caught.value.buffer == name
        assert len(spy.made("free")) == place


@every_case
def test_a_free_that_fails_anywhere_strands_no_other_buffer(
    arena: Arena, gpu: Any, fields: Fields, bounds: Limits
) -> None:
    live = [name for name, nbytes in arena.oracle(fields, **bounds).items() if nbytes]
    for place in range(len(live)):
        refused = []

        def fail(call: Any, earlier: int, place: int = place) -> None:
            if call.method == "free" and earlier == place:
                refused.append(call.arguments[0])  # noqa: B023
                raise RuntimeError("refused")

        spy = Spy(gpu, fail)
        built = arena.build(fields, bounds, spy)
        by_pointer = {ptr: name for name, ptr in pointers(built, live).items()}
        with pytest.raises(arena.module.ReleaseError) as caught:
            built.release()
        (failure,) = caught.value.failures
        assert failure[0] == by_pointer[refused[0]]
        assert len(spy.made("free")) == len(live)
        gpu.free(refused[0])


@every_case
@pytest.mark.parametrize("tokens", [1, 3, 4, 17, None])
def test_a_pass_clears_as_far_as_the_oracle_says(
    arena: Arena, gpu: Any, fields: Fields, bounds: Limits, tokens: int | None
) -> None:
    full = arena.oracle(fields, **bounds)
    passed = min(tokens or bounds["max_batch_tokens"], bounds["max_batch_tokens"])
    rows = arena.oracle(fields, **{**bounds, "max_batch_tokens": passed})
    with arena.build(fields, bounds, gpu) as built:
        for group, clear in (
            (arena.zero_prefill, lambda: built.zero_prefill_essentials(0)),
            (
                arena.zero_all,
                lambda: (
                    built.zero_all_rows(0, tokens=tokens)
                    if tokens
                    else built.zero_all(0)
                ),
            ),
        ):
            for name, ptr in pointers(built, full).items():
                gpu.memset(ptr, DIRTY, full[name])
            clear()
            gpu.synchronize(0)
            for name, ptr in pointers(built, full).items():
                part = group == arena.zero_all and name in arena.token_major
                due = (rows if part else full)[name] if name in group else 0
                assert leading_zeros(gpu, ptr, full[name]) == due, name


@every_case
def test_the_selfcheck_passes(
    arena: Arena, gpu: Any, fields: Fields, bounds: Limits
) -> None:
    config = arena.module.ModelConfig(**fields)
    levers = arena.levers(**Q2)
    report = arena.module.selfcheck(config, **bounds, levers=levers, gpu=gpu)
    assert report.ok, report
    assert report.passed > 1000


def test_what_is_imported_on_use_is_listed_too(arena: Arena) -> None:
    package = arena.module
    names = dir(package)
    assert {*package.__all__} <= {*names}
    assert {"BUFFERS", "__doc__"} <= {*names}
    assert names == sorted({*names})


# Both in one process.


def test_types_of_the_two_packages_are_their_own() -> None:
    classes = {
        name: found
        for name in metrale_arena.__all__
        if isinstance(found := getattr(metrale_arena, name), type)
        and found.__module__.startswith("metrale_arena.")
    }
    assert len(classes) > 30
    for name, found in classes.items():
        assert getattr(atlas_arena, name, None) is not found, name
    assert metrale_arena.Levers() != atlas_arena.Levers()
    assert metrale_arena.BufferArena.__module__ == "metrale_arena.arena"
    assert atlas_arena.BufferArena.__module__ == "atlas_arena.arena"


def test_both_arenas_live_on_one_backend() -> None:
    gpu = metrale_arena.HostBackend()
    bounds = limits(20)
    theirs = METRALE.build(MOE, bounds, gpu)
    ours = ATLAS.build(MOE, bounds, gpu)
    metrale = oracle.metrale_sizes(MOE, **bounds)
    atlas = oracle.atlas_sizes(MOE, **bounds)
    assert gpu.live_bytes == sum(metrale.values()) + sum(atlas.values())
    places = sorted(
        (getattr(built, name), nbytes)
        for built, sizes in ((theirs, metrale), (ours, atlas))
        for name, nbytes in sizes.items()
        if nbytes
    )
    for (start, nbytes), (following, _) in pairwise(places):
        assert start + nbytes <= following
    for built, sizes in ((theirs, metrale), (ours, atlas)):
        for name, ptr in pointers(built, sizes).items():
            gpu.memset(ptr, DIRTY, sizes[name])
    theirs.zero_all(0)
    theirs.release()
    assert gpu.live_bytes == sum(atlas.values())
    for name, ptr in pointers(ours, atlas).items():
        assert leading_zeros(gpu, ptr, atlas[name]) == 0, name
    ours.zero_all(0)
    assert leading_zeros(gpu, ours.logits, atlas["logits"]) == atlas["logits"]
    ours.release()
    assert gpu.live_bytes == 0


def test_levers_of_one_package_mean_nothing_to_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds = limits(5)
    sizes = {}
    monkeypatch.setenv("ATLAS_GGUF_NATIVE_Q2", "1")
    for name in ("atlas_arena", "metrale_arena"):
        module: Any = import_module(name)
        config = module.ModelConfig(**DENSE)
        sizes[name] = module.BufferSizes.from_config(config, **bounds)
    assert sizes["atlas_arena"].q2_dequant_scratch == 200 * 33 * 2
    assert sizes["metrale_arena"].q2_dequant_scratch == 0


def test_an_error_of_one_package_is_none_of_the_other() -> None:
    with pytest.raises(atlas_arena.ConfigError) as caught:
        ATLAS.build(DENSE, limits(0), None)
    assert not isinstance(caught.value, metrale_arena.ArenaError)

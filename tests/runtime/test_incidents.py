"""Twelve things that went wrong in arenas kept by hand, each as it happened, and gone.

First a few lines of hand-written arena that reproduce what happened; then the emitted
package, or the tool, where it is impossible or caught. Every number is worked out here
from the formulas of the two arenas, and none by the code under test.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from support import (
    ALL_LEVERS,
    DENSE,
    GLM,
    MOE,
    MOE_CASE,
    QWEN3_NEXT,
    Call,
    Case,
    PaperBackend,
    Spy,
    limits,
    read,
)

from arenagen.cli import cli
from arenagen.compile import Text, check_source, emit, read_schema
from arenagen.errors import InputProblems
from expected_configs import EXPECTED
from metrale_arena import (
    BUFFERS,
    GATEUP_FUSED_MAX_M,
    Q12_SIZING_STREAMS,
    AllocationError,
    BackendError,
    BufferArena,
    CarveError,
    ChunkMetaLayout,
    Debug,
    DevicePtr,
    HostBackend,
    LayoutError,
    OutOfMemoryError,
    chunk_meta_bytes,
    q12_batched_scratch_bytes,
)

SCHEMA = Path(__file__).resolve().parents[2] / "schema/metrale.yaml"
QWEN3_5 = EXPECTED["Qwen3.5-27B"]

# What one token takes in each buffer of Qwen3-Next that a pass of t tokens touches:
# t rows of these,
NEXT_ROWS = {
    "hidden_states": 2048 * 2,
    "residual": 2048 * 2,
    "norm_output": 2048 * 2,
    "attn_output": 16 * 256 * 2,
    "gate_logits": 512 * 2,
    "ssm_ba": 2 * 32 * 2,
    "ssm_gates": 2 * 32 * 4,
    "ssm_conv_out_f32": (2 * 16 * 128 + 2 * 32 * 128) * 4,
}
# and up(t, 16) rows of these.
NEXT_PADDED_ROWS = {
    "qkv_output": (16 * 2 + 2 * 2) * 256 * 2,
    "moe_output": 2048 * 2,
    "ssm_qkvz": (2 * 16 * 128 + 2 * 32 * 128) * 2,
    "ssm_deinterleaved": (2 * 16 * 128 + 2 * 32 * 128) * 2,
    "expert_gate_out": 10 * 512 * 2,
    "expert_up_out": 10 * 512 * 2,
    "expert_down_out": 10 * 2048 * 2,
}


def up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


class HandArena:
    """An arena as it is written by hand: a list of sizes, and a total beside it."""

    def __init__(self, gpu: HostBackend, sizes: Mapping[str, int], total: int) -> None:
        if total > gpu.free_memory():
            raise MemoryError("it does not fit")
        self.pointers = {name: gpu.alloc(nbytes) for name, nbytes in sizes.items()}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The package of the same schema, with one buffer more and one constant doubled."""
    folder = tmp_path_factory.mktemp("changed")
    text = SCHEMA.read_text(encoding="utf-8")
    for old, new in (
        ("package: metrale_arena", "package: changed_arena"),
        ("  families: huggingface.yaml\n", ""),
        ("GATEUP_FUSED_MAX_M:\n    value: 16", "GATEUP_FUSED_MAX_M:\n    value: 32"),
        (
            "\nbuffers:\n",
            """
buffers:
  token_scores:
    doc: Score of each token, for sampling.
    dtype: f32
    shape: [M, 3]
    token_major: true
    zero: [all, prefill_essentials]
""",
        ),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    schema, warnings = read_schema(Text("changed.yaml", text.encode()))
    files = emit(check_source(schema, warnings, None), "changed.yaml")
    for name, content in files.items():
        path = folder / "changed_arena" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield importlib.import_module("changed_arena")
    sys.path.remove(str(folder))


def build_changed(package: ModuleType, fields: Any, gpu: Any, **more: Any) -> Any:
    return package.BufferArena(
        package.ModelConfig(**fields),
        **limits(20),
        levers=package.Levers(),
        gpu=gpu,
        **more,
    )


# 1. The hand-kept total forgot o_latent and norm_unit_w.

H, O_GROUPS, O_LORA_RANK, M = 4096, 8, 1024, 512
HAND_SIZES = {
    "hidden_states": M * H * 2,
    "residual": M * H * 2,
    "o_latent": M * O_GROUPS * O_LORA_RANK * 2,
    "norm_unit_w": H * 2,
}


def hand_total(sizes: Mapping[str, int]) -> int:
    return sizes["hidden_states"] + sizes["residual"]


def test_1_by_hand_a_total_without_two_buffers_lets_a_preflight_pass() -> None:
    short = sum(HAND_SIZES.values()) - hand_total(HAND_SIZES)
    assert short == 512 * 8192 * 2 + 4096 * 2 == 8396800
    gpu = HostBackend(hand_total(HAND_SIZES))
    with pytest.raises(OutOfMemoryError):
        HandArena(gpu, HAND_SIZES, hand_total(HAND_SIZES))


def test_1_every_buffer_is_in_the_total_that_the_preflight_compares() -> None:
    fields = {"hidden_size": H, "o_groups": O_GROUPS, "o_lora_rank": O_LORA_RANK}
    case = Case(fields, limits(M))
    with case.build(HostBackend()) as arena:
        sizes = arena.sizes.as_dict()
        assert {name: sizes[name] for name in HAND_SIZES} == HAND_SIZES
        total = sum(getattr(arena, f"{name}_bytes") for name in BUFFERS)
        assert arena.sizes.total_bytes == total
    with case.build(HostBackend(total)):
        pass
    spy = Spy(HostBackend(total - 1))
    with pytest.raises(AllocationError, match="all buffers together"):
        case.build(spy)
    assert spy.made("alloc") == []


def test_1_a_new_entry_of_the_schema_is_in_the_total_at_once(
    changed: ModuleType,
) -> None:
    with MOE_CASE.build() as arena, build_changed(changed, MOE, None) as other:
        assert other.token_scores_bytes == 20 * 3 * 4
        without_levers = Case(MOE, limits(20)).sizes().total_bytes
        assert other.sizes.total_bytes == without_levers + 240
        assert not hasattr(arena, "token_scores")


# 2. Row counts guessed back from the size wiped whole buffers.


def guessed_bytes(size: int, max_tokens: int, tokens: int) -> int:
    """A buffer that does not divide evenly is taken for one without rows."""
    return size // max_tokens * tokens if size % max_tokens == 0 else size


def test_2_by_hand_rows_guessed_from_a_padded_size_wipe_a_gigabyte_a_token() -> None:
    most = 8193
    assert up(most, 16) == 8208
    sizes = {name: up(most, 16) * row for name, row in NEXT_PADDED_ROWS.items()}
    assert all(guessed_bytes(size, most, 1) == size for size in sizes.values())
    wiped = sum(guessed_bytes(size, most, 1) for size in sizes.values())
    assert wiped == 8208 * 133120 == 1092648960
    # 16 rows of each are all that a decode step of one token writes.
    assert wiped - 16 * 133120 == 1090519040
    # One token less and nobody notices: then the division comes out.
    assert all(guessed_bytes(8192 * row, 8192, 1) == row for row in [18432, 4096])
    # It is wrong there too: the kernel writes 16 rows, and one of them is cleared.
    assert guessed_bytes(8192 * 4096, 8192, 1) == 4096 < 16 * 4096


@pytest.mark.parametrize("most", [8192, 8193, 8207, 8208])
def test_2_a_pass_clears_its_own_formula_whatever_the_limit_divides_by(
    most: int,
) -> None:
    with Case(QWEN3_NEXT, limits(most)).build(PaperBackend()) as arena:
        cleared = {entry.buffers[0]: entry.nbytes for entry in arena.zero_plan(1)}
    padded = {name: 16 * row for name, row in NEXT_PADDED_ROWS.items()}
    assert {name: cleared[name] for name in padded} == padded
    rows = {name: max(256, row) for name, row in NEXT_ROWS.items() if row < 256}
    rows = {**NEXT_ROWS, **rows}
    assert {name: cleared[name] for name in rows} == rows


# 3. Everything was wiped on each decode token.

# At M = 8192, 4096 tokens a sequence and blocks of 16; in full, however short the pass.
NEXT_LOGITS = 160 * 151936 * 2
NEXT_SPLITK = 48 * (256 + 2) * 4
# Staging of 8 streams of 1024 tokens: routing, descriptors, positions, slots, offsets.
NEXT_SCRATCH = 8192 * 10 * 8 + 8 * (16 * 1024 + 64) + 4 * 8192 + 8 * 8192 + 264


def test_3_by_hand_wiping_everything_costs_1_7_gb_a_token() -> None:
    every = sum(NEXT_ROWS.values()) + sum(NEXT_PADDED_ROWS.values())
    wiped = 8192 * every + NEXT_LOGITS + NEXT_SPLITK + NEXT_SCRATCH
    assert every == 204160
    assert wiped == 1722033288


def test_3_a_decode_token_clears_what_it_touches() -> None:
    gpu = Spy(PaperBackend())
    with Case(QWEN3_NEXT, limits(8192)).build(gpu) as arena:
        assert arena.scratch_bytes == NEXT_SCRATCH
        for clear, nbytes in (
            (lambda: arena.zero_all(0), 1722033288),
            # 16 rows of the padded buffers, one of the others, ssm_ba at its floor.
            (
                lambda: arena.zero_all_rows(0, tokens=1),
                16 * 133120
                + (204160 - 133120 + 128)
                + NEXT_LOGITS
                + NEXT_SPLITK
                + NEXT_SCRATCH,
            ),
        ):
            gpu.calls.clear()
            clear()
            memsets = gpu.made("memset_async")
            assert len(memsets) == 18
            assert sum(size for _, _, size, _ in memsets) == nbytes
    # What is left is nearly all logits, which a decode step may read whole.
    assert NEXT_LOGITS == 48619520


# 4. The three position streams of MRoPE were sized as one.


def chunk_bytes(tokens: int, streams: int, blocks: int) -> int:
    """Metadata of a prefill chunk: positions, slots, block table, length."""
    slots = up(streams * tokens * 4, 8)
    return slots + tokens * 8 + blocks * 4 + 4


def test_4_by_hand_a_16k_prefill_overruns_a_scratch_of_one_stream() -> None:
    sized, staged = chunk_bytes(16384, 1, 257), chunk_bytes(16384, 3, 257)
    assert sized == 16384 * 4 + 16384 * 8 + 257 * 4 + 4 == 197640
    assert staged - sized == 2 * 16384 * 4 == 131072
    gpu = HostBackend()
    scratch = gpu.alloc(sized)
    with pytest.raises(BackendError, match="131072 bytes past the allocation"):
        gpu.copy_h2d(scratch, bytes(staged))


def test_4_three_streams_are_in_the_size_and_in_the_layout() -> None:
    most = limits(16384)
    layout = ChunkMetaLayout.of(tokens=16384, streams=3, table_blocks=257)
    assert layout.positions.shape == (3, 16384)
    assert layout.positions.nbytes == 196608
    assert (
        layout.nbytes == chunk_bytes(16384, 3, 257) == chunk_meta_bytes(16384, 3, 257)
    )
    # A dense model, so that no routing lies in front of the chunk's metadata.
    one = {**QWEN3_5, "mrope_interleaved": False}
    three = Case(QWEN3_5, most).sizes().scratch
    assert three >= chunk_bytes(16384, 3, 257)
    assert three - Case(one, most).sizes().scratch == 131072


# 5. N-stream staging was not multiplied into scratch.


def staging_bytes(n: int, chunk: int, top_k: int, streams: int) -> int:
    """Staging of n streams of `chunk` tokens each, by the reference's formula."""
    total = n * chunk
    return (
        up(total * top_k * 8, 64)
        + n * max(16 * chunk + 64, 4096)
        + streams * up(4 * total, 8)
        + up(8 * total, 8)
        + 2 * up(8 * n, 8)
        + up(4 * (n + 1), 8)
        + up(4 * n, 8)
        + 8 * n
    )


def test_5_by_hand_eight_streams_are_staged_in_room_for_one() -> None:
    sized, staged = staging_bytes(1, 1024, 10, 1), staging_bytes(8, 1024, 10, 1)
    assert (sized, staged) == (110696, 885512)
    gpu = HostBackend()
    scratch = gpu.alloc(sized)
    with pytest.raises(BackendError, match="774816 bytes past the allocation"):
        gpu.copy_h2d(scratch, bytes(staged))


@pytest.mark.parametrize("tokens", [1, 7, 512, 8192])
@pytest.mark.parametrize(("stem", "streams"), [("qwen3", 1), ("qwen3.5", 3)])
def test_5_sizing_and_admission_ask_the_same_function(
    stem: str, streams: int, tokens: int
) -> None:
    fields = QWEN3_NEXT if stem == "qwen3" else EXPECTED["Qwen3.5-35B-A3B"]
    top_k = int(str(fields["num_experts_per_tok"]))
    chunk = max(1, -(-tokens // 8))
    needed = staging_bytes(8, chunk, top_k, streams)
    assert Q12_SIZING_STREAMS == 8
    assert q12_batched_scratch_bytes(8, chunk, top_k, streams == 3) == needed
    # Verification of 160 rows is larger for short passes.
    verify = 32768 + 160 * 24 + 160 * 257 * 4
    case = Case(fields, limits(tokens))
    assert case.sizes().scratch == max(needed, verify)
    # The admission check: a batch of twice as many tokens, in the same arena.
    larger = staging_bytes(8, max(1, -(-2 * tokens // 8)), top_k, streams)
    with case.build(PaperBackend()) as arena:
        found = arena.required_bytes("scratch", "staging", tokens=2 * tokens)
        assert found == larger
        if larger > arena.scratch_bytes:
            with pytest.raises(LayoutError, match="staging"):
                arena.scratch.staging(tokens=2 * tokens)


# 6. A workspace was sized from a literal while the dispatch read a constant.

DISPATCH_MAX_ROWS = 32  # it was 16 when the workspace was sized


def test_6_by_hand_a_literal_that_stayed_behind_is_a_silent_write() -> None:
    row = 2 * 200 * 2
    gpu = HostBackend()
    slab = gpu.alloc(2 * 16 * row)
    workspace, neighbour = slab, slab.offset(16 * row)
    gpu.memset(neighbour, 7, 16 * row)
    gpu.memset(workspace, 0, DISPATCH_MAX_ROWS * row)
    # 16 rows of the neighbour are gone, and nobody said a word.
    assert read(gpu, neighbour, 16 * row) == bytes(16 * row)


def test_6_the_size_and_the_constant_that_is_read_are_one(changed: ModuleType) -> None:
    dense = {"hidden_size": 33, "intermediate_size": 200}
    assert GATEUP_FUSED_MAX_M == 16
    with Case(dense, limits(20)).build() as arena:
        assert arena.ffn_gate_up_fused_bytes == 16 * 2 * 200 * 2
    assert changed.GATEUP_FUSED_MAX_M == DISPATCH_MAX_ROWS
    with build_changed(changed, dense, None) as arena:
        assert arena.ffn_gate_up_fused_bytes == 32 * 2 * 200 * 2


@pytest.mark.parametrize("placement", ["separate", "slab"])
def test_6_a_dispatch_with_a_number_of_its_own_is_caught(placement: str) -> None:
    gpu = HostBackend()
    debug = Debug(guard=16 * 2 * 200 * 2)
    with Case(DENSE, limits(20)).build(gpu, placement=placement, debug=debug) as arena:
        gpu.memset(arena.ffn_gate_up_fused, 0, DISPATCH_MAX_ROWS * 2 * 200 * 2)
        (overrun,) = arena.check_guards(0)
    assert overrun.buffer == "ffn_gate_up_fused"
    assert overrun.reach == 16 * 800


# 7. A buffer with M rows where the kernel writes up(M, 16).


def test_7_by_hand_rows_of_padding_land_in_the_next_buffer() -> None:
    row, rows = 2048 * 2, 41
    gpu = HostBackend()
    slab = gpu.alloc(2 * rows * row)
    output, residual = slab, slab.offset(rows * row)
    gpu.memset(residual, 7, rows * row)
    gpu.memset(output, 0, up(rows, 16) * row)
    # 7 rows of the residual stream are gone.
    assert read(gpu, residual, 7 * row) == bytes(7 * row)
    assert read(gpu, residual.offset(7 * row), 1) == b"\7"


@pytest.mark.parametrize("placement", ["separate", "slab"])
@pytest.mark.parametrize("tokens", [33, 41, 47, 48])
def test_7_a_kernel_that_pads_its_rows_is_caught_with_its_buffer_and_reach(
    tokens: int, placement: str
) -> None:
    row, spare = 2048 * 2, up(tokens, 16) - tokens
    gpu = HostBackend()
    case = Case(QWEN3_NEXT, limits(tokens))
    debug = Debug(guard=15 * row)
    with case.build(gpu, placement=placement, debug=debug) as arena:
        # Declared with the rows that the kernel writes: nothing happens.
        gpu.memset(arena.moe_output, 0, up(tokens, 16) * row)
        assert arena.check_guards(0) == ()
        gpu.memset(arena.norm_output, 0, up(tokens, 16) * row)
        found = arena.check_guards(0)
    reaches = {each.buffer: (each.first, each.reach) for each in found}
    assert reaches == ({"norm_output": (0, spare * row)} if spare else {})


# 8. A scratch field per layer instead of one shared.

# At 65536 tokens a sequence: qk, q_post, scores, lists.
QSA_SELECT = 2048 * (33 * 128 * 2 + 32 * 128 * 4 + 16384 * 4 + 512 * 4)


def test_8_by_hand_64_copies_of_a_scratch_do_not_fit() -> None:
    assert QSA_SELECT == 189267968
    sizes = {f"layer_{layer}_select": QSA_SELECT for layer in range(64)}
    assert sum(sizes.values()) == 12113149952
    gpu = HostBackend(8 << 30)
    with pytest.raises(OutOfMemoryError):
        HandArena(gpu, sizes, QSA_SELECT)
    # 8 GiB has room for 45 of them.
    assert gpu.live_allocations == 45


def test_8_an_arena_holds_every_buffer_once_however_many_layers_there_are() -> None:
    sizes = {}
    for layers in (1, 45, 64):
        fields = {**GLM, "num_hidden_layers": layers, "layer_types": []}
        fields["full_attention_interval"] = 4
        spy = Spy(PaperBackend())
        case = Case(fields, limits(512, seq_len=65536), ALL_LEVERS)
        with case.build(spy) as arena:
            assert arena.qsa_select_scratch_bytes == QSA_SELECT
            assert spy.made("alloc").count((QSA_SELECT,)) == 1
            sizes[layers] = arena.sizes.as_dict()
    # The one buffer that grows with the layers is a slab of weights: each layer keeps
    # its own piece of it, and asks for it by carving.
    differ = {name for name in BUFFERS if sizes[1][name] != sizes[64][name]}
    assert differ == {"ssm_rowwise_w_bf16"}
    by_layer = {
        name
        for name, info in BUFFERS.items()
        if {"num_hidden_layers", "layer_types"} & {*info.inputs}
    }
    assert by_layer == {name for name, info in BUFFERS.items() if info.carved}


def qsa_with(line: str) -> str:
    """The schema, with one line more in the entry of qsa_select_scratch."""
    text = SCHEMA.read_text(encoding="utf-8")
    before, entry, after = text.partition("\n  qsa_select_scratch:\n")
    return f"{before}{entry}    {line}\n{after}"


@pytest.mark.parametrize("line", ["layers: 64", "per_layer: true", "copies: 64"])
def test_8_the_language_has_no_word_for_a_buffer_per_layer(line: str) -> None:
    key = line.partition(":")[0]
    with pytest.raises(InputProblems) as caught:
        read_schema(Text("layers.yaml", qsa_with(line).encode()))
    (problem,) = caught.value.problems
    assert f"`{key}`" in problem.message


def test_8_a_size_that_is_multiplied_by_the_layers_stands_out_by_its_share(
    tmp_path: Path,
) -> None:
    schema = tmp_path / "layers.yaml"
    text = SCHEMA.read_text(encoding="utf-8")
    one = "(index_n_heads + 1) * index_head_dim]"
    assert text.count(f"[QSA_SELECT_TOKENS, {one}") == 1
    text = text.replace("[QSA_SELECT_TOKENS,", "[QSA_SELECT_TOKENS * 64,")
    schema.write_text(text, encoding="utf-8")
    table = SCHEMA.with_name("huggingface.yaml").read_bytes()
    (tmp_path / "huggingface.yaml").write_bytes(table)
    config = SCHEMA.parents[1] / "tests/data/GLM-5.3-Flash.json"
    shares = []
    for path in (SCHEMA, schema):
        arguments = ["sizes", "-s", str(path), "-c", str(config), "-M", "512"]
        result = CliRunner().invoke(cli, [*arguments, "--format", "json"])
        assert result.exit_code == 0, result.output
        buffers = json.loads(result.output)["buffers"]
        (entry,) = (each for each in buffers if each["name"] == "qsa_select_scratch")
        shares.append((entry["bytes"], entry["share"] > 0.95))
    assert shares == [(QSA_SELECT, False), (64 * QSA_SELECT, True)]


# 9. An allocation that fails half way leaked what was already allocated.


def test_9_by_hand_what_was_allocated_before_the_failure_is_lost() -> None:
    sizes = {"a": 4096, "b": 8192, "c": 4096}
    gpu = HostBackend(12288 + 4095)
    with pytest.raises(OutOfMemoryError):
        HandArena(gpu, sizes, 12288)
    assert gpu.live_bytes == 12288


@pytest.mark.parametrize("debug", [None, Debug()])
def test_9_construction_that_fails_at_any_buffer_frees_all_before_it(
    debug: Debug | None,
) -> None:
    for failing in range(len(MOE_CASE.live)):

        def fault(call: Call, earlier: int, at: int = failing) -> None:
            if call.method == "alloc" and earlier == at:
                raise OutOfMemoryError(call.arguments[0], 0, 1 << 30)

        gpu = HostBackend()
        with pytest.raises(AllocationError) as caught:
            MOE_CASE.build(Spy(gpu, fault), debug=debug)
        assert caught.value.buffer == list(MOE_CASE.live)[failing]
        assert gpu.live_bytes == 0


# 10. Docs beside the wrong accessor, and a count of memsets that was no longer true.


class HandZeroing:
    """An arena whose list of members grew, and whose text did not."""

    DOCS = ("The residual stream.", "The router's scores.")
    MEMBERS = (
        *("hidden_states", "residual", "gate_logits", "moe_output"),
        *("expert_gate_out", "expert_up_out", "expert_down_out"),
    )

    def zero_prefill_essentials(self, gpu: Spy, pointers: Mapping[str, Any]) -> None:
        """Clear hidden_states and residual: 2 memsets."""
        for name in self.MEMBERS:
            gpu.memset_async(pointers[name], 0, 1, 0)


def documented_memsets(method: object) -> list[int]:
    text = " ".join((inspect.getdoc(method) or "").split())
    return [int(count) for count in re.findall(r"(\d+) memsets", text)]


def test_10_by_hand_two_memsets_are_documented_and_seven_issued() -> None:
    gpu = Spy()
    pointers = {name: gpu.gpu.alloc(1) for name in HandZeroing.MEMBERS}
    HandZeroing().zero_prefill_essentials(gpu, pointers)
    assert documented_memsets(HandZeroing.zero_prefill_essentials) == [2]
    assert len(gpu.made("memset_async")) == 7


def test_10_by_hand_a_new_accessor_in_front_shifts_every_doc() -> None:
    names = ("hidden_states", "residual", "gate_logits")
    docs = dict(zip(names, HandZeroing.DOCS, strict=False))
    assert docs == {
        "hidden_states": "The residual stream.",
        "residual": "The router's scores.",
    }


@pytest.mark.parametrize(
    ("method", "issued"),
    [("zero_all", 18), ("zero_all_rows", 18), ("zero_prefill_essentials", 7)],
)
def test_10_the_documented_count_is_what_is_issued(method: str, issued: int) -> None:
    gpu = Spy()
    with MOE_CASE.build(gpu) as arena:
        keywords = {"tokens": 1} if method == "zero_all_rows" else {}
        getattr(arena, method)(0, **keywords)
    assert len(gpu.made("memset_async")) == issued
    assert documented_memsets(getattr(BufferArena, method)) == [issued]


def test_10_the_count_moves_with_the_group(changed: ModuleType) -> None:
    gpu = Spy()
    with build_changed(changed, MOE, gpu) as arena:
        arena.zero_prefill_essentials(0)
    assert len(gpu.made("memset_async")) == 8
    assert documented_memsets(changed.BufferArena.zero_prefill_essentials) == [8]


def test_10_every_accessor_has_the_doc_of_its_own_entry(changed: ModuleType) -> None:
    entries = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))["buffers"]
    assert len(entries) == 46
    for package in (BufferArena, changed.BufferArena):
        for name, entry in entries.items():
            text = inspect.getdoc(getattr(package, name)) or ""
            assert text.startswith(" ".join(entry["doc"].split())), name
    scores = inspect.getdoc(changed.BufferArena.token_scores) or ""
    assert scores.startswith("Score of each token, for sampling. f32 [M, 3].")


# 11. Callers carved scratch by offsets that stood in two places.


def offset_of_the_upload(tokens: int) -> int:
    """Where the host puts the slots: behind the positions, at a multiple of 8."""
    return up(tokens * 4, 8)


def offset_of_the_launch(tokens: int) -> int:
    """Where the kernel is told to look for them, as it was before slots were 64-bit."""
    return tokens * 4


def test_11_by_hand_an_offset_that_is_mended_in_one_place_reads_other_bytes() -> None:
    found = {}
    for tokens in (7, 8):
        gpu = HostBackend()
        scratch = gpu.alloc(1024)
        slots = struct.pack(f"<{tokens}q", *range(1, tokens + 1))
        gpu.copy_h2d(scratch.offset(offset_of_the_upload(tokens)), slots)
        place = scratch.offset(offset_of_the_launch(tokens))
        found[tokens] = struct.unpack(f"<{tokens}q", read(gpu, place, tokens * 8))
    assert found[8] == (1, 2, 3, 4, 5, 6, 7, 8)
    # An odd pass reads every slot 4 bytes too early.
    assert found[7] == tuple(slot << 32 for slot in range(1, 8))


@pytest.mark.parametrize("tokens", [7, 8, 64])
def test_11_a_pass_has_one_layout_that_both_sides_ask_for(tokens: int) -> None:
    gpu = HostBackend()
    with Case(QWEN3_NEXT, limits(64)).build(gpu) as arena:
        regions = arena.scratch.prefill(tokens=tokens)
        meta = tokens * 10 * 4 + tokens * 10 * 4
        slots = meta + up(tokens * 4, 8)
        table = slots + tokens * 8
        base = arena.scratch
        assert [
            regions.topk_ids.ptr - base,
            regions.topk_weights.ptr - base,
            regions.meta.positions.ptr - base,
            regions.meta.slots.ptr - base,
            regions.meta.block_table.ptr - base,
            regions.meta.seq_len.ptr - base,
        ] == [0, tokens * 40, meta, slots, table, table + 257 * 4]
        upload = struct.pack(f"<{tokens}q", *range(tokens))
        gpu.copy_h2d(regions.meta.slots.ptr, upload)
        launch = arena.scratch.prefill(tokens=tokens).meta.slots
        assert bytes(read(gpu, launch.ptr, launch.nbytes)) == upload
        with pytest.raises(
            LayoutError, match=r"prefill\(tokens=65\).*at most tokens=64"
        ):
            arena.scratch.prefill(tokens=65)


# 12. A bump cursor that advanced although the carve failed.


class HandSlab:
    """A bump allocator that moves its cursor before it looks."""

    def __init__(self, ptr: DevicePtr, capacity: int) -> None:
        self.ptr, self.capacity, self.used = ptr, capacity, 0

    def carve(self, nbytes: int) -> DevicePtr:
        start = self.used
        self.used += nbytes
        if self.used > self.capacity:
            raise MemoryError("the slab is full")
        return self.ptr.offset(start)


def test_12_by_hand_a_failed_carve_uses_up_what_was_left() -> None:
    slab = HandSlab(HostBackend().alloc(1000), 1000)
    slab.carve(600)
    with pytest.raises(MemoryError):
        slab.carve(500)
    # 400 bytes are free, and nobody can have them.
    with pytest.raises(MemoryError):
        slab.carve(400)


def test_12_a_failed_carve_leaves_the_cursor_where_it_was() -> None:
    # Two layers of [qkvz 512, h 64] and [h 64, value width 128], in BF16.
    capacity = 2 * (512 * 64 + 64 * 128) * 2
    with MOE_CASE.build() as arena:
        assert arena.ssm_rowwise_w_bf16_bytes == capacity == 163840
        first = arena.carve_ssm_rowwise_w_bf16(100000)
        assert first == arena.ssm_rowwise_w_bf16
        for beyond in (63841, 1 << 40, 0, -1):
            with pytest.raises(CarveError):
                arena.carve_ssm_rowwise_w_bf16(beyond)
        second = arena.carve_ssm_rowwise_w_bf16(63840)
        assert second == first + 100000

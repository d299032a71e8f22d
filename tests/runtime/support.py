"""What the tests of the emitted package share: backends, configs and the oracle's word.

Takes configs as the oracle does, as mappings of fields, and limits and levers as its
keyword arguments. No size that a test expects may come from the emitted package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import oracle
from driver.simulated import Driver
from expected_configs import EXPECTED
from metrale_arena import (
    NULL,
    SPLITK_AUTO,
    SPLITK_LEGACY,
    BackendError,
    BufferArena,
    BufferSizes,
    CudaBackend,
    DevicePtr,
    GpuBackend,
    HostBackend,
    Levers,
    ModelConfig,
    Stream,
    Target,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

Fields = Mapping[str, object]
Options = Mapping[str, Any]
Sizes = dict[str, int]
# Values are Any so that limits, levers and a backend may be unpacked side by side.
Limits = dict[str, Any]

DIRTY = 0xA5
QWEN3_NEXT = EXPECTED["Qwen3-Next-80B-A3B-Thinking"]
GLM = EXPECTED["GLM-5.3-Flash"]

# Dense, with a LoRA adapter: all that a model without experts has.
DENSE: Fields = {
    "hidden_size": 33,
    "num_hidden_layers": 2,
    "intermediate_size": 200,
    "vocab_size": 50,
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "adapter_max_rank": 4,
}

# Experts, GDN, Mamba-2, MLA, hyper-connections and an indexer, all at once.
MOE: Fields = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "intermediate_size": 48,
    "vocab_size": 40,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "attn_gated": True,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_num_key_heads": 1,
    "linear_key_head_dim": 128,
    "linear_num_value_heads": 1,
    "linear_value_head_dim": 128,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 80,
    "zero_expert_num": 1,
    "mamba_num_heads": 2,
    "mamba_head_dim": 8,
    "ssm_state_size": 4,
    "n_groups": 1,
    "kv_lora_rank": 8,
    "q_lora_rank": 12,
    "qk_rope_head_dim": 4,
    "o_groups": 2,
    "o_lora_rank": 96,
    "hc_mult": 2,
    "hc_lowrank": 8,
    "index_n_heads": 1,
    "index_head_dim": 4,
    "index_topk": 16,
    "index_compress_ratio": 4,
    "adapter_max_rank": 8,
}

NO_LEVERS: Options = {}
# Every switch that adds a buffer.
ALL_LEVERS: Options = {"native_q2": True, "native_q2_mmq": True, "fp8_rowwise": True}

_LEVER_NAMES = {
    "native_q2": "gguf_native_q2",
    "native_q2_mmq": "gguf_native_q2_mmq",
    "fp8_rowwise": "fp8_rowwise",
    "glm_trim": "glm_arena_trim",
    "splitk": "attn_decode_splitk",
}
_POLICIES = {"legacy": SPLITK_LEGACY, "auto": SPLITK_AUTO}

NAMES = tuple(
    oracle.metrale_sizes(
        {}, max_batch_tokens=1, max_seq_len=1, kv_block_size=0, max_batch_size=1
    )
)


def limits(
    tokens: int = 40, seq_len: int = 4096, block: int = 16, batch: int = 32
) -> Limits:
    """The four limits by the names that the arena and the oracle give them."""
    return {
        "max_batch_tokens": tokens,
        "max_seq_len": seq_len,
        "kv_block_size": block,
        "max_batch_size": batch,
    }


def levers_of(options: Options) -> Levers:
    """The levers that the oracle's keyword arguments stand for."""
    given: dict[str, Any] = {
        _LEVER_NAMES[name]: _POLICIES.get(value, value)
        for name, value in options.items()
    }
    return Levers(**given)


class Case(NamedTuple):
    """An arena to build, and what the oracle says of it."""

    config: Fields
    limits: Limits
    options: Options = NO_LEVERS
    sm_count: int = 48

    @property
    def expected(self) -> Sizes:
        return self.expected_for(self.limits["max_batch_tokens"])

    @property
    def live(self) -> Sizes:
        """The buffers that have memory."""
        return {name: nbytes for name, nbytes in self.expected.items() if nbytes}

    @property
    def total(self) -> int:
        return sum(self.expected.values())

    def expected_for(self, tokens: int) -> Sizes:
        return oracle.metrale_sizes(
            self.config,
            **{**self.limits, "max_batch_tokens": tokens},
            **self.options,
            sm_count=self.sm_count,
        )

    def due(self, group: tuple[str, ...], tokens: int | None = None) -> Sizes:
        """Bytes to clear of each live member in a pass of `tokens`, or in full."""
        full = self.expected
        rows = full
        if tokens is not None and tokens < self.limits["max_batch_tokens"]:
            rows = self.expected_for(tokens)
        token_major = oracle.METRALE_TOKEN_MAJOR
        due = {name: (rows if name in token_major else full)[name] for name in group}
        return {name: nbytes for name, nbytes in due.items() if nbytes}

    @property
    def arguments(self) -> dict[str, Any]:
        return {
            **self.limits,
            "levers": levers_of(self.options),
            "target": Target(sm_count=self.sm_count),
        }

    @property
    def model(self) -> ModelConfig:
        return ModelConfig(**self.config)  # type: ignore[arg-type]

    def sizes(self) -> BufferSizes:
        return BufferSizes.from_config(self.model, **self.arguments)

    def build(self, gpu: GpuBackend | None = None, **more: Any) -> BufferArena:
        return BufferArena(self.model, **self.arguments, gpu=gpu, **more)

    def build_from(
        self, sizes: BufferSizes, gpu: GpuBackend | None = None, **more: Any
    ) -> BufferArena:
        return BufferArena.from_sizes(
            self.model, sizes, **self.arguments, gpu=gpu, **more
        )


DENSE_CASE = Case(DENSE, limits(tokens=5))
MOE_CASE = Case(MOE, limits(tokens=20), ALL_LEVERS)


class DriverBackend(CudaBackend):
    """The one device of the simulated driver, with the accounts that HostBackend keeps.

    Making one starts the driver anew, so an earlier one cannot be used any more.
    """

    def __init__(self, driver: Driver, total_memory: int) -> None:
        driver.reset(memory=total_memory)
        super().__init__()
        self.simulated = driver

    @property
    def live_bytes(self) -> int:
        return self.simulated.live().bytes

    @property
    def live_allocations(self) -> int:
        return self.simulated.live().allocations


Backend = HostBackend | DriverBackend
# Makes a backend that offers so many bytes.
MakeBackend = Callable[[int], Backend]

# The simulated driver rounds an allocation up to this.
_GRANULE = 512


def taken(gpu: Backend, nbytes: int) -> int:
    """Bytes of the backend's memory that an allocation of `nbytes` takes."""
    if isinstance(gpu, HostBackend):
        return nbytes
    return -(-nbytes // _GRANULE) * _GRANULE


def new_stream(gpu: GpuBackend) -> Stream:
    """A stream of the caller's: on a driver one that waits for no other stream."""
    if not isinstance(gpu, DriverBackend):
        return object()
    driver: Any = import_module("cuda.bindings.driver")
    _, context = driver.cuDevicePrimaryCtxRetain(gpu.device)
    driver.cuCtxPushCurrent(context)
    status, stream = driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING)
    driver.cuCtxPopCurrent()
    driver.cuDevicePrimaryCtxRelease(gpu.device)
    assert not status, status
    return int(stream)


def current_context() -> int:
    """The CUDA context of this thread, or 0."""
    status, context = import_module("cuda.bindings.driver").cuCtxGetCurrent()
    return 0 if status else int(context)


class Call(NamedTuple):
    method: str
    arguments: tuple[Any, ...]


class Spy:
    """A backend that notes every call and passes it on.

    Has the methods of the protocol and no others, so an arena that needs more fails.
    `fault` sees each call before it is made, with the number of earlier calls of the
    same method; what it raises is what the backend raises.
    """

    def __init__(
        self,
        gpu: GpuBackend | None = None,
        fault: Callable[[Call, int], None] | None = None,
    ) -> None:
        self.gpu: Any = HostBackend() if gpu is None else gpu
        self.fault = fault
        self.calls: list[Call] = []

    def _do(self, method: str, *arguments: Any) -> Any:
        call = Call(method, arguments)
        earlier = len(self.made(method))
        self.calls.append(call)
        if self.fault is not None:
            self.fault(call, earlier)
        return getattr(self.gpu, method)(*arguments)

    def made(self, *methods: str) -> list[tuple[Any, ...]]:
        """The arguments of the calls of these methods."""
        return [call.arguments for call in self.calls if call.method in methods]

    def alloc(self, nbytes: int) -> DevicePtr:
        ptr: DevicePtr = self._do("alloc", nbytes)
        return ptr

    def free(self, ptr: DevicePtr) -> None:
        self._do("free", ptr)

    def memset(self, ptr: DevicePtr, value: int, nbytes: int) -> None:
        self._do("memset", ptr, value, nbytes)

    def memset_async(
        self, ptr: DevicePtr, value: int, nbytes: int, stream: Stream
    ) -> None:
        self._do("memset_async", ptr, value, nbytes, stream)

    def copy_h2d(self, dst: DevicePtr, src: ReadableBuffer) -> None:
        self._do("copy_h2d", dst, src)

    def copy_d2h(self, dst: WriteableBuffer, src: DevicePtr) -> None:
        self._do("copy_d2h", dst, src)

    def copy_d2d(self, dst: DevicePtr, src: DevicePtr, nbytes: int) -> None:
        self._do("copy_d2d", dst, src, nbytes)

    def synchronize(self, stream: Stream) -> None:
        self._do("synchronize", stream)

    @property
    def default_stream(self) -> Stream:
        stream: Stream = self.gpu.default_stream
        return stream

    def total_memory(self) -> int:
        nbytes: int = self._do("total_memory")
        return nbytes

    def free_memory(self) -> int:
        nbytes: int = self._do("free_memory")
        return nbytes


class PaperBackend:
    """A backend whose memory is only written down, so that any size is cheap."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self._next = 1 << 20

    @property
    def live_bytes(self) -> int:
        return sum(self.live.values())

    def alloc(self, nbytes: int) -> DevicePtr:
        if nbytes <= 0:
            raise BackendError(f"alloc of {nbytes} bytes")
        ptr = DevicePtr(self._next)
        self._next += (nbytes // 256 + 2) * 256
        self.live[ptr] = nbytes
        return ptr

    def free(self, ptr: DevicePtr) -> None:
        del self.live[ptr]

    def memset(self, ptr: DevicePtr, value: int, nbytes: int) -> None:
        if not any(
            base <= ptr < ptr + nbytes <= base + held
            for base, held in self.live.items()
        ):
            raise BackendError(f"{nbytes} bytes at {ptr!r}")

    def memset_async(
        self, ptr: DevicePtr, value: int, nbytes: int, stream: Stream
    ) -> None:
        self.memset(ptr, value, nbytes)

    def copy_h2d(self, dst: DevicePtr, src: ReadableBuffer) -> None:
        raise BackendError("paper cannot be written")

    def copy_d2h(self, dst: WriteableBuffer, src: DevicePtr) -> None:
        raise BackendError("paper cannot be read")

    def copy_d2d(self, dst: DevicePtr, src: DevicePtr, nbytes: int) -> None:
        raise BackendError("paper cannot be copied")

    def synchronize(self, stream: Stream) -> None:
        pass

    @property
    def default_stream(self) -> Stream:
        return 0

    def total_memory(self) -> int:
        return 1 << 80

    def free_memory(self) -> int:
        return self.total_memory() - self.live_bytes


def buffers_of(arena: BufferArena) -> Iterator[tuple[str, DevicePtr, int]]:
    """Name, pointer and bytes of every buffer, as the accessors give them."""
    for name in NAMES:
        yield name, getattr(arena, name), getattr(arena, f"{name}_bytes")


def assert_gone(arena: BufferArena) -> None:
    """Every pointer is NULL and every size is 0."""
    left = [
        name
        for name, ptr, nbytes in buffers_of(arena)
        if ptr != NULL or not ptr.is_null or nbytes != 0
    ]
    assert left == []


def read(gpu: GpuBackend, ptr: DevicePtr, nbytes: int) -> bytearray:
    content = bytearray(nbytes)
    gpu.copy_d2h(content, ptr)
    return content


def soil(gpu: GpuBackend, arena: BufferArena) -> None:
    """Set every byte of every buffer to DIRTY."""
    for _, ptr, nbytes in buffers_of(arena):
        if ptr:
            gpu.memset(ptr, DIRTY, nbytes)


def covered(ranges: Iterable[tuple[int, int]], start: int, nbytes: int) -> int:
    """Leading bytes of a buffer that lie in ranges; none behind those may."""
    reached = start
    for first, length in sorted(ranges):
        low, high = max(first, start), min(first + length, start + nbytes)
        if low < high:
            assert low == reached
            reached = high
    return reached - start


# What is read at once: little enough to stay in the cache.
_PIECE = 1 << 18
_ZERO = memoryview(bytes(_PIECE))
_DIRTY = memoryview(bytes([DIRTY]) * _PIECE)


def leading_zeros(gpu: GpuBackend, ptr: DevicePtr, nbytes: int) -> int:
    """How many zero bytes a range begins with; all the others must be DIRTY."""
    content = bytearray(min(nbytes, _PIECE))
    zeros = 0
    for start in range(0, nbytes, _PIECE):
        size = min(nbytes - start, _PIECE)
        gpu.copy_d2h(memoryview(content)[:size], ptr.offset(start))
        here = content.find(DIRTY, 0, size)
        if here < 0:
            here = size
        assert not here or zeros == start, f"{start}: no longer {DIRTY:#x}"
        assert content.startswith(_ZERO[:here]), f"{start}: {here} bytes are not 0"
        dirty = content.startswith(_DIRTY[: size - here], here)
        assert dirty, f"{start + here}: {size - here} bytes are not {DIRTY:#x}"
        zeros += here
    return zeros


def cleared(gpu: GpuBackend, arena: BufferArena) -> Sizes:
    """Leading zero bytes of each soiled buffer that has any; the rest is untouched."""
    found = {
        name: leading_zeros(gpu, ptr, nbytes)
        for name, ptr, nbytes in buffers_of(arena)
        if ptr
    }
    return {name: zeros for name, zeros in found.items() if zeros}


def no_count(name: str, value: object, minimum: int) -> str:
    """What is said of a value that is no int, or a smaller one than `minimum`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{name} is {value}; at least {minimum}"
    return f"{name} is {value!r} ({type(value).__name__}), not an int"

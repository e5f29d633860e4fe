"""What the tests of the host memory guard do in a child that has it preloaded."""

from __future__ import annotations

import ctypes
import socket
import threading
from typing import Any

import torch

from tools.channel import send_json
from tools.worker.guard import GuardControl, GuardReport


def observe(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    send_json(sock, globals()[args["what"]](GuardControl()))


def _report(guard: GuardControl) -> list[int]:
    report = guard.report()
    assert isinstance(report, GuardReport)
    return [report.damaged, report.size, report.offset, report.after_free]


def available(guard: GuardControl) -> bool:
    return guard.available


def honest(guard: GuardControl) -> list[int]:
    guard.enable(1)
    for size in (1, 3, 64, 1000, 100_000):
        x = torch.rand(size)
        (x.exp() + x).sum()
    torch.nn.Conv2d(3, 8, 3)(torch.rand(2, 3, 16, 16))
    return _report(guard)


def overrun_by_one_float(guard: GuardControl) -> list[int]:
    guard.enable(1)
    x = torch.zeros(1001)
    ctypes.memset(x.data_ptr() + 1001 * 4, 0, 4)
    return _report(guard)


def overrun_by_one_byte_of_five(guard: GuardControl) -> list[int]:
    guard.enable(1)
    x = torch.zeros(5, dtype=torch.uint8)
    ctypes.memset(x.data_ptr() + 5, 0, 1)
    return _report(guard)


def underrun(guard: GuardControl) -> list[int]:
    guard.enable(2)
    x = torch.zeros(1000)
    ctypes.memset(x.data_ptr() - 8, 0, 4)
    return _report(guard)


def overrun_of_a_freed_block(guard: GuardControl) -> list[int]:
    """Damage is remembered when the block and the quarantine that it went through are long gone."""
    guard.enable(1)
    x = torch.zeros(100)
    ctypes.memset(x.data_ptr() + 400, 0, 1)
    del x
    for _ in range(1000):
        torch.zeros(100)
    return _report(guard)


def write_after_free(guard: GuardControl) -> list[int]:
    guard.enable(1)
    x = torch.zeros(100)
    address = x.data_ptr()
    del x
    ctypes.memset(address + 40, 0, 4)
    return _report(guard)


def two_damaged(guard: GuardControl) -> list[int]:
    guard.enable(1)
    blocks = [torch.zeros(100) for _ in range(4)]
    for block in blocks[:2]:
        ctypes.memset(block.data_ptr() + 400, 0, 1)
    return _report(guard)


def new_count_after_enabling_again(guard: GuardControl) -> list[int]:
    guard.enable(1)
    x = torch.zeros(100)
    ctypes.memset(x.data_ptr() + 400, 0, 1)
    del x
    guard.disable()
    guard.enable(1)
    return _report(guard)


def poison(guard: GuardControl) -> list[Any]:
    seen: list[Any] = []
    for kind in (1, 2):
        guard.enable(kind)
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            x = torch.empty(1000, dtype=dtype)
            seen.append([bool(x.isnan().all()), bool((x.abs() > 1e38).all())])
        guard.disable()
    return seen


def no_poison_of_what_is_written(guard: GuardControl) -> bool:
    guard.enable(1)
    return bool((torch.zeros(1000) == 0).all()) and torch.arange(5).tolist() == [0, 1, 2, 3, 4]


def off_and_on(guard: GuardControl) -> list[int]:
    """Blocks from before are freed while it is on, and blocks that it watches while it is off."""
    before = [torch.rand(size) for size in (1, 1000, 100_000)]
    guard.enable(1)
    during = [torch.rand(size) for size in (1, 1000, 100_000)]
    del before
    guard.disable()
    del during
    after = [torch.rand(1000) for _ in range(100)]
    guard.enable(2)
    del after
    return _report(guard)


def threads(guard: GuardControl) -> list[int]:
    """Blocks that one thread takes and another gives back, while the guard goes on and off."""
    shared: list[torch.Tensor] = []
    lock = threading.Lock()

    def work() -> None:
        for round_ in range(300):
            x = torch.full((round_ + 1,), 1.0)
            assert float(x.sum()) == round_ + 1
            with lock:
                shared.append(x)
                if len(shared) > 20:
                    shared.pop(0)

    def switch() -> None:
        for _ in range(50):
            guard.enable(1)
            guard.report()
            guard.disable()

    workers = [threading.Thread(target=work) for _ in range(6)] + [threading.Thread(target=switch)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    guard.enable(1)
    shared.clear()
    return _report(guard)


def realloc(guard: GuardControl) -> list[Any]:
    """The C library's other functions take and give blocks that are watched."""
    libc = ctypes.CDLL(None)
    libc.realloc.restype = ctypes.c_void_p
    libc.malloc_usable_size.restype = ctypes.c_size_t
    guard.enable(1)
    pointer = ctypes.c_void_p()
    assert libc.posix_memalign(ctypes.byref(pointer), ctypes.c_size_t(64), ctypes.c_size_t(100)) == 0
    assert pointer.value
    ctypes.memset(pointer.value, 7, 100)
    usable = libc.malloc_usable_size(pointer)
    grown = ctypes.c_void_p(libc.realloc(pointer, ctypes.c_size_t(1000)))
    assert grown.value
    kept = ctypes.string_at(grown.value, 100) == b"\7" * 100
    libc.free(grown)
    return [usable, kept, pointer.value % 64, *_report(guard)]


def impossible_sizes(guard: GuardControl) -> list[int]:
    libc = ctypes.CDLL(None)
    guard.enable(1)
    pointer = ctypes.c_void_p()
    codes = [
        libc.posix_memalign(ctypes.byref(pointer), ctypes.c_size_t(alignment), ctypes.c_size_t(size))
        for alignment, size in ((3, 8), (64, 2**64 - 100), (64, 2**60))
    ]
    return [*codes, *_report(guard)]


def damage_as_it_comes(guard: GuardControl) -> list[Any]:
    """As the worker uses it."""
    guard.enable(1)
    x = torch.zeros(10)
    before = guard.damage()
    ctypes.memset(x.data_ptr() + 40, 0, 1)
    after = guard.damage()
    guard.disable()
    return [before, after, guard.damage()]

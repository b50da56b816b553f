"""Free pages of the C library's heap go back to the system once a program is traced."""

from __future__ import annotations

import subprocess
import sys

import pytest

import samegrad as tf
from samegrad._base import heap

# Blocks below the size that malloc takes from the system directly, every second one freed: the rest
# keeps the pages from the end of the heap, where glibc would give them back by itself.
PROGRAM = """
import ctypes, re, samegrad as tf
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def resident():
    found = re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())
    return int(found.group(1)) / 1024

double = tf.function(lambda x: x * 2.0)
blocks = [libc.malloc(100_000) for _ in range(1000)]
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks[::2]:
    libc.free(block)
before = resident()
double(tf.constant(1.0))
print(before - resident())
"""


@pytest.mark.skipif(heap._trim is None, reason="this C library gives no pages back")
def test_a_trace_gives_back_what_lies_free() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) > 30, done.stdout + done.stderr  # of 48 MiB


def test_it_is_done_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    now = [100.0]
    monkeypatch.setattr(heap, "_trim", calls.append)
    monkeypatch.setattr(heap, "_last", 0.0)
    monkeypatch.setattr(heap.time, "monotonic", lambda: now[0])
    for _ in range(3):
        tf.function(lambda x: x + 1.0)(tf.constant(1.0))
    assert calls == [0]
    now[0] += 1.0
    heap.give_back()
    assert calls == [0, 0]


def test_a_c_library_that_cannot_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_trim", None)
    assert float(tf.function(lambda x: x + 3.0)(tf.constant(1.0))) == 4.0

"""What `compile-cuda` reads of ptxas."""

from __future__ import annotations

from harness.building.usage import Usage, usage_of

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN4rows6kernelIfEEvPT_' for 'sm_89'
ptxas info    : Function properties for _ZN4rows6kernelIfEEvPT_
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1536 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 12.345 ms
ptxas info    : Compiling entry function '_ZN4rows6kernelIdEEvPT_' for 'sm_89'
ptxas info    : Function properties for _ZN4rows6kernelIdEEvPT_
    48 bytes stack frame, 44 bytes spill stores, 52 bytes spill loads
ptxas info    : Used 128 registers, used 1 barriers, 48 bytes cumulative stack size, 400 bytes cmem[0]
ptxas info    : Function properties for __internal_trig_reduction
    90 bytes stack frame, 90 bytes spill stores, 0 bytes spill loads
"""


def test_the_most_that_a_kernel_needs() -> None:
    found = usage_of(LOG)
    assert found == Usage(kernels=2, registers=128, spilled=44, spilling=1, shared=1536)
    assert found.in_words() == (
        "2 kernels, at most 128 registers, 1 spill, at most 44 bytes, at most 1,536 bytes of shared memory declared"
    )


def test_a_source_without_kernels_needs_nothing() -> None:
    assert usage_of("ptxas info    : 0 bytes gmem\n").in_words() == (
        "0 kernels, at most 0 registers, no spills, at most 0 bytes of shared memory declared"
    )

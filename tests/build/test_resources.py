"""Registers, occupancy and machine code of kernels, from what the compiler and the disassembler print."""

from __future__ import annotations

import pytest

from tools.build.calls import BuildCall, SourcePart, Unit
from tools.build.demangle import base_name, demangle
from tools.build.occupancy import best_occupancy, multiprocessor, occupancy
from tools.build.resources import launch_bounds, parse_ptxas, with_occupancy
from tools.build.sass import parse_sass

PTXAS = """\
ptxas info    : 0 bytes gmem, 16 bytes cmem[3]
ptxas info    : Compiling entry function '_Z1kIfLi256EEvPT_' for 'sm_90a'
ptxas info    : Function properties for _Z1kIfLi256EEvPT_
    64 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Function properties for helper
    128 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 64 bytes cumulative stack size, 1024 bytes smem, 544 bytes cmem[0]
ptxas info    : Compile time = 1.200 ms
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers
"""

SASS = """\
	.target	sm_90a

		Function : _Z2v4PK6float4PS_i
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                           /* 0x00000a00ff017b82 */
                                                                                    /* 0x000fe20000000800 */
        /*0060*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;        /* 0x0000000402047981 */
        /*0070*/              @!P0 LDG.E R9, desc[UR4][R2.64] ;                     /* 0x0000000402047981 */
        /*0080*/             @P1 STG.E.64 desc[UR4][R2.64], R4 ;                    /* 0x0000000402007986 */
        /*0090*/                   LDGSTS.E.BYPASS.128 [R9], desc[UR6][R2.64] ;     /* 0x0000000002097fae */
        /*00a0*/                   LDGDEPBAR ;                                      /* 0x00000000000079af */
        /*00b0*/                   LDG.E.U16 R7, desc[UR4][R2.64] ;                 /* 0x0000000002097fae */
		Function : tensor
        /*0000*/                   HMMA.16816.F32 R4, R2, R3, R4 ;                  /* 0x0000000302047fae */
        /*0010*/                   HMMA.16816.F32 R4, R2, R3, R4 ;                  /* 0x0000000302047fae */
        /*0020*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4], R24 ;       /* 0x0000000302047fae */
        /*0030*/                   STL.64 [R1], R2 ;                                /* 0x0000000302047fae */
        /*0040*/                   LDL R2, [R1] ;                                   /* 0x0000000302047fae */
        /*0050*/                   UTMALDG.2D [UR8], [UR4] ;                        /* 0x0000000302047fae */
"""


def test_ptxas_figures():
    first, second = parse_ptxas(PTXAS)
    assert (first.name, first.mangled, first.arch) == ("void k<float, 256>(float*)", "_Z1kIfLi256EEvPT_", "sm_90a")
    assert (first.registers, first.stack, first.spill_stores, first.spill_loads) == (168, 64, 12, 8)
    assert (first.static_shared, first.constant) == (1024, 544)
    assert (second.name, second.registers, second.static_shared) == ("plain", 10, 0)


def test_machine_code():
    facts = parse_sass(SASS)
    assert facts["_Z2v4PK6float4PS_i"].access == {
        "copy.128": 1,
        "load.128": 1,
        "load.16": 1,
        "load.32": 1,
        "store.64": 1,
    }
    assert facts["_Z2v4PK6float4PS_i"].tensor == [] and facts["_Z2v4PK6float4PS_i"].local == 0
    assert facts["tensor"].tensor == ["HMMA.16816.F32", "HGMMA.64x128x16.F32"]
    assert facts["tensor"].local == 2
    assert facts["tensor"].access == {"bulk": 1}


# Worked by hand from the rules in the module, for 9.0: 64 warps, 32 blocks, 65536 registers, 228 KiB.
@pytest.mark.parametrize(
    ("registers", "shared", "block", "fraction", "limiter"),
    [
        (32, 0, 256, 1.0, "threads"),
        (64, 0, 256, 0.5, "registers"),
        (33, 0, 256, 0.75, "registers"),
        (255, 0, 256, 0.125, "registers"),
        (16, 0, 32, 0.5, "blocks"),
        (32, 100 * 1024, 256, 0.25, "shared memory"),
        (32, 227 * 1024, 1024, 0.5, "shared memory"),
        (32, 228 * 1024, 1024, 0.0, "shared memory"),
        (128, 0, 1024, 0.0, "registers"),
    ],
)
def test_occupancy_on_hopper(registers, shared, block, fraction, limiter):
    found = occupancy("sm_90a", registers=registers, shared=shared, block=block)
    assert found is not None
    assert (found.fraction, found.limited_by) == (fraction, limiter)


def test_occupancy_of_other_targets():
    ada = occupancy("sm_89", registers=40, shared=0, block=256)
    assert ada is not None and ada.fraction == 1.0
    turing = occupancy("sm_75", registers=64, shared=32 * 1024, block=256)
    assert turing is not None and (turing.fraction, turing.limited_by) == (0.5, "shared memory")
    assert occupancy("sm_35", registers=32, shared=0, block=256) is None
    best = best_occupancy("sm_90a", registers=32, shared=0)
    assert best is not None and (best.block, best.fraction) == (256, 1.0)
    assert multiprocessor("sm_90a") == multiprocessor("sm_90")


def test_launch_bounds_decide_the_block():
    text = "template <int N> __global__ void __launch_bounds__(1024) k(float* x) {}\n__global__ void other() {}"
    unit = Unit(filename="cuda.cu", language="cuda", parts=[SourcePart(label="s", text=text)])
    bounds = launch_bounds(BuildCall(index=0, name="m", call="", units=[unit]))
    assert bounds == {"k": 1024}
    kernel = with_occupancy(parse_ptxas(PTXAS)[0], bounds)
    assert (kernel.block, kernel.theoretical_occupancy, kernel.occupancy_limited_by) == (1024, 0.0, "registers")
    assert kernel.dynamic_shared_limit == 227 * 1024 - 1024


def test_names():
    assert demangle("_Z3addPfi") == "add(float*, int)"
    assert demangle("plain") == "plain"
    assert base_name("void ns::kernel<float, 3>(float*)") == "kernel"
    assert base_name("kernel(float*)") == "kernel"

"""Builds as the cache keeps them, and recorded reports on them."""

from __future__ import annotations

from pathlib import Path

from tools.build.calls import BoundFunction, BuildCall, SourcePart, Unit
from tools.types import BuildResult, BuiltModule

RECORDED = Path(__file__).with_name("recorded")
SOURCE = """__global__ void row_sum(const float* x, float* y, int columns) {
    __shared__ float part[32];
    float s = 0.f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) s += x[blockIdx.x * columns + c];
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    if (threadIdx.x < 32) __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.f;
        for (int i = 0; i < 8; ++i) total += part[i];
        y[blockIdx.x + 1] = total;
    }
}"""
KERNELS = ["row_sum(float const*, float*, int)", "_Z7row_sumPKfPfi"]


def module(folder: Path, name: str, text: str) -> BuiltModule:
    """A module as the build cache keeps it, without its library: six lines of ours stand before the model's."""
    cuda = Unit(
        filename="cuda.cu",
        language="cuda",
        parts=[SourcePart(label="cuda_sources", text=text)],
        implicit=["a.h", "b.h", "c.h", "d.h", "e.h", "f.h"],
    )
    cpp = Unit(filename="main.cpp", language="cpp", parts=[SourcePart(label="cpp_sources", text="void run();")])
    call = BuildCall(index=0, name=name, call=name, units=[cpp, cuda], bindings=[BoundFunction(name="run")])
    (folder / name).mkdir()
    (folder / name / "call.json").write_text(call.model_dump_json())
    return BuiltModule(
        name=name,
        library=str(folder / name / f"{name}.so"),
        functions=["run"],
        route="fast",
        key=name,
        seconds=1.0,
        cached=False,
    )


def build_of(*modules: BuiltModule) -> BuildResult:
    return BuildResult(ok=True, source_key="k", modules=list(modules), seconds=1.0)

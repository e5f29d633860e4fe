"""Peak rates of data-centre GPUs as their vendor states them: dense, never with structured sparsity.

Floating-point operations per second count a multiply-add as two. `fp64` and narrower types are the tensor cores' rates
where there are any, `fp32` is the ordinary cores' (no tensor core multiplies fp32 in full). NVIDIA's tables give most
tensor rates "with sparsity"; those are halved here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TERA = 1e12


@dataclass(frozen=True)
class Datasheet:
    """One product. `bandwidth` in bytes per second, `flops` per second by number format, `source` the document."""

    product: str
    bandwidth: float
    flops: dict[str, float]
    source: str


def _sheet(product: str, terabytes: float, source: str, **teraflops: float) -> Datasheet:
    flops = {name: rate * _TERA for name, rate in teraflops.items()}
    return Datasheet(product, terabytes * _TERA, flops, source)


_H100 = "NVIDIA H100 Tensor Core GPU datasheet, https://www.nvidia.com/en-us/data-center/h100/"
_H200 = "NVIDIA H200 Tensor Core GPU datasheet, https://www.nvidia.com/en-us/data-center/h200/"
_A100 = "NVIDIA A100 Tensor Core GPU datasheet, https://www.nvidia.com/en-us/data-center/a100/"
_L40S = "NVIDIA L40S datasheet, https://www.nvidia.com/en-us/data-center/l40s/"
_B200 = (
    "NVIDIA Blackwell Architecture Technical Brief, HGX B200, https://resources.nvidia.com/en-us-blackwell-architecture"
)

_HOPPER_SXM = {"fp64": 67, "fp32": 67, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4, "fp8": 1978.9, "int8": 1978.9}
_HOPPER_NVL = {"fp64": 60, "fp32": 60, "tf32": 417.5, "bf16": 835.5, "fp16": 835.5, "fp8": 1670.5, "int8": 1670.5}
_HOPPER_PCIE = {"fp64": 51, "fp32": 51, "tf32": 378, "bf16": 756.5, "fp16": 756.5, "fp8": 1513, "int8": 1513}
_AMPERE = {"fp64": 19.5, "fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "int8": 624}
_ADA = {"fp32": 91.6, "tf32": 183, "bf16": 362, "fp16": 362, "fp8": 733, "int8": 733}
_BLACKWELL = {"fp64": 40, "fp32": 80, "tf32": 1100, "bf16": 2250, "fp16": 2250, "fp8": 4500, "int8": 4500}

# Names as the driver reports them. The first pattern that matches counts, so the narrower ones come first.
_SHEETS: list[tuple[str, Datasheet]] = [
    (r"H200 NVL", _sheet("H200 NVL", 4.8, _H200, **_HOPPER_NVL)),
    (r"H200", _sheet("H200 SXM", 4.8, _H200, **_HOPPER_SXM)),
    (r"H100 NVL", _sheet("H100 NVL", 3.9, _H100, **_HOPPER_NVL)),
    (r"H100 PCIe", _sheet("H100 PCIe", 2.0, _H100, **_HOPPER_PCIE)),
    (r"H100 (80GB HBM3|SXM\d?)", _sheet("H100 SXM", 3.35, _H100, **_HOPPER_SXM)),
    (r"A100[- ]SXM\d?[- ]80GB", _sheet("A100 SXM 80GB", 2.039, _A100, **_AMPERE)),
    (r"A100[- ](80GB[- ]PCIe|PCIe[- ]80GB)", _sheet("A100 PCIe 80GB", 1.935, _A100, **_AMPERE)),
    (r"A100[- ](SXM\d?|PCIe)[- ]40GB", _sheet("A100 40GB", 1.555, _A100, **_AMPERE)),
    (r"L40S", _sheet("L40S", 0.864, _L40S, **_ADA)),
    (r"B200", _sheet("HGX B200", 8.0, _B200, **_BLACKWELL)),
]


def find_datasheet(device_name: str) -> Datasheet | None:
    """The datasheet of a device by the name its driver reports, or None.

    A slice of a GPU (MIG) has a share of the peak that depends on its profile, so it has no datasheet here.
    """
    if re.search(r"\bMIG\b", device_name):
        return None
    for pattern, sheet in _SHEETS:
        if re.search(rf"\b{pattern}\b", device_name, re.IGNORECASE):
            return sheet
    return None

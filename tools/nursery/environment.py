"""The environment of the nursery and so of every child: what is listed here and nothing else, above all no key."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path

_NAMES = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "TORCH_CUDA_ARCH_LIST", "NVIDIA_VISIBLE_DEVICES")
_PREFIXES = ("CUDA_", "OMP_", "KMP_", "MKL_")


def child_environment(home: str, preload: Path | None) -> dict[str, str]:
    """An environment made from ours. `home` is an empty private folder, `preload` a library for the dynamic linker."""
    chosen = {k: v for k, v in os.environ.items() if k in _NAMES or k.startswith(_PREFIXES)}
    chosen |= {
        "HOME": home,
        "TMPDIR": home,
        # Whatever this process can import, its children can: packages may have come by PYTHONPATH or --target.
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([str(Path(__file__).parents[2]), *_import_folders()])),
        "PYTHONDONTWRITEBYTECODE": "1",
        # Idle OpenMP threads sleep: a spinning pool in one process would be in the timings of another.
        "OMP_WAIT_POLICY": "PASSIVE",
        # Should anything that the nursery imports ask whether CUDA is there, it is answered by NVML, which touches no
        # driver: with the driver initialised here no child could use the GPU ("cannot re-initialize CUDA in forked …").
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        # Freed memory stays with the process. Otherwise it depends on the layout of the heap whether each call has its
        # pages mapped anew, which makes one process several times slower than its twin.
        "MALLOC_TRIM_THRESHOLD_": str(8 << 30),
        "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
        # numpy's BLAS starts its threads at import, and a process with threads cannot fork safely.
        "OPENBLAS_NUM_THREADS": "1",
    }
    if site.ENABLE_USER_SITE:
        chosen["PYTHONUSERBASE"] = site.getuserbase()
    if preload is not None:
        chosen["LD_PRELOAD"] = str(preload)
    return chosen


def _import_folders() -> list[str]:
    return [folder for folder in sys.path if folder and Path(folder).is_dir()]

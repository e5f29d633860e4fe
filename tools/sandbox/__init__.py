"""The sandbox: how untrusted code is held back, by direct Linux system calls and no external program.

Two levels. `namespaces`: user, process, network, IPC and mount namespaces of its own, everything read-only but the
listed folders and a private /tmp, no capabilities. `limits`: resource limits, no capabilities and whole-group kill. At
both a warden outside enforces the limits, and a worker calls `lock_down` to have its system calls filtered.
"""

from tools.sandbox.filter import lock_down
from tools.sandbox.limits import Completed, ExitStatus, Limits, SandboxError
from tools.sandbox.run import probe_level, run_sandboxed

__all__ = ["Completed", "ExitStatus", "Limits", "SandboxError", "lock_down", "probe_level", "run_sandboxed"]

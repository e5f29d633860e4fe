"""Numbers of the system calls that the filter knows, for x86-64 and aarch64 (which shares the generic table)."""

from __future__ import annotations

from tools.sandbox.linux import MACHINE

# name: (x86-64, aarch64); None where an architecture has no such call.
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "socket": (41, 198),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "openat2": (437, 437),
    "open": (2, None),
    "openat": (257, 56),
    "creat": (85, None),
    "truncate": (76, 45),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "chmod": (90, None),
    "fchmodat": (268, 53),
}

# Calls that change files: which argument is the folder that a path is relative to (-1: the current one), and the path.
PATH_CALLS: dict[str, tuple[int, int]] = {
    "open": (-1, 0),
    "openat": (0, 1),
    "creat": (-1, 0),
    "truncate": (-1, 0),
    "rename": (-1, 1),
    "renameat": (2, 3),
    "renameat2": (2, 3),
    "unlink": (-1, 0),
    "unlinkat": (0, 1),
    "mkdir": (-1, 0),
    "mkdirat": (0, 1),
    "link": (-1, 1),
    "linkat": (2, 3),
    "symlink": (-1, 1),
    "symlinkat": (1, 2),
    "chmod": (-1, 0),
    "fchmodat": (0, 1),
}

NUMBERS: dict[str, int] = {
    name: number for name, pair in _NUMBERS.items() if (number := pair[0 if MACHINE == "x86_64" else 1]) is not None
}
_NAMES = {number: name for name, number in NUMBERS.items()}


def name_of(number: int) -> str:
    return _NAMES.get(number, f"system call {number}")

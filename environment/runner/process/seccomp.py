"""The filter of system calls for agents in bubblewrap, as a program that the kernel runs on each call.

Allowed is what ordinary programs need: threads, shared memory, debuggers. Refused is what has been used to break out
of sandboxes, as in Docker's own filter: namespaces, mounts, kernel modules, keys, and rarely used parts of the
kernel.
"""

from __future__ import annotations

import errno
import os
import struct

_X86_64, _AARCH64 = "x86_64", "aarch64"
# AUDIT_ARCH_* of linux/audit.h; system call numbers differ between architectures.
_ARCHITECTURES = {_X86_64: 0xC000003E, _AARCH64: 0xC00000B7}
_X32 = 0x40000000  # marks the calls of the x32 ABI of x86_64
_COLUMN = {_X86_64: 0, _AARCH64: 1}
# By name, the numbers on x86_64 and on aarch64; None where there is no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_IOCTL = (16, 29)
_SOCKET = (41, 198)
_VSOCK = 40  # AF_VSOCK: to the host of a virtual machine, whatever the network's namespace
_NEW_NAMESPACES = 0x7E020000  # all CLONE_NEW* that clone takes
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX can inject terminal input

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000


def filter_program(machine: str = os.uname().machine) -> bytes | None:
    """Return the program for a machine's kernel; None where the numbers of its calls are unknown."""
    column = _COLUMN.get(machine)
    if column is None:
        return None
    allow = _step(_RETURN, _ALLOW)
    refuse = _step(_RETURN, _REFUSE | errno.EPERM)
    unknown = _step(_RETURN, _REFUSE | errno.ENOSYS)
    program = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, _ARCHITECTURES[machine], jump_if=1), unknown]
    program.append(_step(_LOAD, _NUMBER))
    if machine == _X86_64:
        program += [_step(_AT_LEAST, _X32, jump_unless=1), unknown]
    for numbers in _REFUSED.values():
        number = numbers[column]
        if number is not None:
            program += [_step(_EQUAL, number, jump_unless=1), refuse]
    # The flags of clone3 are in memory, which filters can't read: without it, all libraries fall back to clone.
    program += [_step(_EQUAL, _CLONE3[column], jump_unless=1), unknown]
    program += [_step(_EQUAL, _CLONE[column], jump_unless=4), _step(_LOAD, _FIRST_ARGUMENT)]
    program += [_step(_ANY_BIT, _NEW_NAMESPACES, jump_unless=1), refuse, allow]
    program += [_step(_EQUAL, _SOCKET[column], jump_unless=4), _step(_LOAD, _FIRST_ARGUMENT)]
    program += [_step(_EQUAL, _VSOCK, jump_unless=1), refuse, allow]
    program += [_step(_EQUAL, _IOCTL[column], jump_unless=5), _step(_LOAD, _SECOND_ARGUMENT)]
    for request in _TERMINAL_INPUT:
        program += [_step(_EQUAL, request, jump_unless=1), refuse]
    return b"".join([*program, allow])


def _step(code: int, value: int, *, jump_if: int = 0, jump_unless: int = 0) -> bytes:
    """Return one instruction; it skips so many others if a comparison holds, or if it does not."""
    return struct.pack("=HBBI", code, jump_if, jump_unless, value)

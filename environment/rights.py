"""Giving up rights for good: what a container's main process does to the process that becomes the agent.

Standard library only, because it is copied into container images. It knows nothing of runs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from collections.abc import Callable

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: the child only calls it


def becoming(user: int, group: int, *, keep_privileges: bool = False) -> Callable[[], None]:
    """What a child has to call to become a user that can never become another one.

    Args:
        user: its id.
        group: id of its only group.
        keep_privileges: leave the way back open, for a container that was made privileged on purpose.
    """

    def become() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.setgroups([])
        if not keep_privileges:
            _drop_capabilities()
        os.setgid(group)
        os.setuid(user)

    return become


def _drop_capabilities() -> None:
    """Empty the bounding set, so that not even a program with file capabilities gets any."""
    number = 0
    while _LIBC.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    if ctypes.get_errno() != errno.EINVAL:  # anything but "there is no such capability" is a refusal
        raise OSError(ctypes.get_errno(), "the capabilities can't be dropped")
    for option, value in ((_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL), (_PR_SET_NO_NEW_PRIVS, 1)):
        if _LIBC.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the capabilities can't be dropped")

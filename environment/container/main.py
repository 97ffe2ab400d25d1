"""The main process of an agent's container: gives the agent a user without rights, and is its warden.

It is root, so that the agent can neither signal nor deceive it, but has no right except to change users
and to signal (SETUID, SETGID, SETPCAP, KILL). Standard library only; it lies in the image as `__main__.py`
of a folder, above the modules that it imports.

    python -I /opt/mlebench/main --user USER --folder DIR --deadline S --grace S
        [--log-limit BYTES] [--launch FILE] [--privileged] -- COMMAND...

DIR is a mount that only root may enter. It gets `claim` (whoever makes it runs the agent; a second start of
the container ends with code 75), `run.log` and its segments, `started.json`, and at the end `warden.json`.
FILE holds the variables that must not show in the container's configuration, and the values that are secret
and so are kept out of the log; it is emptied.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import pwd
import resource
import signal
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from environment.container import output
from environment.container.output import Ending, Started
from environment.container.redaction import redact_files
from environment.container.run_log import CappedLog
from environment.container.warden import Warden

_EXIT_CLAIMED = 75
_EXIT_DEADLINE = 124
_EXIT_NOT_STARTED = 126
_OWN_FOLDERS = ("SUBMISSION_DIR", "LOGS_DIR", "CODE_DIR")
_HANDED_ON = ("LOGS_DIR", "CODE_DIR")
# Of this container, by the second and by the first version of control groups.
_OOM_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: the child only calls it


def main() -> int:
    """Be the container's main process."""
    parser = argparse.ArgumentParser(prog="container", description="Run an agent without rights.")
    parser.add_argument("--user", default="nonroot", help="name of the agent's user")
    parser.add_argument("--folder", type=Path, required=True, help="where log and endings go")
    parser.add_argument("--deadline", type=float, required=True, help="seconds until SIGTERM")
    parser.add_argument("--grace", type=float, required=True, help="seconds from SIGTERM to SIGKILL")
    parser.add_argument("--log-limit", type=int, default=1 << 30, help="bytes of output to keep")
    parser.add_argument("--launch", type=Path, help="file with variables and secrets, emptied when read")
    parser.add_argument("--privileged", action="store_true", help="leave the agent a way to all rights")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --")
    return run(parser.parse_args())


def run(options: argparse.Namespace) -> int:
    """Run the command of the command line once and for all."""
    folder: Path = options.folder
    if not output.claim(folder / output.CLAIM):
        sys.stderr.write(f"container: {folder / output.CLAIM} is there: the agent has run before\n")
        return _EXIT_CLAIMED
    try:
        user = pwd.getpwnam(options.user)
        variables, secrets = _take_launch(options.launch) if options.launch else ({}, ())
        os.environ.update({"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, **variables})
        home = Path(os.environ.get("AGENT_DIR", "/home/agent"))
        _open_to_all(home)
        os.chdir(home)
        become = partial(_become, user, keep_privileges=options.privileged)
        log = CappedLog(folder / output.LOG, options.log_limit, hide=secrets)
        warden = Warden(
            options.command,
            deadline=options.deadline,
            grace=options.grace,
            log=log,
            oom_counters=_OOM_COUNTERS,
            prepare=become,
        )
        warden.start()
    except (OSError, KeyError, ValueError) as error:
        problem = f"the agent can't be started: {error}"
        output.write(folder / output.ENDING, Ending.unseen("unstarted", problem))
        return _EXIT_NOT_STARTED
    output.write(folder / output.STARTED, Started.now(os.getpid(), isolated=not options.privileged))
    ending = warden.watch()
    _as_user(become, lambda: _tidy(secrets))
    output.write(folder / output.ENDING, ending)
    return shell_code(ending)


def shell_code(ending: Ending) -> int:
    """Return the code by which a shell would report an ending."""
    if ending.reason == "deadline":
        return _EXIT_DEADLINE
    if ending.reason == "stopped":
        return 128 + signal.SIGTERM
    return 128 + ending.signal if ending.signal is not None else (ending.exit_code or 0)


def _take_launch(path: Path) -> tuple[Mapping[str, str], tuple[str, ...]]:
    launch = json.loads(path.read_text(encoding="utf-8"))
    os.truncate(path, 0)
    return dict(launch["variables"]), tuple(launch["secrets"])


def _open_to_all(folder: Path) -> None:
    """Let the agent write where its image was built by root, as agents expect; links are left alone."""
    for parent, _, names in os.walk(folder):
        for path in (Path(parent), *(Path(parent, name) for name in names)):
            found = path.lstat()
            wanted = found.st_mode | 0o666 | (0o111 if found.st_mode & 0o111 else 0)
            own = found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode)
            if own and wanted != found.st_mode:
                path.chmod(stat.S_IMODE(wanted))


def _tidy(secrets: Sequence[str]) -> None:
    """Prepare what the agent made for being gathered: readable by its owner on the host, and without secrets."""
    _leave_readable()
    for name in _HANDED_ON:
        for failure in redact_files(Path(os.environ.get(name, "/nowhere")), secrets):
            sys.stderr.write(f"container: {failure}\n")


def _leave_readable() -> None:
    """Let whoever owns the host's side read and remove what the agent made, whatever its modes were."""
    for name in _OWN_FOLDERS:
        for parent, folders, names in os.walk(os.environ.get(name, "")):
            for path in (Path(parent, name) for name in (*folders, *names)):
                # What belongs to somebody else is not ours to open.
                with suppress(PermissionError):
                    mode = path.lstat().st_mode
                    if stat.S_ISDIR(mode):
                        path.chmod(0o777)
                    elif stat.S_ISREG(mode):
                        path.chmod(stat.S_IMODE(mode) | 0o666)


def _as_user(become: Callable[[], None], do: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            become()
            do()
            code = 0
        finally:
            os._exit(code)
    os.waitpid(child, 0)


def _become(user: pwd.struct_passwd, *, keep_privileges: bool) -> None:
    """Let a child become a user that can never become another one, and is in its own group alone.

    A container that was made privileged on purpose keeps the way back open.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.setgroups([])
    if not keep_privileges:
        _drop_capabilities()
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


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


if __name__ == "__main__":
    sys.exit(main())

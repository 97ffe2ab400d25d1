"""The main process of an agent's container: runs the agent as an unprivileged user, and is its warden.

It is root, so that the agent can neither signal nor deceive it, but has no capabilities except to change users
and to signal (SETUID, SETGID, SETPCAP, KILL). Standard library only; it is in the image as `__main__.py`
of a folder, above the modules that it imports.

    python -I /opt/mlebench/main --user USER --folder DIR --deadline S --grace S
        [--open DIR] [--log-limit BYTES] [--launch FILE] [--privileged] -- COMMAND...
    python -I /opt/mlebench/main --user USER [--open DIR] --shell -- COMMAND...

DIR is a mount in a folder of its own, which is closed to all but root before the agent starts, because on the host
the mount may belong to a user with the agent's user id. These files are written there: `claim` (the process that
creates it runs the agent; a second start of the container ends with code 75), `run.log` and its segments,
`started.json`, `warden.json` once the agent's processes have ended, and `tidied.json` once its files have been
prepared for collection. With --shell the command replaces the main process, and its output and end are not recorded.
FILE contains the variables that must not appear in the container's configuration, and the secret values to keep
out of the log; it is truncated after reading.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import pwd
import resource
import select
import signal
import stat
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from mlebench_console.environment.container import output, trees
from mlebench_console.environment.container.output import Ending, Started, Tidied
from mlebench_console.environment.container.redaction import redact_files, redacted_text
from mlebench_console.environment.container.run_log import CappedLog
from mlebench_console.environment.container.warden import Warden

_EXIT_CLAIMED = 75
_EXIT_DEADLINE = 124
_EXIT_NOT_STARTED = 126
_OWN_FOLDERS = ("SUBMISSION_DIR", "LOGS_DIR", "CODE_DIR")
_REDACTED_FOLDERS = ("LOGS_DIR", "CODE_DIR")
_READABLE = 0o666
_ENTERED = 0o777
_TRY_SECONDS = 20.0
_MOST_ANSWER_BYTES = 64 << 10
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: the child only calls it


def main() -> int:
    """Be the container's main process."""
    parser = argparse.ArgumentParser(prog="container", description="Run an agent without rights.")
    parser.add_argument("--user", default="nonroot", help="name of the agent's user")
    parser.add_argument(
        "--open",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="folder beside AGENT_DIR that the agent may write to",
    )
    parser.add_argument("--folder", type=Path, help="folder for the log and the endings")
    parser.add_argument("--deadline", type=float, help="seconds until SIGTERM")
    parser.add_argument("--grace", type=float, help="seconds from SIGTERM to SIGKILL")
    parser.add_argument("--log-limit", type=int, default=1 << 30, help="bytes of output to keep")
    parser.add_argument("--launch", type=Path, help="file with variables and secrets, emptied when read")
    parser.add_argument("--privileged", action="store_true", help="let the agent become root")
    parser.add_argument("--shell", action="store_true", help="become the command, for interactive use")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --")
    options = parser.parse_args()
    if options.shell:
        become = _prepare(options, {})
        become()
        os.execvp(options.command[0], options.command)  # noqa: S606 - becoming the command is the purpose
    if None in (options.folder, options.deadline, options.grace):
        parser.error("--folder, --deadline and --grace are needed without --shell")
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Run the agent's command, unless it was run before."""
    folder: Path = options.folder
    if not output.claim(folder / output.CLAIM):
        sys.stderr.write(f"container: {folder / output.CLAIM} exists: the agent has run before\n")
        return _EXIT_CLAIMED
    try:
        given = dict(os.environ)
        variables, secrets = _take_launch(options.launch) if options.launch else ({}, ())
        become = _prepare(options, variables)
        _close_to_agent(folder, become)
        log = CappedLog(folder / output.LOG, options.log_limit, hide=secrets)
        warden = Warden(
            options.command,
            deadline=options.deadline,
            grace=options.grace,
            log=log,
            oom_counters=output.OOM_COUNTERS,
            prepare=become,
        )
        warden.start()
    except (OSError, KeyError, ValueError) as error:
        problem = f"the agent can't be started: {error}"
        output.write_when_there_is_room(
            folder / output.ENDING, Ending.unseen(output.UNSTARTED, problem, output.NOT_STARTED)
        )
        return _EXIT_NOT_STARTED
    output.write(folder / output.STARTED, Started.now(os.getpid(), isolated=not options.privileged))
    ending = warden.watch()
    # Written first: an agent can make the rest take long, and it may be cut short.
    output.write_when_there_is_room(folder / output.ENDING, ending)
    output.write_when_there_is_room(folder / output.TIDIED, _tidy(become, given, secrets))
    return shell_code(ending)


def _prepare(options: argparse.Namespace, variables: Mapping[str, str]) -> Callable[[], None]:
    """Set up the environment that an agent expects, and return a function that makes a process the agent's.

    Its variables take effect in programs that are started from now on, of which there are the agent's only.
    """
    user = pwd.getpwnam(options.user)
    home = Path(os.environ.get("AGENT_DIR", "/home/agent"))
    os.environ.update({"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name})
    for name in [name for name in os.environ if name.startswith(output.FOR_AGENT)]:
        os.environ[name.removeprefix(output.FOR_AGENT)] = os.environ.pop(name)
    os.environ.update(variables)
    home.mkdir(parents=True, exist_ok=True)
    for folder in {home, *options.open}:
        _open_to_all(folder)
    os.chdir(home)
    return partial(_become, user, keep_privileges=options.privileged)


def shell_code(ending: Ending) -> int:
    """Return the code by which a shell would report an ending."""
    if ending.reason == output.DEADLINE:
        return _EXIT_DEADLINE
    if ending.reason == output.STOPPED:
        return 128 + signal.SIGTERM
    return 128 + ending.signal if ending.signal is not None else (ending.exit_code or 0)


def _take_launch(path: Path) -> tuple[Mapping[str, str], tuple[str, ...]]:
    launch = json.loads(path.read_text(encoding="utf-8"))
    os.truncate(path, 0)
    return dict(launch["variables"]), tuple(launch["secrets"])


def _open_to_all(folder: Path) -> None:
    """Let the agent write to what its image's build created as root; links and mounts are left alone."""
    device = folder.stat().st_dev
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if Path(parent, name).lstat().st_dev == device]
        for path in (Path(parent), *(Path(parent, name) for name in names)):
            found = path.lstat()
            mode = found.st_mode | 0o666 | (0o111 if found.st_mode & 0o111 else 0)
            own = found.st_uid == os.getuid() and found.st_dev == device and not stat.S_ISLNK(found.st_mode)
            if own and mode != found.st_mode:
                path.chmod(stat.S_IMODE(mode))


def _close_to_agent(folder: Path, become: Callable[[], None]) -> None:
    """Close the parent of `folder` to all but root, and verify as the agent's user that it is closed.

    Raises:
        OSError: the agent could still reach it.
    """
    folder.parent.chmod(0o700)

    def try_to_enter() -> Iterator[str]:
        with suppress(PermissionError):
            folder.stat()
            yield "entered"

    if _as_user(become, try_to_enter, _TRY_SECONDS):
        raise OSError(errno.EPERM, f"its user can reach {folder}, where its ending is recorded")


def _tidy(become: Callable[[], None], given: Mapping[str, str], secrets: Sequence[str]) -> Tidied:
    """Prepare the agent's files for collection: readable by their owner on the host, and without secrets."""
    problems = _as_user(become, lambda: _look_through(given, secrets), output.TIDY_SECONDS)
    return Tidied(tuple(redacted_text(problem, secrets) for problem in problems[: output.MOST_PROBLEMS]))


def _look_through(given: Mapping[str, str], secrets: Sequence[str]) -> Iterator[str]:
    for name in _OWN_FOLDERS:
        yield from _leave_readable(Path(given.get(name, "/nowhere")))
    for name in _REDACTED_FOLDERS:
        yield from redact_files(Path(given.get(name, "/nowhere")), secrets)


def _leave_readable(top: Path) -> Iterator[str]:
    """Set modes with which the owner on the host can read and remove the agent's files, and nobody becomes another."""
    problems: list[str] = []
    for entry in trees.walk(top, lambda place, error: problems.append(f"{place!r}: {error.strerror}")):
        trees.drop_rights(entry, _ENTERED if stat.S_ISDIR(entry.status.st_mode) else _READABLE)
    yield from problems


def _as_user(become: Callable[[], None], do: Callable[[], Iterator[str]], seconds: float) -> list[str]:
    """Run a function as the agent's user for a limited time, and return the lines that it yields."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            become()
            for line in do():
                os.write(writer, line.encode("utf-8", "backslashreplace").replace(b"\n", b" ") + b"\n")
            code = 0
        except Exception:  # noqa: BLE001 - printed for Docker's log; the parent sees the exit code
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    give_up = time.monotonic() + seconds
    printed = b""
    in_time = True
    while in_time and (part := _next_part(reader, give_up)) != b"":
        in_time = part is not None
        printed = (printed + (part or b""))[:_MOST_ANSWER_BYTES]
    os.close(reader)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    lines = printed.decode("utf-8", "replace").splitlines()
    if not in_time:
        return [f"going through the files took more than {seconds:.0f} s", *lines]
    return lines if status == 0 else [f"going through the files failed with status {status}", *lines]


def _next_part(reader: int, give_up: float) -> bytes | None:
    """Return the next bytes from the pipe; None when the time is over."""
    ready, _, _ = select.select([reader], [], [], max(0.0, give_up - time.monotonic()))
    return os.read(reader, _MOST_ANSWER_BYTES) if ready else None


def _become(user: pwd.struct_passwd, *, keep_privileges: bool) -> None:
    """Make this process the agent's user, without other groups and without a way to become another user.

    In a container that is privileged on purpose, it can become root again.
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
    if ctypes.get_errno() != errno.EINVAL:  # EINVAL: all capabilities are dropped
        raise OSError(ctypes.get_errno(), "the capabilities can't be dropped")
    for option, value in ((_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL), (_PR_SET_NO_NEW_PRIVS, 1)):
        if _LIBC.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the capabilities can't be dropped")


if __name__ == "__main__":
    sys.exit(main())

"""One attempt's own process: claims it, serves its validations, runs its agent under a warden.

It outlives the runner and the engine, and holds `shim.lock` while it lives. Its first child is the
validation server, its second the warden, apart from each other because a warden ends whatever
descends from it. It decides nothing about the run: it writes started.json and warden.json.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

from environment.container import output
from environment.container.output import MOST_PROBLEMS, Ending, ServiceRestarted, Started, Tidied
from environment.container.redaction import redact_files
from environment.container.run_log import CappedLog
from environment.container.warden import Warden, die_with
from environment.runner import layout, protocol, secrets
from environment.runner.process import bubblewrap
from environment.runner.process.containment import Containment, Limits
from environment.runner.protocol import GivenGpus, Order
from foundation import folders
from foundation.daemon_log import write_log
from foundation.locks import FileLock
from foundation.problems import DataProblem, EnvironmentProblem, Problem

EXIT_CLAIMED = 75
_SERVER_PATIENCE = 120.0  # on a host where a hundred attempts start at once
_RESTART_SECONDS = 0.5
_LONGEST_RESTART_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_OOM_COUNTERS = (Path("/proc/vmstat"),)
_SOCKET_PATH_BYTES = 108


class Shim:
    """Runs one attempt, once."""

    def __init__(self, attempt: Path, order: Order) -> None:
        self._attempt = attempt
        self._order = order
        self._isolated = order.runtime == protocol.BUBBLEWRAP
        self._layout = layout.sandboxed() if self._isolated else layout.plain(attempt, order)
        self._stops = 0
        self._warden = 0
        self._server: subprocess.Popen[bytes] | None = None
        self._served_at = 0.0
        self._early_ends = 0
        self._oom_kills = output.oom_kills(_OOM_COUNTERS)
        self._limits = Limits.of(order)
        self._containment: Containment

    def run(self) -> None:
        """Run the agent and return when nothing of it is left.

        Raises:
            Problem, OSError: the sandbox could not be made; no agent has run.
        """
        self._containment = Containment(self._order.name, self._limits, isolated=self._isolated)
        try:
            self._run()
        finally:
            self._containment.remove()  # a process that can't be killed keeps it; then the runner tries again

    def _run(self) -> None:
        signal.signal(signal.SIGTERM, self._on_stop)
        own = self._order.variables
        hidden: tuple[str, ...] = ()
        if self._order.secret:
            launch = secrets.take(self._attempt)
            own, hidden = launch.variables, launch.secrets
        self._make_folders()
        self._serve()
        self._wait_for_server()
        port = layout.SANDBOX_PORT if self._order.network == "none" and self._isolated else _free_port()
        calls = bubblewrap.open_filter() if self._containment.held.system_calls else None
        model_port = layout.MODEL_PORT if port == layout.SANDBOX_PORT else _free_port()
        command = self._command(port, model_port, calls)
        given = protocol.read_if_there(self._attempt / protocol.GPUS, GivenGpus)
        own = own if given is None else (*own, ("CUDA_VISIBLE_DEVICES", given.visible))
        variables = layout.variables(self._order, self._layout, own, port=port, model_port=model_port)
        sys.stdout.flush()
        sys.stderr.flush()
        shim = os.getpid()
        self._warden = os.fork()
        if self._warden == 0:
            os._exit(self._be_warden(shim, command, variables, hidden, () if calls is None else (calls,)))
        if self._stops:
            self._forward_stop()
        self._watch()
        failures = [
            failure
            for name in (protocol.LOGS, protocol.CODE)
            for failure in redact_files(self._attempt / name, hidden)
        ]
        output.write_when_there_is_room(
            self._attempt / protocol.TIDIED, Tidied(tuple(failures[:MOST_PROBLEMS]))
        )

    def _make_folders(self) -> None:
        source = Path(self._order.agent_folder)
        prepared = protocol.prepared_data(self._attempt, self._order)
        if not (prepared / "public").is_dir():
            raise DataProblem(f"{prepared} has no public folder", "the dataset is gone")
        for name in ("home", "tmp"):
            (self._attempt / protocol.SCRATCH / name).mkdir(parents=True)
        agent = self._attempt / protocol.SCRATCH / "agent"
        shutil.copytree(source, agent, symlinks=True)
        folders.make_writable(agent)
        if self._order.agent_version not in ("", folders.content_digest(agent)):
            raise DataProblem(
                f"{source} is not the agent that the sweep was launched with", "its files have changed since"
            )
        if self._order.obfuscated and not self._isolated:
            self._link_data()
        grader = self._attempt / protocol.GRADER
        grader.mkdir(exist_ok=True)  # where its gateway may listen already
        bubblewrap.write_tables(grader)

    def _link_data(self) -> None:
        """Make a folder of links with the attempt's own description among the data, where nothing can be mounted."""
        self._layout.data.mkdir()
        for path in (protocol.prepared_data(self._attempt, self._order) / "public").iterdir():
            own = self._attempt / protocol.DESCRIPTION
            (self._layout.data / path.name).symlink_to(own if path.name == own.name else path)

    def _serve(self) -> None:
        shim = os.getpid()
        self._served_at = time.monotonic()
        self._oom_kills = output.oom_kills(_OOM_COUNTERS)
        self._server = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-m",
                "environment.grading_server",
                f"--competition={self._order.competition_id}",
                f"--prepared={protocol.prepared_data(self._attempt, self._order)}",
                f"--edition={self._order.edition}",
                # Relative to its own folder: the path of a Unix socket has at most 108 bytes.
                f"--socket={protocol.GRADER_SOCKET}",
                f"--record={self._attempt / protocol.VALIDATIONS}",
                f"--uploads={self._attempt / protocol.GRADER / protocol.UPLOADS}",
                f"--max-bytes={self._order.submission_limit_bytes}",
            ],
            cwd=self._attempt / protocol.GRADER,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: die_with(shim),
        )

    def _wait_for_server(self) -> None:
        assert self._server is not None
        give_up = time.monotonic() + _SERVER_PATIENCE
        while not (self._attempt / protocol.GRADER / protocol.GRADER_SOCKET).exists():
            if self._server.poll() is not None or time.monotonic() > give_up:
                raise EnvironmentProblem(
                    "the validation server did not start", f"see {self._attempt / protocol.SHIM_LOG}"
                )
            time.sleep(0.01)

    def _command(self, port: int, model_port: int, calls: int | None) -> list[str]:
        here = self._layout
        sockets = {port: here.socket}
        if self._order.providers:
            sockets[model_port] = here.socket.with_name(protocol.GATEWAY_SOCKET)
        agent = self._attempt / protocol.SCRATCH / "agent"
        command = [
            f"{self._order.python_prefix}/bin/python",
            "-I",
            str(here.relay),
            *(f"--to={number}:{_short(path, agent)}" for number, path in sockets.items()),
            "--",
            *self._containment.command(layout.start_command(self._order, here)),
        ]
        if not self._isolated:
            return command
        shm_bytes = self._limits.shm_bytes
        return bubblewrap.wrap(command, self._attempt, self._order, here, shm_bytes=shm_bytes, calls=calls)

    def _be_warden(
        self,
        shim: int,
        command: list[str],
        variables: dict[str, str],
        hidden: tuple[str, ...],
        descriptors: tuple[int, ...],
    ) -> int:
        """Be the second child: whatever happens, warden.json is written, unless this process is killed."""
        die_with(shim)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(self._attempt / protocol.SCRATCH / "agent")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        log = CappedLog(self._attempt / protocol.LOG, self._order.log_limit_bytes, hide=hidden)
        warden = Warden(
            command,
            deadline=self._order.time_limit_seconds,
            grace=self._order.grace_seconds,
            log=log,
            spare="bwrap",
            limits=self._containment,
            descriptors=descriptors,
        )
        try:
            # Written first: where even this can't be written, no agent may run unseen.
            not_held = self._containment.held.not_held()
            started = Started.now(shim, isolated=self._isolated, not_held=not_held)
            output.write(self._attempt / protocol.STARTED, started)
            warden.start()
        except OSError as error:
            problem = f"{command[0]} can't be run: {error}"
            output.write_when_there_is_room(
                self._attempt / protocol.ENDING, Ending.unseen("unstarted", problem)
            )
            return 0
        if self._stops:  # it was asked to before the warden listened
            os.kill(os.getpid(), signal.SIGTERM)
        output.write_when_there_is_room(self._attempt / protocol.ENDING, self._explained(warden.watch()))
        return 0

    def _explained(self, ending: Ending) -> Ending:
        """Tell the end of bubblewrap from that of an agent: it reports signals inside by its code and dies of none.

        The kernel kills it, too, where an agent takes all memory: that is not for others to answer for.
        """
        if not self._isolated or ending.reason != "exited" or ending.signal is None or ending.oom_kills:
            return ending
        name = signal.Signals(ending.signal).name
        return replace(ending, reason="lost", problem=f"its sandbox was killed from outside by {name}")

    def _watch(self) -> None:
        """Wait for the warden; a validation server that dies before it is started again, ever later if it goes on."""
        assert self._server is not None
        serve_at: float | None = None
        while True:
            pid, status = os.waitpid(-1, 0 if serve_at is None else os.WNOHANG)
            if pid == self._warden:
                break
            if pid == self._server.pid:
                self._server.returncode = os.waitstatus_to_exitcode(status)
                serve_at = time.monotonic() + self._note_end_of_server(self._server.returncode)
            elif serve_at is not None and time.monotonic() >= serve_at:
                serve_at = None
                self._serve()
            elif pid == 0:
                time.sleep(_LOOK_SECONDS)
        if self._server.poll() is None:
            self._server.kill()
            self._server.wait()

    def _note_end_of_server(self, code: int) -> float:
        """Write down how the validation server died, and return in how many seconds it is to be started again."""
        lived = time.monotonic() - self._served_at
        self._early_ends = 0 if lived > _LONGEST_RESTART_SECONDS else self._early_ends + 1
        wait = min(_RESTART_SECONDS * 2.0 ** max(0, self._early_ends - 1), _LONGEST_RESTART_SECONDS)
        # It ends by itself with another code, or by the kernel for its memory; without a sandbox an agent can kill it.
        killed = code in (0, -signal.SIGTERM, -signal.SIGKILL)
        from_outside = self._isolated and killed and output.oom_kills(_OOM_COUNTERS) == self._oom_kills
        how = f"ended with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        text = f"{how} after {lived:.0f} s; it is started again in {wait:g} s"
        record = ServiceRestarted(time.time(), "the validation server", text, from_outside)
        try:
            output.append(self._attempt / protocol.RESTARTS, record)
        except OSError as error:
            write_log(f"the validation server {text} ({error})")
        return wait

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stops += 1
        # Only the first one is passed on: a second would make the warden skip the grace.
        if self._stops == 1 and self._warden:
            self._forward_stop()

    def _forward_stop(self) -> None:
        with suppress(ProcessLookupError):  # it has ended in between, which is what was wanted
            os.kill(self._warden, signal.SIGTERM)


def _short(path: Path, working_directory: Path) -> str:
    """Shorten the path of a Unix socket where it has more than the 108 bytes that the kernel takes."""
    return (
        str(path) if len(os.fsencode(path)) < _SOCKET_PATH_BYTES else os.path.relpath(path, working_directory)
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> int:
    """Claim the attempt of the command line and run it; an attempt that was claimed before is left alone."""
    attempt = Path(sys.argv[1])
    lock = FileLock(attempt / protocol.LOCK)
    if not lock.acquire_soon() or not output.claim(attempt / protocol.CLAIM):
        return EXIT_CLAIMED
    try:
        Shim(attempt, protocol.read(attempt / protocol.ORDER, Order)).run()
    except (Problem, OSError) as error:
        if (attempt / protocol.STARTED).exists() or (attempt / protocol.ENDING).exists():
            raise  # its agent has run: how it ended is told by its warden, or by nobody where that goes with us
        output.write_when_there_is_room(
            attempt / protocol.ENDING, Ending.unseen("unstarted", str(error).replace("\n", " "))
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

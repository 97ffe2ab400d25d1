"""The main process of one attempt without Docker: claims it, starts its services, and runs the agent under a warden.

    python -I -m mlebench_console.environment.runner.process.shim DIR CACHE

DIR is the attempt's directory, CACHE a folder on this host's own disk with images that attempts share.
It outlives the runner and the engine, and holds `shim.lock` as long as it runs. Its first children are the
validation server and, if needed, a proxy, its last one is the warden, a separate process because it kills all its
descendants. The shim decides nothing about the run: it writes started.json and warden.json.
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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from mlebench_console.environment.container import output
from mlebench_console.environment.container.output import (
    MOST_PROBLEMS,
    Ending,
    ServiceRestarted,
    Started,
    Tidied,
)
from mlebench_console.environment.container.redaction import redact_files
from mlebench_console.environment.container.run_log import CappedLog
from mlebench_console.environment.container.warden import Warden, die_with
from mlebench_console.environment.runner import layout, protocol, secrets
from mlebench_console.environment.runner.host.problems import code_of
from mlebench_console.environment.runner.host.readings import visible_alone
from mlebench_console.environment.runner.process import apptainer, bubblewrap, image_cache, runtimes
from mlebench_console.environment.runner.process.containment import Containment, ProcessLimits
from mlebench_console.environment.runner.protocol import GivenGpus, Order
from mlebench_console.foundation import folders
from mlebench_console.foundation.backoff import Backoff
from mlebench_console.foundation.daemons import write_log
from mlebench_console.foundation.locks import FileLock
from mlebench_console.foundation.problem_codes import EndReason, ProblemCode
from mlebench_console.foundation.problems import DataProblem, EnvironmentProblem, Problem

EXIT_CLAIMED = 75
_SERVER_PATIENCE = 120.0  # on a host where a hundred attempts start at once
_RESTARTS = Backoff(first=0.5, most=60.0)
_POLL_SECONDS = 0.1
_END_SECONDS = 5.0
_OOM_COUNTERS = (Path("/proc/vmstat"),)
_SOCKET_PATH_BYTES = 108
_MADE_SOCKET = "made.sock"  # a connection to it shows that the sandbox was set up
# The variables of our own programs around an agent.
_OUTSIDE = {"LANG": "C.UTF-8"}
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PYTHON_OF_IMAGES = "/usr/bin/python3"
_LAST_WORDS_BYTES = 1000
# In a job, which writes to a file system that hundreds of nodes share.
_SELDOM = "--traffic-seconds=30"


class _Stopped(BaseException):
    """SIGTERM arrived before the agent was started."""


@dataclass
class _Service:
    """A service for the agent; its socket is in the folder that the agent can access.

    Attributes:
        start_at: when to start it again; None while it runs.
    """

    name: str
    module: str
    arguments: Sequence[str]
    socket: str
    process: subprocess.Popen[bytes] | None = None
    served_at: float = 0.0
    early_ends: int = 0
    start_at: float | None = None


class Shim:
    """Runs one attempt, once."""

    def __init__(self, attempt: Path, order: Order, cache: Path) -> None:
        self._attempt = attempt
        self._order = order
        self._cache = cache
        self._isolated = order.conditions.runtime != protocol.PLAIN
        self._runtime = order.conditions.runtime
        self._root: Path | None = None  # the agent's unpacked image
        self._layout = layout.sandboxed() if self._isolated else layout.plain(attempt, order)
        self._stops = 0
        self._chosen = False
        self._warden = 0
        self._services = self._planned_services()
        self._made: socket.socket | None = None
        self._descriptors: list[int] = []
        self._oom_kills = output.oom_kills(_OOM_COUNTERS)
        self._limits = ProcessLimits.of(order)
        self._containment: Containment

    def run(self) -> None:
        """Run the agent and return when all its processes have ended.

        Raises:
            Problem, OSError: the sandbox could not be made; no agent has run.
        """
        signal.signal(signal.SIGTERM, self._on_stop)
        try:
            self._choose()
            self._chosen = True
        except _Stopped:
            output.write_when_there_is_room(self._attempt / protocol.ENDING, Ending.unseen(EndReason.STOPPED))
            return
        self._containment = Containment(self._order.token, self._limits, isolated=self._isolated)
        try:
            self._run()
        finally:
            self._containment.remove()  # fails while a process can't be killed; then the runner tries again

    def _choose(self) -> None:
        """Choose the runtime on this host, and bring the image to this host's disk."""
        scratch = self._attempt / protocol.SCRATCH
        scratch.mkdir(exist_ok=True)
        scratch = scratch.resolve()  # on a node it is a link to its own disk
        self._runtime = runtimes.choose(self._order.conditions.runtime, self._order.image_file, scratch)
        if self._order.image_file is not None:
            self._root = image_cache.unpacked(self._order.image_file, self._cache)

    def _run(self) -> None:
        own = self._order.variables
        hidden: tuple[str, ...] = ()
        if self._order.secret:
            launch = secrets.take(self._attempt)
            own, hidden = launch.variables, launch.secrets
        self._make_folders()
        given = protocol.read_if_there(self._attempt / protocol.GPUS, GivenGpus)
        if given is not None:
            # bubblewrap shows only the given devices; Apptainer shows all that the job may open.
            alone = self._runtime == protocol.BUBBLEWRAP
            own = (*own, ("CUDA_VISIBLE_DEVICES", visible_alone(given) if alone else given.visible))
        for service in self._services:
            self._serve(service)
        self._wait_for_services()
        command, variables = self._command(own)
        sys.stdout.flush()
        sys.stderr.flush()
        shim = os.getpid()
        self._warden = os.fork()
        if self._warden == 0:
            os._exit(self._be_warden(shim, command, variables, hidden))
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
        scratch = self._attempt / protocol.SCRATCH
        for name in ("home", "tmp", "var-tmp", f"run/mlebench/{protocol.SERVICES}"):
            (scratch / name).mkdir(parents=True)
        for name in ("tmp", "var-tmp"):
            (scratch / name).chmod(0o1777)
        shutil.copy(layout.own_files() / "container" / "relay.py", scratch / "run" / "mlebench")
        if self._root is not None and self._runtime == protocol.BUBBLEWRAP:
            # What is in its root can't be changed, and agents write beside their own files.
            shutil.copytree(self._root / "home", scratch / "home", symlinks=True, dirs_exist_ok=True)
        agent = scratch / "agent"
        shutil.copytree(source, agent, symlinks=True)
        folders.make_writable(agent)
        if self._order.agent_version not in ("", folders.content_digest(agent)):
            raise DataProblem(
                f"{source} is not the agent that the sweep was launched with", "its files have changed since"
            )
        if self._order.conditions.obfuscated and not self._isolated:
            self._link_data()
        services = self._attempt / protocol.SERVICES
        services.mkdir(exist_ok=True)  # its gateway may listen there already
        bubblewrap.write_tables(services)
        if self._isolated:
            self._made = socket.socket(socket.AF_UNIX)
            os.chdir(services)  # the path of a Unix socket has at most 108 bytes
            self._made.bind(_MADE_SOCKET)
            os.chdir("/")
            self._made.listen()

    def _link_data(self) -> None:
        """Make a folder of links to the data with the attempt's own description, as nothing can be mounted here."""
        self._layout.data.mkdir()
        for path in (protocol.prepared_data(self._attempt, self._order) / "public").iterdir():
            own = self._attempt / protocol.DESCRIPTION
            (self._layout.data / path.name).symlink_to(own if path.name == own.name else path)

    def _planned_services(self) -> list[_Service]:
        order = self._order
        server = _Service(
            "the validation server",
            "mlebench_console.environment.validation_server",
            (
                f"--competition={order.competition_id}",
                f"--prepared={protocol.prepared_data(self._attempt, order)}",
                f"--edition={order.conditions.edition}",
                # Relative to its own folder: the path of a Unix socket has at most 108 bytes.
                f"--socket={protocol.VALIDATION_SOCKET}",
                f"--record={self._attempt / protocol.VALIDATIONS}",
                f"--uploads={self._attempt / protocol.SERVICES / protocol.UPLOADS}",
                f"--max-bytes={order.submission_limit_bytes}",
            ),
            protocol.VALIDATION_SOCKET,
        )
        if order.conditions.network != "models":
            return [server]
        site = os.environ.get("HTTPS_PROXY")  # set by a job's profile
        options = (
            f"--socket={layout.PROXY_SOCKET}",
            f"--traffic={self._attempt / protocol.TRAFFIC}",
            *([_SELDOM] if (self._attempt / protocol.JOB_CLAIM).exists() else []),
            *([f"--through={site}"] if site else []),
        )
        proxy = _Service(
            "the proxy to the model hosts",
            "mlebench_console.environment.container.proxy",
            (*options, *layout.proxy_rules(order)),
            layout.PROXY_SOCKET,
        )
        return [server, proxy]

    def _serve(self, service: _Service) -> None:
        shim = os.getpid()
        service.served_at, service.start_at = time.monotonic(), None
        self._oom_kills = output.oom_kills(_OOM_COUNTERS)
        (self._attempt / protocol.PROXY).mkdir(exist_ok=True)
        service.process = subprocess.Popen(
            [sys.executable, "-I", "-m", service.module, *service.arguments],
            cwd=self._attempt / protocol.SERVICES,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: die_with(shim),
        )

    def _wait_for_services(self) -> None:
        give_up = time.monotonic() + _SERVER_PATIENCE
        for service in self._services:
            assert service.process is not None
            while not (self._attempt / protocol.SERVICES / service.socket).exists():
                if service.process.poll() is not None or time.monotonic() > give_up:
                    raise EnvironmentProblem(
                        f"{service.name} did not start", f"see {self._attempt / protocol.SHIM_LOG}"
                    )
                time.sleep(0.01)

    def _command(self, own: tuple[tuple[str, str], ...]) -> tuple[list[str], dict[str, str]]:
        """Return the command that starts the agent in its sandbox, and that command's own variables."""
        here, order = self._layout, self._order
        has_own_network = order.conditions.network != "open" and self._isolated
        port = layout.SANDBOX_PORT if has_own_network else _free_port()
        model_port = layout.MODEL_PORT if has_own_network else _free_port()
        sockets = {port: here.socket}
        if order.providers:
            sockets[model_port] = here.socket.with_name(protocol.GATEWAY_SOCKET)
        if order.conditions.network == "models":
            sockets[layout.PROXY_PORT] = here.socket.with_name(layout.PROXY_SOCKET)
        agent = self._attempt / protocol.SCRATCH / "agent"
        command = [
            f"{order.python_prefix}/bin/python" if self._root is None else _PYTHON_OF_IMAGES,
            "-I",
            str(here.relay),
            *(f"--to={number}:{_short(path, agent)}" for number, path in sockets.items()),
            *([f"--ready={here.socket.with_name(_MADE_SOCKET)}"] if self._isolated else []),
            "--",
            *self._containment.command(layout.start_command(order, here)),
        ]
        variables = self._variables(own, port=port, model_port=model_port)
        layout.require_possible(variables)
        if not self._isolated:
            return command, variables
        if self._root is not None and self._runtime == protocol.APPTAINER:
            return apptainer.wrap(command, self._attempt, order, here, self._root, variables=variables)
        wrapped, self._descriptors = bubblewrap.wrap(
            command,
            self._attempt,
            order,
            here,
            self._root,
            shm_bytes=self._limits.shm_bytes,
            variables=variables,
        )
        return wrapped, dict(_OUTSIDE)

    def _variables(self, own: tuple[tuple[str, str], ...], *, port: int, model_port: int) -> dict[str, str]:
        order, image = self._order, self._order.image_file
        if image is None:
            return layout.variables(order, self._layout, own, port=port, model_port=model_port)
        variables = dict(image.variables) | {"HOME": image.home, "USER": image.user, "LOGNAME": image.user}
        variables |= layout.variables_in_an_image(order, self._layout, own, port=port, model_port=model_port)
        if bubblewrap.gpu_nodes(self._attempt):
            for name, usual in (("LD_LIBRARY_PATH", ""), ("PATH", _USUAL_PATH)):
                folders = [variables.get(name, usual), str(bubblewrap.DRIVER)]
                variables[name] = ":".join(filter(None, folders))
        return variables

    def _be_warden(
        self,
        shim: int,
        command: list[str],
        variables: dict[str, str],
        hidden: tuple[str, ...],
    ) -> int:
        """Run as the second child; unless this process is killed, warden.json is written whatever happens."""
        die_with(shim)
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(self._attempt / protocol.SCRATCH / "agent")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        log = CappedLog(self._attempt / protocol.LOG, self._order.log_limit_bytes, hide=hidden)
        warden = Warden(
            command,
            deadline=self._order.conditions.time_limit_seconds,
            grace=self._order.conditions.grace_seconds,
            log=log,
            spare=("bwrap", *apptainer.PROCESSES),
            limits=self._containment,
            descriptors=self._descriptors,
        )
        try:
            # Written first: where even this can't be written, no agent may run unrecorded.
            image = self._order.image_file.image if self._order.image_file else ""
            started = Started.now(
                shim,
                isolated=self._isolated,
                unenforced=runtimes.enforced_limits(self._runtime, self._containment).unenforced,
                runtime=self._runtime,
                image=image,
            )
            output.write(self._attempt / protocol.STARTED, started)
            warden.start()
        except OSError as error:
            problem = f"{command[0]} can't be run: {error}"
            output.write_when_there_is_room(
                self._attempt / protocol.ENDING,
                Ending.unseen(EndReason.UNSTARTED, problem, ProblemCode.NOT_STARTED),
            )
            return 0
        if self._stops:  # the signal came before the warden handled it
            os.kill(os.getpid(), signal.SIGTERM)
        output.write_when_there_is_room(self._attempt / protocol.ENDING, self._explained(warden.watch()))
        return 0

    def _explained(self, ending: Ending) -> Ending:
        """Correct the ending if the sandbox was not set up, or was itself killed: it exits for signals inside.

        The kernel also kills it when an agent uses up the memory, which is the agent's fault.
        """
        if not self._isolated or ending.reason != EndReason.EXITED:
            return ending
        if not self._is_made():
            words = last_words(self._attempt / protocol.LOG)
            problem, code = f"its sandbox could not be made: {words}", ProblemCode.SANDBOX_NOT_MADE
        elif ending.signal is not None and not ending.oom_kills:
            name = signal.Signals(ending.signal).name
            problem, code = f"its sandbox was killed from outside by {name}", ProblemCode.SANDBOX_LOST
        else:
            return ending
        return replace(ending, reason=EndReason.LOST, problem=problem, problem_code=code)

    def _is_made(self) -> bool:
        """Return whether the sandbox was set up, which its relay signals before the agent starts."""
        if self._made is None:
            return True
        self._made.setblocking(False)
        try:
            self._made.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def _watch(self) -> None:
        """Wait for the warden; services that die before it are restarted, with growing delays if they keep dying."""
        while True:
            waits = any(service.start_at is not None for service in self._services)
            pid, status = os.waitpid(-1, os.WNOHANG if waits else 0)
            if pid == self._warden:
                break
            for service in self._services:
                if service.process is not None and pid == service.process.pid:
                    service.process.returncode = os.waitstatus_to_exitcode(status)
                    wait = self._record_end(service, service.process.returncode)
                    service.start_at = time.monotonic() + wait
                elif service.start_at is not None and time.monotonic() >= service.start_at:
                    self._serve(service)
            if pid == 0:
                time.sleep(_POLL_SECONDS)
        for service in self._services:
            if service.process is not None and service.process.poll() is None:
                service.process.terminate()
                try:
                    service.process.wait(_END_SECONDS)
                except subprocess.TimeoutExpired:
                    service.process.kill()
                    service.process.wait()

    def _record_end(self, service: _Service, code: int) -> float:
        """Record how a service died, and return the seconds until its restart."""
        lived = time.monotonic() - service.served_at
        service.early_ends = 0 if lived > _RESTARTS.most else service.early_ends + 1
        wait = _RESTARTS.seconds(service.early_ends)
        # An agent can make it exit with another code or run out of memory, and without a sandbox it can kill it.
        killed = code in (0, -signal.SIGTERM, -signal.SIGKILL)
        from_outside = self._isolated and killed and output.oom_kills(_OOM_COUNTERS) == self._oom_kills
        how = f"ended with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
        text = f"{how} after {lived:.0f} s; it is started again in {wait:g} s"
        record = ServiceRestarted(time.time(), service.name, text, from_outside)
        try:
            output.append(self._attempt / protocol.RESTARTS, record)
        except OSError as error:
            write_log(f"{service.name} {text} ({error})")
        return wait

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stops += 1
        if self._stops == 1 and not self._chosen:
            raise _Stopped  # preparing an image may take minutes
        # Only the first signal is forwarded: a second one would make the warden skip the grace.
        if self._stops == 1 and self._warden:
            self._forward_stop()

    def _forward_stop(self) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(self._warden, signal.SIGTERM)


def _short(path: Path, working_directory: Path) -> str:
    """Return the path of a Unix socket, relative where it would exceed the kernel's 108 bytes."""
    return (
        str(path) if len(os.fsencode(path)) < _SOCKET_PATH_BYTES else os.path.relpath(path, working_directory)
    )


def last_words(log: Path) -> str:
    """Return the end of the output, in one line."""
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _LAST_WORDS_BYTES))
        return " | ".join(stream.read().decode("utf-8", "backslashreplace").split("\n")).strip(" |")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> int:
    """Claim the attempt of the command line and run it, unless it was claimed before."""
    attempt, cache = Path(sys.argv[1]), Path(sys.argv[2])
    lock = FileLock(attempt / protocol.LOCK)
    if not lock.acquire_soon() or not output.claim(attempt / protocol.CLAIM):
        return EXIT_CLAIMED
    try:
        Shim(attempt, protocol.read(attempt / protocol.ORDER, Order), cache).run()
    except (Problem, OSError) as error:
        if (attempt / protocol.STARTED).exists() or (attempt / protocol.ENDING).exists():
            raise  # its agent has run, so its warden records the ending, if it survives
        code = code_of(error, ProblemCode.NOT_STARTED)
        ending = Ending.unseen(EndReason.UNSTARTED, str(error).replace("\n", " "), code)
        output.write_when_there_is_room(attempt / protocol.ENDING, ending)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The engine's harness on a real Docker daemon: one image whose agent does what the test says."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mlebench_console.engine.images import connect
from mlebench_console.environment.runner import protocol, secrets
from mlebench_console.environment.runner.docker.daemon import ensure_outside_network, remove_outside_network
from mlebench_console.environment.runner.docker.sandbox import LABEL_STATE, DockerHost
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation import locks
from mlebench_console.state.records import Run
from tests.engine.harness import Harness, eventually


@contextmanager
def serving(address: str, handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[int]:
    """Answer requests at an address of the host; gives the port."""
    with http.server.ThreadingHTTPServer((address, 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


PROBE = "mlebench-test-probe"


class DockerHarness(Harness):
    """Launches on Docker, and leaves no container and no network behind."""

    def agent(self, name: str, script: str, *, extra: str = "") -> str:
        """Write an agent for the probe's image: what it does is in a variable, so that nothing is built."""
        folder = self.agents_dir / PROBE
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "Dockerfile").write_text("FROM mlebench-env\nCOPY . /home/agent\n")
        (folder / "start.sh").write_text('echo start >> "$CODE_DIR/starts"\neval "$SCRIPT"\n')
        with (folder / "config.yaml").open("a") as config:
            config.write(
                f"{name}:\n  start: {PROBE}/start.sh\n  dockerfile: {PROBE}/Dockerfile\n{extra}"
                f"  env_vars:\n    SCRIPT: {json.dumps(script)}\n"
            )
        return name

    def launch(self, agent: str, **arguments: Any) -> str:
        # A container really gets no more than it counts as, so the usual twentieth would take minutes.
        return super().launch(agent, **({"runtime": "docker", "cpus": 0.3} | arguments))

    def containers(self) -> list[dict[str, Any]]:
        label = f"{LABEL_STATE}={self.places.state_dir}"
        found: list[dict[str, Any]] = connect().containers(all=True, filters={"label": label})
        return found

    def container_of(self, run: Run, role: str = "agent") -> dict[str, Any]:
        """What the daemon tells about a run's container."""
        attempt = protocol.read(self.folder(run) / protocol.ORDER, Order).token
        (found,) = (
            one
            for one in self.containers()
            if one["Labels"]["mlebench.attempt"] == attempt and one["Labels"]["mlebench.role"] == role
        )
        told: dict[str, Any] = connect().inspect_container(found["Id"])
        return told

    def gateway(self) -> str:
        """The host's own address on the network with a way out."""
        client, name = connect(), DockerHost(self.places.state_dir).outside_network
        ensure_outside_network(client, name)
        (network,) = client.networks(names=[name])
        address: str = network["IPAM"]["Config"][0]["Gateway"]
        return address

    def runner_lives(self) -> bool:
        """Whether a runner holds its lock and has said so."""
        lock = self.places.state_dir / protocol.RUNNER / protocol.RUNNER_LOCK
        return locks.is_held(lock) and lock.read_text().isdigit()

    def until_clean(self) -> None:
        """Wait until nothing of any run is left at the daemon."""
        left: list[str] = []

        def is_clean() -> bool:
            left[:] = [f"{one['Names']} {one['Status']}" for one in self.containers()]
            left.extend(one["Name"] for one in self.networks())
            return not left

        eventually(is_clean, or_tell=left)

    def networks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = connect().networks(
            names=[DockerHost(self.places.state_dir).outside_network]
        )
        return found

    def close(self) -> None:
        super().close()
        client = connect()
        for one in self.containers():
            client.remove_container(one["Id"], force=True, v=True)
        remove_outside_network(client, DockerHost(self.places.state_dir).outside_network)
        for attempt in self.places.state_dir.glob("runs/*/*/*/*"):
            secrets.discard(attempt)

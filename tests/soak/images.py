"""Images that take too long for the tests: the heavy one, with every package imported, and MLAgentBench's real one."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mlebench_console.engine.agents import find_agents
from mlebench_console.engine.images import ENV_IMAGE, build, connect, make_base, recipes_for
from mlebench_console.engine.images.building import find_image
from mlebench_console.engine.requests import BuildImages
from mlebench_console.foundation.problems import EnvironmentProblem
from tests.docker import mle_bench_agents
from tests.machine import BASE_IMAGE

_HEAVY = "mlebench-soak-heavy"
# Folders that wheels have brought by mistake.
_NO_MODULES = ("benchmarks", "build", "docs", "examples", "scripts", "test", "tests", "tools", "wheelhouse")
_IMPORT_ALL = f"""
import re, subprocess, sys
from importlib.metadata import packages_distributions
from pathlib import Path

def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()

lines = Path("/opt/mlebench/packages-heavy.txt").read_text().splitlines()
wanted = {{plain(re.split(r"[\\[=<>; ]", line)[0]) for line in lines if line and line[0] != "#"}}
found = set()
for module, names in packages_distributions().items():
    of = wanted & set(map(plain, names))
    if of and re.fullmatch(r"[A-Za-z]\\w*", module) and module not in {_NO_MODULES}:
        found |= of
        command = [sys.executable, "-W", "ignore", "-c", "import " + module]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(module, "can't be imported:", *done.stderr.strip().splitlines()[-1:])
for name in wanted - found:
    print(name, "has no module")
"""


def problems_of_images(say: Callable[[str], None]) -> list[str]:
    """Build them, and return what does not hold."""
    client = connect()
    order = BuildImages(base_image=BASE_IMAGE, certificates=os.environ.get("SSL_CERT_FILE", ""))
    if find_image(client, BASE_IMAGE) is None:
        make_base(client, BASE_IMAGE, lambda _line: None)
    (environment,) = recipes_for([ENV_IMAGE], [])
    began = time.monotonic()
    heavy = build(client, replace(environment, name=_HEAVY), replace(order, heavy=True), lambda _line: None)
    say(f"{_HEAVY}: {heavy.bytes / 1e9:.1f} GB in {time.monotonic() - began:.0f} s")
    build(client, environment, order, lambda _line: None)
    return [*_not_imported(), *_not_built(say)]


def _not_imported() -> list[str]:
    client = connect()
    command = ["/opt/conda/envs/agent/bin/python", "-c", _IMPORT_ALL]
    made = client.create_container(_HEAVY, user="nonroot", entrypoint=command, network_disabled=True)["Id"]
    try:
        client.start(made)
        client.wait(made, timeout=3600)
        told: bytes = client.logs(made)
    finally:
        client.remove_container(made, force=True)
        client.remove_image(_HEAVY)
    return [line for line in told.decode().splitlines() if line]


def _not_built(say: Callable[[str], None]) -> list[str]:
    """What MLAgentBench's image lacks up to the step that fetches its repository."""
    with tempfile.TemporaryDirectory(prefix="soak-") as scratch:
        agents = Path(scratch)
        mle_bench_agents.write_real_mlagentbench(agents)
        (recipe,) = recipes_for([mle_bench_agents.REAL_MLAGENTBENCH], find_agents([agents]).agents)
        order = BuildImages(certificates=os.environ.get("SSL_CERT_FILE", ""))
        try:
            build(connect(), recipe, order, lambda _line: None)
        except EnvironmentProblem as problem:
            if "git clone" in problem.why and "github.com, which could not be reached" in problem.why:
                say(f"{recipe.name}: built up to the step that needs github.com")
                return []
            return [str(problem)]
    connect().remove_image(recipe.name, force=True)
    return []

"""A runner of an operator whose user has the same number as the agent's: what containers write is out of its reach."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from mlebench_console.engine.images import connect
from mlebench_console.environment.container.output import Ending
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.code_snapshots import read_snapshot
from mlebench_console.environment.runner.docker.daemon import USUAL_SOCKETS
from mlebench_console.environment.runner.docker.sandbox import LABEL_STATE
from tests.docker.conftest import having_the_daemon
from tests.docker.harness import PROBE
from tests.engine.harness import COMPETITION, SUBMIT
from tests.environment.runner.orders import order_with

OPERATOR = 1000  # as `nonroot` in the images
ROOT = Path(__file__).parents[2]
FORGE = """
for place in /run/mlebench /run/mlebench/output /proc/1/root/run/mlebench/output; do
    chmod 777 "$place"; ls "$place" && echo listed
    echo forged > "$place/run.log"; echo '{}' > "$place/warden.json"; rm -f "$place/claim" && echo removed
done 2> /dev/null
id -u
"""


@pytest.fixture
def home(prepared_data: Path, images: None, root: None) -> Iterator[Path]:
    """A state directory of a user that is not root, who may talk to the daemon."""
    with having_the_daemon(), TemporaryDirectory(prefix="mlebench-test-operator-") as made:
        found = Path(made)
        shutil.copytree(prepared_data / COMPETITION / "prepared", found / "prepared")
        protocol.make_folders(found / "attempt")
        yield found
        for one in connect().containers(all=True, filters={"label": f"{LABEL_STATE}={found / 'attempt'}"}):
            connect().remove_container(one["Id"], force=True, v=True)


def run_as_operator(home: Path, script: str) -> Ending:
    """Look after one attempt in containers as the operator, to its end."""
    attempt = home / "attempt"
    order = order_with(
        token="0123456789ab",
        competition_id=COMPETITION,
        start="start.sh",
        prepared_dir=str(home / "prepared"),
        runtime=protocol.DOCKER,
        image=PROBE,
        grader_image="mlebench-grader",
        time_limit_seconds=60,
        variables=(("SCRIPT", script),),
    )
    protocol.write(attempt / protocol.ORDER, order)
    subprocess.run(["chown", "-R", f"{OPERATOR}:{OPERATOR}", str(home)], check=True)
    socket = Path(USUAL_SOCKETS[0])
    subprocess.run(
        [
            *("setpriv", f"--reuid={OPERATOR}", f"--regid={OPERATOR}", f"--groups={socket.stat().st_gid}"),
            # To read, and no more: the interpreter may lie in root's home.
            *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
            *(sys.executable, "-m", "mlebench_console.environment.runner", "--once", str(attempt)),
        ],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "HOME": str(home)},
        cwd=home,
        check=True,
        timeout=120,
    )
    return protocol.read(attempt / protocol.EXIT, Ending)


def test_an_agent_of_the_operators_own_number_can_not_forge_how_it_ended(home: Path) -> None:
    ending = run_as_operator(home, f"{SUBMIT}\n{FORGE}\nexit 3")
    assert (ending.reason, ending.exit_code, ending.submission_sequence) == ("exited", 3, 1)
    assert (home / "attempt" / protocol.LOG).read_text() == f"{OPERATOR}\n"


def test_what_an_agent_closed_is_the_operators_to_read_and_to_remove(home: Path) -> None:
    ending = run_as_operator(
        home, f'{SUBMIT}; cd "$CODE_DIR"; mkdir -p a/b; touch a/b/c; chmod 000 a/b/c a/b a'
    )
    assert (ending.reason, ending.exit_code) == ("exited", 0)
    inner = home / "attempt" / protocol.CODE / "a" / "b"
    assert oct(inner.stat().st_mode & 0o777) == "0o777"
    kept = read_snapshot(home / "attempt", 1)
    assert kept is not None
    assert "a/b/c" in [each.path for each in kept.files]
    assert not (home / "attempt" / protocol.SERVICES).exists()

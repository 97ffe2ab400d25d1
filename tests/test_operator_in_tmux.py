"""An operator's session, with the real program in a real terminal: launch, lose the engine, relaunch, leave."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.control import status, stop
from engine.places import Places
from tests.conformance.trees import VECTORS, Vector
from tests.terminal import Terminal

COMPETITION = "spooky-author-identification"
# Its first attempt meets what a lost GPU looks like; its output tries to take the terminal over.
AGENT = r"""
printf 'hello \033]0;owned\007 \033[2J \302\2332J there\n'
if [ "$ATTEMPT" = 1 ]; then echo 'Failed to initialize NVML: Unknown Error'; exit 1; fi
cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"
echo 'all done'
"""


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    folder = tmp_path / "agents" / "unlucky"
    folder.mkdir(parents=True)
    (folder / "start.sh").write_text(AGENT)
    (folder / "config.yaml").write_text("unlucky:\n  start: unlucky/start.sh\n")
    return folder.parent


@pytest.fixture
def terminal(require_program: Callable[[str, str], str], tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(require_program("tmux", "tmux"), tmp_path, columns=120, lines=36)
    yield opened
    opened.close()


@pytest.fixture
def program(places: Places, terminal: Terminal) -> Iterator[str]:
    """The program as it is typed here; whatever engine it started is stopped at the end."""
    places.config_file.touch()
    name = (
        f"{sys.executable} -m console --state-dir={places.state_dir} --data-dir={places.data_dir}"
        f" --config={places.config_file}"
    )
    terminal.type(
        f'cd {shlex.quote(str(Path(__file__).parent.parent))}; mlebench() {{ {name} "$@"; }}; clear'
    )
    yield "mlebench"
    stop(places, with_runs=True)


def test_a_run_is_lost_relaunched_and_graded_while_the_engine_is_killed_in_between(
    terminal: Terminal, program: str, places: Places, agents: Path, tmp_path: Path
) -> None:
    raw = Vector(VECTORS / COMPETITION).unpack_raw(tmp_path / "raw")
    terminal.type(f"{program} prepare -c {COMPETITION} --raw {raw}")
    terminal.wait_for(f"{COMPETITION}: prepared")
    terminal.type(f"clear; {program} engine start")
    terminal.wait_for("engine  running on")
    terminal.type(
        f"clear; {program} sweep launch --agents-dir {agents} --agent unlucky -c {COMPETITION} --seeds 1"
    )
    terminal.wait_for("is launched with 1 runs")

    terminal.type(f"clear; {program}")
    terminal.wait_for("engine ok", "unlucky-1", "the GPU was lost")

    engine = status(places).pid
    assert engine is not None
    os.kill(engine, signal.SIGKILL)
    terminal.wait_for("engine down", "the GPU was lost")
    terminal.press("q")
    terminal.wait_until(lambda seen: seen.strip().endswith("$"), "the shell again")
    terminal.type(f"clear; {program} engine start && {program} --screen sweep:unlucky-1")
    terminal.wait_for("engine ok", "! i")

    terminal.press("r")
    terminal.wait_for("no, leave it")
    terminal.press("n")
    terminal.wait_until(lambda seen: "no, leave it" not in seen, "the question gone")
    terminal.press("r")
    terminal.wait_for("no, leave it")
    terminal.press("y")
    terminal.wait_for("v 1.05150")

    terminal.press("Enter")
    terminal.wait_for("hello <OSC>", "all done", "attempt 2")
    assert terminal.title() in ("", socket.gethostname())

    terminal.press("q")
    terminal.wait_for("The engine goes on")
    assert status(places).running
    terminal.type(f"clear; {program} runs list")
    terminal.wait_for("finished", "below median")

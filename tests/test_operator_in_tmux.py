"""An operator's day, with the real program in a real terminal: launch, watch, relaunch, grade, export, leave."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlebench_console.engine.control import status, stop
from mlebench_console.engine.places import Places
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
# Its second seed meets a bug of its own, once.
CARELESS = r"""
echo "seed $SEED begins"
if [ "$SEED$ATTEMPT" = 21 ]; then echo 'RuntimeError: the second seed met a bug'; exit 1; fi
cp "$DATA_DIR/sample_submission.csv" "$SUBMISSION_DIR/submission.csv"
"""


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    for name, start in (("unlucky", AGENT), ("careless", CARELESS)):
        folder = tmp_path / "agents" / name
        folder.mkdir(parents=True)
        (folder / "start.sh").write_text(start)
        (folder / "config.yaml").write_text(f"{name}:\n  start: {name}/start.sh\n")
    return tmp_path / "agents"


@pytest.fixture
def terminal(tmux: str, tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmux, tmp_path, columns=120, lines=36)
    yield opened
    opened.close()


@pytest.fixture
def program(places: Places, terminal: Terminal) -> Iterator[str]:
    """The program as it is typed here; whatever engine it started is stopped at the end."""
    places.config_file.touch()
    name = (
        f"{sys.executable} -m mlebench_console.console --state-dir={places.state_dir} --data-dir={places.data_dir}"
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
    terminal.wait_for("is launched with 1 run")

    terminal.type(f"clear; {program}")
    terminal.wait_for("engine ok", "unlucky-1", "the GPU was lost")

    engine = status(places).pid
    assert engine is not None
    os.kill(engine, signal.SIGKILL)
    terminal.wait_for("engine down", "the GPU was lost")
    terminal.press("q")
    terminal.wait_until(lambda seen: seen.strip().endswith("$"), "the shell again")
    terminal.type(f"clear; {program} engine start && {program} --screen sweep:unlucky-1")
    terminal.wait_for("engine ok", "! c")

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
    terminal.wait_for("The engine keeps running")
    assert status(places).running
    terminal.type(f"clear; {program} runs list")
    terminal.wait_for("spooky-author-identification", "below median")


def test_a_day_from_the_launch_to_the_row(
    terminal: Terminal, program: str, agents: Path, tmp_path: Path
) -> None:
    vector = Vector(VECTORS / COMPETITION)
    terminal.type(f"{program} prepare -c {COMPETITION} --raw {vector.unpack_raw(tmp_path / 'raw')}")
    terminal.wait_for(f"{COMPETITION}: prepared")

    terminal.type(f"clear; {program} --screen launch")
    terminal.wait_for("choose an agent", "the engine is not running")
    terminal.press("C-n")
    terminal.wait_for("engine ok")
    what = ("careless", COMPETITION, "3", "10m", "3", "day", "night", str(agents), "v1", "no")
    for typed in (*what, "0", "", "0"):
        terminal.press("C-u")
        terminal.type(typed)
    terminal.wait_for("3 runs", "agent careless in", f"the data of {COMPETITION} are prepared")
    terminal.press("C-l")
    terminal.wait_for("yes, launch")
    terminal.press("y")
    terminal.wait_for("launched")

    terminal.press("C-q")
    terminal.wait_for("The engine keeps running")
    terminal.type(f"clear; {program} --screen sweep:day")
    terminal.wait_until(lambda seen: seen.count("v 1.05150") == 2, "two seeds of three with a score")
    terminal.press("f")
    terminal.wait_for("seed 2")
    terminal.press("l")
    terminal.wait_for("the second seed met a bug")
    terminal.press("Escape")
    terminal.wait_for("v 1.05150")
    terminal.press("r")
    terminal.wait_for("no, leave it", "re-rolled")
    terminal.press("y")
    terminal.wait_until(lambda seen: seen.count("v 1.05150") == 3, "three seeds with a score")

    terminal.press("4")
    terminal.wait_for("some of its letters")
    terminal.type("spooky")
    terminal.type(str(vector.folder / "submissions" / "noisy.csv"))
    terminal.wait_for("0.3177")
    terminal.press("C-q")
    terminal.wait_for("The engine keeps running")
    terminal.type(f"clear; {program} --screen board")
    terminal.wait_for("ours: night", "Famou-Agent 2.0")

    row = tmp_path / "row.csv"
    terminal.press("g", "e")
    terminal.wait_for("Markdown", "CSV")
    terminal.press("Tab")
    terminal.press("w")
    terminal.wait_for("night.csv")
    terminal.press("C-u")
    terminal.type(str(row))
    terminal.wait_for("written to")
    written = row.read_text()
    assert "# complete seeds: 3 of 3\n" in written
    assert written.splitlines()[-1].startswith("own,careless,")
    terminal.press("q")
    terminal.wait_for("The engine keeps running")

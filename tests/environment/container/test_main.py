"""The container's main process: what it tells of its agent's end, when, and that the agent can't."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from mlebench_console.environment.container import output
from mlebench_console.environment.container.main import shell_code
from mlebench_console.environment.container.output import Ending
from tests.engine.harness import eventually
from tests.environment.container import main_program

PATIENCE = 60.0
SOURCES = str(Path(__file__).parents[3] / "src")
SECRET = "sk-very-secret-value-of-a-test"
# Nobody's, so that the agent owns what it makes and nothing else.
USER = "nobody"


@pytest.fixture
def place(root: None) -> Iterator[Path]:
    """A container's folders, with `output` of the agent's own user as for an operator of the same number."""
    agent = pwd.getpwnam(USER)
    # Not below pytest's folders, which let nobody through.
    with TemporaryDirectory(prefix="mlebench-test-main-") as made:
        found = Path(made)
        found.chmod(0o711)
        for name in ("submission", "logs", "code", "home", "own/output"):
            (found / name).mkdir(parents=True)
            os.chown(found / name, agent.pw_uid, agent.pw_gid)
        (found / "launch.json").write_text(json.dumps({"variables": {}, "secrets": [SECRET]}))
        yield found


def command(place: Path, script: str, *, tidy_seconds: float = 60, deadline: float = 60) -> list[str]:
    return [
        *(sys.executable, main_program.__file__, str(tidy_seconds), f"--user={USER}"),
        *(f"--folder={place / 'own' / 'output'}", f"--deadline={deadline}", "--grace=1"),
        *(f"--launch={place / 'launch.json'}", "--", "bash", "-c", script),
    ]


def environment(place: Path) -> dict[str, str]:
    own = {f"{name.upper()}_DIR": str(place / name) for name in ("submission", "logs", "code")}
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": SOURCES,
        "AGENT_DIR": str(place / "home"),
        "OUT": str(place / "own/output"),
        **own,
    }


def run(place: Path, script: str, **options: Any) -> None:
    subprocess.run(command(place, script, **options), env=environment(place), check=False, timeout=PATIENCE)


def told(place: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place / "own" / "output" / name).read_text())
    return found


@pytest.mark.parametrize(
    ("reason", "exit_code", "signal", "code"),
    [
        ("exited", 0, None, 0),
        ("exited", 255, None, 255),
        ("exited", None, 9, 137),
        ("deadline", 7, None, 124),
        ("stopped", None, 9, 143),
    ],
)
def test_an_ending_has_the_exit_code_of_a_shell(
    reason: str, exit_code: int | None, signal: int | None, code: int
) -> None:
    assert shell_code(Ending(reason, exit_code, signal, 1.0, 2.0)) == code


def test_an_agent_of_the_operators_own_number_can_not_write_how_it_ended(place: Path) -> None:
    forge = 'echo forged > "$OUT/run.log"; echo "{}" > "$OUT/warden.json"; touch "$OUT/x"; cat "$OUT/claim"'
    run(place, f'{forge}; chmod 777 "$OUT" "$OUT/.."; cd "$OUT" && echo inside; {forge}; exit 3')
    assert told(place, output.ENDING)["exit_code"] == 3
    lines = (place / "own" / "output" / "run.log").read_text().splitlines()
    assert len(lines) == 11
    assert all("Permission denied" in line for line in lines)
    assert not (place / "own" / "output" / "x").exists()


def test_how_an_agent_ended_is_told_before_what_it_left_is_looked_through_for_a_limited_time(
    place: Path,
) -> None:
    many = "for n in $(seq 3000); do echo x > $CODE_DIR/$n; done; exit 4"
    run(place, many, tidy_seconds=0.01)
    assert told(place, output.ENDING)["exit_code"] == 4
    (problem,) = told(place, output.TIDIED)["problems"]
    assert "going through the files took more than" in problem
    ended, tidied = (
        (place / "own/output" / name).stat().st_mtime_ns for name in ("warden.json", "tidied.json")
    )
    assert ended < tidied


def test_what_an_agent_closed_is_opened_however_deep_and_searched_for_secrets(place: Path) -> None:
    script = f"""
mkdir -p $LOGS_DIR/closed/inner; echo {SECRET} > $LOGS_DIR/closed/inner/file
chmod 000 $LOGS_DIR/closed/inner/file $LOGS_DIR/closed/inner $LOGS_DIR/closed
cd $CODE_DIR; for n in $(seq 40); do d=$(printf '%0250d' $n); mkdir $d; cd $d; done; touch end; chmod 500 .
"""
    run(place, script)
    assert told(place, output.TIDIED) == {"problems": []}
    inner = place / "logs" / "closed" / "inner"
    assert oct(inner.stat().st_mode & 0o777) == "0o777"
    assert (inner / "file").read_text() == "[secret]\n"


def test_an_ending_waits_for_room_on_a_full_disk(place: Path) -> None:
    own = place / "own" / "output"
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(own)]
    subprocess.run(mount, check=True)
    try:
        wait = 'while [ ! -e "$CODE_DIR/go" ]; do sleep 0.05; done; exit 5'
        with subprocess.Popen(command(place, wait), env=environment(place)) as process:
            eventually((own / output.STARTED).exists)
            with (own / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
                while True:
                    filler.write(bytes(4096))
            (place / "code" / "go").touch()
            time.sleep(1)
            assert process.poll() is None
            assert not (own / output.ENDING).exists()
            (own / "filler").unlink()
            assert process.wait(PATIENCE) == 5
        assert told(place, output.ENDING)["exit_code"] == 5
    finally:
        subprocess.run(["umount", "-l", str(own)], check=True)


def test_folders_are_opened_for_the_agent_but_not_what_is_linked_from_there(place: Path) -> None:
    opened, apart = place / "opened", place / "apart"
    for folder in (opened / "deep", apart):
        folder.mkdir(parents=True)
        (folder / "file").write_text("of root")
        (folder / "file").chmod(0o600)
    (opened / "link").symlink_to(apart / "file")
    script = 'echo mine > "$AGENT_DIR/../opened/deep/file" && echo mine > "$AGENT_DIR/../opened/new"'
    options = command(place, script)
    options.insert(options.index("--"), f"--open={opened}")
    subprocess.run(options, env=environment(place), check=False, timeout=PATIENCE)
    assert (opened / "deep" / "file").read_text() == "mine\n"
    assert (opened / "new").is_file()
    assert (apart / "file").stat().st_mode & 0o777 == 0o600


def test_a_shell_takes_the_place_of_the_main_process_as_the_agents_user(place: Path) -> None:
    look = "id -un; grep CapBnd /proc/self/status; pwd; touch here"
    options = [
        sys.executable,
        main_program.__file__,
        "60",
        f"--user={USER}",
        "--shell",
        "--",
        "bash",
        "-c",
        look,
    ]
    done = subprocess.run(
        options, env=environment(place), check=True, timeout=PATIENCE, capture_output=True, text=True
    )
    assert done.stdout.split() == [USER, "CapBnd:", "0000000000000000", str(place / "home")]
    assert not (place / "own" / "output" / output.ENDING).exists()


def test_variables_of_an_agent_take_effect_in_its_programs_alone(place: Path) -> None:
    own = {
        "OWN": "told",
        "HOME": "/own",
        "AGENT_DIR": str(place / "own"),
        "LOGS_DIR": "/nowhere",
        "LD_PRELOAD": "x.so",
    }
    env = environment(place) | {f"{output.FOR_AGENT}{name}": value for name, value in own.items()}
    script = f'env > "$CODE_DIR/own"; echo {SECRET} > {place}/logs/file'
    subprocess.run(command(place, script), env=env, check=True, capture_output=True, timeout=PATIENCE)
    lines = (place / "code" / "own").read_text().splitlines()
    assert {f"{name}={value}" for name, value in own.items()} <= set(lines)
    assert not any(line.startswith(output.FOR_AGENT) for line in lines)
    assert not (place / "own").stat().st_mode & 0o002  # it is the agent's folder by no word of its own
    assert (place / "logs" / "file").read_text() == "[secret]\n"

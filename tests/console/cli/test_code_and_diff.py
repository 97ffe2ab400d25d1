"""`runs code` and `runs diff`: an agent's code at each submission, and what differs between two of them."""

from __future__ import annotations

import difflib
import json
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions import registry
from mlebench_console.console.views import code
from mlebench_console.engine.places import Places
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.code_snapshots import OBJECTS
from mlebench_console.state import runs, submissions
from mlebench_console.state.lifecycle import Outcome
from tests.console.cli.conftest import Cli
from tests.console.world import World
from tests.console.worlds import open_world

SPOOKY = "spooky-author-identification"  # lower is better
HOSTILE = "\x1b]0;owned\x07import os"


@pytest.fixture
def world(places: Places) -> Iterator[World]:
    """Run 1 with three submissions, of which the second is the best, and run 2 of another agent with one."""
    made = open_world(places)
    made.sweep("first", (SPOOKY,), seeds=1)
    made.sweep("second", (SPOOKY,), seeds=1, agent="openhands", limit=3600.0)
    cuts = registry.get(SPOOKY).thresholds
    one = made.launch(made.run("first", SPOOKY, 1), ago=3600)
    for number, score in enumerate((cuts.median, cuts.gold, cuts.bronze), start=1):
        made.snapshot(one, number, score, Outcome.BRONZE, ago=3000 - 600 * number)
        main = "\n".join(["import os", *(f"step {each}" for each in range(20)), f"version {number}"])
        made.code(one, number, {"main.py": main, "same.py": "same\n", "model.bin": b"\0" * number})
    other = made.launch(made.run("second", SPOOKY, 1), ago=3600)
    made.snapshot(other, 1, cuts.gold, Outcome.GOLD, ago=600)
    made.code(other, 1, {"src/train.py": f"{HOSTILE}\n", "same.py": "same\n"}, late=600)
    yield made
    made.database.close()


def test_the_code_of_the_best_submission_is_listed_shown_and_written(
    cli: Cli, world: World, tmp_path: Path
) -> None:
    found = cli("runs", "code", "1", "--json").document()
    assert (found["submission"], found["best"]) == (2, True)
    assert [each["path"] for each in found["files"]] == ["main.py", "same.py"]
    assert [(each["path"], each["why"]) for each in found["left_out"]] == [("model.bin", "it is binary")]
    assert "left out: model.bin: it is binary" in cli("runs", "code", "1").out
    assert cli("runs", "code", "1", "--submission", "3", "--file", "main.py").out.endswith("version 3\n")
    assert re.search(r"  2  best ", cli("runs", "show", "1").out)
    folder = tmp_path / "code"
    assert cli("runs", "code", "1", "-o", folder).code == 0
    assert (folder / "main.py").read_text().endswith("version 2")
    assert sorted(path.name for path in folder.iterdir()) == ["main.py", "same.py"]
    again = cli("runs", "code", "1", "-o", folder)
    assert (again.code, "exists already" in again.err) == (2, True)


def test_two_submissions_differ_in_the_lines_that_were_changed(
    cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = cli("runs", "diff", "1@1", "1@3")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "--- 1@1/main.py",
        "+++ 1@3/main.py",
        "@@ -19,4 +19,4 @@",
        *(f" step {number}" for number in (17, 18, 19)),
        "-version 1  (no line feed at the end)",
        "+version 3  (no line feed at the end)",
        "--- 1@1/model.bin",
        "+++ 1@3/model.bin",
        "# not compared, 1 B and 3 B: it is binary",
    ]
    assert cli("runs", "diff", "1@2", "1@best").code == 0
    assert "+1" in cli("runs", "diff", "--stat", "1@1", "1@3").out
    monkeypatch.setattr(code, "_Budget", partial(code._Budget, lines=1))
    assert "too long to be shown" in cli("runs", "diff", "1@1", "1@3").out
    assert "+1" in cli("runs", "diff", "--stat", "1@1", "1@3").out


def test_two_runs_differ_in_configuration_and_files_and_nothing_of_theirs_reaches_the_terminal(
    cli: Cli, world: World
) -> None:
    ran = cli("runs", "diff", "1", f"second/{SPOOKY}/1")
    assert ran.code == 1
    assert "# agent: aide-o3 -> openhands" in ran.out
    assert "# 2@1: kept 10m after the submission" in ran.out
    assert "# time limit: 24h -> 1h" in ran.out
    assert "--- /dev/null" in ran.out and "+++ 2@1/src/train.py" in ran.out
    assert "\x1b" not in ran.out
    found = json_of(cli("runs", "diff", "1", "2", "--json").out)
    assert {each["path"]: each["status"] for each in found["files"]} == {
        "main.py": "removed",
        "model.bin": "removed",
        "src/train.py": "added",
    }
    assert (found["same"], found["same_files"]) == (False, 1)


def json_of(text: str) -> Any:
    return json.loads(text)


def test_what_a_live_run_has_now_can_be_compared_with_what_it_had(cli: Cli, world: World) -> None:
    attempt = (
        world.places.state_dir
        / cli("runs", "show", "1", "--json").document()["attempts_made"][0]["directory"]
    )
    (attempt / protocol.CODE / "main.py").write_text("new\n")
    ran = cli("runs", "diff", "1@3", "1@now")
    assert (ran.code, "+new" in ran.out) == (1, True)


def test_a_run_of_which_no_code_was_kept_is_shown_as_it_was_left(cli: Cli, world: World) -> None:
    world.sweep("older", (SPOOKY,), seeds=1)
    attempt = world.launch(world.run("older", SPOOKY, 1), ago=7200)
    world.finish(attempt, Outcome.GOLD, 0.2, ago=3600)
    submissions.set_final(world.database, attempt, 1)
    folder = world.places.state_dir / runs.attempt(world.database, attempt).directory
    (folder / protocol.CODE).mkdir()
    (folder / protocol.CODE / "main.py").write_text("left\n")
    found = cli("runs", "code", "3", "--json").document()
    assert [each["path"] for each in found["files"]] == ["main.py"]
    assert "this is what the run has left" in found["note"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("1@9", "run 1 has no submission 9: its attempt 1 has 3 submissions"),
        ("1.2", "run 1 has no attempt 2: it has 1 attempt"),
        ("1@last", "'1@last' is not a run, attempt or submission"),
        ("1@0", "'1@0' is not a run, attempt or submission"),
    ],
)
def test_a_name_that_names_nothing_is_told(cli: Cli, world: World, name: str, told: str) -> None:
    ran = cli("runs", "diff", name, "2")
    assert ran.code == 2
    assert told in ran.err


def test_code_that_is_not_there_any_more_is_told_and_not_guessed(cli: Cli, world: World) -> None:
    folder = (
        world.places.state_dir
        / cli("runs", "show", "1", "--json").document()["attempts_made"][0]["directory"]
    )
    (folder / protocol.CODE_SNAPSHOTS / "1.json").unlink()
    ran = cli("runs", "code", "1", "--submission", "1")
    assert (ran.code, "the code at submission 1 of run 1 is not there" in ran.err) == (3, True)
    ran = cli("runs", "diff", "1@1", "2")
    assert (ran.code, "the code can't be compared" in ran.err) == (3, True)
    assert "# agent: aide-o3 -> openhands" in ran.out
    for path in (folder / protocol.CODE_SNAPSHOTS / OBJECTS).iterdir():
        path.write_bytes(b"x" * path.stat().st_size)
    assert "is damaged" in cli("runs", "diff", "1@2", "1@3").out


@pytest.mark.parametrize("seed", range(40))
def test_compared_lines_make_up_both_files_with_as_few_changes_as_difflib_needs_at_most(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "_CONTEXT", 100)
    chosen = random.Random(seed)
    before = [chosen.choice("abcd") for _ in range(chosen.randrange(40))]
    after = [chosen.choice("abcd") for _ in range(chosen.randrange(40))]
    rows, note = code._rows(before, after, code._Budget())
    assert note == ""
    assert [row.text for row in rows if row.sign != "+"] == before
    assert [row.text for row in rows if row.sign != "-"] == after
    known = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
    assert sum(row.sign == " " for row in rows) >= sum(block.size for block in known.get_matching_blocks())


def test_what_an_agent_wrote_to_be_slow_or_large_to_compare_is_told_instead() -> None:
    many = [str(number) for number in range(50)]
    rows, note = code._rows(["x"] * 50, many, code._Budget(steps=100))
    assert "too different" in note
    assert [row.sign for row in rows] == ["-"] * 50 + ["+"] * 50
    budget = code._Budget(lines=120)
    assert code._rows(["x"] * 50, many, budget)[0]
    rows, note = code._rows(["x"] * 50, many, budget)
    assert (rows, "too long" in note) == ([], True)

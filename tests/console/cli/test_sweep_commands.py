"""A sweep from its file to its removal, by commands alone."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tests.conformance.trees import Vector
from tests.console.cli.conftest import Cli
from tests.console.cli.test_with_an_engine import engine, wait_for

__all__ = ["engine"]  # the fixture


def test_a_sweep_lives_from_its_file_to_its_removal(
    cli: Cli, engine: None, prepared: Vector, tmp_path: Path
) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(f'agent = "dummy"\ncompetitions = "{prepared.id}"\nseeds = 2\nminutes = 5\n')
    looked = cli("sweep", "launch", file, "--name", "mine", "--dry-run", "--json").document()
    assert looked["can_launch"] and [run["seed"] for run in looked["planned"]] == [1, 2]
    assert cli("sweep", "list", "--json").document() == []

    launched = cli("sweep", "launch", file, "--name", "mine", "--concurrency", "2", "--priority", "3")
    assert "launched with 2 runs" in launched.out
    wait_for(cli, "mine", "finished")
    told = tomllib.loads(cli("sweep", "show", "mine", "--toml").out)
    assert (told["agent"], told["seeds"], told["concurrency"], told["priority"]) == ("dummy", 2, 2, 3)
    again = tmp_path / "again.toml"
    again.write_text(cli("sweep", "show", "mine", "--toml").out)
    assert "nothing was launched" in cli("sweep", "launch", again).out
    assert "2 runs" in cli("sweep", "launch", again, "--name", "other", "--dry-run").out
    assert "about" in cli("sweep", "launch", again, "--name", "other", "--dry-run").out
    assert "has priority -1" in cli("sweep", "priority", "mine", "--", "-1").out

    noted = f"mine/{prepared.id}/1"
    assert cli("runs", "note", noted, "a good seed").out == "1 run is noted\n"
    assert "tagged night, gpu" in cli("runs", "tag", f"{noted},mine/{prepared.id}/2", "night", "gpu").out
    assert "no longer tagged gpu" in cli("runs", "tag", noted, "gpu", "--remove").out
    both = cli("runs", "tag", f"{noted},mine/{prepared.id}/2", "--json").document()
    assert [[known["name"] for known in one["tags"]] for one in both] == [["night"], ["night", "gpu"]]
    (found,) = cli("runs", "list", "--filter", "!tag:gpu note:seed", "--json").document()
    assert (found["note"], [tag["name"] for tag in found["tags"]]) == ("a good seed", ["night"])
    assert "class:crash" in cli("runs", "filters", "mine", "tag:gpu", "!class:crash").out
    assert [run["seed"] for run in cli("runs", "list", "--filter", "mine", "--json").document()] == [2]
    assert "#night  a good seed" in cli("runs", "list").out
    assert "can't be a tag" in cli("runs", "tag", noted, "two words").err
    assert "no field 'klass:'" in cli("runs", "list", "--filter", "klass:x").err
    cli("runs", "filters", "mine", "--remove")
    assert cli("runs", "filters", "--json").document() == {}
    assert "sweep mine is noted" in cli("sweep", "note", "mine", "the baseline").out
    cli("sweep", "tag", "mine", "final")
    (listed,) = cli("sweep", "list", "--json").document()
    assert (listed["note"], listed["tags"][0]["name"]) == ("the baseline", "final")
    assert cli("sweep", "note", "mine", "--remove", "--json").document()["sweep_id"] == "mine"

    misspelt = cli("runs", "show", "mine/spoky/1")
    assert misspelt.code == 2 and f"Did you mean mine/{prepared.id}/1" in misspelt.err
    assert "has no failed run" in cli("sweep", "retry", "mine").err
    kept = cli("sweep", "rm", "mine", "--yes")
    assert kept.code == 2 and "2 results" in kept.err and "--with-results" in kept.err
    unasked = cli("sweep", "rm", "mine", "--with-results")
    assert unasked.code == 2 and "--yes" in unasked.err
    assert "whole name: mine" in cli("sweep", "rm", "min", "--yes").err

    groups = tmp_path / "groups"
    assert cli("export", "runs", "mine", groups).code == 0
    (groups / "unfinished").mkdir()
    done = cli("sweep", "import", groups, "--name", "copy", "--json")
    assert done.err == "left out, there is no metadata.json in them: unfinished\n"
    imported = done.document()
    assert imported["sweep_id"] == "copy" and len(imported["runs"]) == 2
    assert imported["left_out"] == ["unfinished"]
    own, copied = (wait_for(cli, name, "finished") for name in ("mine", "copy"))
    assert [run["score"] for run in own] == [run["score"] for run in copied]

    removed = cli("sweep", "rm", "mine", "--with-results", "--yes", "--json").document()
    assert removed["lost"]["results"] == 2
    assert [sweep["id"] for sweep in cli("sweep", "list", "--json").document()] == ["copy"]


def test_a_misspelt_competition_is_told_with_the_one_that_was_meant(cli: Cli, tmp_path: Path) -> None:
    submission = tmp_path / "x.csv"
    submission.touch()
    told = cli("sweep", "launch", "--agent", "dummy", "--competitions", "leaf-classification,spoky")
    assert told.code == 2 and "Did you mean spooky-author-identification" in told.err
    for command in (
        ["competitions", "show", "spoky"],
        ["prepare", "-c", "spoky"],
        ["grade-sample", str(submission), "spoky"],
    ):
        told = cli(*command)
        assert told.code == 2 and "spooky-author-identification" in told.err, command

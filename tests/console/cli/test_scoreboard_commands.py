"""From reports and runs to rows, bundles and comparisons, by command."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.engine.places import Places
from mlebench_console.engine.rungroups import MAPPING_NAME, METADATA
from mlebench_console.engine.scoreboard.audit import audit_of
from mlebench_console.environment.runner import protocol
from mlebench_console.state import database as state_database
from mlebench_console.state import experiments, runs
from mlebench_console.state.database import Database
from mlebench_console.state.lifecycle import Outcome
from tests.conditions import changed
from tests.console import worlds
from tests.console.cli.conftest import Cli
from tests.engine.scoreboard.worlds import SPEC, finish, sweep

OPERAND = Path(__file__).parents[2] / "engine/scoreboard/operand_row.csv"
PUBLISHED = ["63.64 ± 0.00", "33.33 ± 0.88", "20.00 ± 0.00", "39.56 ± 0.44"]


@pytest.fixture
def world(places: Places) -> Iterator[Database]:
    """Two sweeps of two editions that were put into one experiment, and one that stands alone."""
    places.state_dir.mkdir()
    database = state_database.open_for_writing(places.state_dir)
    for name, spec, outcome in (
        ("first", SPEC, Outcome.GOLD),
        ("second", changed(SPEC, edition="corrected"), Outcome.GOLD),
        ("alone", replace(SPEC, seeds=2), Outcome.BELOW_MEDIAN),
    ):
        for run in sweep(database, name, spec):
            finish(database, run, outcome, score=0.0)
    for name in ("first", "second"):
        experiments.assign(database, "mixed", name, now=4.0)
    yield database
    database.close()


def test_a_published_row_is_reproduced_by_one_command(cli: Cli) -> None:
    told = cli("aggregate", OPERAND, "--pad-missing").out
    assert [cell for cell in PUBLISHED if cell in told] == PUBLISHED
    lines = cli("aggregate", OPERAND, "--pad-missing", "--json").document()["lines"]
    (low, *_rest) = lines
    assert low["measures"]["any_medal"]["seeds"] == 3
    assert low["measures"]["any_medal"]["interval_95"] == pytest.approx([63.636363, 63.636363])
    # Its three seeds agree, which leaves no standard error; 66 runs are still not certain.
    assert low["measures"]["any_medal"]["wilson_95"] == pytest.approx([51.6, 74.2], abs=0.1)


def test_a_split_that_is_not_covered_is_refused_without_padding(cli: Cli) -> None:
    refused = cli("aggregate", OPERAND, "--split", "high")
    assert refused.code == 3
    assert "fewer than 1 results" in refused.err
    assert cli("aggregate", OPERAND, "--split", "low", "--num-seeds", "1").code == 0


def test_a_users_split_works_as_the_built_in_ones(cli: Cli, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("# two\nherbarium-2020-fgvc7\naptos2019-blindness-detection\n")
    (line,) = cli("aggregate", OPERAND, "--split", mine, "--json").document()["lines"]
    assert line["measures"]["any_medal"] == {
        "mean": 50.0,
        "sem": 0.0,
        "seeds": 3,
        "interval_95": [50.0, 50.0],
        "wilson_95": pytest.approx([18.8, 81.2], abs=0.1),
    }
    exported = cli("export", "row", OPERAND, "--pad", "--split", mine).out
    assert str(mine) in exported.splitlines()[0]


def test_a_row_can_be_taken_apart(cli: Cli) -> None:
    assert "Seq->Seq" in cli("aggregate", OPERAND, "--pad", "--by", "category").out
    told = cli("aggregate", OPERAND, "--by", "competition", "--split", "low").out
    assert len(told.splitlines()) == 2 + 22


def test_editions_are_not_mixed_and_it_is_said_what_differs(
    cli: Cli, world: Database, tmp_path: Path
) -> None:
    for command in (("aggregate", "mixed"), ("export", "bundle", "mixed", tmp_path / "bundle")):
        refused = cli(*command)
        assert refused.code == 2
        assert "mixed editions: corrected, v1" in refused.err
    exported = cli("export", "row", "mixed")
    assert exported.code == 2
    assert "No numbers: mixed editions: corrected, v1" in exported.out
    assert cli("compare", "first", "second").code == 2


def test_a_row_is_exported_in_every_form(cli: Cli, tmp_path: Path) -> None:
    flags = ("--pad", "--agent", "Operand | ensemble", "--llms", "gpt_5", "--source-code", "--no-reports")
    markdown = cli("export", "row", OPERAND, *flags).out.splitlines()
    cells = [cell.strip() for cell in markdown[2].replace(r"\|", "/").strip("|").split("|")]
    assert cells == ["Operand / ensemble (operand_row)", "gpt_5", *PUBLISHED, "", "", "✓", "X"]
    assert "padding" in "\n".join(markdown)
    (row,) = csv.DictReader(
        line
        for line in cli("export", "row", OPERAND, *flags, "--format", "csv").out.splitlines()
        if not line.startswith("#")
    )
    assert (row["all_mean"], row["all_sem"], row["padded_missing_seeds"]) == ("39.56", "0.44", "yes")
    document = cli("export", "row", OPERAND, *flags, "--json").document()
    assert document == json.loads(cli("export", "row", OPERAND, *flags, "--format", "json").out)
    assert document["columns"]["all"]["measures"]["gold"]["mean"] == pytest.approx(11.5555555)
    assert document["disclosure"]["edition"] == "v1"
    latex = cli("export", "row", OPERAND, *flags, "--format", "latex").out
    assert r"gpt\_5 & 63.64 $\pm$ 0.00" in latex
    target = tmp_path / "row.md"
    written = cli("export", "row", OPERAND, *flags, "--output", target)
    assert written.out == f"written to {target}\n"
    assert target.read_text().splitlines()[:3] == markdown[:3]
    lacking = cli("export", "row", OPERAND).err
    assert (
        "not ready for the leaderboard: " in lacking
        and "their names are missing: --llms names them" in lacking
    )


def test_what_goes_wrong_while_writing_is_told(cli: Cli, tmp_path: Path) -> None:
    failed = cli("export", "row", OPERAND, "--pad", "--output", tmp_path / "no" / "row.md")
    assert failed.code == 3
    assert "can't be written: No such file or directory" in failed.err


def test_own_runs_go_out_as_run_groups_and_come_back_as_an_import(
    cli: Cli, world: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "runs"
    told = {"folder": str(folder), "runs": 2, "groups": 2}
    assert cli("export", "runs", "alone", folder, "--json").document() == told
    assert cli("export", "runs", "alone", folder).code == 2
    (folder / MAPPING_NAME).unlink()
    (folder / "not-graded").mkdir()
    (folder / "not-graded" / METADATA).touch()
    for told_of in (cli("aggregate", folder), cli("import", "reports", "other", folder)):
        assert told_of.code == 0
        lines = told_of.err.replace("; ", "\n").splitlines()
        assert lines == ["reported, not graded", "left out, run groups without a grading report: not-graded"]
    assert "not-graded" in cli("aggregate", folder, "--json").document()["note"]
    back = cli("import", "reports", "back", folder, "--agent", "dummy", "--hours", "2", "--json").document()
    assert (back["name"], back["results"], back["files"], back["conflict"]) == ("back", 2, 2, "")
    rows = {row["name"]: row for row in cli("scoreboard", "--own", "--json").document()}
    assert rows["back"]["table"] == "imported"
    assert rows["back"]["own"] == rows["alone"]["own"]
    assert "imported" in cli("scoreboard", "--own").out
    assert cli("import", "remove", "back", "--json").document() == {"name": "back"}
    assert cli("import", "remove", "back").code == 2


def test_a_bundle_is_made_and_read_again(cli: Cli, world: Database, tmp_path: Path) -> None:
    made = cli("export", "bundle", "alone", tmp_path / "bundle", "--with-files", "--json").document()
    assert made == {"folder": str(tmp_path / "bundle"), "manifest": str(tmp_path / "bundle/manifest.json")}
    assert cli("aggregate", tmp_path / "bundle", "--by", "competition").code == 0
    assert cli("import", "reports", "handed-in", tmp_path / "bundle").code == 0
    (tmp_path / "bundle" / "row.md").write_text("changed")
    assert "row.md" in cli("aggregate", tmp_path / "bundle").err
    verified = cli("verify", "bundle", tmp_path / "bundle")
    assert verified.code == 1
    assert "differs: row.md is missing, changed or not listed" in verified.err


def test_a_run_is_audited_by_command(cli: Cli, world: Database) -> None:
    run = runs.of_all_sweeps(world)[0]
    told = json.loads(cli("runs", "audit", str(run.id), "--json").out)
    assert told["run"]["id"] == run.id
    assert told["differences"] == [one.text for one in audit_of(world, run.id).differences()]
    assert f"agent    {told['sweep']['spec']['agent_id']}" in cli("runs", "audit", str(run.id)).out


def test_a_newer_table_of_published_rows_is_shown(cli: Cli, tmp_path: Path) -> None:
    text = cli("scoreboard", "--json").document()
    assert len(text) == 30
    newer = tmp_path / "newer.csv"
    newer.write_text(
        "table,agent,llms,low_mean,low_sem,medium_mean,medium_sem,high_mean,high_sem,all_mean,all_sem,hours,date,"
        "source_available,reports_available,padded_missing_seeds,note\n"
        "main,Newcomer,x,99,0,99,0,99,0,99,0,24,2027-01-01,yes,yes,no,\n"
    )
    assert "1 published rows" in cli("import", "published", newer).out
    taken = cli("import", "published", newer, "--json").document()
    assert taken == {"rows": 1, "newest": "2027-01-01"}
    assert [row["name"] for row in cli("scoreboard", "--json").document()] == ["Newcomer"]


def test_two_experiments_are_compared(cli: Cli, world: Database) -> None:
    told = cli("compare", "first", "alone").out
    assert "leaf-classification" in told
    assert "+100.0" in told
    found = cli("compare", "first", "alone", "--json").document()
    assert found["overall"]["p_value"] == 1.0
    assert cli("compare", "first", "alone", "--measure", "fame").code == 2


def test_what_lies_behind_a_row_is_told(cli: Cli, world: Database) -> None:
    told = cli("insight", OPERAND).out
    assert "125 runs: 26 gold" in told
    assert "1 of 38 competitions with a medal in some seeds, not all" in told
    document = cli("insight", "alone", "--json").document()
    assert [one["competitions"] for one in document["pass_at_k"]] == [1, 1]
    assert [point["full"] for point in document["shorter_limits"]] == [False, True]
    assert document["effort"]["gpu_hours"] == 0.0
    assert cli("insight", "mixed", "--json").document()["shorter_limits"] == []


def test_a_page_and_plots_are_written(cli: Cli, world: Database, places: Places, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli("report", "alone", "-o", page, "--json").document() == {"files": [str(page)]}
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")
    assert cli("report", OPERAND, "--pad", "-o", tmp_path / "operand.html").code == 0
    drawn = cli("export", "plots", "alone", tmp_path / "plots")
    assert drawn.code == 0
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "categories.svg",
        "time.svg",
        "pass.svg",
        "endings.svg",
        "detectable.svg",
    }
    assert cli("export", "plots", "alone", tmp_path / "plots", "--format", "bmp").code == 2
    assert cli("export", "plots", "mixed", tmp_path / "plots").code == 2


def test_the_row_in_the_readme_is_what_is_exported(cli: Cli) -> None:
    flags = ("--agent", "Operand ensemble", "--llms", "gpt-5 (low verbosity/effort)", "--hours", "24")
    more = ("--date", "2025-10-06", "--no-source-code", "--reports")
    exported = cli("export", "row", OPERAND, "--pad", *flags, *more).out.splitlines()
    assert "\n".join(exported[:3]) in (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")


def test_a_price_makes_hours_a_cost_and_without_one_none_is_told(cli: Cli, places: Places) -> None:
    worlds.scored(places).database.close()
    assert "cost:" not in cli("insight", "aide-o3").out
    assert "cost: 757.62 USD, 22.96 for a medal" in cli("insight", "aide-o3", "--run-hour", "0.5").out
    places.config_file.parent.mkdir(parents=True, exist_ok=True)
    places.config_file.write_text('[prices]\nrun_hour = 1\ncurrency = "EUR"\n')
    document = cli("insight", "aide-o3", "--json").document()
    assert document["cost"]["total"] == 1515.25 and document["cost"]["currency"] == "EUR"


def test_an_audit_has_the_hash_of_the_code_at_each_submission_and_finds_what_was_changed_since(
    cli: Cli, places: Places
) -> None:
    world = worlds.coded(places)
    run = runs.of_all_sweeps(world.database)[0]
    attempt = runs.latest_attempt(world.database, run.id)
    assert attempt is not None
    folder = places.state_dir / attempt.directory / protocol.CODE_SNAPSHOTS
    audited = json.loads(cli("runs", "audit", str(run.id), "--json").out)
    hashes = [one["code_sha256"] for one in audited["attempts"][0]["submissions"]]
    assert hashes == [hashlib.sha256((folder / f"{n}.json").read_bytes()).hexdigest() for n in (1, 2, 3)]
    assert not any("the code at" in text for text in audited["differences"])
    told = cli("runs", "audit", str(run.id)).out
    assert all(digest in told for digest in hashes)
    kept = next(
        each for each in json.loads((folder / "2.json").read_text())["files"] if each["path"] == "main.py"
    )
    (folder / "objects" / kept["sha256"]).write_text("something else")
    found = json.loads(cli("runs", "audit", str(run.id), "--json").out)["differences"]
    assert "the code at submission 2 of attempt 1: main.py is not what was kept" in found


def test_costs_of_models_are_told_by_competition_and_in_comparisons(cli: Cli, places: Places) -> None:
    worlds.counted(places).database.close()
    header, *lines = cli("aggregate", "aide-counted", "--by", "competition").out.splitlines()[1:]
    assert "tokens a run" in header and "USD a run" in header and "USD a medal" in header
    told = cli("aggregate", "aide-counted", "--by", "competition", "--json").document()["lines"]
    for name, line in zip((one["name"] for one in told), lines, strict=False):
        assert line.split()[0] == name
    costs = {one["name"]: one["model_costs"] for one in told}
    assert all(one["measured"] and one["total"] > 0 for one in costs.values() if one["measured"])
    assert any(one["measured"] for one in costs.values())
    assert "USD" not in cli("aggregate", "aide-counted").out
    compared = cli("compare", "aide-counted", "aide-counted", "--everything").out
    assert "models of A: 733k tokens and 0.87 USD a run, 2.06 USD a medal" in compared
    assert "A USD a run" in compared and "B USD a run" in compared


def test_rows_of_the_additional_table_are_apart_and_a_narrow_terminal_has_shorter_figures(
    cli: Cli, world: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, _, additional = cli("scoreboard").out.partition("additional table: ")
    assert "Famou-Agent 2.0" in main and "Disarray" not in main and "Disarray" in additional
    assert "2026-02-23" in main
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    narrow = cli("scoreboard").out
    assert "±" not in narrow.partition("published")[2].splitlines()[3]
    assert all(len(line) <= 80 for line in narrow.splitlines())

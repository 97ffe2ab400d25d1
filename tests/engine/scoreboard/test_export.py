"""What is handed in gives the same row to whoever reads it by MLE-bench's rules, and shows any change."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mlebench_console.competitions.registry import splits
from mlebench_console.engine.scoreboard.aggregation import measures_on, row_of
from mlebench_console.engine.scoreboard.export import (
    MANIFEST,
    RUNS,
    Disclosure,
    RowFormat,
    disclose,
    row_text,
    shortcomings,
    verify_bundle,
    write_bundle,
    write_runs,
)
from mlebench_console.engine.scoreboard.integrity import IntegritySummary, LayerCounts
from mlebench_console.engine.scoreboard.model import COLUMNS, Cell, Evidence, Measure, Row
from mlebench_console.engine.scoreboard.own_runs import find_evidence
from mlebench_console.engine.scoreboard.reports import load_evidence
from mlebench_console.foundation.measurements import Hardware
from mlebench_console.foundation.problems import DataProblem, ProblemRecord, UsageProblem
from mlebench_console.state import database as state_database
from mlebench_console.state import datasets, runs, transitions
from mlebench_console.state.database import Database
from mlebench_console.state.integrity import Layer
from mlebench_console.state.lifecycle import FailureClass, Outcome
from mlebench_console.state.records import DatasetState
from mlebench_console.state.transitions import Failure
from tests.engine.scoreboard.independent import read_row
from tests.engine.scoreboard.making import CACTUS, LEAF, SPOOKY, evidence
from tests.engine.scoreboard.worlds import SPEC, fail, finish, sweep

OPERAND = Path(__file__).parent / "operand_row.csv"
OTHERS = ("denoising-dirty-documents", "dog-breed-identification", "plant-pathology-2020-fgvc7")
SPLITS = {column: list(splits()[split]) for column, split in COLUMNS.items()}


def bundle(evidence: Evidence, folder: Path, *, pad: bool) -> Path:
    row = row_of(evidence, pad_missing=pad)
    return write_bundle(folder, evidence, row, now=1e9).parent


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    (tmp_path / "state").mkdir()
    opened = state_database.open_for_writing(tmp_path / "state")
    yield opened
    opened.close()


def test_a_published_row_survives_the_bundle_read_by_the_rules_alone(tmp_path: Path) -> None:
    folder = bundle(load_evidence([OPERAND]), tmp_path / "bundle", pad=True)
    read = read_row(folder / RUNS, "operand_row", SPLITS, pad=True)
    assert read == {
        "low": ("63.64 ± 0.00", 3),
        "medium": ("33.33 ± 0.88", 3),
        "high": ("20.00 ± 0.00", 3),
        "all": ("39.56 ± 0.44", 3),
    }
    assert (
        row_of(load_evidence([folder]), pad_missing=True).columns
        == row_of(load_evidence([OPERAND]), pad_missing=True).columns
    )


@pytest.mark.parametrize("pad", [False, True])
def test_own_runs_with_all_endings_give_the_same_row_through_the_bundle(
    database: Database, tmp_path: Path, pad: bool
) -> None:
    """A seed lost in the middle, a crash and an invalid file must not shift what counts as which seed."""
    members = ("leaf-classification", "spooky-author-identification")
    endings = [Outcome.GOLD, Outcome.INVALID, None, Outcome.NO_SUBMISSION, Outcome.BRONZE, FailureClass.CRASH]
    for run, ending in zip(
        sweep(database, "mine", replace(SPEC, competitions=members, seeds=3)), endings, strict=True
    ):
        if isinstance(ending, Outcome):
            finish(database, run, ending)
        else:
            fail(database, run, ending or FailureClass.INFRASTRUCTURE)
    evidence = find_evidence(database, "mine")
    folder = bundle(evidence, tmp_path / "bundle", pad=pad)
    (cell, seeds) = read_row(folder / RUNS, "mine", {"own": list(members)}, pad=pad)["own"]
    own = row_of(evidence, pad_missing=pad).own
    assert own is not None
    assert (str(own.cell), own.cell.n if own.cell else 0) == (cell, seeds)
    assert seeds == (3 if pad else 2)


@pytest.mark.parametrize("exported_padded", [False, True])
def test_a_padded_row_has_the_error_that_mle_benchs_padding_gives_the_same_runs(
    tmp_path: Path, exported_padded: bool
) -> None:
    """The third of a split's medals lost its first seed: one medal moves to another seed, and so does the error."""
    found = evidence("e", {LEAF: ".+-", SPOOKY: "-+-", CACTUS: "---", **dict.fromkeys(OTHERS, "---")})
    members = found.competitions
    write_runs(tmp_path / RUNS, found, pad_missing=exported_padded, now=1e9)
    ours = measures_on(found, members, pad_missing=True)[Measure.ANY_MEDAL]
    assert (str(ours), ours.n) == ("11.11 ± 5.56", 3)
    assert read_row(tmp_path / RUNS, "e", {"own": list(members)}, pad=True)["own"] == (str(ours), 3)


def test_a_changed_added_or_missing_file_is_named(tmp_path: Path) -> None:
    folder = bundle(load_evidence([OPERAND]), tmp_path / "bundle", pad=True)
    assert verify_bundle(folder)["experiment_id"] == "operand_row"
    row = folder / "row.md"
    text = row.read_text()
    row.write_text(text.replace("63.64", "73.64"))
    with pytest.raises(DataProblem, match=r"row\.md"):
        verify_bundle(folder)
    row.write_text(text)
    (folder / "more").touch()
    with pytest.raises(DataProblem, match="more"):
        load_evidence([folder])
    (folder / MANIFEST).write_text("{}")
    with pytest.raises(DataProblem, match="is not a bundle"):
        verify_bundle(folder)


def test_a_bundle_replaces_nothing_and_a_conflict_is_not_handed_in(tmp_path: Path) -> None:
    evidence = load_evidence([OPERAND])
    folder = bundle(evidence, tmp_path / "bundle", pad=True)
    with pytest.raises(UsageProblem, match="exists"):
        bundle(evidence, folder, pad=True)
    with pytest.raises(UsageProblem, match="mixed editions"):
        bundle(replace(evidence, conflict="mixed editions: corrected, v1"), tmp_path / "other", pad=True)
    assert not (tmp_path / "other").exists()


def test_files_of_own_runs_come_along_and_an_agents_links_do_not(database: Database, tmp_path: Path) -> None:
    (run,) = sweep(database, "mine", SPEC)
    finish(database, run, Outcome.GOLD, score=0.0)
    attempt = runs.latest_attempt(database, run.id)
    assert attempt is not None
    state_dir = database.path.parent
    folder = state_dir / attempt.directory
    for name in ("output/run.log", "logs/agent.log", "code/deep/train.py", "recorded_calls.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (state_dir / "1.csv").write_text("id\n1\n")
    secret = tmp_path / "secret"
    secret.write_text("answers")
    (folder / "logs" / "link").symlink_to(secret)
    (folder / "code" / "linked").symlink_to(tmp_path, target_is_directory=True)
    evidence = find_evidence(database, "mine")
    row = row_of(evidence)
    write_bundle(tmp_path / "bundle", evidence, row, now=1e9, with_files=True)
    (group,) = (tmp_path / "bundle" / RUNS).glob("*_run-group_dummy")
    metadata = json.loads((group / "metadata.json").read_text())
    ((run_id, told),) = metadata["runs"].items()
    assert (told, run_id.partition("_")[0]) == ({"success": True}, "leaf-classification")
    found = {str(path.relative_to(group / run_id)) for path in (group / run_id).rglob("*") if path.is_file()}
    assert found == {
        *("run.log", "logs/agent.log", "code/deep/train.py", "submission/submission.csv"),
        "recorded_calls.jsonl",
    }
    verify_bundle(tmp_path / "bundle")


def test_images_and_isolation_are_told_as_the_runner_reported_them(database: Database) -> None:
    told, silent = sweep(database, "mine", replace(SPEC, seeds=2))
    machine = Hardware("A processor", 36, 440 << 30, ("NVIDIA A10, 24 GiB",))
    finish(database, told, Outcome.GOLD, score=0.0, image="sha256:abc", hardware=machine)
    finish(database, silent, Outcome.GOLD, score=0.0)
    evidence = find_evidence(database, "mine")
    found = disclose(evidence, row_of(evidence))
    assert (found.images, found.isolated) == (("sha256:abc",), (2, 2))
    assert found.machines == ("36 x A processor, 440 GiB, 1 x NVIDIA A10, 24 GiB",)
    facts = dict(found.facts())
    assert facts["agent images"] == "sha256:abc"
    assert facts["machines"] == found.machines[0]


def test_what_nobody_can_have_any_more_is_disclosed_and_stays_in_the_denominator(database: Database) -> None:
    (run,) = sweep(database, "mine", SPEC)
    finish(database, run, Outcome.GOLD, score=0.0)
    gone = "mlsp-2013-birds"
    for name in (gone, SPEC.competitions[0]):  # one that there are runs of counts by them
        datasets.set_state(
            database,
            name,
            "v1",
            DatasetState.UNAVAILABLE,
            now=0,
            problem=ProblemRecord("not_available", "it answered 404"),
        )
    evidence = find_evidence(database, "mine")
    row = row_of(evidence, pad_missing=True)
    facts = dict(disclose(evidence, row).facts())
    assert (
        facts["of those no longer available"] == f"1: {gone} (no longer offered by Kaggle, asked 1970-01-01)"
    )
    assert facts["competitions of the 75 without a run"].startswith("74: ")
    assert row.columns["low"].of == 22
    assert row.columns["low"].cell is not None
    assert row.columns["low"].cell.mean == pytest.approx(100 / 22)


HOSTILE = "a|b\n<img>\x1b]0;x\x07\u202e%_&"


def made(found: Evidence, *, pad: bool = False) -> tuple[Row, Disclosure]:
    row = row_of(found, pad_missing=pad)
    return row, disclose(found, row)


def hostile() -> tuple[Row, Disclosure]:
    found = evidence("e", {LEAF: "+.", SPOOKY: "-+"}, agent=HOSTILE)
    trials = tuple(replace(trial, text=HOSTILE, rerolls=1) for trial in found.trials)
    return made(replace(found, trials=trials, llms=HOSTILE, note=HOSTILE))


@pytest.mark.parametrize("form", [RowFormat.MARKDOWN, RowFormat.CSV, RowFormat.LATEX])
def test_no_control_character_gets_through(form: RowFormat) -> None:
    text = row_text(*hostile(), form)
    assert all(char.isprintable() or char == "\n" for char in text)


def test_a_name_can_break_no_table() -> None:
    heading, _rule, line, *_rest = row_text(*hostile()).splitlines()
    assert line.replace(r"\|", "").count("|") == heading.count("|")
    assert "<img>" not in line
    (entry,) = csv.DictReader(
        text for text in row_text(*hostile(), RowFormat.CSV).splitlines() if not text.startswith("#")
    )
    assert entry["llms"].startswith("a|b <img>")
    latex = row_text(*hostile(), RowFormat.LATEX).splitlines()
    (body,) = [text for text in latex if not text.startswith("%")]
    assert body.replace(r"\&", "").count("&") == 7
    assert body.endswith(r"\\")
    assert json.loads(row_text(*hostile(), RowFormat.JSON))["llms"] == HOSTILE


def test_a_name_is_no_formula_in_a_spreadsheet() -> None:
    found = evidence("e", {LEAF: "+.", SPOOKY: "-+"}, agent="@SUM(1)")
    text = row_text(*made(replace(found, llms="=cmd|' /C calc'!A0", note="-1+1")), RowFormat.CSV)
    (entry,) = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    assert (entry["agent"], entry["llms"], entry["note"]) == ("'@SUM(1)", "'=cmd|' /C calc'!A0", "'-1+1")


def test_a_name_is_no_image_or_link_and_breaks_no_cell_of_a_table_in_markdown() -> None:
    found = replace(evidence("e", {LEAF: "+.", SPOOKY: "-+"}), llms=r"\![x](http://spy/a.png) b\|c")
    heading, _rule, line, *_rest = row_text(*made(found)).splitlines()
    assert r"\\!\[x](http://spy/a.png) b\\\|c" in line
    bare = re.sub(r"\\.", "", line)  # as Markdown reads it
    assert "[" not in bare
    assert bare.count("|") == heading.count("|")


@pytest.mark.parametrize("form", [RowFormat.MARKDOWN, RowFormat.LATEX])
def test_what_speaks_against_a_row_ends_no_comment_and_makes_no_element(form: RowFormat) -> None:
    row, disclosure = made(evidence("e", {LEAF: "+.", SPOOKY: "-+"}))
    text = row_text(replace(row, conflict="models differ: <img src=x>\n\\input{secret}"), disclosure, form)
    (told,) = (line for line in text.splitlines() if "No numbers" in line)
    assert "secret" in told
    assert form is RowFormat.LATEX or "<img" not in told


def test_everything_that_must_be_told_is_told() -> None:
    found = evidence("e", {LEAF: "+.", SPOOKY: "-+"}, hours=24.0, hardware="1 GPU", network="open")
    rerolled = replace(found.trials[0], rerolls=1)
    row, disclosure = made(replace(found, trials=(rerolled, *found.trials[1:])))
    told = dict(replace(disclosure, images=("sha256:abc",), isolated=(3, 4)).facts())
    assert told["edition"] == "v1"
    assert told["agent images"] == "sha256:abc"
    assert told["complete seeds"] == "1"
    assert told["missing results"] == "left out"
    assert told["re-rolled seeds"] == f"1: {LEAF}, seed 1"
    assert told["runs that do not count"] == f"1: {LEAF}, seed 2: why"
    assert told["competitions of the 75 without a run"].startswith("73: ")
    assert told["known defects that touch it"] == f"2: {LEAF}; {SPOOKY}"
    assert (told["time limit"], told["hardware per run"], told["network policy"]) == ("24 h", "1 GPU", "open")
    assert (told["isolated runs"], told["test-set feedback"]) == ("3 of 4", "no")
    loose = dict(replace(disclosure, isolated=(3, 4), unenforced=("processors", "shared_memory")).facts())
    assert loose["isolated runs"] == "3 of 4; limits not enforced: processors, shared memory"
    by = dict(replace(disclosure, isolated=(4, 4), runtimes=("apptainer", "bubblewrap")).facts())
    assert by["isolated runs"] == "4 of 4, by apptainer, bubblewrap"
    text = row_text(row, disclosure)
    assert all(name in text for name in told)


def test_a_part_of_a_split_is_no_number_and_its_own_competitions_are() -> None:
    cells = row_text(*made(evidence("e", {LEAF: "+", SPOOKY: "-"}))).splitlines()[2]
    assert "2/22 run" in cells
    assert cells.endswith("| 50.00 (1 seed) |")


def test_padding_and_demos_carry_their_footnotes() -> None:
    padded = row_text(*made(evidence("e", {LEAF: "+", SPOOKY: "-."}, data="demo"), pad=True))
    assert "*Computed by padding incomplete seeds with failing scores.*" in padded
    assert "*Synthetic data: a demo, not a result.*" in padded


def test_what_a_row_lacks_before_it_could_be_handed_in_is_listed_with_what_follows() -> None:
    found, disclosure = made(evidence("e", {LEAF: "+", CACTUS: "-"}))
    told = dict(shortcomings(found, disclosure))
    assert told["competitions"] == "73 of 75 have no run: no figure for Low, Medium, High, All"
    assert told["seeds"] == "1; published rows have 3 or more"
    assert told["models"] == "their names are missing"
    whole = replace(
        found,
        agent="a",
        llms="m",
        columns={name: replace(one, cell=Cell(50.0, 1.0, 3)) for name, one in found.columns.items()},
    )
    complete = replace(
        disclosure, absent=(), seeds_done=3, seeds_planned=3, demo=False, images=("sha256:1",), machines=("m",),
        agent="a", hours=24.0, hardware="h", network="none", isolated=(3, 3), model_calls="none", test_feedback=False,
    )  # fmt: skip
    assert shortcomings(whole, complete) == ()
    flagged = IntegritySummary(
        3, (LayerCounts(Layer.FACTS, 3, 1, (), None),), ("leaf, seed 1: copied",), (), 0, 0
    )
    grave = shortcomings(
        replace(whole, running=True), replace(complete, demo=True, seeds_done=2, integrity=flagged)
    )
    assert [about for about, _text in grave] == ["data", "runs", "seeds", "integrity"]
    assert grave[-1][1] == "1 flagged run that nobody has reviewed"


def test_what_edition_corrected_leaves_out_is_told_with_the_reason() -> None:
    _row, disclosure = made(evidence("e", {LEAF: "+"}, edition="corrected"))
    told = dict(disclosure.facts())["excluded by the edition"]
    assert "dog-breed-identification (" in told
    assert dict(made(evidence("e", {LEAF: "+"}))[1].facts())["excluded by the edition"] == "none"


def test_a_failure_that_somebody_classified_by_hand_is_told_also_after_its_relaunch(
    database: Database,
) -> None:
    (run,) = sweep(database, "mine", SPEC)
    fail(database, run, FailureClass.CRASH)
    transitions.classified(
        database, run.id, FailureClass.INFRASTRUCTURE, note="the rack lost power", by="ann", now=4.0
    )
    transitions.requeued(database, run.id, by="ann", now=5.0)
    attempt = transitions.launch(database, run.id, directory="runs/again", runtime="process", now=6.0)
    transitions.failed(database, attempt.id, Failure(FailureClass.CRASH, "exit code 1"), now=7.0)
    found = find_evidence(database, "mine")
    told = dict(disclose(found, row_of(found)).facts())
    assert told["failures classified by hand"] == (
        "1: leaf-classification, seed 1: infrastructure by ann: the rack lost power"
    )

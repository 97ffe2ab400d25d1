"""A row as text can be taken over as it stands, whatever an agent is called or wrote."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest

from engine.scoreboard import Disclosure, Evidence, Row, RowFormat, disclose, row_of, row_text
from tests.engine.scoreboard.making import LEAF, SPOOKY, evidence

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


def test_everything_that_must_be_told_is_told() -> None:
    found = evidence("e", {LEAF: "+.", SPOOKY: "-+"}, hours="24 h", hardware="1 GPU", network="open")
    rerolled = replace(found.trials[0], rerolls=1)
    row, disclosure = made(replace(found, trials=(rerolled, *found.trials[1:]), limit_hours=24))
    told = dict(replace(disclosure, images=("sha256:abc",), isolated=(3, 4)).facts())
    assert told["edition"] == "v1"
    assert told["agent images"] == "sha256:abc"
    assert told["complete seeds"] == "1"
    assert told["padding"] == "no"
    assert told["re-rolled seeds"] == f"1: {LEAF}, seed 1"
    assert told["runs that count for nothing"] == f"1: {LEAF}, seed 2: why"
    assert told["competitions of the 75 without a run"].startswith("73: ")
    assert told["known defects that touch it"] == f"2: {LEAF}; {SPOOKY}"
    assert (told["time limit"], told["hardware per run"], told["network policy"]) == ("24 h", "1 GPU", "open")
    assert (told["isolated runs"], told["test-set feedback"]) == ("3 of 4", "no")
    text = row_text(row, disclosure)
    assert all(name in text for name in told)


def test_a_part_of_a_split_is_no_number_and_its_own_competitions_are() -> None:
    cells = row_text(*made(evidence("e", {LEAF: "+", SPOOKY: "-"}))).splitlines()[2]
    assert "2/22 run" in cells
    assert cells.endswith("| 50.00 ± 0.00 |")


def test_padding_and_demos_carry_their_footnotes() -> None:
    padded = row_text(*made(evidence("e", {LEAF: "+", SPOOKY: "-."}, data="demo"), pad=True))
    assert "*Computed by padding incomplete seeds with failing scores.*" in padded
    assert "*Synthetic data: a demo, not a result.*" in padded


def test_what_edition_corrected_leaves_out_is_told_with_the_reason() -> None:
    _row, disclosure = made(evidence("e", {LEAF: "+"}, edition="corrected"))
    told = dict(disclosure.facts())["excluded by the edition"]
    assert "dog-breed-identification (" in told
    assert dict(made(evidence("e", {LEAF: "+"}))[1].facts())["excluded by the edition"] == "none"

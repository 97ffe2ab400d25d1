"""Plots hold the numbers of the tables, and are drawn as files that can be read."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.model import Evidence
from mlebench_console.engine.scoreboard.plots import Plot, PlotSeries, nice_step, picture, plots_of, svg
from mlebench_console.engine.scoreboard.reports import load_evidence
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from tests.engine.scoreboard.making import LEAF, SPOOKY, evidence

OPERAND = Path(__file__).parent / "operand_row.csv"
LINE = Plot("line", "A <title>", "line", "x", "y", (PlotSeries("one", ((1.0, 2.0), (2.0, 4.0)), (0.5, 0.0)),))


def plots(found: Evidence, *, pad: bool = False) -> tuple[Plot, ...]:
    return plots_of(found, row_of(found, pad_missing=pad))


def test_there_is_a_plot_for_whatever_there_are_numbers_for() -> None:
    found = {plot.key: plot for plot in plots(load_evidence([OPERAND]), pad=True)}
    assert set(found) == {"splits", "categories", "endings", "detectable"}
    medals = found["splits"].series[0]
    assert [round(y, 2) for _, y in medals.points] == [63.64, 33.33, 20.0, 39.56]
    assert [round(error, 2) for error in medals.errors] == [0.0, 0.88, 0.0, 0.44]
    assert sum(series.points[-1][1] for series in found["endings"].series) == 125
    assert {plot.key for plot in plots(evidence("e", {LEAF: "."}))} == {"endings"}


def test_pass_at_k_is_drawn_only_over_the_same_competitions() -> None:
    found = {plot.key: plot for plot in plots(evidence("e", {LEAF: "+--", SPOOKY: "+-"}))}
    assert [x for x, _ in found["pass"].series[0].points] == [1.0, 2.0]


def test_a_drawing_is_well_formed_and_its_marks_stand_at_their_values() -> None:
    root = ElementTree.fromstring(svg(LINE))
    circles = [float(node.attrib["cy"]) for node in root.iter("{http://www.w3.org/2000/svg}circle")]
    levels = {
        node.text: float(node.attrib["y"]) - 4
        for node in root.iter("{http://www.w3.org/2000/svg}text")
        if node.attrib["text-anchor"] == "end"
    }
    assert circles == pytest.approx([levels["2"], levels["4"]], abs=0.2)


@pytest.mark.parametrize(("span", "step"), [(100, 20), (1, 0.2), (7, 2), (0, 1), (0.03, 0.01)])
def test_axes_step_in_round_numbers(span: float, step: float) -> None:
    assert nice_step(span) == pytest.approx(step)


@pytest.mark.parametrize(("form", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_every_kind_of_plot_becomes_a_file(form: str, begins: bytes) -> None:
    for plot in (LINE, *plots(load_evidence([OPERAND]), pad=True)):
        content = picture(plot, form)
        assert content.startswith(begins)
        assert content == picture(plot, form)


def test_what_matplotlib_is_needed_for_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"] + ["matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert picture(LINE, "svg")
    with pytest.raises(EnvironmentProblem, match="Install the extra 'plots'"):
        picture(LINE, "png")
    with pytest.raises(UsageProblem, match="svg, png, pdf"):
        picture(LINE, "bmp")

"""The page of an experiment shows what is known, loads nothing, and lets no agent's text do anything."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import closing
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

from mlebench_console.competitions import registry
from mlebench_console.engine.scoreboard.aggregation import row_of
from mlebench_console.engine.scoreboard.model import Evidence, Trial
from mlebench_console.engine.scoreboard.own_runs import find_evidence
from mlebench_console.engine.scoreboard.page import page_of
from mlebench_console.engine.scoreboard.published import published_rows
from mlebench_console.engine.scoreboard.reports import load_evidence
from mlebench_console.engine.scoreboard.timeline import Bar, ExpectedEnd, Lane, Mark, MarkKind, Timeline
from mlebench_console.engine.settings import Prices
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.text import visible
from mlebench_console.state import database as state_database
from mlebench_console.state.lifecycle import FailureClass, Outcome, RunState
from tests.engine.scoreboard.making import CACTUS, LEAF, SPOOKY, evidence
from tests.engine.scoreboard.worlds import SPEC, finish, sweep

OPERAND = Path(__file__).parent / "operand_row.csv"
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\x1b]0;x\x07\u202e"
)


def page(found: Evidence, *, pad: bool = False, prices: Prices | None = None) -> str:
    return page_of(found, row_of(found, pad_missing=pad), published=published_rows(), prices=prices)


class Strict(HTMLParser):
    """Collects the tags and what they would load, and sees that every tag that is opened is closed."""

    VOID = frozenset({"meta", "br", "line", "circle", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def parsed(text: str) -> Strict:
    parser = Strict()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_the_page_holds_row_tables_plots_and_every_run() -> None:
    text = page(load_evidence([OPERAND]), pad=True)
    for told in ("39.56 ± 0.44", "Operand ensemble", "Image Classification", "edition v1", "4.9454e+06"):
        assert told in text
    assert text.count("<svg") == 4
    assert len(re.findall(r"<tr><td>[a-z0-9A-Z-]+</td><td><b class=", text)) == 53
    assert parsed(text).links == []


def test_a_submission_without_a_score_is_not_coloured_as_a_failure_and_long_lists_are_closed_at_first() -> (
    None
):
    text = page(load_evidence([OPERAND]), pad=True)
    assert "class='bad'>invalid" not in text and "class='bad'>no submission" not in text
    assert "<details><summary>" in text
    assert parsed(text).links == []


def test_before_the_end_the_page_bounds_the_figure_and_of_one_seed_it_writes_no_error() -> None:
    running = replace(
        evidence("e", {LEAF: "+-", SPOOKY: "+"}),
        trials=(*evidence("e", {LEAF: "+-", SPOOKY: "+"}).trials, Trial(SPOOKY, 2, None, ended=False)),
    )
    assert "2 medals of 3 ended, final 50.0 to 75.0 % on its own 2 competitions" in page(running)
    one = page(evidence("e", {LEAF: "+", SPOOKY: "-"}))
    assert "any medal 50.00 % (1 seed: no ±) on its own 2 competitions" in one
    own_row = re.search(r"<tr><td>its own</td>.*?</tr>", one)
    assert own_row is not None and "±" not in own_row[0]


def test_a_row_stands_among_its_neighbours_of_the_main_table_by_the_split_that_it_covers() -> None:
    low = dict.fromkeys(registry.splits()["low"], "++-")
    row = re.search(r"<h2>Row</h2>.*?</table>", page(evidence("e", low)), re.DOTALL)
    assert row is not None
    names = re.findall(r"<tr><td>(.*?)</td>", row[0])
    # Its 66.7 % of Low lie between 68.2 and 66.7; the whole table's best rows are no neighbours.
    assert names[3] == "▸ e" and "CAIR MLE-STAR-Pro-1.0" in names and "Famou-Agent 2.0" not in names
    assert "Disarray" not in page(evidence("e", low)), "rows of the additional table are not comparable"


def test_intervals_lie_within_0_and_100_and_the_page_says_whose_they_are() -> None:
    """By the standard error of seeds 1, 1 and 0 of 1, the interval would go from 1.3 to 132 %."""
    text = page(evidence("e", {LEAF: "++-"}))
    found = [tuple(map(float, pair)) for pair in re.findall(r">(-?[0-9.]+) to ([0-9.]+)<", text)]
    assert (20.8, 93.9) in found
    assert all(0 <= low <= high <= 100 for low, high in found)
    assert "Wilson" in text


def timeline() -> Timeline:
    bars = (
        Bar(1, "s", LEAF, 1, 1, 2, 0.0, 3600.0, RunState.FAILED, failure=FailureClass.INFRASTRUCTURE,
            cause=f"GPU lost: {HOSTILE}"),
        Bar(1, "s", LEAF, 1, 2, 2, 4000.0, 9000.0, RunState.FINISHED, outcome=Outcome.GOLD),
        Bar(2, "s", HOSTILE, 1, 1, 1, 5000.0, None, RunState.RUNNING, standing=Outcome.BRONZE),
    )  # fmt: skip
    lanes = tuple(Lane(HOSTILE, number, (bar,)) for number, bar in enumerate(bars, start=1))
    marks = (Mark(3600.0, MarkKind.GPU_LOST, HOSTILE), Mark(3700.0, MarkKind.ENGINE, "engine 7 is up"))
    end = ExpectedEnd(20_000.0, at_most=False)
    return Timeline(("s",), 10_000.0, 0.0, end, lanes, marks, ((9000.0, Outcome.GOLD),), 1, None)


def test_attempts_over_time_are_drawn_and_told_without_colours() -> None:
    found = evidence("e", {LEAF: "+"})
    text = page_of(found, row_of(found), timeline=timeline())
    assert text.count("<svg") == page(found).count("<svg") + 1
    for told in (
        ">!i</text>",
        ">G</text>",
        ">B▸</text>",
        ">now</text>",
        ">end</text>",
        "GPU lost ×1",
    ):
        assert told in text, told
    assert "attempt 2 of 2: gold, from 1970-01-01" in text
    assert not parsed(text).tags & {"script", "img"}
    assert "\x1b" not in text and "\u202e" not in text


def test_a_narrow_window_scrolls_tables_and_not_the_page(tmp_path: Path, chromium: str) -> None:
    found = load_evidence([OPERAND])
    text = page_of(found, row_of(found, pad_missing=True), published=published_rows(), timeline=timeline())
    framed = escape(re.sub("<meta http-equiv[^>]*>", "", text))
    measured = tmp_path / "measured.html"
    measured.write_text(
        f'<iframe style="width:400px;height:900px;border:0" srcdoc="{framed}"></iframe><p></p><script>'
        "const frame = document.querySelector('iframe'); frame.onload = () => {"
        " const page = frame.contentDocument.documentElement;"
        " document.querySelector('p').textContent = page.scrollWidth + ' of ' + page.clientWidth }</script>",
        encoding="utf-8",
    )
    drawn = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--virtual-time-budget=3000",
         f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", measured.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    told = re.search(r"<p>(\d+) of (\d+)</p>", drawn)
    assert told is not None and int(told[1]) == int(told[2]) > 300


def test_the_page_tells_the_cost_where_prices_are_known() -> None:
    found = evidence("e", {LEAF: "++", SPOOKY: "--"}, seconds=7200)
    prices = Prices(run_hour=0.5, currency="<b>EUR")
    assert "4.00 &lt;b&gt;EUR, 2.00 for a medal" in page(found, prices=prices)
    assert "<td>cost</td>" not in page(found)
    assert "<td>cost</td>" not in page(found, prices=Prices(gpu_hour=2.0)), "GPUs are not known"


def test_what_is_no_result_says_so() -> None:
    demo = page(evidence("e", {LEAF: "+", SPOOKY: "-"}, data="demo"))
    assert "Synthetic data: a demo, not a result." in demo
    assert "Famou-Agent" not in demo
    found = replace(evidence("e", {LEAF: "+"}), conflict="mixed editions: corrected, v1")
    assert "No numbers: mixed editions: corrected, v1." in page(found)


def test_a_log_is_linked_by_a_path_that_a_browser_takes(tmp_path: Path) -> None:
    state_dir = tmp_path / "with space & 'quote'"
    state_dir.mkdir()
    with closing(state_database.open_for_writing(state_dir)) as database:
        (run,) = sweep(database, "mine", SPEC)
        finish(database, run, Outcome.NO_SUBMISSION)
        found = find_evidence(database, "mine")
    assert parsed(page(found)).links == []
    (provenance,) = (trial.provenance for trial in found.trials)
    assert provenance is not None
    log = provenance.folder / protocol.LOG
    log.parent.mkdir(parents=True)
    log.touch()
    assert parsed(page(found)).links == [log.as_uri()]


def hostile() -> Evidence:
    found = evidence(HOSTILE, {LEAF: "x", SPOOKY: "G+", CACTUS: "+-"}, agent=HOSTILE)
    return replace(found, trials=tuple(replace(trial, text=HOSTILE) for trial in found.trials))


def test_an_agents_text_is_only_text() -> None:
    text = page(hostile())
    parser = parsed(text)
    assert not parser.tags & {"script", "img"}
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert visible("a\x1b\u202e\n b") == "a\\u001b\\u202e b"


def test_a_real_browser_draws_the_page_and_runs_nothing(tmp_path: Path, chromium: str) -> None:
    target = tmp_path / "page.html"
    target.write_text(page(hostile()), encoding="utf-8")
    done = subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1250,1600",
            f"--screenshot={tmp_path / 'page.png'}",
            "--dump-dom",
            target.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
        env=os.environ | {"HOME": str(tmp_path)},
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None
    assert title[1].startswith("&lt;script&gt;")
    assert done.stdout.count("<svg") >= 3
    picture = tmp_path / "page.png"
    if picture.exists():  # some versions draw or dump, not both
        assert picture.stat().st_size > 10_000

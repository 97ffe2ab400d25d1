"""Grading one file: what was graded before, files that change, and the rows that a refusal is about."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from textual.widgets import Input

from mlebench_console.console.nouns.grading import PastGrading
from mlebench_console.console.pieces import foreign_path
from mlebench_console.console.screens.grading import (
    HISTORY_NAME,
    GradeScreen,
    past_grading,
    read_past,
    rows_behind,
    write_past,
)
from mlebench_console.engine.grading.report import Report
from mlebench_console.engine.places import Places
from mlebench_console.foundation.problems import UsageProblem
from tests.console.conftest import OpenConsole, ShownConsole
from tests.console.world import NOW


class Asked(NamedTuple):
    """One file that was asked to be graded."""

    submission_path: Path
    competition_id: str
    edition: str


SPOOKY = "spooky-author-identification"


def report(**values: Any) -> Report:
    facts: dict[str, Any] = {
        "competition_id": "spooky-author-identification", "score": 0.28411, "gold_threshold": 0.16506,
        "silver_threshold": 0.26996, "bronze_threshold": 0.29381, "median_threshold": 0.418785, "any_medal": True,
        "gold_medal": False, "silver_medal": False, "bronze_medal": True, "above_median": True,
        "submission_exists": True, "valid_submission": True, "is_lower_better": True, "created_at": "",
        "submission_path": "/s.csv",
    }  # fmt: skip
    return Report(**(facts | values))


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> Callable[[Report], list[Asked]]:
    def answer(with_report: Report) -> list[Asked]:
        requests: list[Asked] = []

        def grade(path: Path, competition_id: str, *, data_dir: Path, edition: str) -> Report:
            requests.append(Asked(path, competition_id, edition))
            return with_report

        monkeypatch.setattr("mlebench_console.console.screens.grading.grade_submission", grade)
        return requests

    return answer


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """What was asked to be graded; the score is how many bytes the file has."""
    taken: list[Asked] = []

    def grade(path: Path, competition_id: str, *, data_dir: Path, edition: str) -> Report:
        taken.append(Asked(path, competition_id, edition))
        values: dict[str, Any] = {"score": float(path.stat().st_size), "submission_path": str(path)}
        return report(**values, edition=edition, competition_id=competition_id)

    monkeypatch.setattr("mlebench_console.console.screens.grading.grade_submission", grade)
    return taken


async def until_asked(console: ShownConsole, requests: list[Asked], count: int, name: str) -> None:
    """Wait until so many files were asked to be graded, the last of them of that name."""
    await console.until(lambda: len(requests) == count and str(requests[-1].submission_path).endswith(name))


async def until_kept(console: ShownConsole, places: Places, scores: list[float]) -> None:
    """Wait until just these scores are kept, the newest first."""
    await console.until(lambda: [past.score for past in read_past(places.state_dir)] == scores)


async def test_what_was_graded_is_found_again(
    opened: OpenConsole, tmp_path: Path, places: Places, requests: list[Asked]
) -> None:
    graded = (("one.csv", "1", [1.0]), ("two.csv", "22", [2.0, 1.0]), ("two.csv", "333", [3.0, 1.0]))
    async with opened(screen="grade") as console:
        for count, (name, content, scores) in enumerate(graded, start=1):
            (tmp_path / name).write_text(content)
            console.app.show_grade(SPOOKY, str(tmp_path / name))
            await until_asked(console, requests, count, name)
            await until_kept(console, places, scores)
        await console.sees("graded before", "one.csv", "two.csv", "3.00000")
        assert "2.00000" not in console.text()
        screen = console.app.screen
        screen.query_one("#history").focus()
        await console.press("G", "enter")
        await until_asked(console, requests, 4, "one.csv")


async def test_the_fields_begin_with_what_was_graded_last(opened: OpenConsole, places: Places) -> None:
    places.state_dir.mkdir(parents=True)
    write_past(places.state_dir, (past_grading(report(), Path("/data/sub.csv"), 1.0),))
    async with opened(screen="grade") as console:
        await console.until(lambda: console.app.screen.query_one("#path", Input).value == "/data/sub.csv")
        assert console.app.screen.query_one("#competition", Input).value == SPOOKY
        await console.sees("graded before", "B 0.28411")


async def test_a_watched_file_is_graded_again_when_it_has_changed(
    opened: OpenConsole, tmp_path: Path, requests: list[Asked]
) -> None:
    file = tmp_path / "sub.csv"
    file.write_text("1")
    async with opened(screen="grade") as console:
        console.app.show_grade(SPOOKY, str(file))
        await console.sees("graded in")
        await console.press("f5")
        await console.sees("watching")
        await console.until(lambda: len(requests) == 2)
        await console.sees("graded in")
        file.write_text("4444")
        await console.until(lambda: len(requests) == 3)
        await console.sees("4.00000")
        await console.press("f5")
        await console.misses("watching")
        file.write_text("55555")
        await console.pilot.pause(1.2)
        assert len(requests) == 3


async def test_what_is_watched_is_graded_whatever_the_fields_say_meanwhile(
    opened: OpenConsole, tmp_path: Path, requests: list[Asked]
) -> None:
    file = tmp_path / "sub.csv"
    file.write_text("1")
    async with opened(screen="grade") as console:
        console.app.show_grade(SPOOKY, str(file))
        await console.sees("graded in")
        await console.press("f5")
        await console.sees("watching", f"for {SPOOKY}")
        await console.until(lambda: len(requests) == 2)
        console.app.screen.query_one("#competition", Input).value = "leaf-classification"
        console.app.screen.query_one("#path", Input).value = "/somewhere/else.csv"
        file.write_text("4444")
        await console.until(lambda: len(requests) == 3)
        assert (requests[2].competition_id, requests[2].submission_path) == (SPOOKY, file)


async def test_files_on_a_disk_that_does_not_answer_hold_only_some_threads_and_nobody(
    opened: OpenConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang, begun = threading.Event(), []

    def grade(*asked: Any) -> None:
        begun.append(asked)
        hang.wait(30)
        raise UsageProblem("it was never read")

    monkeypatch.setattr("mlebench_console.console.screens.grading.grade_file", grade)
    async with opened(screen="grade") as console:
        for number in range(4):
            console.app.show_grade(SPOOKY, str(tmp_path / f"{number}.csv"))
            await console.sees(f"grading {number}.csv" if number < 3 else "3 files have not been read yet")
        assert len(begun) == 3
        hang.set()
        screen = console.app.screen
        assert isinstance(screen, GradeScreen)
        await console.until(lambda: not screen._waiting)
        assert "it was never read" not in console.text()


async def test_an_unknown_competition_is_named_with_the_nearest_and_an_error_goes_with_what_it_was_about(
    opened: OpenConsole,
) -> None:
    async with opened(screen="grade") as console:
        console.app.screen.query_one("#competition", Input).value = "spoky-author"
        console.app.screen.query_one("#path", Input).focus()
        await console.press("enter")
        await console.sees("Competition 'spoky-author' is not known", f"Did you mean {SPOOKY}?")
        await console.press("x")
        await console.misses("is not known")


async def test_watching_needs_a_file(opened: OpenConsole) -> None:
    async with opened(screen="grade") as console:
        await console.press("f5")
        await console.sees("a competition and a file are needed")


async def test_the_other_edition_grades_again(
    opened: OpenConsole, tmp_path: Path, requests: list[Asked]
) -> None:
    file = tmp_path / "sub.csv"
    file.write_text("1")
    async with opened(screen="grade") as console:
        console.app.show_grade(SPOOKY, str(file))
        await console.sees("graded in", "edition v1")
        await console.press("f6")
        await console.until(lambda: requests[-1].edition == "corrected")
        await console.sees("edition corrected")


async def test_the_row_that_breaks_a_rule_is_shown(
    opened: OpenConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "sub.csv"
    file.write_text("id,EAP\na,0.5\nb,often\x1b[2J\nc,0.1\nd,0.2\n")
    refused = report(score=None, outcome="rejected", message="Row 2: EAP 'often' is not a number.")
    monkeypatch.setattr(
        "mlebench_console.console.screens.grading.grade_submission", lambda *_a, **_b: refused
    )
    async with opened(screen="grade") as console:
        console.app.show_grade(SPOOKY, str(file))
        await console.sees("heading  id,EAP", "2  b,often^[[2J", "1  a,0.5", "3  c,0.1", "rejected")
        assert "d,0.2" not in console.text() and "\x1b" not in console.text()


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        ("Row 1: x is empty.", (0, 1, 2)),
        ("The submission has 6 rows, expected 5. Row 3: id '2' stands in row 2 already.", (0, 2, 3, 4)),
        ("Row 5: x", (0, 4, 5)),
        ("Row 900: x", (0,)),
        ("Row 999999999: x", ()),
        ("3 ids have no row: 1, 2, 3.", ()),
        ("", ()),
    ],
)
def test_rows_are_counted_as_graders_count_them(
    tmp_path: Path, message: str, numbers: tuple[int, ...]
) -> None:
    file = tmp_path / "sub.csv"
    file.write_text('id,x\n1,"a\nb"\n2,c\n3,d\n4,e\n5,f\n')
    assert tuple(row.number for row in rows_behind(file, message)) == numbers


def test_a_file_that_is_gone_has_no_rows(tmp_path: Path) -> None:
    assert rows_behind(tmp_path / "gone.csv", "Row 1: x") == ()


@pytest.mark.parametrize("note", ["", "{", "[1]", '[{"path": 1}]', '{"a": 1}'])
def test_a_damaged_history_is_begun_anew(tmp_path: Path, note: str) -> None:
    (tmp_path / HISTORY_NAME).write_text(note)
    assert read_past(tmp_path) == ()


def test_history_is_kept_beside_a_state_only(tmp_path: Path) -> None:
    past = (past_grading(report(), Path("/s.csv"), 1.0),)
    write_past(tmp_path / "none", past)
    assert not (tmp_path / "none").exists()
    write_past(tmp_path, past * 500)
    assert len(read_past(tmp_path)) == 200 and json.loads((tmp_path / HISTORY_NAME).read_text())


async def test_grading_shows_where_the_score_falls(
    opened: OpenConsole,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    graded: Callable[[Report], list[Asked]],
) -> None:
    requests = graded(report())
    (tmp_path / "sub.csv").write_text("id\n")
    monkeypatch.chdir(tmp_path)
    async with opened(screen="grade") as console:
        await console.press(*"spook", "enter")
        await console.sees("multi-class log loss, lower is better")
        await console.press("s", "u")
        await console.until(lambda: console.app.screen.query_one("#path", Input)._suggestion != "")
        await console.press("right", "enter")
        await console.sees(
            "0.28411",
            "B bronze      0.28411 ↓   0.01415 short of silver",
            "0.0097 better than bronze needs",
            "better ◄",
        )
        assert requests[0].competition_id == "spooky-author-identification"
        await console.press("escape", "1")
        await console.sees("needs you")


async def test_an_invalid_file_says_why(
    opened: OpenConsole, tmp_path: Path, graded: Callable[[Report], list[Asked]]
) -> None:
    graded(report(score=None, valid_submission=False, outcome="rejected", message="Column 'MWS' is missing."))
    (tmp_path / "sub.csv").write_text("id\n")
    async with opened(screen="grade") as console:
        console.app.show_grade("spooky-author-identification", str(tmp_path / "sub.csv"))
        await console.sees(
            "x not valid", "refused by the competition's rules", "Column 'MWS' is missing.", "mend the file"
        )
        # The result stands above the form that it was asked for by.
        assert console.text().index("not valid") < console.text().index("competition   spooky")


async def test_a_form_that_is_left_half_filled_says_how_to_go_on(opened: OpenConsole) -> None:
    async with opened(screen="grade") as console:
        await console.sees("submission")
        await console.press("escape")
        await console.misses("goes back")
        await console.press("tab", *"spook", "enter")
        await console.misses("goes back")
        await console.press("escape")
        await console.sees("no file is named yet: tab goes back to the fields, digits switch screens")
        await console.press("tab")
        await console.misses("goes back")


async def test_what_cannot_be_graded_is_told_on_the_spot(opened: OpenConsole, tmp_path: Path) -> None:
    async with opened(screen="grade") as console:
        await console.press("tab", "enter")
        await console.sees("a competition and a file are needed")
        console.app.show_grade("spooky-author-identification", str(tmp_path / "none.csv"))
        await console.sees(
            "there is no file", "cause         its folder has no file of that name", "Correct the path."
        )
        (tmp_path / "sub.csv").mkdir()
        console.app.show_grade("spooky-author-identification", str(tmp_path / "sub.csv"))
        await console.sees("is a folder", "Name the CSV file in it.")


async def test_a_past_grading_tells_its_whole_path_and_what_was_wrong(
    opened: OpenConsole, places: Places
) -> None:
    path = "/home/op/work/aide-o3/2026-03/a-long-name-of-an-experiment/seed-2/submission.csv"
    refused = PastGrading(
        SPOOKY, path, NOW - 2 * 86_400, "v1", "rejected", None, "", "Row 3: id 'x' is not known"
    )
    places.state_dir.mkdir(parents=True)
    write_past(places.state_dir, (refused,))
    async with opened(None, screen="grade", size=(120, 24)) as console:
        await console.sees("2d", "seed-2/submission.csv")
        assert "Row 3" not in console.text()
        await console.press("tab", "tab")
        await console.sees(path, "2026-03-12", "Row 3: id 'x' is not known")
        await console.pilot.resize_terminal(80, 24)
        await console.sees("2d", "seed-2/submission.csv", "why           Row 3")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (70, "/home/op/work/aide-o3/seed-2/submission.csv"),
        (40, "/…/op/work/aide-o3/seed-2/submission.csv"),
        (26, "/…/seed-2/submission.csv"),
        (21, "…eed-2/submission.csv"),
        (12, "submi…on.csv"),
    ],
)
def test_a_path_is_cut_in_its_middle_and_keeps_the_name_of_its_file(width: int, shown: str) -> None:
    assert foreign_path("/home/op/work/aide-o3/seed-2/submission.csv", width) == shown


async def test_why_a_file_was_refused_is_never_cut(
    opened: OpenConsole, tmp_path: Path, graded: Callable[[Report], list[Asked]]
) -> None:
    message = "The file has 3.1 GB; no right submission of this competition is larger than 12 MB, as far as is known"
    graded(report(score=None, outcome="too_large", valid_submission=False, message=message))
    (tmp_path / "s.csv").write_text("1")
    async with opened(screen="grade", size=(80, 24)) as console:
        console.app.show_grade(SPOOKY, str(tmp_path / "s.csv"))
        await console.sees("The file has 3.1 GB", "as far as is known")


async def test_an_empty_screen_says_what_it_is_for(opened: OpenConsole) -> None:
    async with opened(None, screen="grade", size=(80, 24)) as console:
        await console.sees("Grades one CSV file against the answers of a prepared dataset")


async def test_the_footer_has_the_keys_that_work_where_the_cursor_is(
    opened: OpenConsole, places: Places
) -> None:
    places.state_dir.mkdir(parents=True)
    write_past(places.state_dir, (past_grading(report(), Path("/data/sub.csv"), 1.0),))
    async with opened(screen="grade") as console:
        # What is typed in a field is text, so keys that are characters are left out.
        await console.sees("graded before", "leave field", "complete", "f1 help", "^q quit")
        assert ": command" not in console.text()
        await console.press("tab", "tab")
        await console.sees("grade again", "leave list", ": command", "q quit")
        assert "complete" not in console.text()
        await console.press("escape")
        await console.until(lambda: "leave" not in console.text())


async def test_prepared_competitions_are_listed_and_one_is_chosen_from_them(
    opened: OpenConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mlebench_console.console.screens.grading.is_ready", lambda name, _edition, _dir: name == SPOOKY
    )
    async with opened(screen="grade") as console:
        await console.sees("prepared competitions", SPOOKY)
        await console.press(*"aerial")
        await console.sees("aerial-cactus-identification  not prepared")
        await console.press("enter")
        await console.sees("its data are not prepared")
        await console.press("tab", "enter")
        await console.until(lambda: console.app.screen.query_one("#competition", Input).value == SPOOKY)
        assert "its data are not prepared" not in console.text()


async def test_a_console_without_prepared_data_says_so(opened: OpenConsole) -> None:
    async with opened(screen="grade") as console:
        await console.sees("none yet: a dataset has to be prepared on Data first")

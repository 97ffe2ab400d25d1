from __future__ import annotations

from collections.abc import Callable

import pytest

from mlebench_console.console.cli.output import say, say_json, say_table, say_wrapped


def test_columns_line_up_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("短い", "1"), ("a\x1b[31mred\x1b[0m", "1,000"), ("tab\there", "22")]
    say_table(rows, {"name": lambda row: row[0], "n": lambda row: row[1]}, right=("n",))
    assert capsys.readouterr().out.splitlines() == [
        "name              n",
        "短い              1",
        "ared          1,000",
        "tab     here     22",
    ]


def test_a_column_is_not_wider_than_its_limit(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(["x" * 100], {"name": str}, limits={"name": 10})
    heading, cell = capsys.readouterr().out.splitlines()
    assert heading == "name"
    assert len(cell) <= 10
    assert cell.startswith("x")


def test_on_a_narrow_terminal_rows_go_on_below_themselves_and_nothing_is_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    columns: dict[str, Callable[[str], str]] = {
        "name": str,
        "runs": lambda _row: "12",
        "what": lambda _row: "word " * 12,
        "none": lambda _row: "",
    }
    say_table(["aide"], columns | {"since": lambda _row: "03:14"}, optional={"none": "", "runs": "12"})
    whole = capsys.readouterr().out.splitlines()
    assert len(whole) == 2 and whole[1].endswith("03:14")
    assert whole[0].split() == ["name", "runs", "what", "none", "since"], (
        "programs find the same columns every time"
    )
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    say_table(["aide"], columns | {"since": lambda _row: "03:14"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["name  runs  what", "aide  12"] and all(len(line) <= 40 for line in lines)
    assert lines[2].startswith("    what word") and " ".join(lines[2:]).split().count("word") == 12
    assert lines[-1].endswith("since 03:14") and "none" not in "".join(lines)
    say_table(["aide", "x"], {"name": str, "runs": lambda _row: "12"}, optional={"runs": "12"})
    say_table(["aide", "x"], {"name": str, "size": lambda row: str(len(row))}, optional={"size": "1"})
    assert capsys.readouterr().out.split() == ["name", "aide", "x", "name", "size", "aide", "4", "x", "1"]


def test_a_narrow_terminal_cuts_names_before_rows_go_on_below_and_leaves_out_what_no_row_has(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    rows = ["short", "jigsaw-unintended-bias-in-toxicity-classification"]
    columns: dict[str, Callable[[str], str]] = {
        "competition": str,
        "models": lambda _row: "gemini-3-pro-preview",
        "failed": lambda _row: "0",
        "idle": lambda _row: "-",
        "score": lambda _row: "0.91234",
        "why": lambda row: "a reason" if row == "short" else "a reason that is longer than what is left",
    }
    say_table(rows, columns, right=("failed", "score"))
    assert capsys.readouterr().out.splitlines() == [
        f"{'competition':<35}  models            score",
        "    why",
        f"{'short':<35}  gemini-3-pro-…  0.91234",
        "    a reason",
        "jigsaw-unintended-bias-in-toxicity…  gemini-3-pro-…  0.91234",
        "    a reason that is longer than what is left",
    ]
    say_table(rows[:1], columns, right=("failed", "score"), spare=("models",))
    assert (
        capsys.readouterr().out.splitlines()[1] == "short        gemini-3-pro-preview  0.91234  a reason"
    ), "what can be spared is left out only if something has no room"
    say_table(rows[1:], columns, right=("failed", "score"), spare=("models",))
    row, below = capsys.readouterr().out.splitlines()[2:]
    assert "gemini" not in row and row.endswith("0.91234") and below.startswith("    a reason that")


def test_a_narrow_terminal_has_a_long_line_in_several_and_a_pipe_in_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = "sweep aide: " + ", ".join(f"{count} of 225 ended" for count in range(9))
    say_wrapped(text, indent="  ")
    assert capsys.readouterr().out == f"  {text}\n"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    say_wrapped(text, indent="  ")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2 and all(len(line) <= 60 for line in lines)
    assert " ".join(" ".join(lines).split()) == text and lines[1].startswith("      ")


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b2J", "\x1b]52;c;aGk=\x07", "\x00", "\u202e", "\r"])
def test_no_control_character_leaves_by_any_door(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"before{hostile}after")
    say_table([f"before{hostile}after"], {"x": str})
    say_json({"x": f"before{hostile}after"})
    out = capsys.readouterr().out.replace("\n", "")
    assert out.isprintable()


def test_usual_texts_are_left_out_of_what_goes_below_a_row_and_an_empty_cell_is_usual(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    columns: dict[str, Callable[[str], str]] = {
        "name": str, "what": lambda _row: "word " * 4, "attempts": len_of,
    }  # fmt: skip
    say_table(["a", "bb"], columns, optional={"attempts": "1"})
    below = capsys.readouterr().out
    assert "attempts 2" in below and "attempts 1" not in below
    say_table(["a", ""], {"name": str, "attempts": len_of}, optional={"attempts": "1"})
    assert "attempts" not in capsys.readouterr().out


def len_of(text: str) -> str:
    return str(len(text))

from __future__ import annotations

import pytest

from mlebench_console.console.cli.output import say, say_json, say_texts, say_wrapped


def test_columns_line_up_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("短い", "1"), ("a\x1b[31mred\x1b[0m", "1,000"), ("tab\there", "22")]
    say_texts(("name", "n"), rows, right=("n",))
    assert capsys.readouterr().out.splitlines() == [
        "name              n",
        "短い              1",
        "ared          1,000",
        "tab     here     22",
    ]


def test_on_a_narrow_terminal_rows_go_on_below_themselves_and_nothing_is_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    titles = ("name", "runs", "what", "none", "since")
    rows = [("aide", "12", "word " * 12, "", "03:14")]
    say_texts(titles, rows)
    whole = capsys.readouterr().out.splitlines()
    assert len(whole) == 2 and whole[1].endswith("03:14")
    assert whole[0].split() == list(titles), "programs find the same columns every time"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    say_texts(titles, rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name  runs  since  what" and all(len(line) <= 40 for line in lines)
    assert lines[1] == "aide  12    03:14" and lines[2].startswith("    word")
    assert " ".join(lines[2:]).split().count("word") == 12 and "none" not in "".join(lines)


def test_a_narrow_terminal_cuts_names_before_columns_go_below_and_leaves_out_what_no_row_has(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    titles = ("competition", "category", "failed", "idle", "score", "why")
    short = ("short", "gemini-3-pro-preview", "0", "-", "0.91234", "a reason")
    long = ("jigsaw-unintended-bias-in-toxicity-classification", *short[1:-1], "a reason that is too long")
    say_texts(titles, [short, long], right=("failed", "score"))
    assert capsys.readouterr().out.splitlines() == [
        f"{'competition':<35}  category          score",
        "    why",
        f"{'short':<35}  gemini-3-pro-…  0.91234",
        "    a reason",
        "jigsaw-unintended-bias-in-toxicity…  gemini-3-pro-…  0.91234",
        "    a reason that is too long",
    ]
    say_texts(titles, [short], right=("failed", "score"))
    assert capsys.readouterr().out.splitlines()[1].endswith("0.91234  a reason")


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
    say_texts(("x",), [(f"before{hostile}after",)])
    say_json({"x": f"before{hostile}after"})
    out = capsys.readouterr().out.replace("\n", "")
    assert out.isprintable()

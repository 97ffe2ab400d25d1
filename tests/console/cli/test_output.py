from __future__ import annotations

import pytest

from console.cli.output import say, say_json, say_table


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


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b2J", "\x1b]52;c;aGk=\x07", "\x00", "\u202e", "\r"])
def test_no_control_character_leaves_by_any_door(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"before{hostile}after")
    say_table([f"before{hostile}after"], {"x": str})
    say_json({"x": f"before{hostile}after"})
    out = capsys.readouterr().out.replace("\n", "")
    assert out.isprintable()

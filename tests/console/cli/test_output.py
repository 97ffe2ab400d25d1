from __future__ import annotations

import pytest

from console.cli.output import bytes_text, duration_text, moment_text, say, say_json, say_table


def test_columns_line_up_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(
        ("name", "n"), [("短い", "1"), ("a\x1b[31mred\x1b[0m", "1,000"), ("tab\there", "22")], right=("n",)
    )
    assert capsys.readouterr().out.splitlines() == [
        "name              n",
        "短い              1",
        "ared          1,000",
        "tab     here     22",
    ]


def test_a_column_is_not_wider_than_its_limit(capsys: pytest.CaptureFixture[str]) -> None:
    say_table(("name",), [("x" * 100,)], limits={"name": 10})
    heading, cell = capsys.readouterr().out.splitlines()
    assert heading == "name"
    assert len(cell) <= 10
    assert cell.startswith("x")


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b2J", "\x1b]52;c;aGk=\x07", "\x00", "\u202e", "\r"])
def test_no_control_character_leaves_by_any_door(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"before{hostile}after")
    say_table(("x",), [(f"before{hostile}after",)])
    say_json({"x": f"before{hostile}after"})
    out = capsys.readouterr().out.replace("\n", "")
    assert out.isprintable()


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (82_600_000_000, "82.6 GB"),
        (3.3e12, "3.3 TB"),
    ],
)
def test_sizes(count: int | None, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (-1, "0s"),
        (59.4, "59s"),
        (60, "1m00s"),
        (3599, "59m59s"),
        (3600, "1h00m"),
        (90_000, "1d01h"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


def test_moments_are_local_and_to_the_minute() -> None:
    assert moment_text(None) == "-"
    assert len(moment_text(0.0)) == len("1970-01-01 00:00")

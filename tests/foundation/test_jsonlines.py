"""Lines of JSON that a kill may tear."""

from __future__ import annotations

from pathlib import Path

from mlebench_console.foundation import jsonlines


def test_a_torn_last_line_waits_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": ')
    first = jsonlines.read(path)
    assert first.values == ({"a": 1},)
    with path.open("ab") as stream:
        stream.write(b"2}\n")
    assert jsonlines.read(path, first.offset).values == ({"a": 2},)


def test_a_writer_after_a_kill_closes_the_torn_line_off(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": ')
    jsonlines.append(path, [{"b": 2}, {"c": 3}])
    assert jsonlines.read(path).values == ({"a": 1}, {"b": 2}, {"c": 3})


def test_what_is_no_object_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'[1]\nnonsense\n\xff\xfe\n{"a": 1}\n')
    assert jsonlines.read(path).values == ({"a": 1},)


def test_a_file_that_is_not_there_yet_holds_nothing(tmp_path: Path) -> None:
    assert jsonlines.read(tmp_path / "none").values == ()

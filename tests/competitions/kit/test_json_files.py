"""JSON is written as `json.dump` writes it, and JSON lines are read one at a time."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.foundation.problems import DataProblem


def test_documents_have_ascii_escapes_and_no_newline_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "made" / "x.json"
    json_files.write_json(path, {"b": "é", "a": [1.0]}, indent=1, sort_keys=True)
    assert path.read_bytes() == b'{\n "a": [\n  1.0\n ],\n "b": "\\u00e9"\n}'
    assert json_files.read_json(path) == {"a": [1.0], "b": "é"}


def test_documents_in_other_encodings_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes('{"a": "é"}'.encode("latin-1"))
    assert json_files.read_json(tmp_path / "x.json", encoding="latin-1") == {"a": "é"}


def test_lines_are_split_at_newlines_only(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes('{"a": "one\u2028two"}\n\n{"a": 2}'.encode())
    assert list(json_files.read_jsonl_parts(path, ["a"])) == [{"a": "one\u2028two"}, {"a": 2}]


def test_words_for_numbers_that_json_lacks_are_kept(tmp_path: Path) -> None:
    json_files.write_json(tmp_path / "x.json", [{"a": math.nan}], indent=4)
    assert (tmp_path / "x.json").read_text() == '[\n    {\n        "a": NaN\n    }\n]'


@pytest.mark.parametrize("content", ["", "[{", "{}", "[1, 2]", "\ufeff[]"])
def test_raw_records_that_are_no_list_of_objects_are_refused_by_name(content: str, tmp_path: Path) -> None:
    path = tmp_path / "sample.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataProblem, match=r"sample\.json"):
        json_files.read_records(path)
    path.write_text('[{"token": "a"}]')
    assert json_files.read_records(path) == [{"token": "a"}]


def test_parts_of_lines_are_what_whole_lines_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    lines = [
        '{"text":"long","notes":[{"id":1}],"id":"a"}',
        '{"notes":[],"text":"last","id":"b"}',
        '{"id":"c","text":",\\"notes\\":[1],\\"id\\":2","notes":[3]}',
        '{"text":"spaced", "notes": [4], "id": "d"}',
        '{"text":"deeper","notes":[{"x":1,"notes":0,"id":9}],"id":"e"}',
        "",
        '{"notes":[5],"id":"f","deep":{"a":1,"notes":0,"id":9}}',
    ]
    path.write_text("\n".join(lines) + "\n")
    expected = [(record["notes"], record["id"]) for record in map(json.loads, filter(None, lines))]
    found = [(record["notes"], record["id"]) for record in json_files.read_jsonl_parts(path, ["notes", "id"])]
    assert found == expected
    assert len(found) == 6


def test_lines_come_and_go_as_a_table() -> None:
    lines = (
        b'{"a":"x\\/y","b":1.0,"c":[0.00001,18446744073709551615]}\n\n{"a":"\\u00e9\x7f","b":2.0,"c":[]}\n'
    )
    table = json_files.table_of(lines)
    assert table["b"].tolist() == [1, 2]
    expected = b'{"a":"x\\/y","b":1,"c":[0.00001,18446744073709551615]}\n{"a":"\\u00e9\x7f","b":2,"c":[]}\n'
    assert json_files.lines_of(table) == expected


def test_halves_of_surrogate_pairs_are_dropped() -> None:
    line = rb'{"a":"1\ud83d2\ud83d\ude00\uDE003\\ud83d\ud83d\ud83d\ude00"}' + b"\n"
    expected = rb'{"a":"12\ud83d\ude003\\ud83d\ud83d\ude00"}' + b"\n"
    assert json_files.lines_of(json_files.table_of(line)) == expected


def test_lines_that_are_no_json_are_refused() -> None:
    with pytest.raises(ValueError, match=r"."):
        json_files.table_of(b'{"a":1}\n{"a":')

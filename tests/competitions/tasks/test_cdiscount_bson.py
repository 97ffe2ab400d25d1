"""BSON documents are found and relieved of a field without being decoded."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mlebench_console.competitions.registry import get, load_task
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob

bson = load_task(get("cdiscount-image-classification-challenge")).bson


def element(kind: int, name: str, value: bytes) -> bytes:
    return bytes([kind]) + name.encode() + b"\0" + value


def document(*elements: bytes) -> bytes:
    body = b"".join(elements) + b"\0"
    return struct.pack("<i", len(body) + 4) + body


def number(name: str, value: int) -> bytes:
    return element(0x10, name, struct.pack("<i", value))


def long(name: str, value: int) -> bytes:
    return element(0x12, name, struct.pack("<q", value))


EVERY_KIND = [
    element(0x01, "double", struct.pack("<d", 1.5)),
    element(0x02, "text", struct.pack("<i", 3) + b"ab\0"),
    element(0x03, "object", document(number("c", 7))),
    element(0x04, "list", document(number("0", 7))),
    element(0x05, "picture", struct.pack("<iB", 4, 0) + b"\0\xff\0\0"),
    element(0x07, "object id", bytes(12)),
    element(0x08, "flag", b"\1"),
    element(0x09, "moment", bytes(8)),
    element(0x0A, "nothing", b""),
    element(0x13, "decimal", bytes(16)),
]
DOCUMENTS = [
    document(number("_id", 5), number("c", 100), *EVERY_KIND),
    document(*EVERY_KIND, long("c", 1 << 40), long("_id", 6)),
    document(element(0x01, "_id", struct.pack("<d", 7.0)), *EVERY_KIND[:3], number("c", -1)),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "x.bson").write_bytes(b"".join(DOCUMENTS))
    return tmp_path / "x.bson"


def test_documents_and_whole_numbers_are_found_wherever_they_stand(path: Path, make_job: MakeJob) -> None:
    assert list(bson.documents(make_job(), path)) == DOCUMENTS
    found = bson.whole_numbers(make_job(), path, ["_id", "c"])
    assert found.tolist() == [[5, 100], [6, 1 << 40], [7, -1]]


def test_documents_lose_a_field() -> None:
    lost = [bson.without(each, "c") for each in DOCUMENTS[:2]]
    assert lost == [document(number("_id", 5), *EVERY_KIND), document(*EVERY_KIND, long("_id", 6))]


@pytest.mark.parametrize(
    "damaged",
    [
        DOCUMENTS[0][:-1],
        DOCUMENTS[0][:3],
        struct.pack("<i", 4) + b"\0" * 10,
        struct.pack("<i", -5) + b"\0" * 10,
        document(element(0x55, "what", b"")),
        document(element(0x02, "text", struct.pack("<i", 1 << 20) + b"ab\0")),
        document(element(0x02, "text", struct.pack("<i", -9) + b"ab\0")),
        document(number("other", 1)),
        document(element(0x02, "_id", struct.pack("<i", 2) + b"5\0")),
        document(element(0x01, "_id", struct.pack("<d", 0.5))),
        document(element(0x01, "_id", struct.pack("<d", float("nan")))),
        document(b"\x10no end"),
    ],
)
def test_a_damaged_document_is_told_by_number(damaged: bytes, make_job: MakeJob, tmp_path: Path) -> None:
    path = tmp_path / "x.bson"
    path.write_bytes(document(number("_id", 1)) + damaged)
    with pytest.raises(DataProblem, match=r"x\.bson is damaged: document 2, at byte 14:"):
        bson.whole_numbers(make_job(), path, ["_id"])


def test_an_empty_file_is_named(tmp_path: Path, make_job: MakeJob) -> None:
    (tmp_path / "x.bson").touch()
    with pytest.raises(DataProblem, match=r"x\.bson is empty"):
        bson.whole_numbers(make_job(), tmp_path / "x.bson", ["_id"])

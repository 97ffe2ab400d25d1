"""New identifiers for test items, inside their files too."""

from pathlib import Path

import pytest

from mlebench_console.competitions.kit.placing import pseudonyms
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob

NAMES = ["1.2.826.0.1.3680043.12149", "1.2.826.0.1.3680043.87"]


def test_new_names_keep_their_length_and_depend_on_the_key() -> None:
    first, again, other = (pseudonyms.uids(NAMES, key) for key in (b"a", b"a", b"b"))
    assert first == again
    assert all(len(old) == len(new) and new.startswith("2.25.") for old, new in first.items())
    assert all(part == "0" or part[0] != "0" for new in first.values() for part in new.split("."))
    assert set(first.values()).isdisjoint(other.values())


def test_a_name_too_short_to_rename_is_refused() -> None:
    with pytest.raises(DataProblem, match="cannot be renamed"):
        pseudonyms.uids(["1.2.3"], b"key")


def test_the_old_name_is_neither_outside_nor_inside_the_copies(make_job: MakeJob, tmp_path: Path) -> None:
    renamed = pseudonyms.uids(NAMES[:1], b"key")
    ((old, new),) = renamed.items()
    (tmp_path / "raw" / old / "deeper").mkdir(parents=True)
    (tmp_path / "raw" / old / "1.dcm").write_bytes(b"DICM\0" + old.encode() + b".7\0pixels")
    (tmp_path / "raw" / old / "deeper" / f"{old}.txt").write_bytes(b"nothing")
    pseudonyms.place_renamed(make_job(), tmp_path / "raw", tmp_path / "public", renamed)
    assert (tmp_path / "public" / new / "1.dcm").read_bytes() == b"DICM\0" + new.encode() + b".7\0pixels"
    assert (tmp_path / "public" / new / "deeper" / f"{new}.txt").read_bytes() == b"nothing"
    assert (tmp_path / "raw" / old / "1.dcm").read_bytes().count(old.encode()) == 1


@pytest.mark.parametrize("head", [b"LO\4\0", b"\4\0\0\0"], ids=["kind told", "kind not told"])
def test_the_number_of_the_patient_that_ends_a_name_is_replaced_in_headers(
    head: bytes, make_job: MakeJob, tmp_path: Path
) -> None:
    old = "1.2.826.0.1.3680043.123"
    ((_, new),) = pseudonyms.uids([old], b"key").items()
    (tmp_path / "raw" / old).mkdir(parents=True)
    before, after = b"DICM\x10\0\x20\0" + head, b" \x10\0\x30\0DA\4\0" + b"1234"
    (tmp_path / "raw" / old / "1.dcm").write_bytes(before + b"123" + after)
    pseudonyms.place_renamed(make_job(), tmp_path / "raw", tmp_path / "public", {old: new})
    content = (tmp_path / "public" / new / "1.dcm").read_bytes()
    assert content == before + new[-3:].encode() + after
    assert b"\0123 " not in content


def test_a_missing_folder_and_a_link_are_refused_by_name(make_job: MakeJob, tmp_path: Path) -> None:
    renamed = pseudonyms.uids(NAMES[:1], b"key")
    with pytest.raises(DataProblem, match=NAMES[0].replace(".", r"\.") + " is missing"):
        pseudonyms.place_renamed(make_job(), tmp_path, tmp_path / "public", renamed)
    (tmp_path / NAMES[0]).mkdir()
    (tmp_path / NAMES[0] / "1.dcm").symlink_to("/etc/hostname")
    with pytest.raises(DataProblem, match="not a regular file"):
        pseudonyms.place_renamed(make_job(), tmp_path, tmp_path / "public", renamed)


def test_unrecognisable_copies_begin_with_the_picture_and_have_another_hash(
    make_job: MakeJob, tmp_path: Path
) -> None:
    (tmp_path / "a.jpg").write_bytes(b"picture")
    target = tmp_path / "made" / "0.jpg"
    pseudonyms.place_unrecognisable(make_job(), [(tmp_path / "a.jpg", target)])
    assert target.read_bytes().startswith(b"picture")
    assert len(target.read_bytes()) > len(b"picture")
    with pytest.raises(DataProblem, match=r"gone\.jpg cannot be read"):
        pseudonyms.place_unrecognisable(make_job(), [(tmp_path / "gone.jpg", tmp_path / "x")])


def test_files_keep_their_suffix_under_a_new_name() -> None:
    first, again, other = (pseudonyms.file_names(["a.wav", "b.wav"], key) for key in (b"a", b"a", b"b"))
    assert first == again
    assert all(name.endswith(".wav") and len(name) == 16 for name in first.values())
    assert len({*first.values(), *other.values()}) == 4

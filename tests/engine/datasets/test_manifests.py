"""Every prepared tree has a manifest, which shows what is missing, changed or added, and takes nothing that lies."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path

import pytest

from mlebench_console import prepare_competition
from mlebench_console.competitions import registry
from mlebench_console.competitions.model import Checksums
from mlebench_console.engine.datasets.prepared import manifest
from mlebench_console.engine.datasets.prepared.verification import record, verify
from mlebench_console.engine.layout import DatasetFolder, dataset_folder, prepared_with
from mlebench_console.foundation import manifests
from mlebench_console.foundation.problems import DataProblem
from tests.conformance.trees import VECTORS, Vector

ID = "paddy-disease-classification"
# The test data are not the real ones, whose sums are known.
COMPETITION = dataclasses.replace(registry.get(ID), checksums=Checksums(None, {}, {}))


@pytest.fixture
def folder(tmp_path: Path) -> DatasetFolder:
    raw = Vector(VECTORS / ID).unpack_raw(tmp_path / "raw")
    prepare_competition(ID, data_dir=tmp_path / "data", raw=raw)
    return dataset_folder(COMPETITION, tmp_path / "data")


def images(folder: DatasetFolder) -> list[Path]:
    return sorted((folder.public / "test_images").iterdir())


def test_a_preparation_lists_every_file_with_its_size_and_sum(folder: DatasetFolder) -> None:
    listed = manifest.of_dataset(folder)
    assert listed is not None
    assert (listed.competition_id, listed.edition) == (ID, "v1")
    files = {
        path.relative_to(folder.prepared).as_posix(): path
        for side in (folder.public, folder.private)
        for path in side.rglob("*")
        if path.is_file()
    }
    assert {one.path: (one.bytes, one.sha256) for one in listed.entries} == {
        name: (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
        for name, path in files.items()
    }
    assert verify(COMPETITION, folder).differences == verify(COMPETITION, folder, deep=True).differences == ""


def test_what_is_missing_changed_and_added_is_told_by_name(folder: DatasetFolder) -> None:
    gone, longer, *_, same_size = images(folder)
    gone.unlink()
    longer.write_bytes(longer.read_bytes() + b"x")
    (folder.public / "notes.txt").write_text("added")
    flipped = bytearray(same_size.read_bytes())
    flipped[-1] ^= 1
    same_size.write_bytes(flipped)
    quick, deep = verify(COMPETITION, folder), verify(COMPETITION, folder, deep=True)
    assert quick.missing == deep.missing == [f"public/test_images/{gone.name}"]
    assert quick.changed == [f"public/test_images/{longer.name}"]
    assert deep.changed == [f"public/test_images/{one.name}" for one in (longer, same_size)]
    assert quick.unlisted == deep.unlisted == ("public/notes.txt",)
    assert quick.differences == (
        f"missing: public/test_images/{gone.name}; changed since it was prepared: "
        f"public/test_images/{longer.name}; not in its manifest: public/notes.txt"
    )


def test_a_description_that_another_tool_wrote_is_noticed_at_once(folder: DatasetFolder) -> None:
    text = folder.public / "description.md"
    text.write_bytes(text.read_bytes().swapcase())
    assert verify(COMPETITION, folder).changed == ["public/description.md"]


def test_what_mle_bench_prepared_is_recorded_on_request_and_only_if_it_is_as_known(
    folder: DatasetFolder,
) -> None:
    folder.manifest.unlink()
    folder.marker.unlink()
    assert verify(COMPETITION, folder).differences == ""
    assert "no manifest" in verify(COMPETITION, folder, deep=True).differences
    table = next(folder.private.glob("*.csv")).name
    unlike = dataclasses.replace(COMPETITION, checksums=Checksums(None, {}, {table: "0" * 32}))
    with pytest.raises(DataProblem, match=rf"not recorded: .*private/{table}"):
        record(unlike, folder)
    record(COMPETITION, folder)
    assert verify(COMPETITION, folder, deep=True).differences == ""
    facts = prepared_with(folder)
    assert facts is not None and "recorded_at" in facts and "prepared_at" not in facts


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "public/../../x", "other/x", "public//x", "public/x\\..\\y", "public/./x", ""]
)
def test_a_manifest_that_leads_out_of_its_tree_is_refused(path: str) -> None:
    header = {"format": 1, "competition_id": ID, "edition": "v1", "properties": {}}
    lines = [header, {"path": path, "bytes": 1, "sha256": "0" * 64}]
    with pytest.raises(DataProblem):
        manifests.parse("\n".join(map(json.dumps, lines)).encode(), "it")


def test_a_manifest_that_lists_a_file_twice_or_is_of_a_newer_form_is_refused() -> None:
    header = {"format": 1, "competition_id": ID, "edition": "v1"}
    one = {"path": "public/x", "bytes": 1, "sha256": "0" * 64}
    with pytest.raises(DataProblem, match="public/x"):
        manifests.parse("\n".join(map(json.dumps, [header, one, one])).encode(), "it")
    with pytest.raises(DataProblem, match="its format is 2"):
        manifests.parse(json.dumps({**header, "format": 2}).encode(), "it")
    with pytest.raises(DataProblem, match="not a manifest"):
        manifests.parse(b"{}\n", "it")


def test_a_manifest_that_is_not_the_one_of_the_marker_is_not_believed(folder: DatasetFolder) -> None:
    lines = folder.manifest.read_text().splitlines(keepends=True)
    folder.manifest.write_text("".join(lines[:-1]))
    with pytest.raises(DataProblem, match="does not belong"):
        verify(COMPETITION, folder)
    folder.manifest.unlink()
    with pytest.raises(DataProblem, match="can't be read"):
        verify(COMPETITION, folder)


def test_empty_folders_are_kept_in_mind_and_links_to_folders_refused(tmp_path: Path) -> None:
    (tmp_path / "public" / "empty" / "inner").mkdir(parents=True)
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "ä.csv").write_text("x")
    assert manifest.write(tmp_path, ID, "v1", {"origin": "test"}).files == 1
    found = manifests.parse((tmp_path / "manifest.jsonl").read_bytes(), "it")
    assert [one.path for one in found.entries] == ["private/ä.csv", "public/empty/inner/"]
    assert found.properties == {"origin": "test"}
    (tmp_path / "public" / "empty" / "inner").rmdir()
    assert manifest.compare(tmp_path, found, deep=True).missing == ("public/empty/inner/",)
    (tmp_path / "public" / "link").symlink_to(tmp_path / "private")
    with pytest.raises(DataProblem, match="link to a folder"):
        manifest.write(tmp_path, ID, "v1", {})
    (tmp_path / "public" / "link").unlink()
    (tmp_path / "public" / os.fsdecode(b"\xff")).touch()
    with pytest.raises(DataProblem, match="not UTF-8"):
        manifest.write(tmp_path, ID, "v1", {})

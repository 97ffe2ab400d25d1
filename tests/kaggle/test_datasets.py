"""From Kaggle to prepared in one process: what is kept, what is discarded, what is verified and pruned."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import random
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TypedDict

import pytest

from mlebench_console.competitions import registry
from mlebench_console.competitions.descriptions import identifying_words
from mlebench_console.competitions.kit.archives import zip_tree
from mlebench_console.competitions.model import Checksums
from mlebench_console.engine.datasets import preparing
from mlebench_console.engine.datasets.estimates import estimate, peak_bytes
from mlebench_console.engine.datasets.prepared import pruning
from mlebench_console.engine.datasets.prepared.verification import verify
from mlebench_console.engine.datasets.preparing import prepare
from mlebench_console.engine.datasets.sources.access import ask_access
from mlebench_console.engine.kaggle import KaggleFailure
from mlebench_console.engine.layout import dataset_folder, is_prepared
from mlebench_console.foundation.problems import DataProblem, UsageProblem
from mlebench_console.state.records import PreparationOptions
from tests.conformance.trees import VECTORS, Vector, describe
from tests.kaggle.loopback import Loopback

ID = "spooky-author-identification"


def exact(prepared: Path) -> bool:
    vector = Vector(VECTORS / ID)
    return describe(prepared, vector.expected) == {
        side: vector.expected[side] for side in ("public", "private")
    }


class Keeping(TypedDict, total=False):
    """What `prepare` is told to keep of the download."""

    keep_raw: bool
    discard_zip: bool


def names(data_dir: Path) -> set[str]:
    return {path.name for path in (data_dir / ID).iterdir()}


def test_a_zip_is_kept_unless_it_is_discarded_and_raw_goes_unless_it_is_kept(
    loopback: Loopback, tmp_path: Path
) -> None:
    loopback.add(ID)
    zip_files = {f"{ID}.zip", f".{ID}.zip.md5.json"}
    cases: list[tuple[Keeping, set[str]]] = [
        ({}, zip_files),
        ({"keep_raw": True}, {"raw", *zip_files}),
        ({"discard_zip": True}, set()),
        ({"discard_zip": True, "keep_raw": True}, {"raw"}),
    ]
    for options, left in cases:
        data = tmp_path / "-".join(["data", *options])
        assert exact(prepare(ID, data_dir=data, options=PreparationOptions(verify=False, **options)))
        assert names(data) == {"prepared", *left}


KILLED = """
import os, signal, sys
from mlebench_console.engine.datasets import preparing
def die(*told): os.kill(os.getpid(), signal.SIGKILL)
preparing.put_in_place = die
options = preparing.PreparationOptions(verify=False, keep_raw=bool(int(sys.argv[3])), discard_zip=True)
preparing.prepare(sys.argv[1], data_dir=sys.argv[2], options=options)
"""


@pytest.mark.parametrize("keep_raw", [False, True])
def test_a_kill_before_the_dataset_is_in_place_leaves_the_zip_to_be_discarded(
    loopback: Loopback, tmp_path: Path, keep_raw: bool
) -> None:
    loopback.add(ID)
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, ID, str(tmp_path), str(int(keep_raw))], capture_output=True, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    asked = loopback.count("storage")
    options = PreparationOptions(verify=False, keep_raw=keep_raw, discard_zip=True)
    assert exact(prepare(ID, data_dir=tmp_path, options=options))
    assert loopback.count("storage") == asked
    assert names(tmp_path) == ({"prepared", "raw"} if keep_raw else {"prepared"})


def test_half_a_raw_folder_is_not_taken_for_whole(loopback: Loopback, tmp_path: Path) -> None:
    loopback.add(ID)
    prepare(ID, data_dir=tmp_path, options=PreparationOptions(verify=False, keep_raw=True))
    victim = next(path for path in sorted((tmp_path / ID / "raw").rglob("*")) if path.is_file())
    victim.unlink()
    assert exact(prepare(ID, data_dir=tmp_path, options=PreparationOptions(verify=False)))


def test_the_known_checksums_decide_about_zip_and_tables(
    loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = loopback.add(ID)
    with pytest.raises(DataProblem, match=rf"{ID}\.zip does not match .*: expected MD5 [0-9a-f]+, found"):
        prepare(ID, data_dir=tmp_path)
    assert not (tmp_path / ID / "prepared").exists()
    folder = dataset_folder(registry.get(ID), tmp_path)
    prepared = prepare(ID, data_dir=tmp_path, options=PreparationOptions(verify=False))
    tables = {
        path.name: hashlib.md5(path.read_bytes()).hexdigest() for path in (prepared / "private").glob("*.csv")
    }
    known = Checksums(hashlib.md5(shelf.archive).hexdigest(), {}, tables)
    competition = dataclasses.replace(registry.get(ID), checksums=known)
    monkeypatch.setattr(preparing, "get", lambda competition_id: competition)
    assert exact(prepare(ID, data_dir=tmp_path))
    assert verify(competition, folder).differences == ""
    (prepared / "private" / "test.csv").write_text("id\n")
    assert verify(competition, folder).differences == "changed since it was prepared: private/test.csv"
    folder.marker.unlink()
    assert verify(competition, folder).differences == "unlike the known checksum: private/test.csv"


def test_a_zip_that_is_not_known_may_not_inflate_beyond_what_kaggle_lists(
    loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zip_tree, "_HARMLESS_BYTES", 1000)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train.csv", bytes(100_000))
        archive.writestr("noise", random.Random(0).randbytes(2000))
    loopback.add(ID, archive=packed.getvalue(), listed_bytes=1000)
    for _ in ("when it has just come", "when it lies there"):
        with pytest.raises(DataProblem, match="to inflate to 102,000 bytes, about 2,000 are known"):
            prepare(ID, data_dir=tmp_path, options=PreparationOptions(verify=False))
    assert loopback.count("GetCompetitionDataFilesSummary") == 1


def test_kaggle_is_not_asked_what_a_known_zip_inflates_to(
    loopback: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Checksums(hashlib.md5(loopback.add(ID).archive).hexdigest(), {}, {})
    competition = dataclasses.replace(registry.get(ID), checksums=known)
    monkeypatch.setattr(preparing, "get", lambda competition_id: competition)
    assert exact(prepare(ID, data_dir=tmp_path))
    assert loopback.count("GetCompetitionDataFilesSummary") == 0


def test_kaggles_own_description_is_put_beside_the_data_on_demand(loopback: Loopback, tmp_path: Path) -> None:
    loopback.add(ID, pages={"rules": "Be nice.", "Evaluation": "Log loss.", "Description": "Who wrote it?"})
    prepared = prepare(ID, data_dir=tmp_path, options=PreparationOptions(verify=False, descriptions="kaggle"))
    text = (prepared / "public" / "description.md").read_text()
    assert text.index("Who wrote it?") < text.index("Log loss.") < text.index("`description_addendum.md`")
    assert "Be nice" not in text
    more = (prepared / "public" / "description_addendum.md").read_text()
    assert "holds wherever the description says otherwise" in more
    assert "## Metric" in more and "those of a row sum to 1 within one part in 100,000" in more
    assert not identifying_words(registry.get(ID), more)


def test_access_and_size_are_told_before_anything_is_downloaded(loopback: Loopback, tmp_path: Path) -> None:
    shelf = loopback.add(ID)
    loopback.add("leaf-classification", accepted=False)
    loopback.add("spaceship-titanic", gone=True)
    asked = [registry.get(name) for name in (ID, "leaf-classification", "spaceship-titanic")]
    assert [access.state for access in ask_access(asked)] == ["open", "rules", "gone"]
    found = estimate([one.id for one in asked], tmp_path, "v1", raw_given=False, again=False)
    assert [one.to_do for one in found] == ["download", "refused", "refused"]
    assert found[0].bytes == len(shelf.archive)
    assert peak_bytes(found) > len(shelf.archive)
    assert list(tmp_path.iterdir()) == []


def test_pruning_removes_what_was_named_and_nothing_else(loopback: Loopback, tmp_path: Path) -> None:
    loopback.add(ID)
    competition = registry.get(ID)
    prepare(ID, data_dir=tmp_path, options=PreparationOptions(verify=False, keep_raw=True))
    parts = {part.name: part.bytes for part in pruning.parts_of(competition, tmp_path)}
    assert parts.keys() == {"zip", "raw", "prepared"}
    assert pruning.prune(competition, tmp_path, ("zip", "raw")) == parts["zip"] + parts["raw"]
    assert is_prepared(competition, dataset_folder(competition, tmp_path))
    assert "raw" not in names(tmp_path)
    with pytest.raises(UsageProblem, match="no part 'everything'"):
        pruning.prune(competition, tmp_path, ("everything",))
    pruning.prune(competition, tmp_path, pruning.PARTS)
    assert pruning.parts_of(competition, tmp_path) == ()


def test_the_page_of_a_portal_is_not_kept_as_a_zip(loopback: Loopback, tmp_path: Path) -> None:
    loopback.add(ID, archive=b"<!DOCTYPE html><title>Sign in to this network</title>")
    with pytest.raises(KaggleFailure, match=r"not a zip: it begins with '<!DOCTYPE html>"):
        prepare(ID, data_dir=tmp_path)
    assert names(tmp_path) == set()
    loopback.add(ID)
    assert exact(prepare(ID, data_dir=tmp_path, options=PreparationOptions(verify=False)))

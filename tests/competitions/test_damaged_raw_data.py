"""Raw data that are damaged or incomplete are refused by name, and leave nothing behind; damaged.toml has the cases."""

from __future__ import annotations

import json
import shutil
import tarfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import py7zr
import pytest

from mlebench_console.competitions.model import Edition
from tests.competitions.changed_raw import prepared_after, refused
from tests.competitions.mended.editions import answers, judged_against, sample
from tests.conformance.trees import VECTORS, Vector, unpack_tar


@dataclass(frozen=True)
class Case:
    """Which files of a competition are damaged, and what the refusal must say of them.

    Attributes:
        of: the competition.
        file: a file, or a pattern.
        edition: that prepares it.
        all: whether all matches of the pattern are damaged, or the first one.
        says: what the message must say, `{name}` being the file's name; if empty, that name.
        names_one_of: a column of which the message must name a cell instead.
        column: what a damage sets to `value`.
        value: see `column`.
        member: what a damage puts into an archive.
        content: what a damage writes, as Latin 1.
        old: what a damage replaces by `new`.
        new: see `old`.
        lines: how many lines a damage keeps.
    """

    of: str
    file: str
    edition: Edition = "v1"
    all: bool = False
    says: str = "{name}"
    names_one_of: str = ""
    column: str = ""
    value: str = ""
    member: str = ""
    content: str = ""
    old: str = ""
    new: str = ""
    lines: int = 0

    def paths(self, raw: Path) -> list[Path]:
        """Return the files to damage; one that is not there is to be made."""
        found = sorted(raw.glob(self.file)) or [raw / self.file]
        return found if self.all else found[:1]

    def expected(self, paths: list[Path]) -> list[str]:
        """Return of what the message must say something."""
        if self.names_one_of:
            return pd.read_csv(paths[0], dtype=str)[self.names_one_of].tolist()
        return [self.says.replace("{name}", path.name) for path in paths]


Damage = Callable[[Path, Case], Any]


def bytes_of(change: Callable[[bytes, Case], bytes]) -> Damage:
    return lambda path, case: path.write_bytes(change(path.read_bytes(), case))


def lines_of(choose: Callable[[list[bytes], Case], list[bytes]]) -> Damage:
    return bytes_of(lambda whole, case: b"".join(choose(whole.splitlines(keepends=True), case)))


def document_of(change: Callable[[Any], Any]) -> Damage:
    def damage(path: Path, _case: Case) -> None:
        path.write_text(json.dumps(change(json.loads(path.read_text(encoding="latin-1")))))

    return damage


def remove(path: Path, _case: Case) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def make_folder(path: Path, _case: Case) -> None:
    path.unlink()
    path.mkdir()


def pack_another_member(path: Path, case: Case) -> None:
    path.unlink()
    content = case.content.encode("latin-1")
    if path.suffix == ".7z":
        with py7zr.SevenZipFile(path, "w") as packed:
            packed.writestr(content, case.member)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(case.member, content)


def set_column(path: Path, case: Case) -> None:
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    rows.assign(**{case.column: case.value}).to_csv(path, index=False)


def misplace_an_image(document: dict[str, Any]) -> dict[str, Any]:
    document["images"][3]["file_name"] = "images/999/99/1.jpg"
    return document


def number_files(folder: Path, _case: Case) -> None:
    for number, path in enumerate(sorted(folder.iterdir())):
        path.rename(folder / f"{number}{path.suffix}")


DAMAGES: dict[str, Damage] = {
    "missing": remove,
    "empty": bytes_of(lambda _, case: b""),
    "garbled": bytes_of(lambda _, case: b"garbled"),
    "half a header": bytes_of(lambda whole, _: whole[: len(whole.splitlines()[0]) // 2]),
    "three bytes": bytes_of(lambda whole, _: whole[:3]),
    "two thirds": bytes_of(lambda whole, _: whole[: len(whole) * 2 // 3 + 7]),
    "40 bytes short": bytes_of(lambda whole, _: whole[:-40]),
    "3 bytes short": bytes_of(lambda whole, _: whole[:-3]),
    "1 byte short": bytes_of(lambda whole, _: whole[:-1]),
    "marks of UTF-16 before": bytes_of(lambda whole, _: b"\xff\xfe" + whole),
    "zeros before": bytes_of(lambda whole, _: b"\x00" * 50 + whole),
    "surplus behind": bytes_of(lambda whole, _: whole + b"a,b" * 99),
    "other words": bytes_of(lambda whole, case: whole.replace(case.old.encode(), case.new.encode())),
    "its first lines": lines_of(lambda lines, case: lines[: case.lines]),
    "half of its lines": lines_of(lambda lines, _: lines[: len(lines) // 2]),
    "another content": lambda path, case: path.write_bytes(case.content.encode("latin-1")),
    "another member": pack_another_member,
    "a folder": make_folder,
    "one value in a column": set_column,
    "only its first record": document_of(lambda records: records[:1]),
    "a further field": document_of(lambda document: {**document, "more": 1}),
    "an image in another folder": document_of(misplace_an_image),
    "a single label": lambda path, _: np.save(path, np.array(["1"])),
    "numbered in each folder": number_files,
    "with a second picture": lambda path, _: (path.parent / "slice_0001_1_1_1_1.png").write_bytes(b""),
}


def cases() -> Iterator[Any]:
    """The cases of the table, each with the damages of its group."""
    table = tomllib.loads(Path(__file__).with_name("damaged.toml").read_text(encoding="utf-8"))
    for group in table["group"]:
        for values in group["cases"]:
            case, damages = Case(**values), group["damages"]
            yield pytest.param(case, damages, id=f"{case.of}-{case.file}-{case.edition}-{', '.join(damages)}")


@pytest.mark.parametrize(("case", "damages"), cases())
def test_damaged_raw_data_are_refused_by_name(case: Case, damages: list[str], tmp_path: Path) -> None:
    raw = Vector(VECTORS / case.of).unpack_raw(tmp_path / "raw")
    paths = case.paths(raw)
    expected = case.expected(paths)
    whole = {path: path.read_bytes() for path in paths if path.is_file()}
    for name in damages:
        for path in paths:
            DAMAGES[name](path, case)
        message = refused(case.of, raw, tmp_path, case.edition)
        assert any(text in message for text in expected), (name, message)
        if name != damages[-1]:
            for path, content in whole.items():
                path.write_bytes(content)


def test_a_photo_that_the_tar_or_the_unpacked_folder_lacks_is_named(tmp_path: Path) -> None:
    competition_id = "inaturalist-2019-fgvc6"
    raw = Vector(VECTORS / competition_id).unpack_raw(tmp_path / "raw")
    name = json.loads((raw / "train2019.json").read_text())["images"][0]["file_name"]
    unpack_tar(raw / "train_val2019.tar.gz", tmp_path)
    (tmp_path / name).unlink()
    (raw / "train_val2019.tar.gz").unlink()
    with tarfile.open(raw / "train_val2019.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "train_val2019", "train_val2019")
    assert f"{name} is missing" in refused(competition_id, raw, tmp_path)
    (tmp_path / "train_val2019").rename(raw / "train_val2019")
    assert f"{Path(name).name} is missing" in refused(competition_id, raw, tmp_path)


@pytest.mark.parametrize(
    ("competition_id", "column", "value", "written"),
    [
        ("plant-pathology-2021-fgvc8", "labels", "N/A", ""),
        ("siim-isic-melanoma-classification", "age_approx", "0.30000000000000004", "0.3"),
        ("osic-pulmonary-fibrosis-progression", "Percent", "0.30000000000000004", "0.30000000000000004"),
    ],
)
def test_odd_cells_are_written_as_pandas_2_wrote_them(
    competition_id: str, column: str, value: str, written: str, tmp_path: Path
) -> None:
    case = Case(competition_id, "train.csv", column=column, value=value)
    made = prepared_after(lambda raw: set_column(raw / case.file, case), competition_id, "v1", tmp_path)
    table = pd.read_csv(made / "public" / "train.csv", dtype=str, keep_default_na=False)
    assert set(table[column]) == {written}


@pytest.mark.parametrize(
    ("competition_id", "column"),
    [
        ("google-research-identify-contrails-reduce-global-warming", "encoded_pixels"),
        ("siim-covid19-detection", "PredictionString"),
        ("3d-object-detection-for-autonomous-vehicles", "PredictionString"),
        ("hubmap-kidney-segmentation", "encoding"),
        ("kuzushiji-recognition", "labels"),
        ("tgs-salt-identification-challenge", "rle_mask"),
        ("uw-madison-gi-tract-image-segmentation", "predicted"),
    ],
)
def test_no_submission_is_blamed_for_damaged_answers(
    competition_id: str, column: str, tmp_path: Path
) -> None:
    damaged = answers(competition_id, "v1")
    assert column in damaged
    for judgement in judged_against(
        damaged.assign(**{column: "12 secret"}), sample(competition_id, "v1"), competition_id, tmp_path
    ):
        assert judgement.outcome == "grader_error"
        assert "secret" not in judgement.message

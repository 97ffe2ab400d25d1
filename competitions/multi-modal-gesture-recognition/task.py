"""Multi-modal Gesture Recognition: one archive of recordings held out, scored by edits of gesture lists."""

import gzip
import random
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import archives, checks, placing
from mlebench_console.competitions.kit.archives import tars
from mlebench_console.competitions.kit.metrics.texts import sequence_distances
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.raw import RawDataProblem, RawPath, read_as
from mlebench_console.competitions.task import Grading, Preparation

from . import matlab

ID, TARGET = "Id", "Sequence"
HELD_OUT, LABELS = "training4.tar.gz", "Labels"
MEDIA, DATA = {".wav", ".mp4", ".avi"}, ".mat"  # the kinds of files in recordings
PUBLISHED = [
    *(f"{part}{number}.tar.gz" for part in ("training", "validation") for number in (1, 2, 3)),
    *("devel01-40.7z", "valid_all_files_combined.7z", "sample_code_mmrgc.zip"),
]
GESTURES = range(1, 21)
ID_LETTERS = 4


def prepare(job: Preparation) -> None:
    """Hold out the last archive; edition corrected removes the labels from its recordings."""
    source = job.source(HELD_OUT)
    published = [
        (job.source(name), job.public / name) for name in PUBLISHED
    ]  # raises early if one is missing
    names = [member.name for member, _ in tars.files(source)]
    ids = sorted(PurePosixPath(name).stem[-ID_LETTERS:] for name in names if _is_recording(name))
    table = labelled_table.read(job, "training.csv", needs=[ID, TARGET], text=())
    unknown = sorted(set(ids) - set(table[ID]))
    if unknown or not ids:
        raise RawDataProblem(
            f"{job.source('training.csv')} does not match {HELD_OUT}",
            f"recording {unknown[0]} is not in it" if unknown else "the archive contains no recordings",
        )
    held_out = table[ID].isin(ids)
    labelled_table.write_parts(
        job,
        table[~held_out],
        pd.DataFrame({ID: ids}),
        sample=_guesses(ids),
        answers=table[held_out],
        train_name="training.csv",
    )
    if job.corrected:
        _write_without_labels(job, source, job.public / "test.tar.gz")
    else:
        placing.copy_file(job, source, job.public / "test.tar.gz")
    # placed last, because they are large
    placing.place(job, published, "archives")


def _is_recording(name: str) -> bool:
    path = PurePosixPath(name)
    return len(path.parts) == 1 and path.suffix == ".zip"


def _guesses(ids: list[str]) -> pd.DataFrame:
    rng = random.Random(0)  # noqa: S311 the draw is part of the dataset
    orders = [" ".join(map(str, rng.sample(GESTURES, len(GESTURES)))) for _ in ids]
    return pd.DataFrame({ID: ids, TARGET: orders})


def _write_without_labels(job: Preparation, source: RawPath, target: Path) -> None:
    with (  # no modification time, so that the bytes are always the same
        gzip.GzipFile(target, "xb", compresslevel=1, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as writer,
    ):
        for member, content in tars.files(source):
            if _is_recording(member.name):
                name = PurePosixPath(member.name).name
                recording, emptied = job.scratch / name, job.scratch / f"emptied-{name}"
                recording.write_bytes(content.read())
                _empty_labels(job, recording, emptied)
                entry = tarfile.TarInfo(name)
                entry.size = emptied.stat().st_size
                with emptied.open("rb") as stream:
                    writer.addfile(entry, stream)
                recording.unlink()
                emptied.unlink()


def _empty_labels(job: Preparation, recording: Path, emptied: Path) -> None:
    """Copy a recording without labels, and without anything else that might reveal them.

    Omitted are data files of an unknown format, and files of a kind that recordings do not have.
    """
    kinds = {name: PurePosixPath(name).suffix.lower() for name in archives.files_in(recording)}
    data = [name for name, kind in kinds.items() if kind == DATA]
    archives.repack(job, recording, emptied, [name for name, kind in kinds.items() if kind in MEDIA])
    with zipfile.ZipFile(emptied, "a", zipfile.ZIP_DEFLATED) as writer:
        for name in data:
            with archives.opened_member(recording, name) as stream:
                content = stream.read()
            if matlab.is_level_5(content):
                member = zipfile.ZipInfo(name)
                member.external_attr = 0o644 << 16
                with read_as("a MATLAB file", f"{name} of {recording.name} in {HELD_OUT}", ValueError):
                    writer.writestr(member, matlab.emptied(content, LABELS), zipfile.ZIP_DEFLATED)


def grade(case: Grading) -> np.float64:
    """Return the edits between predicted and true gestures per true gesture; v1 refuses an empty list."""
    rows = checks.paired_rows(case, ID, TARGET)
    table = case.source.read(text=(TARGET,)) if case.corrected else case.submission
    predicted = _gestures(table[TARGET])
    with checks.reading_answers():
        true = _gestures(case.answers[TARGET])
    edits = sequence_distances(true, [predicted[row] for row in rows])
    return np.float64(edits.sum() / sum(map(len, true)))


def _gestures(cells: pd.Series) -> list[list[int]]:
    lists = []
    for row, cell in enumerate(cells.tolist()):
        try:
            lists.append([int(token) for token in str(cell).split()])
        except ValueError:
            expected = "whole numbers separated by blanks"
            raise checks.InvalidCell(row, TARGET, cell, "cannot be read", expected) from None
    return lists

"""Denoising Dirty Documents: a split of scanned pages, scored by RMSE over all pixels."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from mlebench_console.competitions.kit import archives, checks, metrics, splits
from mlebench_console.competitions.raw import read_as
from mlebench_console.competitions.task import Grading, Preparation

DIRTY, CLEAN = "train", "train_cleaned"


def prepare(job: Preparation) -> None:
    """Split the pages; the clean version of test pages becomes the answers, pixel by pixel."""
    pages = job.source(f"{DIRTY}.zip")
    names = sorted(name for name in archives.files_in(pages) if name.endswith(".png"))
    split = splits.by_row(job, len(names))
    held_out = sorted(PurePosixPath(names[place]).name for place in split.test)
    targets = {f"{DIRTY}/{name}": job.public / "test" / name for name in held_out}
    cleaned = job.source(f"{CLEAN}.zip")
    answers = [f"{CLEAN}/{name}" for name in held_out]
    for archive, elsewhere in ((pages, targets), (cleaned, {})):
        names = [name for name in archives.files_in(archive) if name not in answers]
        kept = {name: job.public / archives.safe_path(name) for name in names}
        archives.extract_as(job, archive, kept | elsewhere)
    _write_pixels(job, zip(held_out, archives.read_members(cleaned, answers), strict=True))


def _write_pixels(job: Preparation, pages: Iterable[tuple[str, bytes]]) -> None:
    levels = [repr(level / 255) for level in range(256)]  # as few as 256 different values
    targets = [job.private / "answers.csv", job.public / "sampleSubmission.csv"]
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
    with targets[0].open("w", newline="\n") as answers, targets[1].open("w", newline="\n") as sample:
        for stream in (answers, sample):
            stream.write("id,value\n")
        for name, content in pages:
            for row, cells in enumerate(grey_levels(content, name).tolist(), start=1):
                start = f"{PurePosixPath(name).stem}_{row}_"
                answers.writelines(
                    [f"{start}{column},{levels[cell]}\n" for column, cell in enumerate(cells, start=1)]
                )
                sample.writelines([f"{start}{column},1\n" for column in range(1, len(cells) + 1)])


def grey_levels(content: bytes, name: str) -> npt.NDArray[np.uint8]:
    """Read a PNG image as 256 levels of grey; colours are weighted, transparency is ignored.

    Raises:
        DataProblem: the image is damaged, or 16 bits deep.
    """
    from PIL import Image

    with read_as("a PNG image", name, OSError, SyntaxError, ValueError):
        # checks more of its checksums than reading does
        Image.open(BytesIO(content), formats=["PNG"]).verify()
        with Image.open(BytesIO(content), formats=["PNG"]) as picture:
            if picture.mode.startswith("I"):
                raise ValueError("it is 16 bits deep")
            return np.asarray(picture.convert("L"))


def grade(case: Grading) -> float:
    """Return the root mean squared error of the brightness of all pixels together."""
    rows = checks.paired_rows(case, "id", "value")
    predicted = checks.numbers(case.submission, "value", spelt="python")[rows]
    return metrics.rmse(checks.numbers(case.answers, "value"), predicted)

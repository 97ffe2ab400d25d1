"""Herbarium 2021: a split of plant sheets species by species, scored by macro F1."""

from dataclasses import replace

from competitions.kit import placing
from competitions.kit.tasks import annotated_images, graders
from competitions.task import Grading, Preparation

MOST = 10  # test sheets of a species on Kaggle


def prepare(job: Preparation) -> None:
    """Split the sheets of each species.

    Edition corrected holds out at most ten of each, as Kaggle did, and numbers them by their bytes.
    """
    collection = annotated_images.read(job, "train/metadata.json")
    parts = annotated_images.split(job, collection.images, most=MOST if job.corrected else None)
    raw, public = job.source("train"), job.public / "test"
    if job.corrected:
        parts = replace(parts, test=annotated_images.ordered_by_content(job, parts.test, raw))
    test = annotated_images.write_numbered(job, collection, parts, "")
    pairs = [
        (raw / old.image["file_name"], public / new["file_name"])
        for old, new in zip(parts.test, test, strict=True)
    ]
    placing.place(job, pairs, "test", anew=True)


def grade(case: Grading) -> float:
    """Macro F1 of the species."""
    return graders.macro_f1(case, id_column="Id", target="Predicted")

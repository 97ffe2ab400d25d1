"""Herbarium 2021: a split of plant sheets species by species, scored by macro F1."""

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.tasks import annotated_images, graders
from mlebench_console.competitions.task import Grading, Preparation

MOST = 10  # test sheets of a species on Kaggle


def prepare(job: Preparation) -> None:
    """Split the sheets of each species.

    Edition corrected holds out at most ten of each, as Kaggle did, and numbers them in the order of a
    digest of their bytes.
    """
    collection = annotated_images.read(job, "train/metadata.json")
    most = MOST if job.corrected else None
    train, test = annotated_images.split(job, collection.images, most=most, hidden_order=job.source("train"))
    pairs = annotated_images.write_numbered(job, collection, train, test, "")
    placing.place(job, pairs, "test", anew=True)


def grade(case: Grading) -> float:
    """Return the macro F1 of the species."""
    return graders.macro_f1(case, id_column="Id", target="Predicted")

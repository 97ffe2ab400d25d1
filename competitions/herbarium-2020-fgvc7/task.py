"""Herbarium 2020: a split of plant sheets species by species, scored by macro F1."""

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.placing import pseudonyms
from mlebench_console.competitions.kit.tasks import annotated_images, graders
from mlebench_console.competitions.kit.tasks.annotated_images import Collection
from mlebench_console.competitions.task import Grading, Preparation

BASE = "nybg2020/"
FIELDS = {"annotations", "categories", "images", "info", "licenses", "regions"}
MOST = 10  # test sheets of a species on Kaggle


def prepare(job: Preparation) -> None:
    """Split the sheets of each species.

    Edition corrected holds out at most ten of each, as Kaggle did, numbers them in the order of a digest
    of their bytes, and changes files so that their hashes cannot be looked up.
    """
    collection = annotated_images.read(job, f"{BASE}train/metadata.json", encoding="latin-1")
    _check(job, collection)
    most = MOST if job.corrected else None
    raw = job.source(f"{BASE}train")
    train, test = annotated_images.split(job, collection.images, most=most, hidden_order=raw)
    pairs = annotated_images.write_numbered(job, collection, train, test, BASE)
    if job.corrected:
        pseudonyms.place_unrecognisable(job, pairs)
    else:
        placing.place(job, pairs, "test", anew=True)


def _check(job: Preparation, collection: Collection) -> None:
    unknown = sorted(set(collection.fields) - FIELDS)
    if unknown:
        raise job.unexpected(job.source(collection.name), f"it has an unknown field {unknown[0]!r}")
    for each in collection.images:
        folder = f"images/{each.category // 100:03d}/{each.category % 100:02d}"
        name = each.image["file_name"]
        if name.rpartition("/")[0] != folder:
            raise job.unexpected(job.source(collection.name), f"{name} does not lie in {folder}")


def grade(case: Grading) -> float:
    """Return the macro F1 of the species."""
    return graders.macro_f1(case, id_column="Id", target="Predicted")

"""iNaturalist 2019: photos of one tar split by species into two tars, scored by top-1 error."""

import hashlib
from collections.abc import Sequence

import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, placing
from mlebench_console.competitions.kit.archives import tars
from mlebench_console.competitions.kit.archives.tars import Destination
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import annotated_images
from mlebench_console.competitions.kit.tasks.annotated_images import Labelled, Record
from mlebench_console.competitions.task import Grading, Preparation

PHOTOS = "train_val2019"
DUMMY = 654


def prepare(job: Preparation) -> None:
    """Split the photos of each species; edition corrected renumbers and renames test photos."""
    collection = annotated_images.read(job, "train2019.json")
    train, held_out = annotated_images.split(job, collection.images)
    old = _by_hidden_order(held_out) if job.corrected else held_out
    test = [
        _anonymous(each.image, number) if job.corrected else _moved(each.image)
        for number, each in enumerate(old)
    ]
    documents = {"train": collection.only(train), "test": collection.without_labels(test)}
    for part, document in documents.items():
        json_files.write_json(job.public / f"{part}2019.json", document, indent=4, sort_keys=True)
    placing.copy_file(job, job.source("val2019.json"), job.public / "val2019.json")
    answers = pd.DataFrame(
        {"id": [image["id"] for image in test], "predicted": [each.category for each in old]}
    )
    labelled_table.write_answers(job, answers, answers.assign(predicted=DUMMY))
    _place_photos(job, train, old, test)


def _moved(image: Record) -> Record:
    return {**image, "file_name": f"test2019/{image['file_name'].rpartition('/')[2]}"}


def _by_hidden_order(test: Sequence[Labelled]) -> list[Labelled]:
    # the old file names are random and not published, so agents cannot derive anything from this order
    return sorted(test, key=lambda each: hashlib.blake2b(each.image["file_name"].encode()).digest())


def _anonymous(image: Record, number: int) -> Record:
    kept = {key: value for key, value in image.items() if key != "rights_holder"}
    return {**kept, "id": number, "file_name": f"test2019/{number:06d}.jpg"}


def _place_photos(
    job: Preparation, train: Sequence[Labelled], old_test: Sequence[Labelled], test: Sequence[Record]
) -> None:
    destinations, hidden = {}, job.public / "test2019.tar.gz"
    for each in train:
        name = each.image["file_name"]
        destinations[name] = Destination(job.public / f"{PHOTOS}.tar.gz", name.removeprefix(f"{PHOTOS}/"))
    for each, image in zip(old_test, test, strict=True):
        destinations[each.image["file_name"]] = Destination(hidden, image["file_name"].rpartition("/")[2])
    if (job.raw / PHOTOS).is_dir():  # already extracted
        tars.pack(job, job.raw, destinations)
    else:
        tars.distribute(job, job.source(f"{PHOTOS}.tar.gz"), destinations, by_name=[hidden])


def grade(case: Grading) -> float:
    """Return the share of photos whose first guess is wrong."""
    rows = checks.paired_rows(case, "id", "predicted")
    guessed = checks.first_class_numbers(case.submission, "predicted")[rows]
    return 1.0 - metrics.accuracy(case.answers["predicted"].to_numpy(), guessed)

"""Herbarium 2022: a split of plant scans species by species, scored by macro F1."""

import itertools
from collections.abc import Sequence

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.kit.tasks import annotated_images, graders
from mlebench_console.competitions.kit.tasks.annotated_images import Labelled
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split and rename the scans of each species; edition corrected orders test scans by a digest of their bytes."""
    collection = annotated_images.read(job, "train_metadata.json", needs=(), image_key="image_id")
    raw = job.source("train_images")
    trained, tested = annotated_images.split(job, collection.images, shuffle_from=1, hidden_order=raw)
    train = _renamed(trained)
    test = [
        {**each.image, "image_id": str(number), "file_name": f"{number // 1000:03d}/test-{number:06d}.jpg"}
        for number, each in enumerate(tested)
    ]
    json_files.write_json(
        job.public / "train_metadata.json", collection.only(train), indent=4, sort_keys=True
    )
    json_files.write_json(job.public / "test_metadata.json", test, indent=4, sort_keys=True)
    names = {
        "train": [each.image["file_name"] for each in train],
        "test": [each["file_name"] for each in test],
    }
    for part, images in (("train", trained), ("test", tested)):
        target = job.public / f"{part}_images"
        pairs = zip(images, names[part], strict=True)
        wanted = [(raw / old.image["file_name"], target / new) for old, new in pairs]
        placing.place(job, wanted, f"{part}_images", anew=part == "test")
    annotated_images.write_answers(job, tested, sample=42)


def _renamed(images: Sequence[Labelled]) -> list[Labelled]:
    renamed = []
    for category, members in itertools.groupby(images, key=lambda each: each.category):
        folder = f"{category // 100:03d}/{category % 100:02d}"
        for number, each in enumerate(members, start=1):
            name = f"{category:05d}__{number:03d}"
            image = {**each.image, "image_id": name, "file_name": f"{folder}/{name}.jpg"}
            renamed.append(Labelled(image, {**each.annotation, "image_id": name}))
    return renamed


def grade(case: Grading) -> float:
    """Return the macro F1 of the species."""
    return graders.macro_f1(case, id_column="Id", target="Predicted")

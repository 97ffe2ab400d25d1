"""Images with one annotation each in COCO-like JSON: read, split per class, renumber and write them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mlebench_console.competitions.kit import placing, splits
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.kit.splits import duplicates
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.raw import RawPath, read_as
from mlebench_console.competitions.task import Preparation

Record = dict[str, Any]


@dataclass(frozen=True)
class Labelled:
    """The records of an image and its annotation."""

    image: Record
    annotation: Record

    @property
    def category(self) -> int:
        """The number of the image's class."""
        category: int = self.annotation["category_id"]
        return category


@dataclass(frozen=True)
class Collection:
    """A document of annotated images: its other fields, and the images in file order."""

    name: str
    fields: Record
    images: list[Labelled]

    def only(self, images: Sequence[Labelled]) -> Record:
        """Return the document with only these images."""
        return {
            **self.fields,
            "annotations": [each.annotation for each in images],
            "images": [each.image for each in images],
        }

    def without_labels(self, images: Sequence[Record]) -> Record:
        """Return a test document: some image records, the information and the licences."""
        return {"images": list(images), **{key: self.fields[key] for key in ("info", "licenses")}}


def read(
    job: Preparation,
    name: str,
    *,
    needs: Sequence[str] = ("info", "licenses"),
    image_key: str = "id",
    encoding: str = "utf-8",
) -> Collection:
    """Read a document whose lists `annotations` and `images` run in parallel.

    Args:
        job: whose raw folder to look in.
        name: the file.
        needs: other fields that the document must have.
        image_key: the field that names an image in its own record; annotations call it `image_id`.
        encoding: of the file.

    Raises:
        DataProblem: the file is missing, damaged, or its lists are not parallel.
    """
    path = job.source(name)
    with read_as("annotated images", path, ValueError, KeyError, TypeError):
        document = json_files.read_json(path, encoding=encoding)
        images, annotations = document["images"], document["annotations"]
        parallel = len(images) == len(annotations) and all(
            annotation["image_id"] == image[image_key]
            and "category_id" in annotation
            and "file_name" in image
            for annotation, image in zip(annotations, images, strict=True)
        )
        fields = {key: document[key] for key in needs} | document
    if not parallel:
        raise job.unexpected(path, "its lists images and annotations do not run in parallel")
    return Collection(name, fields, list(map(Labelled, images, annotations)))


def split(
    job: Preparation,
    images: Sequence[Labelled],
    *,
    shuffle_from: int = 5,
    most: int | None = None,
    hidden_order: RawPath | None = None,
) -> tuple[list[Labelled], list[Labelled]]:
    """Split each class as `splits.shuffled_per_class` does, then shuffle all test images once; return train and test.

    If the images' folder is given as `hidden_order`, edition corrected orders the test images by a digest of their
    bytes, so that their order reveals nothing about their classes.
    """
    categories = [each.category for each in images]
    size, seed = job.number("test_size"), job.integer("seed")
    parts = splits.shuffled_per_class(categories, size, seed, shuffle_from=shuffle_from, most=most)
    test = [images[place] for place in parts.test]
    random.Random(seed).shuffle(test)  # noqa: S311 as in MLE-bench: the order must be the same
    if job.corrected and hidden_order is not None:
        order = duplicates.ordered_by_content(job, [hidden_order / each.image["file_name"] for each in test])
        test = [test[place] for place in order]
    return [images[place] for place in parts.train], test


def write_numbered(
    job: Preparation, collection: Collection, train: Sequence[Labelled], test: Sequence[Labelled], base: str
) -> list[tuple[RawPath, Path]]:
    """Write both parts below `base` with their documents, answers and sample submission.

    Train images keep their names; test images are numbered, in folders of a thousand. Returns source and target of
    the test images, which the caller places.
    """
    raw, public = job.source(f"{base}train"), job.public / base
    numbered = [
        {**each.image, "id": str(number), "file_name": f"images/{number // 1000:03d}/{number}.jpg"}
        for number, each in enumerate(test)
    ]
    documents = {"train": collection.only(train), "test": collection.without_labels(numbered)}
    for name, document in documents.items():
        json_files.write_json(public / name / "metadata.json", document, indent=4, sort_keys=True)
    placing.place_named(job, [each.image["file_name"] for each in train], raw, public / "train")
    write_answers(job, test, sample=0)
    return [
        (raw / old.image["file_name"], public / "test" / new["file_name"])
        for old, new in zip(test, numbered, strict=True)
    ]


def write_answers(job: Preparation, test: Sequence[Labelled], *, sample: int) -> None:
    """Write the category of each running number, and a sample submission of one constant."""
    answers = pd.DataFrame({"Id": range(len(test)), "Predicted": [each.category for each in test]})
    labelled_table.write_answers(job, answers, answers.assign(Predicted=sample))

"""Annotated images are read as they belong together, split, numbered and written."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mlebench_console.competitions.kit import splits
from mlebench_console.competitions.kit.tasks import annotated_images
from mlebench_console.foundation.problems import DataProblem
from tests.competitions.conftest import MakeJob

COMPETITION = "herbarium-2021-fgvc8"


def document(categories: list[int]) -> dict[str, Any]:
    images = [{"id": 10 + number, "file_name": f"images/{number}.jpg"} for number in range(len(categories))]
    annotations = [
        {"image_id": image["id"], "category_id": category}
        for image, category in zip(images, categories, strict=True)
    ]
    return {"annotations": annotations, "images": images, "info": {}, "licenses": [], "regions": [1]}


def write(raw: Path, value: Any) -> None:
    (raw / "x.json").write_text(json.dumps(value))


def test_test_images_are_shuffled_once_after_the_split(make_job: MakeJob) -> None:
    job = make_job(COMPETITION)
    categories = [number % 7 for number in range(100)]
    write(job.raw, document(categories))
    images = annotated_images.read(job, "x.json").images
    train, test = annotated_images.split(job, images)
    plain = splits.shuffled_per_class(categories, 0.2, 0)
    expected = plain.test.tolist()
    random.Random(0).shuffle(expected)
    assert [each.image["id"] - 10 for each in test] == expected
    assert [each.image["id"] - 10 for each in train] == plain.train.tolist()


def test_documents_keep_their_other_fields_but_hide_them_from_test(make_job: MakeJob) -> None:
    job = make_job(COMPETITION)
    write(job.raw, document([1, 2]))
    collection = annotated_images.read(job, "x.json")
    kept = collection.only(collection.images[1:])
    assert kept == {**document([1, 2]), "images": kept["images"], "annotations": kept["annotations"]}
    assert [each["image_id"] for each in kept["annotations"]] == [11]
    test = [{"id": "0", "file_name": "images/000/0.jpg"}]
    assert collection.without_labels(test) == {"images": test, "info": {}, "licenses": []}


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        "text",
        document([1, 2]) | {"images": document([1])["images"]},
        document([1, 2]) | {"images": document([1, 2])["images"][::-1]},
        document([1]) | {"annotations": [{"image_id": 10}]},
        document([1]) | {"annotations": [7]},
        {key: value for key, value in document([1]).items() if key != "info"},
    ],
)
def test_documents_of_another_form_are_named(value: Any, make_job: MakeJob) -> None:
    job = make_job(COMPETITION)
    write(job.raw, value)
    with pytest.raises(DataProblem, match=r"x\.json"):
        annotated_images.read(job, "x.json")

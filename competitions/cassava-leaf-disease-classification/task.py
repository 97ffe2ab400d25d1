"""Cassava Leaf Disease: a split of TFRecord files and of the photos in them, scored by accuracy."""

from mlebench_console.competitions.kit import placing, splits
from mlebench_console.competitions.kit.formats import tfrecords
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.raw import RawDataProblem
from mlebench_console.competitions.task import Grading, Preparation

DISEASES = "label_num_to_disease_map.json"
SHOWN = ("image", "image_name")


def prepare(job: Preparation) -> None:
    """Split the record files; edition corrected removes the labels from the test records."""
    folder = job.source("train_tfrecords")
    files = sorted(path for path in folder.iterdir() if path.suffix == ".tfrec")
    _check_numbers(job, [path.name for path in files])
    split = splits.by_row(job, len(files))
    test_images: set[str] = set()
    for part, positions in (("train", split.train), ("test", split.test)):
        for number, position in enumerate(positions):
            source = files[position]
            count = source.stem.partition("-")[2]
            target = job.public / f"{part}_tfrecords" / f"ld_{part}{number:02d}-{count}.tfrec"
            if part == "test":
                test_images.update(tfrecords.texts(source, "image_name"))
            if part == "test" and job.corrected:
                tfrecords.write_filtered(source, target, SHOWN)
            else:
                placing.copy_file(job, source, target)
    table = labelled_table.read(job, "train.csv", needs=["image_id", "label"], text=["image_id"])
    in_test = table["image_id"].isin(test_images)
    train, test = table[~in_test], table[in_test]
    labelled_table.write_labels(job, train, test, sample=test.assign(label=4))
    placing.copy_file(job, job.source(DISEASES), job.public / DISEASES)
    for rows, name in ((train, "train_images"), (test, "test_images")):
        placing.place_named(job, rows["image_id"], job.source("train_images"), job.public / name)


def _check_numbers(job: Preparation, names: list[str]) -> None:
    """Refuse data with a record file missing, since that would change the split."""
    for number, name in enumerate(names):
        if not name.startswith(f"ld_train{number:02d}-"):
            raise RawDataProblem(
                f"{job.source('train_tfrecords')} is incomplete: ld_train{number:02d}-*.tfrec is missing",
                f"found {name} in its place",
            )


def grade(case: Grading) -> float:
    """Return the share of photos whose class number is right."""
    return graders.accuracy(case, id_column="image_id", target="label")

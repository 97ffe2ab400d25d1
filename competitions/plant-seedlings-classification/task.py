"""Plant Seedlings: a row split of photos in species folders, scored by micro F1, which is accuracy here."""

import pandas as pd

from mlebench_console.competitions.kit import placing
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation


def prepare(job: Preparation) -> None:
    """Split the photos in the order of their sorted folders; test photos are published without folders.

    In edition v1 the order of test photos follows from that list, which is sorted by species.
    """
    photos = job.source("train")
    names = [
        (name, species.name)
        for species in sorted(path for path in photos.iterdir() if path.is_dir())
        for name in sorted(path.name for path in species.iterdir())
        if name.endswith(".png")
    ]
    table = pd.DataFrame(names, columns=["file", "species"])
    train, test = labelled_table.divided(job, table)
    if job.corrected:
        test = test.sort_values("file", kind="stable")
    labelled_table.write_answers(job, test, test.assign(species="Sugar beet"))
    paths = train["species"] + "/" + train["file"]
    placing.place_named(job, paths, photos, job.public / "train")
    pairs = zip(test["species"], test["file"], strict=True)
    shown = [(photos / species / name, job.public / "test" / name) for species, name in pairs]
    placing.place(job, shown, "test", anew=True)


def grade(case: Grading) -> float:
    """Return the share of photos whose species is named right."""
    return graders.name_accuracy(case, id_column="file", target="species")

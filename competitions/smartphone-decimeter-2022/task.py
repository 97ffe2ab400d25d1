"""Smartphone Decimeter Challenge 2022: a split by day of drives, scored by distances from the true track."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, placing, splits
from mlebench_console.competitions.kit.tables import labelled_table, pandas2
from mlebench_console.competitions.raw import RawDataProblem, RawPath, walk
from mlebench_console.competitions.task import Grading, Preparation

Numbers = npt.NDArray[np.float64]

TIME = "UnixTimeMillis"
PLACE = ["LatitudeDegrees", "LongitudeDegrees"]
COLUMNS = ["tripId", TIME, *PLACE]
POINT = f"tripId and {TIME}"
TRUTH = "ground_truth.csv"
TRACK_SUFFIX = ".nmea"
EARTH = 6_371_000.0


def prepare(job: Preparation) -> None:
    """Split the days; test drives lose their true tracks, in edition corrected also the receiver's logs of them."""
    source = job.source("train")
    drives = sorted(path.name for path in source.iterdir() if path.is_dir())
    dates, days = pd.factorize(np.array([_date(drive) for drive in drives], dtype=object), sort=True)
    chosen = splits.by_row(job, len(days)).test
    test = [drive for drive, date in zip(drives, dates, strict=True) if date in chosen]
    train = [drive for drive in drives if drive not in test]
    hidden = {TRUTH, *(_track_logs(source, test) if job.corrected else ())}
    for part, names, left_out in (("train", train, set()), ("test", test, hidden)):
        folders = [(source / name, job.public / part / name) for name in names]
        placing.place_trees(job, folders, part, left_out=left_out)
    placing.place_tree(job, job.source("metadata"), job.public / "metadata")
    tracks = [_track(job, path) for drive in test for path in sorted((source / drive).glob(f"*/{TRUTH}"))]
    if not tracks:
        raise RawDataProblem(
            f"{source} is incomplete",
            f"none of the drives to hold out has a {TRUTH}",
            subject=job.competition.id,
        )
    answers = pd.concat(tracks)
    sample = answers.assign(**dict(zip(PLACE, (37.904611315634504, -86.48107806249548), strict=True)))
    labelled_table.write_answers(job, answers, sample)


def _track_logs(source: RawPath, drives: list[str]) -> set[str]:
    """Return names of files that hold a receiver's track, as the reference receiver's log does."""
    files = (name for drive in drives for _, names in walk(source / drive) for name in names)
    return {name for name in files if name.lower().endswith(TRACK_SUFFIX)}


def _date(drive: str) -> str:
    year, month, day = [*drive.split("-"), "", ""][:3]
    return f"{year}-{month:0>2}-{day:0>2}"


def _track(job: Preparation, path: RawPath) -> pd.DataFrame:
    drive, phone = path.parent.parent.name, path.parent.name
    table = labelled_table.read(job, f"train/{drive}/{phone}/{TRUTH}", needs=[TIME, *PLACE])
    return pandas2.with_former_floats(table, path).assign(tripId=f"{drive}-{phone}")[COLUMNS]


def grade(case: Grading) -> np.float64:
    """Return the mean over trips of the average of the median and the 95th percentile of the distances.

    Edition v1 pairs the points of a trip in file order; edition corrected pairs them by time.
    """
    checks.columns_present(case.submission, COLUMNS)
    if case.corrected:
        rows = checks.matched_rows(_keyed(case.submission), _keyed(case.answers), POINT)
    else:
        rows = checks.matched_rows(case.submission, case.answers, "tripId")
    given = checks.numbers(
        case.submission,
        PLACE,
        missing_ok=not case.corrected,
        infinite_ok=not case.corrected,
        spelt="refused",
    )[rows]
    truth = checks.numbers(case.answers, PLACE)
    latitude, longitude = ((truth[:, axis], given[:, axis]) for axis in (0, 1))
    distances = great_circle(latitude, longitude, radius=EARTH)
    trips = pd.Series(distances).groupby(case.answers["tripId"].to_numpy(), sort=False)
    return np.float64(np.mean([np.quantile(points.to_numpy(), [0.5, 0.95]).mean() for _, points in trips]))


def _keyed(table: pd.DataFrame) -> pd.DataFrame:
    times = pd.Series(checks.whole_numbers(table, TIME), index=table.index)
    trips = table["tripId"].map(str).where(table["tripId"].notna())
    return pd.DataFrame({POINT: trips + " " + times.map("{:.0f}".format)})


def great_circle(
    latitude: tuple[Numbers, Numbers], longitude: tuple[Numbers, Numbers], *, radius: float
) -> Numbers:
    """Return per row the haversine distance of two places given in degrees, in the unit of the radius.

    NaN where a coordinate is missing, infinite, or so far out of range that the formula has no value.
    """
    lat_a, lat_b = (np.radians(side) for side in latitude)
    lon_a, lon_b = (np.radians(side) for side in longitude)
    with np.errstate(invalid="ignore"):
        half = np.sin((lat_b - lat_a) / 2) ** 2
        half = half + np.cos(lat_a) * np.cos(lat_b) * np.sin((lon_b - lon_a) / 2) ** 2
        distances: Numbers = 2 * radius * np.arcsin(np.sqrt(half))
    return distances

"""OpenVaccine: a split of RNA molecules in JSON lines, scored by the mean error per measured position."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, metrics, tables
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.raw import RawDataProblem, read_as
from mlebench_console.competitions.task import Grading, Preparation, PublicData

ID = "id_seqpos"
TARGETS = ["reactivity", "deg_Mg_pH10", "deg_pH10", "deg_Mg_50C", "deg_50C"]
SHOWN = ["id", "sequence", "seq_length", "seq_scored"]
SCORED = ["reactivity", "deg_Mg_pH10", "deg_Mg_50C"]
LETTERS = 6  # two molecules are similar when they share half of their substrings of so many bases
ALIKE = 0.5


def prepare(job: Preparation) -> None:
    """Hold out molecules of good quality; edition corrected keeps similar ones together."""
    molecules = _read(job, "train.json", [*SHOWN, "SN_filter", *TARGETS])
    count = int(job.number("test_size") * len(molecules))
    clean = (molecules["SN_filter"] > 0).to_numpy()
    if not 0 < count <= clean.sum():
        raise RawDataProblem(
            f"{job.source('train.json')} is incomplete",
            f"of its {len(molecules)} molecules {clean.sum()} are of good quality, and {count} are to be held out",
        )
    if job.corrected:
        alike = similar(molecules["sequence"], letters=LETTERS, share=ALIKE)
        train_rows, test_rows = _whole_groups(alike, clean, count, job.integer("seed"))
        train, test = molecules.iloc[train_rows], molecules.iloc[test_rows]
    else:
        drawn = molecules[clean].sample(n=count, random_state=job.integer("seed")).index
        in_test = molecules.index.isin(drawn)
        train, test = molecules[~in_test], molecules[in_test]
    answers = _positions(job, test)
    tables.write_csv(answers, job.private / "test.csv", float_format="%.10f")
    sample = answers[[ID, *TARGETS]].assign(**dict.fromkeys(TARGETS, 0.0))
    tables.write_csv(sample, job.public / "sample_submission.csv", float_format="%.10f")
    columns = list(_read(job, "test.json", SHOWN).columns)
    unknown = [name for name in columns if name not in molecules]
    if unknown:
        raise RawDataProblem(
            f"{job.source('test.json')} does not match train.json",
            f"its molecules have {unknown[0]!r}, those of train.json do not",
        )
    for part, name in ((train, "train.json"), (test[columns], "test.json")):
        numbered = part.assign(index=np.arange(len(part)))
        (job.public / name).write_bytes(json_files.lines_of(numbered))


def _read(job: Preparation, name: str, needs: list[str]) -> pd.DataFrame:
    path = job.source(name)
    with read_as("JSON lines of molecules", path, ValueError, KeyError):
        table = json_files.table_of(path.read_bytes())
        table[needs]  # a key that no line has raises KeyError
    return table


def similar(texts: pd.Series, *, letters: int, share: float) -> npt.NDArray[np.intp]:
    """Number the texts so that similar ones, and all linked by a chain of similar ones, share a number.

    Two texts are similar when they share at least `share` of the distinct substrings of `letters`
    characters that the one with fewer of them has. Insertions and deletions shift substrings but don't
    change them. A text shorter than `letters` is similar to none.
    """
    # Imported here, as only preparation needs them: where submissions are checked, neither is installed.
    from scipy import sparse
    from sklearn.feature_extraction.text import CountVectorizer

    substrings = CountVectorizer(
        analyzer="char", ngram_range=(letters, letters), binary=True, lowercase=False
    )
    held = substrings.fit_transform(texts)
    sizes = np.asarray(held.sum(axis=1)).ravel()
    common = (held @ held.T).tocoo()
    alike = common.data >= share * np.minimum(sizes[common.row], sizes[common.col])
    links = sparse.coo_array((alike, (common.row, common.col)), shape=common.shape)
    links.eliminate_zeros()
    groups: npt.NDArray[np.intp] = sparse.csgraph.connected_components(links)[1]
    return groups


def _whole_groups(
    groups: npt.NDArray[np.intp], clean: npt.NDArray[np.bool_], count: int, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return train rows and at most `count` clean test rows; other rows similar to a test row are in neither."""
    sizes = np.bincount(groups, weights=clean).astype(int)
    chosen = np.zeros(len(sizes), dtype=np.bool_)
    room = count
    for group in np.random.RandomState(seed).permutation(len(sizes)):
        if 0 < sizes[group] <= room:
            chosen[group] = True
            room -= sizes[group]
    held_out = chosen[groups]
    return np.flatnonzero(~held_out), np.flatnonzero(held_out & clean)


def _positions(job: Preparation, test: pd.DataFrame) -> pd.DataFrame:
    """Return one row per position of each molecule, with 0 where nothing was measured."""
    lengths, scored = (test[name].to_numpy() for name in ("seq_length", "seq_scored"))
    if not len(test) or (lengths != lengths[0]).any() or (scored >= lengths).any():
        raise job.unexpected(
            job.source("train.json"),
            "its molecules are not of one length that is longer than what was measured",
        )
    places = np.tile(np.arange(lengths[0]), len(test))
    keep = places < np.repeat(scored, lengths)
    columns: dict[str, npt.NDArray[np.float64]] = {}
    for name in TARGETS:
        columns[name] = np.zeros(len(keep))
        columns[name][keep] = np.concatenate(test[name].tolist())
    ids = pd.Series(np.repeat(test["id"].to_numpy(dtype=object), lengths))
    return pd.DataFrame({ID: ids + "_" + pd.Series(places).map(str), **columns, "keep": keep})


def stand_in_answers(data: PublicData) -> pd.DataFrame:
    """Return the positions to predict; which of them were measured is public."""
    molecules = json_files.table_of((data.public / "test.json").read_bytes())
    sample = data.sample()
    place = sample[ID].str.rpartition("_")
    measured = place[0].map(molecules.set_index("id")["seq_scored"])
    return sample.assign(keep=place[2].astype(int) < measured)


def grade(case: Grading) -> np.float64:
    """Return the mean over three targets of the root mean squared error at measured positions.

    Edition v1 selects the submission's rows by the positions of measured rows in the answers' file, which is
    right only in the order of the sample submission.
    """
    rows = checks.paired_rows(case, ID, *TARGETS)
    keep = case.answers["keep"].to_numpy(dtype=np.bool_)
    if case.corrected or (rows[:-1] < rows[1:]).all():
        kept, truth_rows = rows[keep], np.flatnonzero(keep)
    else:
        kept, truth_rows = (checks.sorted_rows(table, ID) for table in (case.submission, case.answers))
        kept, truth_rows = kept[keep[kept]], truth_rows[keep[truth_rows]]
    ignored = np.ones(len(rows), dtype=np.bool_)
    ignored[kept] = False
    errors = [
        metrics.rmse(
            checks.numbers(case.answers, name)[truth_rows],
            checks.numbers(case.submission, name, ignored=ignored, spelt="python")[kept],
        )
        for name in SCORED
    ]
    return np.float64(np.mean(errors))

"""HMS Harmful Brain Activity: a split of spectrograms with their recordings, scored by divergence of votes."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, placing, tables
from mlebench_console.competitions.kit.metrics.probability import divergences
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, InvalidSubmission, Preparation

VOTES = [f"{name}_vote" for name in ("seizure", "lpd", "gpd", "lrda", "grda", "other")]
SHOWN = ["spectrogram_id", "eeg_id", "patient_id"]
WINDOW = ["label_id", "eeg_label_offset_seconds", "spectrogram_label_offset_seconds"]
EEG, LABEL = "eeg_id", "label_id"
CLIP = 1e-15
TOLERANCE = 1e-5 + 1e-8


def prepare(job: Preparation) -> None:
    """Split the spectrograms; edition corrected names each window, so that predictions can be matched."""
    windows = labelled_table.read(job, "train.csv", needs=[*SHOWN, *WINDOW, *VOTES])
    train, test = labelled_table.divided(job, windows, windows["spectrogram_id"])
    if train[EEG].isin(test[EEG]).any():
        raise job.unexpected(
            job.source("train.csv"), "windows of one recording belong to several spectrograms"
        )
    shown = SHOWN
    key = EEG
    if job.corrected:
        shown, key = [*WINDOW[:1], *SHOWN, *WINDOW[1:]], LABEL
    shares = test[VOTES].div(test[VOTES].sum(axis=1), axis=0)
    tables.write_csv(train, job.public / "train.csv")
    tables.write_csv(test[shown], job.public / "test.csv")
    tables.write_csv(pd.concat([test[[key]], shares], axis=1), job.private / "gold_submission.csv")
    sample = test[[key]].assign(**dict.fromkeys(VOTES, 1 / 6))
    labelled_table.write_answers(job, test, sample)
    placing.place_tree(job, job.source("example_figures"), job.public / "example_figures")
    for kind, column in (("eegs", EEG), ("spectrograms", "spectrogram_id")):
        for part, name in ((train, "train"), (test, "test")):
            files = part[column].drop_duplicates().map(str) + ".parquet"
            placing.place_named(job, files, job.source(f"train_{kind}"), job.public / f"{name}_{kind}")


def grade(case: Grading) -> np.float64:
    """Return the mean divergence of predicted from true shares of votes, which edition v1 pairs by sorting."""
    if case.corrected:
        rows = checks.paired_rows(case, LABEL, *VOTES)
        given = checks.numbers(case.submission, VOTES, low=0, high=1)
        checks.rows_sum_to_one(given, tolerance=TOLERANCE)
        votes, given = case.answers[VOTES].to_numpy(dtype=np.float64), given[rows]
        clip = np.full(len(VOTES), CLIP)
    else:
        checks.columns_present(case.submission, [EEG, *VOTES])
        checks.row_count(case.submission, case.answers, EEG)
        order, answers_order = _sorted_alike(case.submission[EEG], case.answers[EEG])
        given = _checked_shares(case.submission)[order]
        votes = case.answers[VOTES].to_numpy(dtype=np.float64)[answers_order]
        clip = _clips(case)
    with np.errstate(invalid="ignore"):  # a window without any vote has NaN shares, which add nothing
        shares = votes / votes.sum(axis=1, keepdims=True)
    return np.float64(divergences(shares, given, clip=clip).mean())


def _sorted_alike(given: pd.Series, asked: pd.Series) -> tuple[checks.Positions, checks.Positions]:
    if set(given.drop_duplicates()) != set(asked.drop_duplicates()):
        raise checks.unmatched(given, asked.drop_duplicates(), EEG, repeats=True)
    first, second = (np.argsort(side.to_numpy(), kind="stable") for side in (given, asked))
    return first, second


def _clips(case: Grading) -> npt.NDArray[np.float64]:
    """Return edition v1's clip for each class: pandas 2, with which it was made, leaves whole numbers as they are."""
    whole = [name for name in VOTES if pd.api.types.is_integer_dtype(case.submission[name])]
    if any((case.submission[name] == 0).any() for name in whole):
        case.warnings.append(
            f"But {', '.join(whole)} hold whole numbers only, of which a 0 makes the score infinite where there was a"
            " vote: write 0.0 for 0."
        )
    return np.where([name in whole for name in VOTES], 0.0, CLIP)


def _checked_shares(table: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return the votes for edition v1: missing cells count as 0, and further columns must not change the sums."""
    shares = checks.numbers(table, VOTES, low=0, high=1, missing_ok=True)
    hint = " (an empty cell counts as 0)" if np.isnan(shares).any() else ""
    checks.rows_sum_to_one(np.nan_to_num(shares), decimals=5, hint=hint)
    others = [name for name in table.columns if name not in {EEG, *VOTES}]
    if others:
        try:
            more = checks.numbers(table, others, low=0, high=1, missing_ok=True)
            checks.rows_sum_to_one(np.nan_to_num(np.hstack([shares, more])), tolerance=TOLERANCE)
        except InvalidSubmission as error:
            raise InvalidSubmission(
                f"{error} Columns beside {EEG} and the six of votes count as probabilities too: leave them out."
            ) from error
    return shares

"""Google QUEST Q&A Labeling: a split of answered questions, scored by mean Spearman correlation of 30 ratings."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from mlebench_console.competitions.kit import checks, splits
from mlebench_console.competitions.kit.metrics.regression import spearman
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.task import Grading, Preparation

RARE = "question_type_spelling"
COLUMNS = 41
INPUTS = 11


def prepare(job: Preparation) -> None:
    """Split the rated pairs, by question in edition corrected, so that the rare rating varies in the test part."""
    table = labelled_table.read(job, "train.csv", needs=["qa_id", "question_title", "question_body", RARE])
    labelled_table.expect_width(job, table, COLUMNS, "train.csv")
    targets = list(table.columns[INPUTS:])
    train, test = _split(job, table).of(table)
    if (test[targets].nunique() <= 1).any():
        raise job.unexpected("train.csv", "a rating is the same in all test rows")
    answers = test[["qa_id", *targets]]
    sample = answers[["qa_id"]].assign(**dict.fromkeys(targets, 0.0))
    sample[targets] = np.linspace(0, 1, len(test))[:, None].repeat(len(targets), axis=1)
    labelled_table.write_parts(job, train, test, hidden=targets, sample=sample, answers=answers)


def _split(job: Preparation, table: pd.DataFrame) -> splits.Split:
    size, seed = job.number("test_size"), job.integer("seed")
    groups = np.arange(len(table))
    split = splits.shuffled(len(table), size, seed)
    if job.corrected:
        groups = labelled_table.groups_of(table, ["question_title", "question_body"]).to_numpy()
        split = splits.shuffled_groups(groups, size, seed)
    rare = table[RARE].to_numpy()
    if table[RARE].iloc[split.test].nunique() > 1:
        return split
    nonzero = split.train[rare[split.train] != 0]
    if len(nonzero) == 0:
        raise job.unexpected("train.csv", f"no row has a {RARE} above zero")
    return _swapped(split, groups, int(nonzero[0]), int(split.test[0]))


def _swapped(split: splits.Split, groups: npt.NDArray[np.intp], incoming: int, outgoing: int) -> splits.Split:
    """Return the split with the groups of two rows exchanged, each put where the other one began."""
    train, test = split.train, split.test
    ins, outs = (np.flatnonzero(groups == groups[row]) for row in (incoming, outgoing))
    train_at, test_at = (int(np.argmax(np.isin(part, gone))) for part, gone in ((train, ins), (test, outs)))
    train, test = train[~np.isin(train, ins)], test[~np.isin(test, outs)]
    return splits.Split(np.insert(train, train_at, outs), np.insert(test, test_at, ins))


def grade(case: Grading) -> np.float64:
    """Return the mean of the ratings' rank correlations; edition v1 pairs rows by the rank of their ids."""
    targets = [name for name in case.answers.columns if name != "qa_id"]
    checks.columns_exactly(case.submission, ["qa_id", *targets])
    checks.row_count(case.submission, case.answers, "qa_id")
    if case.corrected:
        rows = checks.matched_rows(case.submission, case.answers, "qa_id")
        given = checks.numbers(case.submission, targets)[rows]
        scores = [spearman(case.answers[name].to_numpy(), given[:, i]) for i, name in enumerate(targets)]
        return np.float64(np.nan_to_num(scores, nan=0.0).mean())  # a constant column scores 0
    submission, answers = (
        table.iloc[checks.sorted_rows(table, "qa_id")] for table in (case.submission, case.answers)
    )
    return np.float64(np.mean([_lax_spearman(answers[name], submission[name]) for name in targets]))


def _lax_spearman(truth: pd.Series, given: pd.Series) -> float:
    """Return the correlation where a missing value gives NaN and a column with any text is ranked as text."""
    if given.isna().any():
        return float("nan")
    if pd.api.types.is_numeric_dtype(given):
        return spearman(truth.to_numpy(), given.to_numpy(dtype=np.float64))
    return spearman(truth.to_numpy(), given.map(str).to_numpy(dtype=object))

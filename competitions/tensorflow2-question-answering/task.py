"""TensorFlow 2.0 Question Answering: JSON lines split block by block, scored by right spans or rightly none."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from mlebench_console.competitions.kit import checks, splits, tables
from mlebench_console.competitions.kit.formats import json_files
from mlebench_console.competitions.raw import RawDataProblem, RawPath
from mlebench_console.competitions.task import Grading, Preparation
from mlebench_console.foundation.problems import DataProblem

BLOCK = 1000  # lines; each block is split separately
ID, TARGET = "example_id", "PredictionString"
KEYS = [ID, "question_text", "document_text", "long_answer_candidates"]
WORDS = {"YES", "NO"}

Answer = tuple[int, int] | str


def prepare(job: Preparation) -> None:
    """Split every block of lines; the annotations of the test part stay private."""
    source = job.source("simplified-nq-train.jsonl")
    gold: list[tuple[str, str]] = []
    with (
        (job.public / "simplified-nq-train.jsonl").open("xb") as train_file,
        (job.public / "simplified-nq-test.jsonl").open("xb") as test_file,
        (job.private / "test.jsonl").open("xb") as answers_file,
    ):
        for done, block in enumerate(_blocks(source), start=1):
            split = splits.by_row(job, len(block))
            train, test = split.of(block)
            for part, target in ((train, train_file), (test[KEYS], test_file), (test, answers_file)):
                target.write(json_files.lines_of(part))
            gold += _gold_rows(source, test)
            job.progress(source.name, done * BLOCK, done * BLOCK)
    rows = pd.DataFrame(gold, columns=[ID, TARGET])
    tables.write_csv(rows, job.private / "gold_submission.csv")
    tables.write_csv(rows.assign(**{TARGET: ""}), job.public / "sample_submission.csv")


def _blocks(source: RawPath) -> Iterator[pd.DataFrame]:
    with source.open("rb") as stream:
        while lines := b"".join(islice(stream, BLOCK)):
            try:
                block = json_files.table_of(lines)
                block[[*KEYS, "annotations"]]  # a key that no line has raises KeyError
            except (ValueError, KeyError) as error:
                raise _damaged(source, str(error)) from error
            yield block.assign(**{ID: block[ID].map(str)})


def _damaged(source: RawPath, why: str) -> DataProblem:
    return RawDataProblem(f"{source} cannot be read as JSON lines of questions", why)


def _gold_rows(source: RawPath, part: pd.DataFrame) -> list[tuple[str, str]]:
    rows = []
    for id_, annotations in zip(part[ID], part["annotations"], strict=True):
        try:
            rows += [
                (f"{id_}_short", _written(_first_short(annotations[0]))),
                (f"{id_}_long", _written(next(iter(_long_answers(annotations[0])), ""))),
            ]
        except (LookupError, TypeError) as error:
            raise _damaged(source, f"sample {id_} has annotations of an unknown form") from error
    return rows


def _first_short(annotation: dict[str, Any]) -> Answer:
    answers = _short_answers(annotation)
    return annotation["yes_no_answer"] if annotation["yes_no_answer"] in answers else next(iter(answers), "")


def _written(answer: Answer) -> str:
    return answer if isinstance(answer, str) else f"{answer[0]}:{answer[1]}"


def _long_answers(annotation: dict[str, Any]) -> list[Answer]:
    long = annotation["long_answer"]
    return [] if long["start_token"] == -1 else [(long["start_token"], long["end_token"])]


def _short_answers(annotation: dict[str, Any]) -> list[Answer]:
    spans: list[Answer] = [(span["start_token"], span["end_token"]) for span in annotation["short_answers"]]
    return spans if annotation["yes_no_answer"] == "NONE" else [*spans, annotation["yes_no_answer"]]


def grade(case: Grading) -> float:
    """Return the share of rows with a right answer or rightly none; in edition corrected F1, as on Kaggle."""
    right = _right_answers(case)
    submission = case.submission
    checks.columns_present(submission, [ID, TARGET])
    rows = checks.matched_rows(submission, pd.DataFrame({ID: list(right)}), ID)
    given = _predictions(submission)
    claims = np.array([given[row] is not None for row in rows])
    hits = np.array([given[row] in answers for row, answers in zip(rows, right.values(), strict=True)])
    asked = np.array([bool(answers) for answers in right.values()])
    if not case.corrected:
        return float(np.mean(hits | (~claims & ~asked)))
    found, wrong, missed = int(hits.sum()), int((claims & ~hits).sum()), int((~claims & asked).sum())
    total = 2 * found + wrong + missed
    return 2 * found / total if total else 0.0


def _right_answers(case: Grading) -> dict[str, list[Answer]]:
    if case.form_only:
        return {id_: [] for id_ in case.answers[ID]}
    right: dict[str, list[Answer]] = {}
    for record in json_files.read_jsonl_parts(case.answers_path, ["annotations", ID]):
        annotation = record["annotations"][0]
        right[f"{record[ID]}_long"] = _long_answers(annotation)
        right[f"{record[ID]}_short"] = _short_answers(annotation)
    return right


def _predictions(table: pd.DataFrame) -> list[Answer | None]:
    """Return the predicted answers in the submission's order, None where there is none."""
    return [_parsed(row, cell) for row, cell in enumerate(table[TARGET].tolist())]


def _parsed(row: int, cell: Any) -> Answer | None:
    if pd.isna(cell):
        return None
    text = str(cell).strip()
    if not text or text in WORDS:
        return text or None
    start, colon, end = text.partition(":")
    try:
        if colon:
            return int(start), int(end)
    except ValueError:
        pass
    raise checks.InvalidCell(row, TARGET, cell, "is no answer", "start:end, YES, NO or nothing")

"""Streamed sentences are divided as pandas divides a whole table, whatever stands in their cells."""

from __future__ import annotations

import csv
import io
import random
import zipfile
from pathlib import Path
from typing import Literal

import pandas as pd
import pytest

from mlebench_console.competitions.kit import splits
from mlebench_console.competitions.kit.tables import large_tables
from mlebench_console.competitions.kit.tasks import spoken_tokens
from mlebench_console.competitions.model import Edition
from tests.competitions.conftest import MakeJob

ID = "text-normalization-challenge-russian-language"
COLUMNS = ["sentence_id", "token_id", "class", "before", "after"]
CELLS = [
    *("", "NA", "null", "None", "N/A", 'a"b', '"', '""', "a,b", "two\nlines", "x\r\ny", "007", "1.50", " "),
    *("приве́т", "  a ", "<self>", "sil", "1e999", "99999999999999999999", "true", "\t", "-", "plain"),
]


@pytest.fixture(autouse=True)
def tiny_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tables, "_SMALL", 0)
    monkeypatch.setattr(large_tables, "_ROWS", 23)


def put(
    raw: Path, rows: list[list[object]], end: str = "\n", *, quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC
) -> str:
    """Lay raw data down, and return the table's text."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, quoting=quoting, lineterminator=end)
    writer.writerows([COLUMNS, *rows])
    text = stream.getvalue()
    for name, content in (("train", text), ("test_2", ""), ("sample_submission_2", "")):
        with zipfile.ZipFile(raw / f"ru_{name}.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"ru_{name}.csv", content)
    return text


def member(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read(path.stem)


def written(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").encode()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_NONNUMERIC, csv.QUOTE_MINIMAL])
@pytest.mark.parametrize("seed", range(4))
def test_odd_cells_are_written_as_pandas_writes_them(
    make_job: MakeJob, end: str, quoting: Literal[0, 2], seed: int
) -> None:
    job = make_job(ID)
    draw = random.Random(seed)
    rows: list[list[object]] = [
        [3 * sentence, token, "PLAIN", draw.choice(CELLS), draw.choice(CELLS)]
        for sentence in range(60)
        for token in range(draw.randrange(1, 6))
    ]
    text = put(job.raw, rows, end, quoting=quoting)
    spoken_tokens.prepare(job, "ru")

    kinds = dict.fromkeys(["class", "before", "after"], str)
    tokens = pd.read_csv(io.BytesIO(text.encode()), dtype=kinds)
    split = splits.shuffled_groups(tokens["sentence_id"], job.number("test_size"), job.integer("seed"))
    train, test = (part.assign(sentence_id=pd.factorize(part["sentence_id"])[0]) for part in split.of(tokens))
    ids = test["sentence_id"].astype(str) + "_" + test["token_id"].astype(str)
    answers = pd.DataFrame({"id": ids, "after": test["after"]})
    assert member(job.public / "ru_train.csv.zip") == written(train)
    shown = written(test[["sentence_id", "token_id", "before"]])
    assert member(job.public / "ru_test_2.csv.zip") == shown
    assert (job.private / "answers.csv").read_bytes() == written(answers)
    assert (job.private / "sample_submission.csv").read_bytes() == written(
        answers.assign(after=test["before"])
    )


@pytest.mark.parametrize("edition", ["v1", "corrected"])
def test_sentences_of_the_same_tokens_are_on_one_side_in_edition_corrected(
    make_job: MakeJob, edition: Edition
) -> None:
    job = make_job(ID, edition)
    kinds = [["a", "b"], ["b", "a"], ["a"], ["a", "b", "a"], ["NA", ""], ["", "NA"], ["a,b"]] + [
        [f"word{number}"] for number in range(20)
    ]
    sentences = kinds * 20
    put(
        job.raw,
        [
            [number, token, "PLAIN", word, word]
            for number, words in enumerate(sentences)
            for token, word in enumerate(words)
        ],
    )
    spoken_tokens.prepare(job, "ru")
    sides = []
    for name in ("ru_train", "ru_test_2"):
        content = member(job.public / f"{name}.csv.zip")
        tokens = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
        sides.append(set(tokens.groupby("sentence_id")["before"].agg(tuple)))
    train, test = sides
    if edition == "v1":
        assert train & test
    else:
        assert train | test == set(map(tuple, kinds))
        assert not train & test

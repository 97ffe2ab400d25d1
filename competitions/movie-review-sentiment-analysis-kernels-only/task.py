"""Movie Review Sentiment: a split of phrases cut from sentences, scored by accuracy."""

from mlebench_console.competitions.kit import archives, tables
from mlebench_console.competitions.kit.tables import labelled_table
from mlebench_console.competitions.kit.tasks import graders
from mlebench_console.competitions.task import Grading, Preparation

COLUMNS = ["PhraseId", "SentenceId", "Phrase", "Sentiment"]


def prepare(job: Preparation) -> None:
    """Split the rated phrases; edition corrected keeps those of a sentence on one side, as verbatim text."""
    text = ["Phrase"] if job.corrected else None
    phrases = labelled_table.read(
        job, "train.tsv.zip", member="train.tsv", needs=COLUMNS, text=text, separator="\t"
    )
    train, test = labelled_table.divided(job, phrases, phrases["SentenceId"] if job.corrected else None)
    for table, name in ((train, "train.tsv"), (test.drop(columns="Sentiment"), "test.tsv")):
        with archives.new_member(job.public / f"{name}.zip", name) as stream:
            tables.write_csv(table, stream, separator="\t")
    labelled_table.write_answers(job, test, test[["PhraseId"]].assign(Sentiment=2))


def grade(case: Grading) -> float:
    """Return the share of phrases whose sentiment is predicted right."""
    return graders.accuracy(case, id_column="PhraseId", target="Sentiment")

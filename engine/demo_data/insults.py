"""Demo data of detecting-insults-in-social-commentary: made-up comments with mild words, some of them insults.

As in the real data, rude words alone are not an insult: they may be about somebody who is not part of the conversation.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from mlebench_console.engine.demo_data.writing import write_csv

TRAIN = 3947
TEST = 2647
VERIFICATION = 600
VEILED = 0.5
"""Share of insults that can't be recognised by their words: a higher value makes the task harder."""
SLY = 0.15
"""Share of insults that are only implied."""

_TOPICS = "the match|this phone|the new bridge|that recipe|the tax plan|the election|my old bike|the weather|the film|"
_TOPICS += "the garden show|that guitar|the train line|the school board|this game|the museum|the coach"
_VIEWS = (
    "is better than last year|will cost us a lot|was fun to watch|needs more work|surprised me|is overrated|"
)
_VIEWS += (
    "deserves a second look|made my day|never gets old|is not worth the money|was handled well|came too late"
)
_RUDE = "clown|fool|muppet|donkey|windbag|coward|numbskull|cabbage|parrot|weasel"
_HARD = "clueless|hopeless|brainless|pathetic|ridiculous|gutless|silly|dense"
_OTHERS = "the mayor|that senator|the referee|their manager|the villain|the singer|the minister|that robot"
_AT_YOU = (
    "you are a {hard} {rude}|what a {rude} you are|go home you {hard} {rude}|you sound like a {hard} {rude}|"
)
_AT_YOU += "only a {rude} like you would write this|shut up you {rude}"
_AT_OTHERS = "{other} is a {hard} {rude}|what a {rude} {other} is|{other} acts like a {hard} {rude}|"
_AT_OTHERS += "I called {other} a {rude}"
_SLY = "did you even read it|you must be new here|keep telling yourself that|try thinking for once|"
_SLY += "your keyboard deserves better|nobody asked you|good luck with your reading class"
_KIND = (
    "thank you for the link|did you see it too|I agree with you|you make a good point|let us wait and see|"
)
_KIND += "I read it twice|hope you are well|can you share the source|keep up the good work"
_JOINTS = (". ", ", ", "! ", " - ", "\\n", "...\\xa0")


def write(folder: Path, random: np.random.Generator) -> None:
    """Write all six files that Kaggle published, including the labelled test set."""
    table = _comments(TRAIN + TEST + VERIFICATION, random)
    train, test = table.iloc[:TRAIN], table.iloc[TRAIN : TRAIN + TEST]
    verification = table.iloc[TRAIN + TEST :]
    usage = np.where(random.random(TEST) < 0.5, "PublicTest", "PrivateTest")
    write_csv(folder / "train.csv", train)
    write_csv(folder / "test_with_solutions.csv", test.assign(Usage=usage))
    write_csv(folder / "test.csv", test.drop(columns="Insult"))
    write_csv(folder / "sample_submission_null.csv", test.assign(Insult=0))
    write_csv(folder / "impermium_verification_labels.csv", verification)
    write_csv(folder / "impermium_verification_set.csv", verification.drop(columns="Insult"))


def _comments(count: int, random: np.random.Generator) -> pd.DataFrame:
    # Comments are the keys of a submission, so each may occur only once; more are made than needed.
    spare = count + count // 4
    insult = (random.random(spare) < 0.27).astype(int)
    texts = [_comment(bool(flag), random) for flag in insult]
    table = pd.DataFrame({"Insult": insult, "Date": _dates(spare, random), "Comment": texts})
    return table.drop_duplicates("Comment").iloc[:count].reset_index(drop=True)


def _comment(insult: bool, random: np.random.Generator) -> str:
    chance = random.random()
    if insult:
        kinds = _KIND if chance < VEILED else _SLY if chance < VEILED + SLY else _AT_YOU
    else:
        kinds = _AT_OTHERS if chance < 0.22 else _SLY if chance < 0.27 else _KIND
    pointed = _pick(kinds, random)
    pointed = pointed.format(
        hard=_pick(_HARD, random), rude=_pick(_RUDE, random), other=_pick(_OTHERS, random)
    )
    parts = [f"{_pick(_TOPICS, random)} {_pick(_VIEWS, random)}" for _ in range(random.integers(1, 4))]
    parts.insert(int(random.integers(0, len(parts) + 1)), pointed)
    joint = _JOINTS[random.integers(0, len(_JOINTS))]
    return f'"{joint.join(parts)}"'


def _pick(choices: str, random: np.random.Generator) -> str:
    words = choices.split("|")
    return words[int(random.integers(0, len(words)))]


def _dates(count: int, random: np.random.Generator) -> list[str | None]:
    days, seconds = random.integers(1, 29, count), random.integers(0, 86400, count)
    stamps = [
        f"201206{d:02d}{s // 3600:02d}{s // 60 % 60:02d}{s % 60:02d}Z"
        for d, s in zip(days, seconds, strict=True)
    ]
    known = random.random(count) < 0.8
    return [stamp if is_known else None for stamp, is_known in zip(stamps, known, strict=True)]

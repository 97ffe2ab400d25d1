"""Programs as they stand in notebooks, made by chance from a seed, and copies of them that are disguised."""

from __future__ import annotations

import ast
import json
import random
import re

_NOUNS = (
    "df",
    "train",
    "test",
    "X",
    "y",
    "model",
    "preds",
    "cols",
    "fold",
    "score",
    "target",
    "img",
    "batch",
)
_VERBS = (
    "fit",
    "transform",
    "predict",
    "merge",
    "groupby",
    "fillna",
    "apply",
    "map",
    "sum",
    "mean",
    "astype",
)
_MODULES = ("numpy as np", "pandas as pd", "torch", "lightgbm as lgb", "cv2", "seaborn as sns", "os", "gc")

# What Kaggle puts into every new notebook.
STARTER = """\
import numpy as np
import pandas as pd
import os
for dirname, _, filenames in os.walk('/kaggle/input'):
    for filename in filenames:
        print(os.path.join(dirname, filename))
def plotPerColumnDistribution(df, nGraphShown, nGraphPerRow):
    nunique = df.nunique()
    df = df[[col for col in df if nunique[col] > 1 and nunique[col] < 50]]
    nRow, nCol = df.shape
    columnNames = list(df)
    nGraphRow = (nCol + nGraphPerRow - 1) / nGraphPerRow
    plt.figure(num=None, figsize=(6 * nGraphPerRow, 8 * nGraphRow), dpi=80, facecolor='w', edgecolor='k')
    for i in range(min(nCol, nGraphShown)):
        plt.subplot(nGraphRow, nGraphPerRow, i + 1)
        columnDf = df.iloc[:, i]
        if not np.issubdtype(type(columnDf.iloc[0]), np.number):
            valueCounts = columnDf.value_counts()
            valueCounts.plot.bar()
        else:
            columnDf.hist()
        plt.ylabel('counts')
        plt.xticks(rotation=90)
        plt.title(f'{columnNames[i]} (column {i})')
    plt.tight_layout(pad=1.0, w_pad=1.0, h_pad=1.0)
    plt.show()
"""


def cells(seed: int, count: int = 14) -> list[str]:
    """The cells of a program, which are like those of no other seed but for the style."""
    chance = random.Random(seed)
    imports = "\n".join(f"import {name}" for name in chance.sample(_MODULES, 4))
    return [imports, *(_cell(chance) for _ in range(count))]


def program(seed: int, count: int = 14) -> str:
    return "\n\n".join(cells(seed, count))


def notebook(parts: list[str]) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": part} for part in parts]})


def renamed(code: str) -> str:
    """The same with other names and texts, laid out anew."""
    names = {name: f"v_{number}" for number, name in enumerate((*_NOUNS, *_VERBS))}
    text = re.sub(r"\b(" + "|".join(names) + r")\b", lambda found: names[found[0]], code)
    return "# written by myself\n" + ast.unparse(ast.parse(text))


def shuffled(parts: list[str], seed: int) -> str:
    order = list(parts[1:])
    random.Random(seed).shuffle(order)
    return renamed("\n".join([parts[0], *order]))


def buried(code: str, seed: int) -> str:
    return f"{program(seed, 10)}\n{renamed(code)}\n{program(seed + 1, 10)}"


def _cell(chance: random.Random) -> str:
    lines = []
    for _ in range(chance.randint(3, 7)):
        kind = chance.randrange(6)
        if kind == 0:
            body = [f"    {_statement(chance)}" for _ in range(chance.randint(2, 4))]
            lines += [f"def {_noun(chance)}_{chance.randrange(99)}({_arguments(chance)}):", *body]
        elif kind == 1:
            lines += [f"for {_noun(chance)} in {_value(chance)}:", f"    {_statement(chance)}"]
        elif kind == 2:
            lines += [f"if {_value(chance)} {chance.choice(['>', '<', '=='])} {_value(chance)}:"]
            lines += [f"    {_statement(chance)}", "else:", f"    {_statement(chance)}"]
        else:
            lines.append(_statement(chance))
    return "\n".join(lines)


def _statement(chance: random.Random) -> str:
    left = _noun(chance)
    if chance.random() < 0.3:
        left += f"[{_value(chance)}]"
    return f"{left} {chance.choice(['=', '=', '+='])} {_value(chance)}"


def _value(chance: random.Random, depth: int = 0) -> str:
    kind = chance.randrange(9 if depth < 3 else 3)
    if kind == 0:
        return str(chance.randrange(1000))
    if kind == 1:
        return repr(f"column {chance.randrange(99)}")
    if kind == 2:
        return _noun(chance)
    inner = [_value(chance, depth + 1) for _ in range(chance.randint(1, 3))]
    if kind == 3:
        return f"[{', '.join(inner)}]"
    if kind == 4:
        return f"{{{', '.join(f'{_noun(chance)!r}: {one}' for one in inner)}}}"
    if kind == 5:
        return f"{_noun(chance)} {chance.choice(['+', '-', '*', '/', '%'])} {inner[0]}"
    if kind == 6:
        return f"{_noun(chance)}[{inner[0]}:{inner[-1]}]"
    keywords = [f"{_noun(chance)}={one}" for one in inner[1:]]
    return f"{_noun(chance)}.{chance.choice(_VERBS)}({', '.join([inner[0], *keywords])})"


def _arguments(chance: random.Random) -> str:
    return ", ".join(dict.fromkeys(_noun(chance) for _ in range(chance.randint(1, 4))))


def _noun(chance: random.Random) -> str:
    return chance.choice(_NOUNS)

"""Familiarity: how well a model knows the texts of competitions, and its correlation with an experiment's results.

It is measured as in MLE-bench: the mean probability that a model gives to the true tokens at sampled places of a text.
A server that returns the probabilities of a prompt needs one call per piece of text; other servers one per place.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from mlebench_console.competitions import registry
from mlebench_console.competitions.descriptions import description, has_description
from mlebench_console.competitions.model import Competition, Edition, edition_named
from mlebench_console.engine.grading.batch import grade_many
from mlebench_console.engine.integrity.endpoint import Endpoint, Json, NoAnswer, all_of
from mlebench_console.engine.layout import DESCRIPTION, dataset_folder, descriptions_of
from mlebench_console.engine.rungroups import SubmissionLine
from mlebench_console.engine.scoreboard.model import Evidence
from mlebench_console.engine.scoreboard.plots import Plot, PlotSeries
from mlebench_console.environment.gateway.budget import OverBudget
from mlebench_console.environment.gateway.dialects import Api, Dialect
from mlebench_console.environment.gateway.records import estimated_tokens
from mlebench_console.foundation.problems import DataProblem, UsageProblem, reading

Item = TypeVar("Item")

MOST_PLACES = 1000
PERMUTATIONS = 9_999
_VERSION = 1
_PIECE = 12_000
_CONTEXT = 2_000  # characters at the start of a piece that are not counted
_MOST_BYTES = 4 << 20
_TOP = (10, 5)  # alternatives to request at each place; some servers return at most five
_DRAWN_MOST = 1.25
_WORD = re.compile(r"\s*\S+")
_SUFFIXES = (".md", ".txt")


class Method(StrEnum):
    """How a server returns the probabilities of a text's tokens."""

    PROMPT = "prompt_logprobs"
    ECHO = "echo"
    PLACES = "one call a place"


@dataclass(frozen=True)
class Document:
    """A text of a competition."""

    competition_id: str
    name: str
    text: str


@dataclass(frozen=True)
class DocumentFamiliarity:
    """How well a model knows a document.

    Attributes:
        probability: the mean over `places`; None where there was no answer.
        problem: why there was none.
    """

    document: str
    probability: float | None
    places: int = 0
    problem: str = ""


@dataclass(frozen=True)
class CompetitionFamiliarity:
    """How well a model knows a competition's texts, and how well an experiment did there.

    Attributes:
        performance: the mean over seeds of where the score lies between that of the sample submission, 0, and gold, 1;
            no score counts as 0. None where that is not known, for the reason in `problem`.
    """

    competition_id: str
    documents: tuple[DocumentFamiliarity, ...]
    performance: float | None = None
    problem: str = ""

    @property
    def probability(self) -> float | None:
        """The mean over its documents."""
        known = [one.probability for one in self.documents if one.probability is not None]
        return fmean(known) if known else None


@dataclass(frozen=True)
class Correlation:
    """The correlation of an experiment's performance with a model's familiarity.

    Attributes:
        rho: Spearman's rank correlation.
        p_value: two-sided, by permutation: how often chance alone gives one at least as far from zero.
    """

    rho: float
    p_value: float
    competitions: int


# Texts


def documents_of(
    competition: Competition, data_dir: Path, edition: Edition, given: Path | None = None
) -> tuple[list[Document], str]:
    """Return a competition's description and the operator's documents, and the origin of the description.

    The operator's documents are `<id>.md`, `<id>.txt` and all such files in a folder `<id>`, in the folder `given`.
    """
    found: list[Document] = []
    folder = dataset_folder(competition, data_dir, edition)
    whose = ""
    path = folder.prepared / DESCRIPTION
    if path.is_file():
        with reading(path):
            found.append(Document(competition.id, path.name, path.read_text(encoding="utf-8")))
        whose = descriptions_of(folder)
    elif has_description(competition):
        found.append(Document(competition.id, "description.md", description(competition, edition)))
        whose = "ours"
    if given is not None:
        alone = [given / f"{competition.id}{suffix}" for suffix in _SUFFIXES]
        inside = sorted(one for one in (given / competition.id).glob("*") if one.suffix in _SUFFIXES)
        for path in (*(one for one in alone if one.is_file()), *inside):
            with reading(path):
                text = path.read_text(encoding="utf-8")
            if len(text) > _MOST_BYTES:
                raise DataProblem(f"{path} is too long", f"it has {len(text):,} characters", "Shorten it.")
            found.append(Document(competition.id, path.relative_to(given).as_posix(), text))
    return [one for one in found if one.text.strip()], whose


@dataclass(frozen=True)
class _Piece:
    """A part of a document; its first `context` characters are not counted."""

    text: str
    context: int


def _drawn(found: Sequence[Item], most: int, text: str) -> list[Item]:
    """Draw a random sample of items found in a text, always the same one for the same text."""
    draw = random.Random(hashlib.sha256(text.encode()).digest())  # noqa: S311 - nobody gains by foreseeing it
    return draw.sample(found, min(most, len(found)))


def _pieces(text: str) -> list[_Piece]:
    step = _PIECE - _CONTEXT
    return [
        _Piece(text[max(0, start - _CONTEXT) : start + step], min(start, _CONTEXT))
        for start in range(0, len(text), step)
    ]


# Asking


class ProbabilityReader:
    """Asks a completions endpoint how probable texts are; the method is found out by the first call."""

    def __init__(self, endpoint: Endpoint, places: int = MOST_PLACES) -> None:
        """Ask nothing yet.

        Raises:
            UsageProblem: the endpoint has no completions.
        """
        if endpoint.model.provider.dialect == Dialect.ANTHROPIC:
            raise UsageProblem(
                f"{endpoint.model} can't be asked for probabilities",
                "its provider has no completions",
                "Use a server with completions and logprobs, such as vLLM with a base model.",
            )
        self._endpoint = endpoint
        self._places = places
        self._top = _TOP[0]
        self.method: Method | None = None

    def estimate(self, documents: Iterable[Document]) -> tuple[int, int]:
        """Count the calls and tokens that documents need from a server that returns probabilities of a prompt."""
        pieces = [piece for one in documents for piece in _pieces(one.text)]
        left = [piece for piece in pieces if not self._endpoint.is_cached(self._key(piece))]
        return len(left), sum(estimated_tokens(len(piece.text)) for piece in left)

    async def familiarity(self, document: Document) -> DocumentFamiliarity:
        """Return how well the model knows a document, or the problem of measuring it."""
        try:
            found = await self._probabilities(document)
        except (NoAnswer, OverBudget) as failure:
            return DocumentFamiliarity(document.name, None, problem=str(failure))
        if not found:
            return DocumentFamiliarity(document.name, None, problem="it has no tokens to count")
        chosen = _drawn(found, self._places, document.text)
        return DocumentFamiliarity(document.name, fmean(chosen), len(chosen))

    async def _probabilities(self, document: Document) -> list[float]:
        """Return the probabilities of a document's tokens, or of sampled places in it."""
        found: list[float] = []
        for piece in _pieces(document.text):
            cached = self._endpoint.cached_answer(self._key(piece))
            if cached is None and self.method is not Method.PLACES:
                cached = await self._of_prompt(piece)
            if cached is None:
                return await self._of_places(document.text)
            self.method = self.method or Method(cached["method"])
            found += [float(one) for one in cached["probabilities"]]
        return found

    def _key(self, piece: _Piece) -> str:
        return self._endpoint.key_of({"version": _VERSION, "text": piece.text, "context": piece.context})

    async def _of_prompt(self, piece: _Piece) -> Json | None:
        """Return and cache the probabilities of a piece's tokens; None where the server does not return them."""
        methods = [self.method] if self.method is not None else [Method.PROMPT, Method.ECHO]
        for method in methods:
            more: Json = {"prompt_logprobs": 0} if method is Method.PROMPT else {"echo": True, "logprobs": 1}
            body = {"prompt": piece.text, "max_tokens": 1, "temperature": 0, **more}
            try:
                answer, _ = await self._endpoint.ask(
                    Api.COMPLETIONS, body, characters=len(piece.text), most_output=1
                )
            except NoAnswer as refusal:
                if self.method is not None or refusal.status not in (400, 422):
                    raise
                continue
            read = _of_prompt_logprobs if method is Method.PROMPT else _of_echo
            found = read(answer, piece)
            if found is not None:
                self.method = method
                cached = {"method": method, "probabilities": [round(one, 6) for one in found]}
                self._endpoint.cache(self._key(piece), cached)
                return cached
        if self.method is not None:
            raise NoAnswer("it no longer returns the probabilities of a prompt")
        self.method = Method.PLACES
        return None

    async def _of_places(self, text: str) -> list[float]:
        """Return the probability of the next token at sampled words, with one call each."""
        words = [(found.start(), found[0]) for found in _WORD.finditer(text)][1:]
        chosen = _drawn(words, self._places, text)
        return await all_of([self._of_place(text, start) for start, _ in chosen])

    async def _of_place(self, text: str, start: int) -> float:
        before, after = text[max(0, start - _PIECE) : start], text[start : start + 200]
        key = self._endpoint.key_of({"version": _VERSION, "before": before, "after": after})
        cached = self._endpoint.cached_answer(key)
        if cached is not None:
            return float(cached["probability"])
        top = self._top
        try:
            answer = await self._next_token(before, top)
        except NoAnswer as refusal:
            if refusal.status != 400 or top == _TOP[-1]:
                raise
            self._top = _TOP[-1]
            answer = await self._next_token(before, self._top)
        try:
            logprobs = answer["choices"][0]["logprobs"]["top_logprobs"][0]
            true = [token for token in logprobs if token.strip() and after.startswith(token)]
            # The longest of several, as the model would have tokenised the text.
            probability = math.exp(min(0.0, float(logprobs[max(true, key=len)]))) if true else 0.0
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise NoAnswer("it returns no probabilities (logprobs)") from None
        self._endpoint.cache(key, {"probability": round(probability, 6)})
        return probability

    async def _next_token(self, before: str, top: int) -> Json:
        body = {"prompt": before, "max_tokens": 1, "temperature": 0, "logprobs": top}
        answer, _ = await self._endpoint.ask(Api.COMPLETIONS, body, characters=len(before), most_output=1)
        return answer


def _of_prompt_logprobs(answer: Json, piece: _Piece) -> list[float] | None:
    """Read vLLM's probabilities of a prompt: for each token except the first, a table with that token alone."""
    try:
        found, place = [], 0
        for entry in answer["choices"][0]["prompt_logprobs"]:
            if entry is None:
                continue
            (token,) = entry.values()
            if place >= piece.context:
                found.append(_probability(token["logprob"]))
            place += len(token.get("decoded_token") or "")
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
    return found


def _of_echo(answer: Json, piece: _Piece) -> list[float] | None:
    """Read the probabilities of a prompt that the server echoes in its answer."""
    try:
        table = answer["choices"][0]["logprobs"]
        logprobs, offsets = table["token_logprobs"], table["text_offset"]
        inside = [
            _probability(logprob)
            for logprob, offset in zip(logprobs, offsets, strict=True)
            if logprob is not None and piece.context <= offset < len(piece.text)
        ]
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    # A server that does not echo returns only the one token that it has generated.
    return inside if len(inside) > 1 else None


def _probability(logprob: Any) -> float:
    value = float(logprob)
    if math.isnan(value):
        raise ValueError("a probability is not a number")
    return math.exp(min(0.0, value))


def measure(
    documents: Sequence[Document],
    endpoint: Endpoint,
    places: int = MOST_PLACES,
    report: Callable[[int, int], None] = lambda _done, _total: None,
) -> tuple[list[CompetitionFamiliarity], Method | None]:
    """Measure how well a model knows documents, by competition; return the method too.

    Raises:
        EnvironmentProblem: the endpoint can't be used; its earlier answers are cached.
    """
    reader = ProbabilityReader(endpoint, places)
    done = count(1)

    async def measure_one(document: Document) -> DocumentFamiliarity:
        found = await reader.familiarity(document)
        report(next(done), len(documents))
        return found

    async def measure_all() -> list[DocumentFamiliarity]:
        async with endpoint:
            # The first document determines the method for all others.
            first = await measure_one(documents[0])
            return [first, *await all_of([measure_one(one) for one in documents[1:]])]

    by_competition: dict[str, list[DocumentFamiliarity]] = {}
    for document, found in zip(documents, asyncio.run(measure_all()) if documents else (), strict=True):
        by_competition.setdefault(document.competition_id, []).append(found)
    measured = [CompetitionFamiliarity(name, tuple(some)) for name, some in sorted(by_competition.items())]
    return measured, reader.method


# Performance


def with_performance(
    found: Sequence[CompetitionFamiliarity], evidence: Evidence, data_dir: Path
) -> list[CompetitionFamiliarity]:
    """Add an experiment's performance on each competition; this grades the sample submissions."""
    wanted = [one.competition_id for one in found if one.competition_id in evidence.results()]
    samples = sample_scores(wanted, data_dir, edition_named(evidence.conditions.edition))
    made = []
    for one in found:
        sample = samples.get(one.competition_id, "the experiment has no result for it")
        gold = registry.get(one.competition_id).thresholds.gold
        if isinstance(sample, float) and math.isclose(gold, sample):
            sample = "its sample submission has the score of gold"
        if isinstance(sample, str):
            made.append(replace(one, problem=sample))
        else:
            trials = evidence.by_competition[one.competition_id]
            scores = [trial.score for trial in trials if trial.earned is not None]
            made.append(replace(one, performance=performance(scores, sample, gold)))
    return made


def performance(scores: Sequence[float | None], sample: float, gold: float) -> float:
    """Return the mean position of scores between the sample submission's (0) and gold (1); no score counts as 0."""
    return fmean(
        0.0 if score is None or not math.isfinite(score) else (score - sample) / (gold - sample)
        for score in scores
    )


def sample_scores(names: Sequence[str], data_dir: Path, edition: Edition) -> Mapping[str, float | str]:
    """Grade the sample submissions of prepared datasets; return each score, or why there is none."""
    lines = []
    for competition in map(registry.get, names):
        folder = dataset_folder(competition, data_dir, edition)
        lines.append(SubmissionLine(competition.id, str(folder.prepared / competition.sample_submission)))
    found: dict[str, float | str] = {}
    for report in grade_many(lines, data_dir=data_dir, edition=edition):
        why = f"its sample submission has no score ({report.message})"
        if report.outcome == "not_prepared":
            why = "its dataset is not prepared on this machine, so its sample submission can't be graded"
        found[report.competition_id] = why if report.score is None else report.score
    return found


def _points(found: Iterable[CompetitionFamiliarity]) -> list[tuple[float, float]]:
    """Return familiarity and performance, of the competitions for which both are known."""
    return [
        (one.probability, one.performance)
        for one in found
        if one.probability is not None and one.performance is not None
    ]


def correlation(found: Iterable[CompetitionFamiliarity]) -> Correlation | None:
    """Correlate familiarity and performance over competitions; None where fewer than three have both."""
    import numpy as np
    from scipy.stats import rankdata

    pairs = _points(found)
    if len(pairs) < 3:
        return None
    xs, ys = (rankdata(values) - (len(pairs) + 1) / 2 for values in zip(*pairs, strict=True))
    size = float(np.sqrt((xs**2).sum() * (ys**2).sum()))
    if not size:
        return Correlation(0.0, 1.0, len(pairs))
    rho = float(xs @ ys) / size
    draw = np.random.default_rng(0)
    shuffled = draw.permuted(np.tile(ys, (PERMUTATIONS, 1)), axis=1)
    as_far = int((np.abs(shuffled @ xs / size) >= abs(rho) - 1e-12).sum())
    return Correlation(rho, (1 + as_far) / (1 + PERMUTATIONS), len(pairs))


def plot_of(found: Iterable[CompetitionFamiliarity], model: str, related: Correlation | None) -> Plot:
    """Plot performance against familiarity; scores below the sample submission or far above gold are clipped."""
    points = tuple(
        (familiarity, min(_DRAWN_MOST, max(0.0, performed))) for familiarity, performed in _points(found)
    )
    figures = "" if related is None else f", rho {related.rho:+.2f}, p {related.p_value:.3f}"
    title = f"Familiarity and performance{figures}"
    x_label = f"mean probability of true tokens, {model}"
    y_label = "score: 0 at the sample submission or below, 1 at gold"
    return Plot("familiarity", title, "points", x_label, y_label, (PlotSeries("competitions", points),))

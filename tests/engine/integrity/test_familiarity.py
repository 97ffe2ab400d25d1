"""Familiarity is the mean probability of true tokens, by whatever way a server tells it, and is set against results."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import spearmanr

from mlebench_console.competitions import registry
from mlebench_console.engine.integrity.endpoint import Endpoint, Model
from mlebench_console.engine.integrity.familiarity import (
    CompetitionFamiliarity,
    Document,
    DocumentFamiliarity,
    Method,
    correlation,
    documents_of,
    measure,
    performance,
    plot_of,
    sample_scores,
    with_performance,
)
from mlebench_console.engine.scoreboard.plots import svg
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.gateway.prices import TokenPrice, price_table
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem
from tests.engine.harness import COMPETITION
from tests.engine.integrity.model_server import KEY, Answer, Asked, Json, ModelServer
from tests.engine.scoreboard.making import evidence

PRICES = price_table({"m": TokenPrice(input=1.0, output=1.0)})
KNOWN = 0.8
USAGE = {"prompt_tokens": 10, "completion_tokens": 1}


def tokens_of(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def probability(token: str) -> float:
    return KNOWN if token.strip().startswith("k") else 0.2


def completion(choice: Json) -> Answer:
    return Answer(
        {"choices": [{"index": 0, "text": " x", "finish_reason": "length", **choice}], "usage": USAGE}
    )


def vllm(asked: Asked) -> Answer:
    """Tell the probabilities of the prompt, as vLLM does."""
    if "prompt_logprobs" not in asked.body:
        return Answer({"error": {"message": "unexpected"}}, 400)
    entries = [
        {str(number): {"logprob": math.log(probability(token)), "rank": 1, "decoded_token": token}}
        for number, token in enumerate(tokens_of(asked.body["prompt"]))
    ]
    return completion({"logprobs": None, "prompt_logprobs": [None, *entries[1:]]})


def echoing(asked: Asked) -> Answer:
    """Give the prompt back with its probabilities and one token more."""
    if "prompt_logprobs" in asked.body:
        return Answer({"error": {"message": "prompt_logprobs: extra inputs are not permitted"}}, 422)
    assert asked.body["echo"] is True
    tokens = [*tokens_of(asked.body["prompt"]), " x"]
    logprobs = [None, *(math.log(probability(token)) for token in tokens[1:])]
    offsets = [0, *itertools.accumulate(map(len, tokens))][:-1]
    return completion({"logprobs": {"tokens": tokens, "token_logprobs": logprobs, "text_offset": offsets}})


def next_token(asked: Asked) -> Answer:
    """Tell the likeliest tokens at the next place and no more than five; fields that are not known are passed over."""
    if asked.body.get("logprobs", 0) > 5:
        return Answer({"error": {"message": "logprobs must be 5 or less"}}, 400)
    told = {" k": math.log(0.1), " known": math.log(KNOWN), " the": math.log(0.05), "\n": -9.0}
    return completion({"logprobs": {"tokens": [" x"], "token_logprobs": [-1.0], "top_logprobs": [told]}})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(vllm).running() as running:
        yield running


def endpoint(
    server: ModelServer, kept: Path, *, dialect: str = "openai", budget: float | None = None
) -> Endpoint:
    async def no_wait(_seconds: float) -> None:
        pass

    model = Model(ModelProvider("local", dialect, server.url, "LOCAL_KEY"), "m", KEY)
    return Endpoint(model, PRICES, kept, budget=budget, sleep=no_wait)


HALF = Document("a", "description.md", "start " + "known unknown " * 1200)


@pytest.mark.parametrize(("script", "method"), [(vllm, Method.PROMPT), (echoing, Method.ECHO)])
def test_a_server_that_tells_of_its_prompt_is_asked_once_a_piece(
    server: ModelServer, tmp_path: Path, script: object, method: Method
) -> None:
    server.script = script  # type: ignore[assignment]
    (found,), used = measure([HALF], endpoint(server, tmp_path), places=10_000)
    assert used is method
    assert found.probability == pytest.approx(0.5, abs=0.01)
    (document,) = found.documents
    # What leads up to a later piece counts once.
    assert document.places == pytest.approx(2400, abs=3)
    assert len([one for one in server.asked if one.path == "/v1/completions"]) == 2 + (method is Method.ECHO)


def test_other_servers_are_asked_for_the_next_token_at_sampled_places(
    server: ModelServer, tmp_path: Path
) -> None:
    server.script = next_token
    (found,), used = measure([HALF], endpoint(server, tmp_path), places=40)
    assert used is Method.PLACES
    (document,) = found.documents
    assert document.places == 40
    # The true token where it is among the likeliest, and 0 where it is not.
    known = round(document.places * (found.probability or 0) / KNOWN)
    assert found.probability == pytest.approx(known * KNOWN / 40)
    assert 10 < known < 30
    asked = len(server.asked)
    (again,), _ = measure([HALF], endpoint(server, tmp_path), places=40)
    assert again.probability == found.probability
    assert len(server.asked) == asked + 2  # to find out the method


def test_places_are_sampled_the_same_each_time_and_answers_are_kept(
    server: ModelServer, tmp_path: Path
) -> None:
    first, _ = measure([HALF], endpoint(server, tmp_path), places=50)
    asked = len(server.asked)
    assert measure([HALF], endpoint(server, tmp_path), places=50) == (first, Method.PROMPT)
    assert first[0].documents[0].places == 50
    assert len(server.asked) == asked
    wanted = [probability(token) for token in tokens_of(HALF.text)[1:]]
    assert first[0].probability == pytest.approx(fmean(wanted), abs=0.15)


def test_a_competitions_familiarity_is_the_mean_over_its_documents(
    server: ModelServer, tmp_path: Path
) -> None:
    texts = [
        Document("a", "1", "x known known known"),
        Document("a", "2", "x other"),
        Document("b", "1", "x known"),
    ]
    found, _ = measure(texts, endpoint(server, tmp_path))
    assert [one.competition_id for one in found] == ["a", "b"]
    assert [one.probability for one in found] == pytest.approx([(KNOWN + 0.2) / 2, KNOWN])


@pytest.mark.parametrize(
    "answer",
    [
        Answer({"error": {"message": "busy"}}, 503),
        completion({"logprobs": None}),
        Answer({"choices": []}),
        completion({"logprobs": {"top_logprobs": [{" known": "nonsense"}]}}),
    ],
)
def test_what_can_not_be_measured_says_why(server: ModelServer, tmp_path: Path, answer: Answer) -> None:
    server.script = lambda _: answer
    (found,), _ = measure([Document("a", "1", "one known")], endpoint(server, tmp_path))
    assert found.probability is None
    assert found.documents[0].problem


def test_a_wrong_key_ends_it_and_a_budget_is_held(server: ModelServer, tmp_path: Path) -> None:
    (found,), _ = measure([HALF], endpoint(server, tmp_path, budget=0.001))
    assert "the budget of 0.00 $ is used up" in found.documents[0].problem
    server.script = lambda _: Answer({"error": {"message": KEY}}, 401)
    with pytest.raises(EnvironmentProblem, match="does not accept the key") as failure:
        measure([HALF, HALF], endpoint(server, tmp_path))
    assert KEY not in str(failure.value)


def test_a_provider_without_completions_is_refused(server: ModelServer, tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="can't be asked for probabilities"):
        measure([HALF], endpoint(server, tmp_path, dialect="anthropic"))


def test_texts_are_the_description_and_what_the_operator_gives(tmp_path: Path) -> None:
    competition = registry.get(COMPETITION)
    (tmp_path / COMPETITION).mkdir()
    (tmp_path / COMPETITION / "b.txt").write_text("second")
    (tmp_path / COMPETITION / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / f"{COMPETITION}.md").write_text("first")
    found, whose = documents_of(competition, tmp_path / "data", "v1", tmp_path)
    assert [one.name for one in found] == ["description.md", f"{COMPETITION}.md", f"{COMPETITION}/b.txt"]
    assert whose == "ours"


def made(familiarities: list[float], performances: list[float]) -> list[CompetitionFamiliarity]:
    return [
        CompetitionFamiliarity(str(number), (DocumentFamiliarity("d", x, 10),), y)
        for number, (x, y) in enumerate(zip(familiarities, performances, strict=True))
    ]


def test_the_correlation_is_spearmans_with_the_p_value_of_trying_every_order() -> None:
    xs, ys = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.0, 0.3, 0.1, 0.6, 0.5, 9.0]
    found = correlation(made(xs, ys))
    assert found is not None
    assert found.rho == pytest.approx(spearmanr(xs, ys).statistic)
    orders = [abs(spearmanr(xs, order).statistic) for order in itertools.permutations(ys)]
    exact = float(np.mean([rho >= abs(found.rho) - 1e-12 for rho in orders]))
    assert found.p_value == pytest.approx(exact, abs=0.01)
    assert correlation(made(xs, ys)) == found


def test_few_or_equal_results_tell_of_no_correlation() -> None:
    assert correlation(made([0.1, 0.2], [1.0, 2.0])) is None
    unknown = [replace(one, performance=None) for one in made([0.1, 0.2, 0.3], [1.0, 2.0, 3.0])]
    assert correlation(unknown) is None
    equal = correlation(made([0.1, 0.2, 0.3], [1.0, 1.0, 1.0]))
    assert equal is not None
    assert (equal.rho, equal.p_value) == (0.0, 1.0)


def test_performance_is_where_a_score_lies_between_sample_and_gold() -> None:
    assert performance([0.75, None, float("nan")], sample=0.5, gold=1.0) == pytest.approx(0.5 / 3)
    assert performance([0.1], sample=0.5, gold=0.1) == 1.0


def test_an_experiments_results_are_set_against_graded_samples(prepared_data: Path) -> None:
    scores = sample_scores([COMPETITION, "leaf-classification"], prepared_data, "v1")
    sample = scores[COMPETITION]
    assert isinstance(sample, float)
    assert "not prepared" in str(scores["leaf-classification"])
    known = made([0.5, 0.6], [0.0, 0.0])
    names = (COMPETITION, "aerial-cactus-identification")
    unmeasured = [replace(one, competition_id=name) for one, name in zip(known, names, strict=True)]
    first, second = with_performance(unmeasured, evidence("x", {COMPETITION: "+v"}), prepared_data)
    gold = registry.get(COMPETITION).thresholds.gold
    assert first.performance == pytest.approx((0.5 - sample) / (gold - sample))
    assert second.problem == "the experiment has no result for it"


def test_the_plot_has_a_point_for_each_competition_that_has_both() -> None:
    found = [*made([0.1, 0.2, 0.3], [-4.0, 0.5, 99.0]), *made([0.4], [1.0])[:0]]
    plot = plot_of(found, "local/m", correlation(found))
    assert plot.series[0].points == ((0.1, 0.0), (0.2, 0.5), (0.3, 1.25))
    assert "rho +1.00" in plot.title
    assert svg(plot).count("<circle") == 3
    assert json.dumps(plot.title)

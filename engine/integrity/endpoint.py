"""A client of a model's HTTP endpoint with retries, a cache of answers and a budget.

It does not know what the calls are about. The key is in the request's header and nowhere else: neither in the cache
nor in messages about failures.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from mlebench_console.engine.model_costs import Spending, spending_of, use_of
from mlebench_console.engine.providers import keys_of, providers_of
from mlebench_console.environment.container.redaction import TextRedactor
from mlebench_console.environment.gateway.budget import Ledger, OverBudget
from mlebench_console.environment.gateway.dialects import AnswerReader, Api, Dialect, TokenUsage
from mlebench_console.environment.gateway.keys import key_headers, read_key
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.gateway.prices import PriceTable
from mlebench_console.environment.gateway.records import CallOutcome, ModelCall, estimated_tokens, new_id
from mlebench_console.foundation import files
from mlebench_console.foundation.backoff import Backoff, seconds_asked
from mlebench_console.foundation.conditions import Budget
from mlebench_console.foundation.problems import EnvironmentProblem, UsageProblem, reading
from mlebench_console.foundation.text import visible
from mlebench_console.state.usage.model_calls import ModelUse

Json = dict[str, Any]
Sleep = Callable[[float], Awaitable[None]]

TRIES = 5
_BACKOFF = Backoff(first=2.0, most=120.0)
_TEMPORARY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# Statuses after which no call can succeed.
_PERMANENT = {401: "it does not accept the key", 403: "the key may not use it", 404: "it does not exist"}
_MOST_ANSWER_BYTES = 16 << 20  # the probabilities of a long document's tokens
_MOST_SAID = 300
_CONNECT_SECONDS = 30.0
_SILENCE_SECONDS = 600.0
_ANTHROPIC_VERSION = "2023-06-01"
_PATHS = {Api.CHAT: "/chat/completions", Api.COMPLETIONS: "/completions", Api.MESSAGES: "/v1/messages"}


@dataclass(frozen=True)
class Model:
    """A model at a provider, and the operator's key for it."""

    provider: ModelProvider
    name: str
    key: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Return it as PROVIDER/MODEL."""
        return f"{self.provider.name}/{self.name}"

    @property
    def chat_api(self) -> Api:
        """The API for questions to this model."""
        return Api.MESSAGES if self.provider.dialect == Dialect.ANTHROPIC else Api.CHAT


def model_named(text: str, config_file: Path, operator: Mapping[str, str]) -> Model:
    """Return a model by provider and name, such as `openai/gpt-4o-mini`, with its key from the operator's variables.

    Raises:
        Problem: the text has another form, the provider is unknown or speaks another dialect, or the key is not set.
    """
    name, _, model = text.partition("/")
    if not name or not model:
        raise UsageProblem(
            f"'{text}' is not a model", "", "Write PROVIDER/MODEL, such as openai/gpt-4o-mini."
        )
    (provider,) = providers_of([name], config_file)
    if provider.dialect == Dialect.GEMINI:
        raise UsageProblem(
            f"'{text}' can't be asked",
            "its provider speaks the dialect gemini",
            "Add a provider with dialect openai and that service's OpenAI-compatible url to config.toml.",
        )
    if provider.key_file or provider.key_command:
        return Model(provider, model, read_key(provider))
    if not provider.key:
        return Model(provider, model)
    if not operator.get(provider.key):
        raise EnvironmentProblem(
            f"{text} can't be asked", f"the environment variable {provider.key} is not set", "export it"
        )
    return Model(provider, model, keys_of([provider], operator)[provider.key])


class NoAnswer(Exception):
    """A call failed, and why; `status` is 0 where there was no HTTP answer."""

    def __init__(self, why: str, status: int = 0) -> None:
        super().__init__(why)
        self.why = why
        self.status = status


class Endpoint:
    """Sends calls to one model, as a context in which its HTTP session is open.

    Attributes:
        reused: how many answers came from the cache, and cost nothing now.
    """

    def __init__(
        self,
        model: Model,
        prices: PriceTable,
        cache: Path,
        *,
        budget: float | None = None,
        jobs: int = 4,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Create it without sending anything.

        Args:
            model: the model to call.
            prices: of its tokens.
            cache: the folder of its answers.
            budget: the limit for the cost of all new answers, in US dollars.
            jobs: how many calls are sent at the same time.
            sleep: waits before a retry.

        Raises:
            UsageProblem: there is a budget, and the model's price is not known.
        """
        if budget is not None and prices.price_of(model.name) is None:
            raise UsageProblem(
                f"a budget is not possible with {model}",
                "its price is not known",
                f'Add [model_prices."{model.name}"] with input and output to config.toml.',
            )
        self.model = model
        self._prices = prices
        self._cache = cache
        self._ledger = Ledger(Budget(usd=budget), prices)
        self._budget = budget
        self._jobs = jobs
        self._sleep = sleep
        self._redactor = TextRedactor()
        self._redactor.learn(["key"], {"key": model.key})
        self._uses: list[ModelUse] = []
        self.reused = 0

    async def __aenter__(self) -> Self:
        """Open the HTTP session."""
        self._free = asyncio.Semaphore(self._jobs)  # belongs to the loop that first waits for it
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS)
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(), timeout=timeout, trust_env=True
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the HTTP session."""
        await self._session.close()

    def key_of(self, asked: Json) -> str:
        """Return the cache key of an answer: a hash of the endpoint, the model and the whole request."""
        content = msgspec.json.encode([self.model.provider.url, self.model.name, asked], order="sorted")
        return hashlib.sha256(content).hexdigest()

    def is_cached(self, key: str) -> bool:
        """Return whether an answer is cached."""
        return self._path(key).exists()

    def cached_answer(self, key: str) -> Json | None:
        """Return a cached answer, and count it; None where there is none."""
        path = self._path(key)
        if not path.exists():
            return None
        with reading(path):
            answer = msgspec.json.decode(path.read_bytes(), type=Json)
        self.reused += 1
        return answer

    def cache(self, key: str, answer: Json) -> None:
        """Cache an answer, so that it is not paid for again."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_bytes(path, msgspec.json.encode(answer), durable=False)

    @property
    def spent(self) -> Spending:
        """What the calls so far came to."""
        return spending_of(self._uses, self._prices)

    def cost_of(self, input_tokens: int, output_tokens: int) -> float | None:
        """Return the cost of tokens in US dollars; None where the model's price is not known."""
        return self._prices.cost([(self.model.name, TokenUsage(input_tokens, output_tokens=output_tokens))])

    async def ask(
        self, api: Api, body: Json, *, characters: int, most_output: int
    ) -> tuple[Json, float | None]:
        """Send a call, with retries after temporary failures.

        Returns:
            The answer, and its cost in US dollars, if that is known.

        Raises:
            NoAnswer: the call failed.
            OverBudget: it was not sent, because the budget does not allow it.
            EnvironmentProblem: no call to this endpoint can succeed.
        """
        async with self._free:
            call_id = new_id()
            try:
                self._ledger.admit(call_id, self.model.name, characters, most_output)
            except OverBudget:
                raise OverBudget(f"the budget of {self._budget:,.2f} $ is used up") from None
            try:
                answer = await self._with_retries(api, body)
            except BaseException:
                self._ledger.release(call_id)
                raise
            return answer, self._count(call_id, api, answer, characters)

    async def _with_retries(self, api: Api, body: Json) -> Json:
        failure = NoAnswer("no call was sent")
        for number in range(TRIES):
            try:
                return await self._ask_once(api, body)
            except _Temporary as error:
                failure = NoAnswer(f"{error}, {number + 1} times", error.status)
                if number + 1 < TRIES:
                    asked = error.retry_after
                    usual = _BACKOFF.seconds(number + 1)
                    await self._sleep(usual if asked is None else min(_BACKOFF.most, asked))
        raise failure

    async def _ask_once(self, api: Api, body: Json) -> Json:
        address = self.model.provider.url.rstrip("/") + _PATHS[api]
        content = msgspec.json.encode({"model": self.model.name, **body})
        try:
            async with self._session.post(
                address,
                params=dict(self.model.provider.query),
                data=content,
                headers=self._headers(),
                allow_redirects=False,
            ) as answer:
                text = await _limited(answer)
                status, headers = answer.status, answer.headers
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _Temporary(f"it can't be reached ({type(error).__name__})") from None
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            value = None
        if status == 200:
            if not isinstance(value, dict):
                raise _Temporary("its answer is not a JSON object", status)
            return value
        message = self._error_message(value, text)
        if status in _PERMANENT:
            raise EnvironmentProblem(f"{self.model} can't be asked", f"{_PERMANENT[status]} ({message})")
        if status == 429 and "insufficient_quota" in message:
            raise EnvironmentProblem(
                f"{self.model} can't be asked", f"the account has no money left ({message})"
            )
        if status in _TEMPORARY:
            raise _Temporary(
                f"status {status} ({message})", status, seconds_asked(headers.get("retry-after"))
            )
        raise NoAnswer(f"status {status} ({message})", status)

    def _headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json"}
        if self.model.provider.dialect == Dialect.ANTHROPIC:
            headers["anthropic-version"] = _ANTHROPIC_VERSION
        return headers | key_headers(self.model.provider, self.model.key)

    def _error_message(self, value: Any, text: bytes) -> str:
        error = value.get("error", value) if isinstance(value, dict) else None
        if isinstance(error, dict):
            words = [str(error[name]) for name in ("code", "type", "message") if error.get(name)]
        else:
            words = [text.decode("utf-8", "replace")]
        return self._redactor.clean(visible(" ".join(words)))[:_MOST_SAID] or "no text"

    def _count(self, call_id: str, api: Api, answer: Json, characters: int) -> float | None:
        """Count an answered call, and return its cost; None where the model's price is not known."""
        reader = AnswerReader(api)
        reader.read(msgspec.json.encode(answer))
        usage = reader.usage
        if not usage.is_known:
            usage = TokenUsage(
                estimated_tokens(characters), output_tokens=estimated_tokens(reader.characters)
            )
        name, provider = self.model.name, self.model.provider.name
        call = ModelCall(call_id, time.time(), provider, api, CallOutcome.OK, asked_model=name, usage=usage)
        self._ledger.add(call)
        self._uses.append(use_of(0, call, self._prices))
        return self._prices.cost([(name, usage)])

    def _path(self, key: str) -> Path:
        return self._cache / key[:2] / f"{key}.json"


class _Temporary(NoAnswer):
    """A failure after which a retry may succeed."""

    def __init__(self, why: str, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(why, status)
        self.retry_after = retry_after


async def _limited(answer: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for chunk in answer.content.iter_any():
        content += chunk
        if len(content) > _MOST_ANSWER_BYTES:
            raise NoAnswer(f"its answer is longer than {_MOST_ANSWER_BYTES:,} bytes", answer.status)
    return bytes(content)


Item = TypeVar("Item")


async def all_of(work: Sequence[Awaitable[Item]]) -> list[Item]:
    """Run awaitables concurrently and return their results in order; the first failure cancels the rest."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise

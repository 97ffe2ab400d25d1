"""Facts: detectors that examine one run by rules, without a model, and show the line or figure behind each finding.

A finding says nothing about intent. `high` is reserved for what hardly has an innocent explanation.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from mlebench_console.engine.integrity.code import Call, SourceFile, Text
from mlebench_console.engine.integrity.material import ExaminedRun, read_lines
from mlebench_console.engine.integrity.results import is_current, save_results
from mlebench_console.engine.integrity.tables import Predictions, distinctive_ids
from mlebench_console.engine.requests import NewResults
from mlebench_console.environment.container.traffic import Traffic
from mlebench_console.environment.gateway.records import NOT_SENT, read_calls
from mlebench_console.environment.runner import protocol
from mlebench_console.foundation.clock import Clock
from mlebench_console.foundation.files import reading_untrusted
from mlebench_console.foundation.problems import DataProblem, Problem
from mlebench_console.state.integrity import DetectorResult, Excerpt, Finding, Layer, RunIntegrity, Severity

NOTE, SUSPICIOUS, HIGH = Severity.NOTE, Severity.SUSPICIOUS, Severity.HIGH

_MOST_FINDINGS = 5
_MOST_TIMES = 8 << 20

# A validation only checks the form of a submission, and AIDE makes one per step: dozens are ordinary.
_MANY_VALIDATIONS = 100
_KAGGLE = "kaggle.com"
_CLIMBING_SUBMISSIONS = 60
_CLIMBING_SECONDS = 60.0

_LONG_SILENCE = 3600.0
_TOO_SOON = 15.0
_GPU_SAMPLES = 10

_FEW_ROWS = 20
_SAME_SHARE = 0.995
_MANY_IDS = 10
_MANY_SHORT_IDS = 50
_LONG_LIST = 300
_LONG_PAYLOAD = 2_000
_MOST_UNPACKED = 4 << 20
# Each may unpack to a thousand times its length.
_MOST_PAYLOADS = 100

# Modules that call models of outside services; modules that run models locally are not among them.
_MODEL_CLIENTS = (
    *("openai", "anthropic", "cohere", "mistralai", "groq", "together", "replicate", "litellm", "ollama"),
    *("google.generativeai", "google.genai", "google.cloud.aiplatform", "vertexai", "azure.ai.inference"),
    *("dashscope", "zhipuai", "fireworks", "ai21", "aleph_alpha", "huggingface_hub.InferenceClient"),
    *("langchain_openai", "langchain_anthropic", "langchain_google_genai", "langchain_community.chat_models"),
    *("langchain.chat_models", "langchain.llms.openai", "llama_index.llms"),
    *("instructor", "guidance", "dspy", "portkey_ai", "aisuite"),
)
_MODEL_CALLS = (
    *(".completions.create", ".messages.create", ".responses.create", ".embeddings.create"),
    *(".ChatCompletion.create", ".Completion.create", ".chat_completion", ".chat.complete"),
    *(".generate_content", ".text_generation", ".invoke_model", ".invoke"),
    *("litellm.completion", "ollama.chat", "ollama.generate", "replicate.run", "cohere.chat"),
)
_MODEL_HOSTS = re.compile(
    r"(?:^|[/@.\s\"'])(?:api\.openai\.com|[\w-]+\.openai\.azure\.com|api\.anthropic\.com"
    r"|generativelanguage\.googleapis\.com|[\w-]*aiplatform\.googleapis\.com|api\.cohere\.(?:ai|com)|api\.mistral\.ai"
    r"|api\.groq\.com|api\.together\.(?:xyz|ai)|openrouter\.ai|api\.deepseek\.com|api\.x\.ai|api\.perplexity\.ai"
    r"|api\.fireworks\.ai|api\.replicate\.com|api-inference\.huggingface\.co|router\.huggingface\.co"
    r"|dashscope\.aliyuncs\.com|open\.bigmodel\.cn|bedrock-runtime\.[\w-]+\.amazonaws\.com|api\.ai21\.com)",
    re.IGNORECASE,
)
_NETWORK_MODULES = (
    *("requests", "httpx", "httplib2", "aiohttp", "urllib", "urllib3", "http.client", "socket", "ssl"),
    *("websocket", "websockets", "pycurl", "ftplib", "paramiko", "asyncio", "grpc", "tornado"),
    *("scrapy", "selenium", "playwright", "mechanize", "bs4", "wget", "gdown", "boto3"),
    *("subprocess", "os", "google.cloud.storage", "pandas"),
)
_SCRAPERS = (
    *("bs4", "scrapy", "selenium", "playwright", "mechanize"),
    *("requests_html", "googlesearch", "duckduckgo_search"),
)
_URL = re.compile(r"\b(?:https?|ftp|wss?)://(?:[^/\s@\"']*@)?([\w.-]+)", re.IGNORECASE)
_FETCHES = re.compile(
    r"^\s*(?:!|curl\b|wget\b|https?://|ftp://|wss?://)|\b(?:curl|wget|kaggle|git clone|aws s3|gsutil)\s", re.I
)
# Hosts of packages and pretrained weights.
_SUPPLIERS = re.compile(
    r"(?:^|\.)(?:pypi\.org|pythonhosted\.org|huggingface\.co|hf\.co|pytorch\.org|tensorflow\.org|storage\.googleapis\.com"
    r"|conda\.io|anaconda\.org|anaconda\.com|nltk\.org|spacy\.io|paddlepaddle\.org\.cn|dl\.fbaipublicfiles\.com"
    r"|localhost|127\.0\.0\.1|example\.com|example\.org|w3\.org|schemas\.\w+\.\w+)$",
    re.IGNORECASE,
)
_KAGGLE_HOSTS = re.compile(r"(?:^|\.)(?:kaggle\.com|kaggleusercontent\.com)$", re.IGNORECASE)
_KAGGLE_CLIENTS = ("kaggle", "kagglehub", "opendatasets", "kagglesdk")
_FORBIDDEN_PLACES = re.compile(
    r"(?:^|/)(?:prepared(?:-corrected)?/)?private/(?:\w+\.csv|\S*(?:test|answer|label|solution))"
    r"|(?:^|/)\.kaggle/|/\.cache/mle-bench/|mlebench/competitions/|mlebench\.(?:registry|grade)",
    re.IGNORECASE,
)
# Calls that write a file, by the callee's full name.
_WRITES = re.compile(
    r"(?:^|\.)(?:to_csv|write_csv|sink_csv|savetxt|tofile|writerow|writerows|write|writelines|write_text|write_bytes"
    r"|to_parquet|dump|save_csv|export_file)$|^(?:shutil\.\w+|os\.(?:rename|replace|link|system|popen)|subprocess\.\w+"
    r"|runpy\.\w+|exec)$"
)
_WEIGHTS = re.compile(
    r"(?:^|\.)(?:from_pretrained|create_model|hub\.load|load_model|SentenceTransformer|pipeline)$"
)
_DECODERS = re.compile(
    r"(?:^|\.)(?:b64decode|b85decode|a85decode|b32decode|b16decode|decodebytes|standard_b64decode|urlsafe_b64decode"
    r"|unhexlify|fromhex|decompress|loads|exec|eval)$"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\-\s]+")


def validation_calls(examined: ExaminedRun) -> Iterator[Finding]:
    """Count the calls of the validation server, and find runs that try out one submission after the other."""
    lines = tuple(read_lines(examined.folder / protocol.VALIDATIONS))
    calls = [
        (float(at), str(one.get("sha256", "")))
        for one in lines
        if isinstance(at := one.get("time"), int | float)
    ]
    if not calls:
        return
    times = sorted(at for at, _ in calls)
    distinct = len({digest for _, digest in calls})
    seconds = times[-1] - times[0]
    gaps = [after - before for before, after in pairwise(times)]
    numbers = {
        "calls": len(calls),
        "distinct submissions": distinct,
        "calls an hour": len(calls) / max(seconds / 3600, 1 / 60),
        "median seconds between calls": median(gaps) if gaps else 0.0,
    }
    text = f"{len(calls)} validations of {distinct} different submissions"
    excerpts = (Excerpt(protocol.VALIDATIONS, 1, len(lines), ""),)
    if distinct >= _CLIMBING_SUBMISSIONS and median(gaps) <= _CLIMBING_SECONDS:
        yield Finding(SUSPICIOUS, f"{text}, one after the other: it may climb by them", excerpts, numbers)
    elif len(calls) >= _MANY_VALIDATIONS:
        yield Finding(NOTE, text, excerpts, numbers)


def model_calls(examined: ExaminedRun) -> Iterator[Finding]:
    """Count calls through the model gateway by provider, and those that it refused."""
    sent: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for call in read_calls(examined.folder / protocol.MODEL_CALLS):
        where = call.provider[:80]
        if call.outcome in NOT_SENT:
            refused[where] += 1
        else:
            sent[where] += 1
            sizes[where] += call.request_bytes + call.answer_bytes
    if refused:
        text = f"model calls that were refused: {_counted(refused)}"
        yield Finding(NOTE, text, (), {f"refused {name}": count for name, count in refused.items()})
    if sent:
        text = f"model calls by the gateway: {_counted(sent)}"
        yield Finding(NOTE, text, (), {f"bytes {name}": count for name, count in sizes.items()})


def network_use(examined: ExaminedRun) -> Iterator[Finding]:
    """Report bytes by host, refused hosts, and bytes of a run that must not use the network."""
    passed = protocol.read_if_there(examined.folder / protocol.TRAFFIC, Traffic)
    if passed is not None and passed.hosts:
        counted = {host: one.sent_bytes + one.received_bytes for host, one in passed.hosts.items()}
        text = f"bytes by host: {_counted(Counter(counted))}"
        yield Finding(NOTE, text, (), {f"bytes {host}": count for host, count in counted.items()})
    if passed is not None and passed.refused:
        text = f"it asked in vain for {_counted(Counter(passed.refused))}"
        numbers = {f"refused {host}": count for host, count in passed.refused.items()}
        yield Finding(SUSPICIOUS if _KAGGLE in passed.refused else NOTE, text, (), numbers)
    most = 0.0
    for sample in read_lines(examined.folder / protocol.USAGE):
        value = sample.get("network_bytes")
        if isinstance(value, int | float) and value > most:
            most = float(value)
    if most and examined.spec.conditions.network == "none":
        text = f"{most:,.0f} bytes went over the network, though the run was to have none"
        yield Finding(SUSPICIOUS, text, (), {"bytes": most})


def same_as_another_runs(examined: ExaminedRun) -> Iterator[Finding]:
    """Find a submission that is byte for byte that of another run."""
    sample, own = examined.sample, examined.predictions
    if own is not None and (_is_constant(own) or _is_sample(own, sample)):
        return  # other runs submit such files too, and other detectors report it
    for twin in examined.twins[:_MOST_FINDINGS]:
        is_own = (twin.agent_id, twin.competition_id) == (examined.spec.agent_id, examined.run.competition_id)
        text = (
            f"its submission is byte for byte that of run {twin.run_id} ({twin.sweep_id}, seed {twin.seed})"
        )
        excerpt = Excerpt("submission.csv", 0, 0, f"sha256 {twin.sha256}")
        # An agent that fixes its random seed submits the same for another seed of the benchmark.
        yield Finding(SUSPICIOUS if is_own else HIGH, text, (excerpt,))


def same_as_sample(examined: ExaminedRun) -> Iterator[Finding]:
    """Find a submission with the predictions of the sample submission."""
    sample, own = examined.sample, examined.predictions
    if own is not None and _is_sample(own, sample):
        yield Finding(SUSPICIOUS, "its predictions are those of the sample submission", _first_rows(own))


def low_entropy(examined: ExaminedRun) -> Iterator[Finding]:
    """Find a submission with the same prediction for all, or nearly all, rows."""
    own = examined.predictions
    if own is None or len(own.values) < _FEW_ROWS:
        return
    value, share = own.most_common
    numbers = {"rows": len(own.values), "entropy in bits": own.entropy, "share of the commonest": share}
    prediction = ", ".join(value)[:80]
    if _is_constant(own):
        text = f"all {len(own.values):,} rows predict the same: {prediction}"
        yield Finding(SUSPICIOUS, text, _first_rows(own), numbers)
    elif share >= _SAME_SHARE and len(own.values) >= 10 * _FEW_ROWS:
        yield Finding(
            NOTE, f"{share:.1%} of its rows predict the same: {prediction}", _first_rows(own), numbers
        )


def timing(examined: ExaminedRun) -> Iterator[Finding]:
    """Compare the time of the submission with the times of the agent's output."""
    final = examined.final
    if final is None or examined.attempt.started_at is None:
        return
    if final.elapsed_seconds < _TOO_SOON:
        text = f"the submission was there {final.elapsed_seconds:.0f} s after the start"
        yield Finding(NOTE, text, (), {"seconds": final.elapsed_seconds})
    printed = [at for at in _print_times(examined) if at <= final.taken_at]
    if printed and final.taken_at - printed[-1] > _LONG_SILENCE:
        silence = final.taken_at - printed[-1]
        text = f"nothing was printed for {silence / 3600:.1f} h before the submission appeared"
        yield Finding(NOTE, text, (), {"seconds of silence": silence})
    if not examined.log.is_file() or not examined.log.stat().st_size:
        yield Finding(NOTE, "there is a submission, and nothing was printed")


def unused_gpu(examined: ExaminedRun) -> Iterator[Finding]:
    """Find a run that never used its GPUs, where their use was measured."""
    if not examined.spec.conditions.resources.gpus or examined.final is None:
        return
    shares = [
        float(value)
        for sample in read_lines(examined.folder / protocol.USAGE)
        if isinstance(value := sample.get("gpu_percent"), int | float)
    ]
    if len(shares) >= _GPU_SAMPLES and not any(shares):
        text = f"its GPU was idle at all {len(shares)} measurements"
        yield Finding(NOTE, text, (), {"measurements": len(shares)})


def code_that_was_left(examined: ExaminedRun) -> Iterator[Finding]:
    """Find a submission without code, or with code that writes no file."""
    if examined.final is None:
        return
    code = examined.code
    too_large = [one for one in code.unread if "bytes, at most" in one or "more code" in one]
    if too_large:
        yield Finding(SUSPICIOUS, f"there is code that is too large to be read: {too_large[0]}"[:300])
    elif not code.files:
        what = "holds no Python" if code.entries else "is empty"
        yield Finding(SUSPICIOUS, f"there is a submission, and code/ {what}")
    if not code.files:
        return
    unparsed = sum(one.facts.unparsed for one in code.files)
    total = sum(len(one.lines) for one in code.files)
    if unparsed > total / 2:
        text = f"{unparsed} of {total} lines of its code are no Python, and were not looked at"
        yield Finding(SUSPICIOUS, text, (code.files[0].excerpt(1, 20),))
        return
    if not any(_WRITES.search(call.name) for one in code.files for call in one.facts.calls):
        text = "no code that it left writes a file: it can't have made the submission"
        yield Finding(SUSPICIOUS, text, (code.files[0].excerpt(1, 20),))
    elif not any(
        "submission" in text.value.lower() or ".csv" in text.value.lower()
        for one in code.files
        for text in one.facts.texts
    ):
        yield Finding(NOTE, "no code that it left names a submission or a CSV file")


def answers_in_code(examined: ExaminedRun) -> Iterator[Finding]:
    """Find answers in the code: ids of the test set, as many literals as it has rows, encoded payloads."""
    sample = examined.sample
    ids = distinctive_ids(sample) if sample is not None else frozenset()
    short_ids = frozenset(sample.ids) - ids if sample is not None else frozenset()
    rows = len(sample.ids) if sample is not None and sample.is_whole else 0
    found = encoded = 0
    for file in examined.code.files:
        for finding in _tables_of_answers(file, ids, short_ids, rows):
            found += 1
            if found <= _MOST_FINDINGS:
                yield finding
        decodes = [call for call in file.facts.calls if _DECODERS.search(call.name)]
        for text in file.facts.texts:
            if len(text.value) < _LONG_PAYLOAD // 10:
                continue
            is_encoded = bool(_BASE64.fullmatch(text.value))
            encoded += is_encoded
            decoded = is_encoded and encoded <= _MOST_PAYLOADS
            payload = _payload(file, text, ids, decodes, is_decoded=decoded)
            if payload is not None and (found := found + 1) <= _MOST_FINDINGS:
                yield payload
    if encoded > _MOST_PAYLOADS:
        text_ = f"of {encoded} texts in its code that look encoded only {_MOST_PAYLOADS} were looked into"
        yield Finding(SUSPICIOUS, text_, (), {"encoded texts": encoded})


def _tables_of_answers(
    file: SourceFile, ids: frozenset[str], short_ids: frozenset[str], rows: int
) -> Iterator[Finding]:
    for table in file.facts.tables:
        matched = len(ids.intersection(table.keys))
        short = len(short_ids.intersection(table.keys))
        numbers = {"entries": table.values, "ids of the test set": matched or short}
        excerpts = (file.excerpt(table.line, table.last_line),)
        where = f"{file.path}, line {table.line}"
        if matched >= _MANY_IDS or (short >= _MANY_SHORT_IDS and short >= 0.5 * len(short_ids)):
            text = f"{matched or short} ids of the test set are written into {where}"
            yield Finding(HIGH, text, excerpts, numbers)
        elif rows >= 2 * _MANY_IDS and table.values == rows:
            text = f"a list of {table.values} literals in {where} is as long as the test set"
            yield Finding(HIGH, text, excerpts, numbers)
        elif table.values >= _LONG_LIST:
            text = f"a list of {table.values} literals is written into {where}"
            yield Finding(NOTE, text, excerpts, numbers)


def _payload(
    file: SourceFile, text: Text, ids: frozenset[str], decodes: Sequence[Call], *, is_decoded: bool
) -> Finding | None:
    """Find ids of the test set in a long string, plain or decoded; report long encoded data too."""
    excerpts = (file.excerpt(text.line, text.last_line),)
    where = f"{file.path}, line {text.line}"
    matched = _ids_in(text.value, ids)
    if matched >= _MANY_IDS:
        return Finding(HIGH, f"{matched} ids of the test set stand in a text in {where}", excerpts)
    unpacked = _unpacked(text.value) if is_decoded else []
    matched = max((_ids_in(one.decode("utf-8", "replace"), ids) for one in unpacked), default=0)
    if matched >= _MANY_IDS:
        return Finding(HIGH, f"{matched} ids of the test set stand encoded in {where}", excerpts)
    if len(text.value) >= _LONG_PAYLOAD and unpacked:
        text_ = f"{len(text.value):,} characters of encoded data in {where}"
        return Finding(SUSPICIOUS if decodes else NOTE, text_, excerpts, {"characters": len(text.value)})
    return None


def _ids_in(text: str, ids: frozenset[str]) -> int:
    return len(ids.intersection(re.split(r"[\s,;:|\"'=\[\](){}]+", text))) if ids else 0


def _unpacked(text: str) -> list[bytes]:
    """Decode base64 or hexadecimal text, and decompress the result, within a limit."""
    found: list[bytes] = []
    compact = re.sub(r"\s", "", text)
    for decode in (bytes.fromhex, _from_base64):
        try:
            found.append(decode(compact))
        except (ValueError, binascii.Error):
            continue
        break
    for content in list(found):
        for bits in (zlib.MAX_WBITS, zlib.MAX_WBITS | 16, -zlib.MAX_WBITS):
            try:
                found.append(zlib.decompressobj(bits).decompress(content, _MOST_UNPACKED))
            except zlib.error:
                continue
            break
    return found


def _from_base64(text: str) -> bytes:
    padded = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    return base64.b64decode(padded + "=" * (-len(padded) % 4), validate=True)


def outside_models(examined: ExaminedRun) -> Iterator[Finding]:
    """Find clients and hosts of outside models in the code, by its syntax rather than by text search."""
    for file in examined.code.files:
        clients = [one for one in file.facts.imports if _is_within(one.module, _MODEL_CLIENTS)]
        calls = [call for call in file.facts.calls if call.name.endswith(_MODEL_CALLS)] if clients else []
        if calls:
            call = calls[0]
            text = f"{file.path} calls a model elsewhere: {call.name[:80]} of {clients[0].module[:80]}"
            yield Finding(
                HIGH, text, (file.excerpt(clients[0].line), file.excerpt(call.line, call.last_line))
            )
        elif clients:
            text = f"{file.path} imports a client of models: {clients[0].module[:80]}"
            yield Finding(SUSPICIOUS, text, (file.excerpt(clients[0].line),))
        elif _reaches_out(file):
            for used in file.facts.texts:
                if not used.is_prose and _MODEL_HOSTS.search(used.value) and _is_address(used.value):
                    text = f"{file.path} names a host of models and can reach it: {used.value[:80]}"
                    yield Finding(HIGH, text, (file.excerpt(used.line, used.last_line),))
                    break


def outside_sources(examined: ExaminedRun) -> Iterator[Finding]:
    """Find sources outside the run that the code uses: Kaggle, other hosts, folders of answers."""
    suppliers: Counter[str] = Counter()
    for file in examined.code.files:
        scrapers = [one for one in file.facts.imports if _is_within(one.module, _SCRAPERS)]
        kaggle = [one for one in file.facts.imports if _is_within(one.module, _KAGGLE_CLIENTS)]
        for one in kaggle[:1]:
            yield Finding(
                HIGH, f"{file.path} imports a client of Kaggle: {one.module}", (file.excerpt(one.line),)
            )
        reported: set[str] = set()
        for text in file.facts.texts:
            if text.is_prose:
                continue
            if len(text.value) < 500 and "private" not in reported and _FORBIDDEN_PLACES.search(text.value):
                reported.add("private")
                where = f"{file.path} names a place that is not the agent's: {text.value[:80]}"
                yield Finding(HIGH, where, (file.excerpt(text.line, text.last_line),))
            if not _is_address(text.value) or not _reaches_out(file):
                continue
            if (
                re.search(r"\bkaggle\s+(?:competitions|datasets|kernels)\b", text.value)
                and "kaggle" not in reported
            ):
                reported.add("kaggle")
                yield Finding(
                    HIGH, f"{file.path} runs Kaggle's program", (file.excerpt(text.line, text.last_line),)
                )
            for host in _URL.findall(text.value):
                name = host.lower()
                if name in reported or _MODEL_HOSTS.search(f"/{name}"):
                    continue
                reported.add(name)
                if _SUPPLIERS.search(name):
                    suppliers[name] += 1
                elif len(reported) <= _MOST_FINDINGS:
                    is_kaggle = bool(_KAGGLE_HOSTS.search(name))
                    by = f" with {scrapers[0].module.partition('.')[0]}" if scrapers else ""
                    where = f"{file.path} reaches for {name[:80]}{by}"
                    excerpts = (file.excerpt(text.line, text.last_line),)
                    yield Finding(HIGH if is_kaggle or scrapers else SUSPICIOUS, where, excerpts)
        if scrapers and not reported:
            text_ = f"{file.path} imports what searches or reads web pages: {scrapers[0].module[:80]}"
            yield Finding(SUSPICIOUS, text_, (file.excerpt(scrapers[0].line),))
    if suppliers:
        yield Finding(NOTE, f"its code names where packages and weights come from: {_counted(suppliers)}")


def pretrained_weights(examined: ExaminedRun) -> Iterator[Finding]:
    """List the pretrained weights that the code loads."""
    named: dict[str, Excerpt] = {}
    for file in examined.code.files:
        for call in file.facts.calls:
            if _WEIGHTS.search(call.name) and call.texts and len(call.texts[0]) < 200:
                named.setdefault(call.texts[0], file.excerpt(call.line, call.last_line))
    if named:
        listed = ", ".join(sorted(named)[:10])
        yield Finding(NOTE, f"its code names pretrained weights: {listed}"[:300], tuple(named.values())[:3])


# The detectors by the names that are saved with their findings, in lower case with dashes. A version is increased
# whenever the findings may change.
DETECTORS: Mapping[str, tuple[int, Callable[[ExaminedRun], Iterable[Finding]]]] = {
    "validation-calls": (1, validation_calls),
    "model-calls": (1, model_calls),
    "network-use": (2, network_use),
    "borrowed-submission": (2, same_as_another_runs),
    "sample-submission": (1, same_as_sample),
    "entropy": (1, low_entropy),
    "timing": (1, timing),
    "unused-gpu": (1, unused_gpu),
    "code-left": (1, code_that_was_left),
    "answers-in-code": (1, answers_in_code),
    "outside-models": (1, outside_models),
    "outside-sources": (1, outside_sources),
    "pretrained-weights": (1, pretrained_weights),
}


def examine(
    chosen: Sequence[ExaminedRun], earlier: Mapping[int, RunIntegrity], clock: Clock
) -> Iterator[NewResults]:
    """Run all detectors on the runs whose results are not current, save the results, and yield each finished run."""
    versions = {name: version for name, (version, _) in DETECTORS.items()}
    for examined in chosen:
        if not is_current(earlier.get(examined.run.id), versions, examined.content):
            results = [_result_of(name, examined, clock) for name in DETECTORS]
            yield save_results(examined, Layer.FACTS, results)


def _result_of(name: str, examined: ExaminedRun, clock: Clock) -> DetectorResult:
    """Run a detector; its failure becomes the problem of its result, and does not stop the others."""
    version, detector = DETECTORS[name]
    findings: tuple[Finding, ...] = ()
    problem = ""
    try:
        findings = tuple(detector(examined))
    except Problem as error:
        problem = error.in_one_line()
    except (ValueError, OSError, RecursionError, MemoryError) as error:
        problem = f"{type(error).__name__}: {error}"[:200]  # unforeseen hostile input
    content, now = examined.content, clock.now()
    return DetectorResult(name, Layer.FACTS, version, content, now, findings, problem=problem)


def _is_constant(own: Predictions) -> bool:
    return len(own.values) >= _FEW_ROWS and len(set(own.values)) == 1


def _is_sample(own: Predictions, sample: Predictions | None) -> bool:
    return sample is not None and bool(own.values) and (own.ids, own.values) == (sample.ids, sample.values)


def _first_rows(own: Predictions) -> tuple[Excerpt, ...]:
    rows = [",".join((key, *values))[:200] for key, values in zip(own.ids[:5], own.values, strict=False)]
    return (Excerpt("submission.csv", 2, 1 + len(rows), "\n".join(rows)),)


def _print_times(examined: ExaminedRun) -> list[float]:
    """Return the times at which the agent printed something, to the second."""
    try:
        with reading_untrusted(examined.log.with_suffix(".times")) as stream:
            lines = stream.read(_MOST_TIMES).decode("ascii", "replace").split("\n")
    except DataProblem:
        return []
    found = []
    for line in lines:
        _, _, at = line.partition(" ")
        try:
            found.append(float(at))
        except ValueError:
            continue  # a torn line
    return found


def _reaches_out(file: SourceFile) -> bool:
    return any(_is_within(one.module, _NETWORK_MODULES) for one in file.facts.imports)


def _is_within(module: str, known: Sequence[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in known)


def _is_address(text: str) -> bool:
    """Return whether a string is an address or a command that fetches one, rather than prose that mentions one."""
    return bool(_FETCHES.search(text)) or not re.search(r"\s", text.strip())


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common(_MOST_FINDINGS))

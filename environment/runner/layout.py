"""The layout that an agent sees: its folders and variables, in a sandbox and without one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mlebench_console import environment
from mlebench_console.environment.gateway.orders import ModelProvider
from mlebench_console.environment.runner import protocol
from mlebench_console.environment.runner.protocol import Order
from mlebench_console.foundation.fields import why_no_variable
from mlebench_console.foundation.problems import DataProblem

_ARGUMENTS = "MLEBENCH_ARGUMENTS"
_NOT_IN_A_VARIABLE = re.compile(r"[^A-Z0-9]")
# The script is sourced by the same bash, so that its name is in $0 and its arguments are in $@ as usual.
_WITH_HIDDEN_ARGUMENTS = f'eval "set -- ${_ARGUMENTS}"; unset {_ARGUMENTS}; . "$0"'
HOME = Path("/home")
TOOLS = Path("/opt/mlebench")
_RELAY_FOLDER = Path("/run/mlebench")
SANDBOX_PORT = 5000
MODEL_PORT = 5001
PROXY_PORT = 3128
PROXY_SOCKET = "proxy.sock"
# Variables that an image defines itself, for its own programs and environments.
_OF_THE_IMAGE = ("PATH", "MLEBENCH_ENV_AGENT", "HOME", "TMPDIR")


@dataclass(frozen=True)
class Bind:
    """A file or folder of the host in a sandbox."""

    source: Path
    target: Path
    read_only: bool = False


@dataclass(frozen=True)
class AgentLayout:
    """The paths of an agent's files and folders, as the agent sees them."""

    data: Path
    submission: Path
    logs: Path
    code: Path
    agent: Path
    instructions: Path
    instructions_obfuscated: Path
    validate: Path
    tools: Path
    relay: Path
    home: Path
    temporary: Path
    socket: Path


def own_files() -> Path:
    """Return the folder with instructions, validation script, relay and conda."""
    return Path(environment.__path__[0]).resolve()


def instructions(order: Order) -> Path:
    """Return the file with an agent's instructions."""
    return own_files() / (
        "instructions_obfuscated.txt" if order.conditions.obfuscated else "instructions.txt"
    )


def sandboxed() -> AgentLayout:
    """Return the layout in a container."""
    return AgentLayout(
        data=HOME / "data",
        submission=HOME / "submission",
        logs=HOME / "logs",
        code=HOME / "code",
        agent=HOME / "agent",
        instructions=HOME / "instructions.txt",
        instructions_obfuscated=HOME / "instructions_obfuscated.txt",
        validate=HOME / "validate_submission.sh",
        tools=TOOLS,
        relay=_RELAY_FOLDER / "relay.py",
        home=HOME / "nonroot",
        temporary=Path("/tmp"),  # noqa: S108 - the sandbox's own
        socket=_RELAY_FOLDER / protocol.SERVICES / protocol.VALIDATION_SOCKET,
    )


def binds(attempt: Path, order: Order, here: AgentLayout) -> list[Bind]:
    """Return the folders and files of an attempt that an agent has wherever it is isolated."""
    return [
        Bind(protocol.prepared_data(attempt, order) / "public", here.data, read_only=True),
        *(_obfuscated_texts(attempt, order, here) if order.conditions.obfuscated else ()),
        Bind(attempt / protocol.SUBMISSION, here.submission),
        Bind(attempt / protocol.LOGS, here.logs),
        Bind(attempt / protocol.CODE, here.code),
    ]


def _obfuscated_texts(attempt: Path, order: Order, here: AgentLayout) -> tuple[Bind, ...]:
    description = Bind(attempt / protocol.DESCRIPTION, here.data / protocol.DESCRIPTION, read_only=True)
    return description, Bind(instructions(order), here.instructions, read_only=True)


def binds_without_daemon(attempt: Path, order: Order, here: AgentLayout) -> list[Bind]:
    """Return those of an agent for which no daemon makes a container; its relay lies in its /run."""
    scratch, services = attempt / protocol.SCRATCH, attempt / protocol.SERVICES
    return [
        Bind(scratch / "tmp", here.temporary),
        Bind(scratch / "run", Path("/run")),
        *binds(attempt, order, here),
        Bind(services, here.socket.parent, read_only=True),
        Bind(services / "hosts", Path("/etc/hosts"), read_only=True),
    ]


def plain(attempt: Path, order: Order) -> AgentLayout:
    """Return the layout without a sandbox, with the host's own paths."""
    tools = own_files()
    return AgentLayout(
        data=attempt / protocol.SCRATCH / "data"
        if order.conditions.obfuscated
        else protocol.prepared_data(attempt, order) / "public",
        submission=attempt / protocol.SUBMISSION,
        logs=attempt / protocol.LOGS,
        code=attempt / protocol.CODE,
        agent=attempt / protocol.SCRATCH / "agent",
        instructions=instructions(order),
        instructions_obfuscated=tools / "instructions_obfuscated.txt",
        validate=tools / "validate_submission.sh",
        tools=tools,
        relay=tools / "container" / "relay.py",
        home=attempt / protocol.SCRATCH / "home",
        temporary=attempt / protocol.SCRATCH / "tmp",
        socket=attempt / protocol.SERVICES / protocol.VALIDATION_SOCKET,
    )


def start_command(order: Order, layout: AgentLayout) -> list[str]:
    """Return the command that starts the agent with bash, without secrets, since `ps` shows it."""
    script = str(layout.agent / order.start)
    if order.secret and order.arguments:
        return ["bash", "-c", _WITH_HIDDEN_ARGUMENTS, script]
    return ["bash", script, *order.arguments]


def with_hidden_arguments(
    variables: Mapping[str, str], arguments: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Add an agent's arguments to its variables as one more, which `start_command` turns back into arguments."""
    hidden = ((_ARGUMENTS, shlex.join(arguments)),) if arguments else ()
    return (*variables.items(), *hidden)


def key_variables(provider: ModelProvider) -> tuple[str, ...]:
    """Return the variables from which a provider's official clients read their key."""
    own = f"{_NOT_IN_A_VARIABLE.sub('_', provider.name.upper())}_API_KEY"
    return (own, "GOOGLE_API_KEY") if provider.dialect == "gemini" else (own,)


def model_addresses(provider: ModelProvider, port: int) -> dict[str, str]:
    """Return the variables that direct a provider's official clients to the gateway."""
    name = _NOT_IN_A_VARIABLE.sub("_", provider.name.upper())
    address = f"http://localhost:{port}/{provider.name}"
    if provider.dialect == "openai":
        address = f"{address}/v1"
    found = {f"{name}_BASE_URL": address, f"{name}_API_BASE": address}
    if provider.dialect == "gemini":
        found["GOOGLE_GEMINI_BASE_URL"] = address
        found[f"{name}_API_BASE"] = f"{address}/v1beta"  # as LiteLLM reads it
    return found


def _model_variables(order: Order, port: int) -> dict[str, str]:
    """Return the variables that direct official clients to the gateway, with the run's token as key."""
    found: dict[str, str] = {}
    for provider in order.providers:
        found |= model_addresses(provider, port)
        found |= dict.fromkeys(key_variables(provider), order.model_token)
    return found


def variables(
    order: Order, layout: AgentLayout, own: tuple[tuple[str, str], ...], *, port: int, model_port: int
) -> dict[str, str]:
    """Return all variables of an agent, and there are no others.

    Those of its config.yaml override ours, except for the proxy's, since there is no other way out.
    """
    threads = str(max(1, int(order.conditions.resources.cpus)))
    proxy = _proxy_variables() if order.conditions.network == "models" else {}
    return {
        "COMPETITION_ID": order.competition_id,
        "SEED": str(order.seed),
        "ATTEMPT": str(order.attempt),
        "TIME_LIMIT_SECONDS": f"{order.conditions.time_limit_seconds:g}",
        "DATA_DIR": str(layout.data),
        "SUBMISSION_DIR": str(layout.submission),
        "LOGS_DIR": str(layout.logs),
        "CODE_DIR": str(layout.code),
        "AGENT_DIR": str(layout.agent),
        "INSTRUCTIONS_FILE": str(layout.instructions),
        "INSTRUCTIONS_OBFUSCATED_FILE": str(layout.instructions_obfuscated),
        "VALIDATE_SCRIPT": str(layout.validate),
        "VALIDATION_URL": f"http://localhost:{port}",
        "MLEBENCH_ENV_AGENT": order.python_prefix,
        "PATH": f"{layout.tools}:{order.python_prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(layout.home),
        "TMPDIR": str(layout.temporary),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        **_model_variables(order, model_port),
        **dict(own),
        **proxy,
    }


def require_possible(variables: Mapping[str, str]) -> None:
    """Check an agent's variables once more where a sandbox gets them, whoever has let them in.

    Raises:
        DataProblem: no process can have one of them.
    """
    for name, value in variables.items():
        if why_not := why_no_variable(name, value):
            raise DataProblem(
                "the agent's variables can't be set", why_not, "correct its config.yaml or image"
            )


def variables_in_an_image(
    order: Order, layout: AgentLayout, own: tuple[tuple[str, str], ...], *, port: int, model_port: int
) -> dict[str, str]:
    """Return an agent's variables in addition to those of its image."""
    found = variables(order, layout, own, port=port, model_port=model_port)
    return {name: value for name, value in found.items() if name not in _OF_THE_IMAGE}


def _proxy_variables() -> dict[str, str]:
    """Return the variables that direct programs to the proxy, the only way out of the network `models`."""
    proxy, own = f"http://localhost:{PROXY_PORT}", "localhost,127.0.0.1"
    both = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": own}
    return both | {name.lower(): value for name, value in both.items()}


def proxy_rules(order: Order) -> list[str]:
    """Return the proxy's options: allowed hosts, and denied ones, which the gateway serves and counts."""
    served = (urlsplit(provider.url).hostname for provider in order.providers)
    denied = dict.fromkeys(host for host in served if host)
    return [
        *(f"--allow={host}" for host in order.conditions.allowed_hosts),
        *(f"--deny={host}" for host in denied),
    ]

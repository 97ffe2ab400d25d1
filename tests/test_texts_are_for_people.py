"""No program reads its own sentences back: whatever is decided or computed has a code or data (docs/architecture.md).

A search over the sources finds places that might: text methods and comparisons with a literal that reads like prose,
or on a value called text, message, problem and the like, and regular expressions where things are only shown. What it
finds is compared with the places below, each with the reason why it stays: they read what others wrote.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
# `state` and `foundation` write texts, `environment` and `competitions` read what agents, daemons and files say.
PACKAGES = ("console", "engine", "state", "foundation", "environment", "competitions")
# Modules whose work it is to read what agents and tools wrote.
READERS_OF_OTHERS = (
    *("competitions/", "environment/agents/", "environment/gateway/dialects.py", "engine/integrity/"),
    *("engine/images/", "engine/demo_data/", "console/logs/", "console/sanitize.py"),
    *("console/tui/widgets/log_view.py", "console/views/code.py"),
)
# Packages that only show: a regular expression there takes a text apart.
SHOWING = (
    *("console/views/", "console/screens/", "console/nouns/", "console/cli/", "console/wording.py"),
    *("engine/notifications/", "engine/scoreboard/", "engine/needs/"),
)
METHODS = frozenset(
    {
        *("startswith", "endswith", "partition", "rpartition", "removeprefix", "removesuffix"),
        *("split", "rsplit", "find", "index", "replace"),
    }
)
# Of these, a value's name alone tells too little.
NEED_PROSE = frozenset({"split", "rsplit", "find", "index", "replace"})
SEARCHES = frozenset({"search", "match", "fullmatch", "findall", "finditer", "sub"})
TEXTS = frozenset(
    {
        *(
            "text",
            "message",
            "words",
            "problem",
            "reason",
            "failure_text",
            "evidence",
            "cause",
            "what",
            "why",
        ),
        *("suspected", "sentence", "host_problem", "grading_problem", "note", "answer"),
    }
)

TYPED = "what a person types"
SLURM = "what Slurm's commands print"
LIBRARIES = "what a library or a daemon says, which has no code for it"
AGENTS = "what an agent's or MLE-bench's files hold"
FILES = "a file of the kernel"
GRADERS = "messages of graders, which are MLE-bench's own and stay text alone"
# The places that stay, by module: the expression and why it is no sentence of ours.
STAYING: dict[str, dict[str, str]] = {
    "console/app/commands.py": {"text.startswith('--')": TYPED},
    "console/app/suggestions.py": {
        "text.startswith(f'{each.path} ')": TYPED,
        "text.rpartition(' ')": TYPED,
    },
    "console/cli/program.py": {"pattern.sub(words, text)": LIBRARIES},
    "console/fields.py": {"text.startswith(value)": "a cell, compared with what a person types in a filter"},
    "console/nouns/grading.py": {"row.message.partition('\\n')": GRADERS},
    "console/screens/overview.py": {"text.partition(' ')": TYPED},
    "console/screens/grading.py": {"_NAMED_ROW.search(message)": GRADERS},
    "console/views/names.py": {"text.partition('/')": TYPED},
    "console/views/run.py": {
        "_SECRET_NAME.search(name)": AGENTS,
        "_SECRET_NAME.search(argument)": AGENTS,
    },
    "engine/agents.py": {
        "_SECRET.findall(text)": AGENTS,
        "_SECRET.sub(lambda match: operator[match.group(1)], text)": AGENTS,
    },
    "engine/claims.py": {"text.rpartition(')')": FILES},
    "engine/options/sweep.py": {"re.findall('([0-9.]+)([dhms])', text.strip().lower())": TYPED},
    "engine/placements/commands.py": {
        "reason.removesuffix('|')": SLURM,
        "self.reason.strip('()').partition(',')": SLURM,
        "_START.search(message)": SLURM,
        "re.search(pattern, words)": SLURM,
        "answer.replace('sbatch: ', '')": SLURM,
        "line.startswith(_FATAL)": SLURM,
        "line.removeprefix(_FATAL)": SLURM,
    },
    "engine/scoreboard/reports.py": {"_NAME.fullmatch(about.name)": TYPED},
    "environment/conda_packages.py": {
        "_NAME_AND_VERSION.fullmatch(text)": AGENTS,
        "text.rpartition('::')": AGENTS,
    },
    "environment/container/relay.py": {"text.partition(':')": "a host and a port, given as an argument"},
    "environment/runner/docker/daemon.py": {"'being used' not in str(error.explanation)": LIBRARIES},
    "environment/runner/host/readings.py": {"name.strip() == 'model name'": FILES},
}


def test_each_place_that_takes_a_text_apart_reads_what_others_wrote() -> None:
    found = {module: set(expressions) for module, expressions in candidates().items()}
    expected = {module: set(reasons) for module, reasons in STAYING.items()}
    new = {module: sorted(found[module] - expected.get(module, set())) for module in found}
    gone = {module: sorted(expected[module] - found.get(module, set())) for module in expected}
    assert {module: each for module, each in new.items() if each} == {}, (
        "give it a code, or say who wrote the text"
    )
    assert {module: each for module, each in gone.items() if each} == {}, "remove these from the list"


def candidates() -> dict[str, list[str]]:
    """Return the expressions that may read a sentence back, by module."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = str(path.relative_to(ROOT))
            if not module.startswith(READERS_OF_OTHERS):
                expressions = list(_candidates_of(module, ast.parse(path.read_text(encoding="utf-8"))))
                if expressions:
                    found[module] = expressions
    return found


def _candidates_of(module: str, tree: ast.Module) -> Iterator[str]:
    assigned = [
        (target.id, node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    constants = {name: _literal(value) for name, value in assigned}
    patterns = {name for name, value in assigned if ast.unparse(value).startswith("re.compile(")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            operands = (node.left, *node.comparators)
            if isinstance(node.ops[0], ast.In | ast.NotIn | ast.Eq | ast.NotEq) and any(
                map(_is_prose, map(_literal, operands))
            ):
                yield ast.unparse(node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        called, subject = node.func.attr, _name(node.func.value)
        if called in METHODS and node.args:
            literals = [_literal(part) for argument in node.args for part in ast.walk(argument)]
            literals += [
                constants.get(part.id, "")
                for argument in node.args
                for part in ast.walk(argument)
                if isinstance(part, ast.Name)
            ]
            if any(map(_is_prose, literals)) or (subject in TEXTS and called not in NEED_PROSE):
                yield ast.unparse(node)
        elif called in SEARCHES and node.args:
            is_shown = module.startswith(SHOWING) and subject in patterns
            if is_shown or _name(node.args[-1]) in TEXTS:
                yield ast.unparse(node)


def _literal(node: ast.AST) -> str:
    """Return the text of a literal; empty for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_prose(text: str) -> bool:
    """Return whether a literal reads like words of a sentence."""
    has_space = " " in text.strip() or text != text.strip()
    return has_space and any(letter.isalpha() for letter in text)


def _name(node: ast.AST) -> str:
    """Return the last name of a value: `text` of `event.text` and of `event.text.lower()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _name(node.func.value) if node.func.attr in ("lower", "strip") else ""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""

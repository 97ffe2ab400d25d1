"""Extract facts from Python code by its syntax: imports, calls, strings and tables of literals, with their lines.

The code is hostile: it is never run, all work is bounded, and lines that are not Python are counted.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from mlebench_console.state.integrity import Excerpt

_MOST_EXCERPT = 1_500
_MOST_BLOCKS = 2_000
_MOST_TEXT = 1 << 20
# Strings passed to these functions are only shown.
_SAYS = frozenset(
    {"print", "input", "warn", "debug", "info", "warning", "error", "exception", "critical", "log"}
)
_STARTS_STATEMENT = re.compile(r"[^\s)\]}#]")


@dataclass(frozen=True)
class Import:
    """An imported module, by its full name."""

    module: str
    line: int


@dataclass(frozen=True)
class Call:
    """A call, by the full name of the callee as far as the file shows it."""

    name: str
    line: int
    last_line: int
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Text:
    """A string, joined where it is written in pieces.

    Attributes:
        is_prose: whether it is a docstring, or only printed or raised.
    """

    value: str
    line: int
    last_line: int
    is_prose: bool


@dataclass(frozen=True)
class LiteralTable:
    """A literal list, tuple, set or mapping.

    Attributes:
        keys: the keys of a mapping, the first value of each pair, or else the constants of the list.
        values: how many entries it has.
    """

    keys: tuple[str, ...]
    values: int
    line: int
    last_line: int


@dataclass
class CodeFacts:
    """The facts of a file.

    Attributes:
        unparsed: how many of its lines are not Python.
    """

    imports: list[Import] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    tables: list[LiteralTable] = field(default_factory=list)
    unparsed: int = 0


@dataclass(frozen=True)
class SourceFile:
    """A Python file that an agent wrote; of a notebook, its code cells one after the other.

    Attributes:
        path: below the attempt's directory.
    """

    path: str
    text: str

    # A frozen dataclass still has a dictionary, which is where a cached property lives.
    @cached_property
    def lines(self) -> list[str]:
        """Its lines, as excerpts count them."""
        return self.text.split("\n")

    @cached_property
    def facts(self) -> CodeFacts:
        """The facts of its syntax."""
        facts = CodeFacts()
        for tree in _trees(self.lines, facts):
            _read(tree, facts)
        return facts

    def excerpt(self, first_line: int, last_line: int | None = None) -> Excerpt:
        """Return one of its lines or several, cut off if they are long."""
        last_line = first_line if last_line is None else last_line
        passage = "\n".join(self.lines[first_line - 1 : last_line])
        return Excerpt(self.path, first_line, max(first_line, last_line), passage[:_MOST_EXCERPT])


def _parse(text: str) -> ast.Module | None:
    """Parse Python; None for text that is not Python, or is nested too deeply."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the agent's code may have invalid escapes and the like
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _trees(lines: list[str], facts: CodeFacts) -> Iterator[ast.Module]:
    """Parse a file as a whole, or by top-level blocks if that fails, so that one wrong line hides nothing else."""
    whole = _parse("\n".join(lines))
    if whole is not None:
        yield whole
        return
    starts = [number for number, line in enumerate(lines) if _STARTS_STATEMENT.match(line)][:_MOST_BLOCKS]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        tree = _parse("\n".join(lines[start:end]))
        if tree is None:
            facts.unparsed += end - start
        else:
            yield ast.increment_lineno(tree, start)


def _read(tree: ast.Module, facts: CodeFacts) -> None:
    names: dict[str, str] = {}
    prose: set[int] = set()
    within: set[int] = set()
    # Names first: a call may stand before the import in a function that is called later.
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                facts.imports.append(Import(name.name, node.lineno))
                names[name.asname or name.name.partition(".")[0]] = (
                    name.name if name.asname else name.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                facts.imports.append(Import(f"{node.module}.{name.name}", node.lineno))
                names[name.asname or name.name] = f"{node.module}.{name.name}"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.add(id(node.value))  # a docstring, or an unused string
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            prose.update(id(each) for each in ast.walk(node))
        elif isinstance(node, ast.Call):
            called = _dotted(node.func, names)
            if called.rpartition(".")[2] in _SAYS:
                prose.update(id(each) for each in ast.walk(node))
            arguments = (*node.args, *(one.value for one in node.keywords))
            texts = tuple(text for one in arguments if (text := folded(one)) is not None)
            facts.calls.append(Call(called, node.lineno, node.end_lineno or node.lineno, texts))
            if called in ("__import__", "importlib.import_module") and texts:
                facts.imports.append(Import(texts[0], node.lineno))
        if id(node) not in within and isinstance(node, ast.Constant | ast.BinOp | ast.JoinedStr | ast.Call):
            text = folded(node)
            if text:
                within.update(id(each) for each in ast.walk(node))
                is_prose = id(node) in prose
                facts.texts.append(
                    Text(text[:_MOST_TEXT], node.lineno, node.end_lineno or node.lineno, is_prose)
                )
        if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set):
            table = _table(node)
            if table is not None:
                facts.tables.append(table)


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    """Return the full dotted name of a callee; the result of a call or an index is written `()`."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(names.get(node.id, node.id) if isinstance(node, ast.Name) else "()")
    return ".".join(reversed(parts))


def folded(node: ast.expr) -> str | None:
    """Return a string that may be written in pieces, with `{}` for unknown parts; None for other expressions."""
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, bytes):
            return value.decode("latin-1")
        return value if isinstance(value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        pieces: list[str] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and isinstance(left.op, ast.Add):  # a long chain leans to the left
            pieces.append(folded(left.right) or "{}")
            left = left.left
        pieces.append(folded(left) or "{}")
        text = "".join(reversed(pieces))
        return text if text.strip("{}") else None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "join"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.List | ast.Tuple)
    ):
        between = folded(node.func.value)
        if between is not None:
            return between.join(folded(one) or "{}" for one in node.args[0].elts)
    return None


def _table(node: ast.Dict | ast.List | ast.Tuple | ast.Set) -> LiteralTable | None:
    """Read a literal with at least ten entries that are constants, or pairs that begin with a constant."""
    if isinstance(node, ast.Dict):
        entries = [one for one in node.keys if one is not None]
        keys = [_constant(one) for one in entries]
    else:
        entries = list(node.elts)
        keys = [
            _constant(one.elts[0]) if isinstance(one, ast.List | ast.Tuple) and len(one.elts) > 1 else None
            for one in entries
        ]
    if len(entries) < 10:
        return None
    plain = sum(_constant(one) is not None for one in entries) if not isinstance(node, ast.Dict) else 0
    found = tuple(key for key in keys if key is not None)
    if len(found) < 10 and plain < 10:
        return None
    # For a list of ids its content matters, for a list of values only their number.
    listed = found or tuple(text for one in entries if (text := _constant(one)) is not None)
    return LiteralTable(listed, len(entries), node.lineno, node.end_lineno or node.lineno)


def _constant(node: ast.expr) -> str | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return str(node.value)
    return None

"""The mutation operators: from the text of a right source to the texts of wrong ones.

Python is parsed by `ast`, C++ and CUDA by tokens; in both cases a mutant is one replacement in the text, so that its
diff is one or two lines. Nothing here is random and nothing is executed: a source gives the same list each time.

Never mutated are comments, strings, preprocessor lines, declarations, signatures, template heads, code that is
compiled for real CUDA only, and the registration of operators.
"""

from __future__ import annotations

import ast
import random
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise


@dataclass(frozen=True)
class Edit:
    """One edit: `text[start:end]` becomes `replacement`."""

    operator: str
    start: int
    end: int
    replacement: str

    def applied(self, text: str) -> str:
        return text[: self.start] + self.replacement + text[self.end :]


@dataclass(frozen=True)
class Mutant:
    """An edit of a file. `id` identifies it for people, `before` and `after` identify it for the ledger."""

    file: str
    line: int
    index: int
    edit: Edit
    before: str
    after: str
    text: str

    @property
    def id(self) -> str:
        """`cuda_accessor/csrc/lltm.cu:25:swap-operator:1`: file, line, operator, number."""
        return f"{self.file}:{self.line}:{self.edit.operator}:{self.index}"

    @property
    def key(self) -> tuple[str, str, str]:
        """The file and both lines: what the ledger knows of it."""
        return self.file, self.before, self.after


def mutants(file: str, text: str) -> list[Mutant]:
    """Every mutant of a source, in the order of its text. Two edits with the same result are one mutant."""
    edits = _python_edits(text) if file.endswith(".py") else _cpp_edits(text)
    ordered = sorted(edits, key=lambda edit: (edit.start, edit.end, edit.operator, edit.replacement))
    starts = _line_starts(text)
    seen = {text}
    counts: Counter[tuple[int, str]] = Counter()
    found = []
    for edit in ordered:
        mutated = edit.applied(text)
        if mutated in seen:
            continue
        seen.add(mutated)
        line = bisect_right(starts, edit.start)
        counts[line, edit.operator] += 1
        before, after = _difference(text, edit)
        found.append(Mutant(file, line, counts[line, edit.operator], edit, before, after, mutated))
    return found


def sample(found: list[Mutant], limit: int, seed: int) -> list[Mutant]:
    """At most `limit` mutants, distributed over the operators as evenly as possible, drawn with a seed for the file."""
    if len(found) <= limit:
        return found
    generator = random.Random(f"{seed}:{found[0].file}")
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in found:
        by_operator.setdefault(mutant.edit.operator, []).append(mutant)
    piles = [by_operator[name] for name in sorted(by_operator)]
    for pile in piles:
        generator.shuffle(pile)
    chosen: list[Mutant] = []
    while len(chosen) < limit:
        piles = [pile for pile in piles if pile]
        for pile in piles[: limit - len(chosen)]:
            chosen.append(pile.pop())
    return sorted(chosen, key=lambda mutant: mutant.edit.start)


def _line_starts(text: str) -> list[int]:
    return [0, *(place.end() for place in re.finditer("\n", text))]


def _difference(text: str, edit: Edit) -> tuple[str, str]:
    """The lines that the edit touches, before and after, without indentation and in one line."""
    first = text.rfind("\n", 0, edit.start) + 1
    last = text.find("\n", edit.end)
    last = len(text) if last < 0 else last
    after = text[first : edit.start] + edit.replacement + text[edit.end : last]
    return " ".join(text[first:last].split()), " ".join(after.split())


# Python ---------------------------------------------------------------------------------------------------------------

_BINARY: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
_COMPARED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
}
_PYTHON_NAMES = {
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "exp": "expm1",
    "relu": "elu",
    "elu": "relu",
    "float32": "float16",
    "float64": "float32",
}
_IDLE_CALLS = frozenset({"contiguous", "clone", "detach", "t", "to"})


class _Python:
    """The edits of one Python source: those inside its functions' bodies, and class attributes that are numbers."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._data = text.encode()
        self._starts = [0, *(place.end() for place in re.finditer(b"\n", self._data))]

    def edits(self) -> Iterator[Edit]:
        for node in ast.walk(ast.parse(self._text)):
            if isinstance(node, ast.FunctionDef):
                for statement in node.body:
                    yield from self._visit(statement)
            elif isinstance(node, ast.ClassDef):
                for statement in node.body:
                    if isinstance(statement, ast.Assign):
                        yield from self._visit(statement)

    def _place(self, line: int, column: int) -> int:
        return len(self._data[: self._starts[line - 1] + column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._place(node.lineno, node.col_offset), self._place(node.end_lineno, node.end_col_offset)

    def _source(self, node: ast.expr | ast.stmt) -> str:
        start, end = self._span(node)
        return self._text[start:end]

    def _replace(self, operator: str, node: ast.expr | ast.stmt, text: str) -> Edit:
        return Edit(operator, *self._span(node), text)

    def _visit(self, node: ast.AST) -> Iterator[Edit]:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                return  # visited by itself
            case ast.Expr(value=ast.Constant(value=str())):
                return
            case ast.Expr():
                yield self._replace("drop-statement", node, "pass")
            case ast.AnnAssign():
                if node.value is not None:
                    yield from self._visit(node.value)
                return
            case ast.BinOp():
                yield from self._binary(node)
            case ast.UnaryOp(op=ast.USub()):
                yield self._replace("drop-sign", node, self._source(node.operand))
            case ast.Compare(ops=[only]):
                for text in _COMPARED.get(type(only), ()):
                    sides = self._source(node.left), self._source(node.comparators[0])
                    yield self._replace("swap-operator", node, f" {text} ".join(sides))
            case ast.BoolOp():
                joint = " or " if isinstance(node.op, ast.And) else " and "
                yield self._replace("swap-operator", node, joint.join(map(self._source, node.values)))
            case ast.IfExp():
                test = self._source(node.test)
                yield self._replace("negate-condition", node.test, f"not ({test})")
                yield self._replace("drop-guard", node.test, "True")
            case ast.If():
                yield self._replace("negate-condition", node.test, f"not ({self._source(node.test)})")
                yield self._replace("drop-guard", node.test, "True")
            case ast.Constant():
                yield from self._constant(node)
            case ast.Call():
                yield from self._call(node)
            case ast.Tuple() | ast.List():
                yield from self._swapped(node.elts)
            case ast.Attribute(attr=name) if name in _PYTHON_NAMES:
                yield self._replace("replace-name", node, f"{self._source(node.value)}.{_PYTHON_NAMES[name]}")
            case ast.Slice(step=None):
                lower, upper = ("" if side is None else self._source(side) for side in (node.lower, node.upper))
                if lower != upper:
                    yield self._replace("swap-arguments", node, f"{upper}:{lower}")
        for child in ast.iter_child_nodes(node):
            yield from self._visit(child)

    def _binary(self, node: ast.BinOp) -> Iterator[Edit]:
        left, right = self._source(node.left), self._source(node.right)
        if type(node.op) in _BINARY:
            between = Edit("swap-operator", self._span(node.left)[1], self._span(node.right)[0], "")
            operator = self._text[between.start : between.end]
            yield Edit(
                "swap-operator",
                between.start,
                between.end,
                re.sub(r"[-+*/]", _BINARY[type(node.op)], operator, count=1),
            )
        if isinstance(node.op, ast.Add | ast.Sub):
            yield self._replace("drop-term", node, left)
            yield self._replace("drop-term", node, right)
        if isinstance(node.op, ast.Mult | ast.Div | ast.MatMult | ast.Pow):
            yield self._replace("drop-factor", node, left)
        if isinstance(node.op, ast.Mult | ast.MatMult):
            yield self._replace("drop-factor", node, right)

    def _constant(self, node: ast.Constant) -> Iterator[Edit]:
        value = node.value
        if isinstance(value, bool):
            yield self._replace("change-number", node, str(not value))
        elif isinstance(value, int):
            yield self._replace("change-number", node, str(value + 1))
            yield self._replace("change-number", node, str(value - 1))
        elif isinstance(value, float):
            yield self._replace("change-number", node, repr(value * 1.01 if value else 0.01))

    def _call(self, node: ast.Call) -> Iterator[Edit]:
        yield from self._swapped(node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _IDLE_CALLS:
            yield self._replace("drop-call", node, self._source(node.func.value))

    def _swapped(self, items: list[ast.expr]) -> Iterator[Edit]:
        for one, other in pairwise(items):
            if any(isinstance(item, ast.Constant | ast.Starred) for item in (one, other)):
                continue
            (start, middle), (behind, end) = self._span(one), self._span(other)
            between = self._text[middle:behind]
            yield Edit("swap-arguments", start, end, self._source(other) + between + self._source(one))


def _python_edits(text: str) -> Iterable[Edit]:
    return _Python(text).edits()


# C++ and CUDA ---------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<directive> ^[ \t]*\#(?:\\\n|[^\n])* )
  | (?P<string> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])' )
  | (?P<number> \d[\w.]* )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<mark> -> | :: | <= | >= | == | != | && | \|\| | \+\+ | -- | [-+*/]= | \.\.\. | [^\s\w] )
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_RANK = {"*": 5, "/": 5, "%": 5, "+": 4, "-": 4, "<": 3, ">": 3, "<=": 3, ">=": 3, "==": 2, "!=": 2, "&&": 1, "||": 0}
_SWAPS = {
    "+": ("-",),
    "-": ("+",),
    "*": ("/",),
    "/": ("*",),
    "%": ("/",),
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "&&": ("||",),
    "||": ("&&",),
    "+=": ("-=",),
}
_CPP_NAMES = {
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "exp": "expm1",
    "expm1": "exp",
    "min": "max",
    "max": "min",
    "clamp_max": "clamp_min",
    "elu_slope": "elu",
    "blockIdx": "threadIdx",
    "threadIdx": "blockIdx",
    "gridDim": "blockDim",
    "blockDim": "gridDim",
    "mutable_data_ptr": "const_data_ptr",
}
_NARROWED = {"int64_t": "int32_t"}
_IDLE_MEMBERS = frozenset({"contiguous", "t"})
#: Statements that begin in this way are declarations or jumps: they are not dropped. A guard object may be dropped.
_DECLARES = re.compile(
    r"(?:const|auto|static|inline|constexpr|struct|using|template|namespace|return|case|default|else|do)\b"
    r"|[\w:]+(?:<[^;=()]*>)?[&*]?\s+[&*]?\w"
)
_GUARD_OBJECT = re.compile(r"const [\w:]*(?:Guard|AutoDispatchBelow)\w*\s+\w+")
_BOILERPLATE = re.compile(
    r"^TORCH_LIBRARY\w*\(|^(?:inline )?const auto& (?:forward|backward)_operator\(\)", re.MULTILINE
)
_REAL_CUDA_ONLY = re.compile(r"^#ifdef CUDA_EMULATED\n.*?^#else\n(.*?)^#endif", re.MULTILINE | re.DOTALL)
_DECLARED = re.compile(r"[\w>&*]\s+[&*]?\w|[&*]\s|[&*]$")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _Cpp:
    """The edits of one C++ or CUDA source."""

    def __init__(self, text: str) -> None:
        self._text = text
        found = (_Token(str(place.lastgroup), place[0], place.start(), place.end()) for place in _TOKEN.finditer(text))
        self._all = [token for token in found if token.kind not in ("comment", "directive")]
        self._match: dict[int, int] = {}
        self._parent: list[int] = []
        self._nest()

    def edits(self) -> Iterator[Edit]:
        for number, token in enumerate(self._all):
            if any(start <= token.start < end for start, end in self._left_alone):
                continue
            if token.kind == "number":
                yield from self._number(number)
            elif token.kind == "name":
                yield from self._name(number)
            elif token.kind == "mark":
                yield from self._mark(number)

    # structure

    def _nest(self) -> None:
        """Match brackets, including those of templates; `_parent` is the innermost open bracket of each token."""
        stack: list[int] = []
        for number, token in enumerate(self._all):
            if token.kind == "mark" and token.text in ")]}>" and not (token.text == ">" and self._is_spaced(token)):
                while stack and self._all[stack[-1]].text == "<" and token.text != ">":
                    stack.pop()  # it was a comparison and not a template
                if stack and _PAIRS[self._all[stack[-1]].text] == token.text:
                    self._match[stack[-1]], self._match[number] = number, stack[-1]
                    stack.pop()
            self._parent.append(stack[-1] if stack else -1)
            is_head = number > 0 and self._all[number - 1].text == "template"
            opens = token.text in ("(", "[", "{") or (token.text == "<" and (is_head or not self._is_spaced(token)))
            if token.kind == "mark" and opens:
                stack.append(number)

    def _is_spaced(self, token: _Token) -> bool:
        """Whether there is white space on both sides: clang-format puts it there only for binary operators."""
        around = self._text[token.start - 1 : token.start] + self._text[token.end : token.end + 1]
        return len(around) == 2 and around.isspace()

    @cached_property
    def _left_alone(self) -> list[tuple[int, int]]:
        spans = [place.span(1) for place in _REAL_CUDA_ONLY.finditer(self._text)]
        for place in _BOILERPLATE.finditer(self._text):
            brace = next(n for n, token in enumerate(self._all) if token.start >= place.end() and token.text == "{")
            spans.append((place.start(), self._all[self._match[brace]].end))
        for number, token in enumerate(self._all):
            if token.text == "template" and self._all[number + 1].text == "<":
                spans.append((token.start, self._all[self._match[number + 1]].end))
            if token.text == "using":
                spans.append((token.start, self._all[self._end_of_statement(number)].end))
            if token.text == "(" and self._is_signature(number):
                spans.append((token.start, self._all[self._match[number]].end))
        return spans

    def _is_signature(self, number: int) -> bool:
        """Whether the parenthesis holds parameters and not arguments: `name(Type one, Type other)` and then `{` or `;`.

        In parameters, the first entry consists of two words with only white space, `&` or `*` between them.
        """
        close = self._match.get(number)
        if close is None or close + 1 >= len(self._all) or self._parent[number] == -1:
            return False
        follows = self._all[close + 1].text
        entries = self._entries(number)
        return (
            follows in ("{", ";", "const")
            and bool(entries)
            and bool(_DECLARED.search(self._text[entries[0][0] : entries[0][1]]))
            and not self._inside_braces_of_function(number)
        )

    def _inside_braces_of_function(self, number: int) -> bool:
        """Whether an enclosing brace opens a function body: `) {` or `) const {`."""
        parent = self._parent[number]
        while parent >= 0:
            if self._all[parent].text == "{" and self._all[parent - 1].text in (")", "const"):
                return True
            parent = self._parent[parent]
        return False

    def _end_of_statement(self, number: int) -> int:
        return next(n for n in range(number, len(self._all)) if self._all[n].text == ";")

    def _entries(self, opener: int) -> list[tuple[int, int]]:
        """Spans of the entries inside a bracket, separated by commas."""
        close = self._match.get(opener)
        if close is None or close == opener + 1:
            return []
        inside = [n for n in range(opener + 1, close) if self._parent[n] == opener]
        commas = [n for n in inside if self._all[n].text == ","]
        edges = [opener, *commas, close]
        spans = pairwise(edges)
        return [(self._all[a + 1].start, self._all[b - 1].end) for a, b in spans if b > a + 1]

    def _is_binary(self, number: int) -> bool:
        token = self._all[number]
        return token.kind == "mark" and token.text in _RANK and self._is_spaced(token)

    def _operand(self, number: int, step: int) -> tuple[int, int]:
        """Span of the operand on one side of a binary operator, by precedence."""
        rank, parent = _RANK[self._all[number].text], self._parent[number]
        edge, at = number, number + step
        while 0 <= at < len(self._all):
            if at == parent or (parent >= 0 and at == self._match.get(parent)):
                break
            token = self._all[at]
            if self._parent[at] == parent and not (token.text in ")]}>" and step < 0 and at in self._match):
                if self._is_binary(at) and _RANK[token.text] <= rank:
                    break
                if token.text in (",", ";", "=", "?", ":", "return", "+=", "}"):
                    break
            edge = at
            at += step
        first, last = sorted((number + step, edge))
        return self._all[first].start, self._all[last].end

    # edits

    def _number(self, number: int) -> Iterator[Edit]:
        token = self._all[number]
        before = [self._all[n].text for n in range(max(number - 2, 0), number)]
        if before == ["real", "("]:  # a literal of the arithmetic's own type
            value = float(token.text)
            yield Edit("change-number", token.start, token.end, repr(value * 1.01 if value else 0.01))
        elif token.text.isdigit():
            yield Edit("change-number", token.start, token.end, str(int(token.text) + 1))
            yield Edit("change-number", token.start, token.end, str(int(token.text) - 1))

    def _name(self, number: int) -> Iterator[Edit]:
        token = self._all[number]
        following = self._all[number + 1].text if number + 1 < len(self._all) else ""
        previous = self._all[number - 1].text if number else ""
        is_defined = following == "(" and self._all[number - 1].kind == "name" and previous != "return"
        if token.text in _CPP_NAMES and not is_defined:
            yield Edit("replace-name", token.start, token.end, _CPP_NAMES[token.text])
        if token.text in _NARROWED:
            yield Edit("narrow-type", token.start, token.end, _NARROWED[token.text])
        if token.text in _IDLE_MEMBERS and previous == "." and following == "(":
            yield Edit("drop-call", self._all[number - 1].start, self._all[self._match[number + 1]].end, "")
        if token.text == "if" and following == "(":
            yield from self._condition(number + 1)
        if token.text == "for" and following == "(":
            yield from self._bound(number + 1)

    def _condition(self, opener: int) -> Iterator[Edit]:
        start, end = self._all[opener].end, self._all[self._match[opener]].start
        yield Edit("negate-condition", start, end, f"!({self._text[start:end]})")
        yield Edit("drop-guard", start, end, "true")

    def _bound(self, opener: int) -> Iterator[Edit]:
        """`item < items` becomes `item < items - 1`; replacing `<` by `<=` tests the other direction."""
        for number in range(opener + 1, self._match[opener]):
            if self._parent[number] == opener and self._is_binary(number) and self._all[number].text in ("<", "<="):
                _, end = self._operand(number, 1)
                yield Edit("off-by-one", end, end, " - 1")

    def _mark(self, number: int) -> Iterator[Edit]:
        token = self._all[number]
        if token.text in _SWAPS and self._is_spaced(token):
            for text in _SWAPS[token.text]:
                yield Edit("swap-operator", token.start, token.end, text)
            if token.text in ("+", "-", "*", "/", "&&", "||"):
                yield from self._dropped(number)
        if token.text == "-" and not self._is_spaced(token) and self._all[number - 1].text in ("(", ",", "=", "return"):
            yield Edit("drop-sign", token.start, token.end, "")
        if token.text in ("(", "{") and number in self._match:
            yield from self._swapped(number)
        if token.text == "[" and number in self._match:
            yield from self._index(number)
        if token.text == ";" and self._parent[number] >= 0 and self._all[self._parent[number]].text == "{":
            yield from self._statement(number)

    def _dropped(self, number: int) -> Iterator[Edit]:
        token = self._all[number]
        operator = {"+": "drop-term", "-": "drop-term", "*": "drop-factor", "/": "drop-factor"}.get(
            token.text, "drop-operand"
        )
        (left, left_end), (right, right_end) = self._operand(number, -1), self._operand(number, 1)
        yield Edit(operator, left_end, right_end, "")
        if token.text not in ("/",):
            yield Edit(operator, left, right, "")

    def _swapped(self, opener: int) -> Iterator[Edit]:
        previous = self._all[opener - 1].text if opener else ""
        if self._all[opener].text == "{" and previous not in (",", "(", "{", "=", "return"):
            return  # a block, not a list
        entries = self._entries(opener)
        for (start, middle), (behind, end) in pairwise(entries):
            one, other = self._text[start:middle], self._text[behind:end]
            if self._guessed_type(one) is not None and self._guessed_type(one) == self._guessed_type(other):
                yield Edit("swap-arguments", start, end, other + self._text[middle:behind] + one)

    @staticmethod
    def _guessed_type(argument: str) -> str | None:
        """A guess at an argument's type from its text: None for literals, declarations and lambdas."""
        if not re.match(r"[A-Za-z_]", argument) or re.search(r'["{}]|\bdtype\b|\bstream\b|\w\s+[\w&*]', argument):
            return None
        called = re.match(r"([\w:]+(?:<[^()]*>)?)\(.*\)$", argument, re.DOTALL)
        member = re.search(r"(?:\.|->)([\w]+)(?:\(.*\))?$", argument, re.DOTALL)
        if called:
            return called[1]
        return f".{member[1]}" if member and argument.endswith(")") else "name"

    def _index(self, opener: int) -> Iterator[Edit]:
        """`[row]` becomes `[row + 1]`; numbers are changed by `_number`."""
        close = self._match[opener]
        if close == opener + 2 and self._all[opener + 1].kind == "name" and self._all[opener - 1].kind == "name":
            if self._all[close + 1].text == "=" and self._parent[opener] == -1:
                return
            yield Edit("off-by-one", self._all[close].start, self._all[close].start, " + 1")

    def _is_label(self, colon: int) -> bool:
        """Whether a colon ends `case X:` or `default:`; otherwise it belongs to a condition."""
        before = [token.text for token in self._all[max(colon - 4, 0) : colon]]
        return self._all[colon].text == ":" and bool({"case", "default"} & set(before))

    def _statement(self, semicolon: int) -> Iterator[Edit]:
        parent, at = self._parent[semicolon], semicolon
        while at - 1 > parent:
            token = self._all[at - 1]
            if self._parent[at - 1] == parent and (token.text in (";", "}") or self._is_label(at - 1)):
                break
            at -= 1
        if at == semicolon:
            return
        while self._all[at].text == "else" and at < semicolon:
            at += 1
        if self._all[at].text in ("if", "for", "while"):
            yield Edit("drop-statement", self._all[at].start, self._all[semicolon].end, ";")
            return
        text = self._text[self._all[at].start : self._all[semicolon].end]
        if _GUARD_OBJECT.match(text) or not _DECLARES.match(text):
            yield Edit("drop-statement", self._all[at].start, self._all[semicolon].end, ";")


def _cpp_edits(text: str) -> Iterable[Edit]:
    return _Cpp(text).edits()

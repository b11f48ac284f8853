"""Possible defects in one place of a program: all mutants of a source text, in a fixed order.

1. Operators, conditions and numbers: another operator, a boundary that is off by one (``<`` and
   ``<=``, ``==`` and ``<=`` beside a number), a condition negated, a number one more or less.
2. Effects: a call, an assignment, an error or a returned value is missing; two effects that follow
   one another change places, as a crash or an error between them would show.
3. Which one: two arguments change places, ``min`` and ``max``, the first and the last of a list,
   the beginning and the end of what is cut off.
4. Old state: an assignment is missing that resets an attribute, or a name within a loop.
5. One forgotten: a loop leaves out the last item.
6. No clean-up: the body of ``finally`` is missing, ``pop`` of a key leaves it there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Final, NamedTuple

#: The replacement of each operator.
_OPERATORS: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
#: Calls whose first two arguments may be swapped without effect.
_SYMMETRIC: Final = {"min", "max", "isinstance", "cast", "compare_digest", "samestat"}
#: Functions that only compute a value.
_PURE: Final = {"min", "max", "len", "int", "bool", "i64"}
#: Methods and functions that choose one of several, and their opposites.
_OPPOSITES: Final = {"min": "max", "max": "min", "popleft": "pop", "appendleft": "append"}
_IGNORED_FIELDS: Final = {"annotation", "returns", "decorator_list"}
_IGNORED_STATEMENTS: Final = (ast.Import, ast.ImportFrom, ast.Assert)

#: Changes the tree and returns the replacement of the statement.
Plant = Callable[[], ast.stmt]


class Site(NamedTuple):
    """A place for a defect: the statement that contains it, and the function that plants it."""

    statement: ast.stmt
    plant: Plant


class Mutant(NamedTuple):
    """One defect: its line number, and the line before and after."""

    line: int
    before: str
    after: str


def count(source: str) -> int:
    """The number of mutants of a program."""
    return sum(1 for _ in _in_block(ast.parse(source).body, False))


def planted(source: str, index: int) -> tuple[ast.Module, Mutant]:
    """The program with one of its mutants, and a description of it. Raises `IndexError`."""
    tree = ast.parse(source)
    for number, site in enumerate(_in_block(tree.body, False)):
        if number == index:
            before = _lines(site.statement)
            after = _lines(site.plant())
            pairs = list(zip_longest(before, after, fillvalue=""))
            pair = next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])
            return ast.fix_missing_locations(tree), Mutant(site.statement.lineno, *pair)
    raise IndexError(index)


def numbers_of(source: str, line: str) -> list[int]:
    """Which mutants are of statements with this line."""
    sites = enumerate(_in_block(ast.parse(source).body, False))
    return [number for number, site in sites if line in _lines(site.statement)]


def _lines(statement: ast.stmt) -> list[str]:
    return [line.strip() for line in ast.unparse(statement).splitlines()]


def _in_block(block: list[ast.stmt], in_function: bool) -> Iterator[Site]:
    """The possible defects in these statements and those nested in them."""
    for place, statement in enumerate(block):
        if isinstance(statement, _IGNORED_STATEMENTS):
            continue
        function = in_function
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            # A missing assignment of an attribute would be noticed at once.
            function = statement.name != "__init__"
        if in_function:
            yield from _whole(block, place)
        if isinstance(statement, ast.If | ast.While) and not _compares(statement.test):
            yield Site(statement, _negating(statement, statement))
        if isinstance(statement, ast.Return) and not _is_untrue(statement.value):
            yield Site(statement, _setting(statement, statement, "value", ast.Constant(None)))
        for name, child in ast.iter_fields(statement):
            if name in _IGNORED_FIELDS:
                continue
            for part in child if isinstance(child, list) else [child]:
                if isinstance(part, ast.ExceptHandler):
                    yield from _in_block(part.body, function)
                elif isinstance(part, ast.arguments):
                    for default in filter(None, [*part.defaults, *part.kw_defaults]):
                        yield from _in_expression(statement, default, part)
                elif isinstance(part, ast.expr | ast.withitem | ast.operator):
                    yield from _in_expression(statement, part, statement)
            if isinstance(child, list) and child and isinstance(child[0], ast.stmt):
                yield from _in_block(child, function)


def _whole(block: list[ast.stmt], place: int) -> Iterator[Site]:
    """The possible defects in a statement of a function as a whole, and in its order."""
    statement = block[place]
    if (other := _instead(statement)) is not None:
        yield Site(statement, _replacing(block, place, other))
    if place + 1 < len(block) and _ordered_effects(statement, block[place + 1]):
        yield Site(statement, _swapping(block, place))
    match statement:
        case ast.For(iter=items):
            most = ast.Subscript(
                ast.Call(ast.Name("list", ast.Load()), [items], []),
                ast.Slice(upper=ast.Constant(-1)),
                ast.Load(),
            )
            yield Site(statement, _setting(statement, statement, "iter", most))
        case ast.Try(finalbody=[_, *_]):
            yield Site(statement, _setting(statement, statement, "finalbody", [ast.Pass()]))
    if isinstance(statement, ast.For | ast.While):
        bodies = [statement.body, *(one.body for one in statement.body if isinstance(one, ast.If))]
        for body in bodies:
            for at, inner in enumerate(body):
                if _resets_name(inner):
                    yield Site(inner, _replacing(body, at, ast.Pass()))


def _ordered_effects(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether others could see in which order two statements were executed. Not of assignments to
    two attributes, none of which calls more than a pure function or contains what the other one
    sets."""
    if not (_is_effect(first) and _is_effect(second)):
        return False
    ours, theirs = _attribute(first), _attribute(second)
    if ours is None or theirs is None:
        return True
    return bool(ours & _mentioned(second) or theirs & _mentioned(first))


def _attribute(statement: ast.stmt) -> set[str] | None:
    """The attribute that a statement sets which calls pure functions only."""
    if any(_may_act(node) for node in ast.walk(statement)):
        return None
    match statement:
        case ast.Assign(targets=[ast.Attribute() as target]):
            return {ast.unparse(target)}
        case ast.AugAssign(target=ast.Attribute() as target):
            return {ast.unparse(target)}
    return None


def _may_act(node: ast.AST) -> bool:
    """Whether an expression may do more than compute a value."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name not in _PURE
    return isinstance(node, ast.Call | ast.Await | ast.Subscript)


def _mentioned(statement: ast.stmt) -> set[str]:
    """All expressions in a statement."""
    return {ast.unparse(node) for node in ast.walk(statement) if isinstance(node, ast.expr)}


def _is_effect(statement: ast.stmt) -> bool:
    """Whether others could see that the statement was executed."""
    match statement:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Delete():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
        case ast.AugAssign(target=ast.Attribute() | ast.Subscript()):
            return True
    return False


def _resets_name(statement: ast.stmt) -> bool:
    """Whether a name gets a value that does not depend on anything."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.List(elts=[]) | ast.Dict(keys=[])):
            return True
    return False


def _instead(statement: ast.stmt) -> ast.stmt | None:
    """The replacement of this statement as a whole; ``None`` if there is no plausible one."""
    match statement:
        case ast.Break():
            return ast.Continue()
        case ast.Continue():
            return ast.Break()
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.Await() | ast.YieldFrom()):
            return ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return ast.Pass()
        case ast.AugAssign() | ast.Delete() | ast.Raise() | ast.Return(value=None):
            return ast.Pass()
    return None


def _in_expression(statement: ast.stmt, node: ast.AST, parent: ast.AST) -> Iterator[Site]:
    """The possible defects in an expression of this statement."""
    match node:
        case ast.operator() if type(node) in _OPERATORS:  # of an augmented assignment
            yield Site(statement, _setting(statement, parent, "op", _OPERATORS[type(node)]()))
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in _OPERATORS:
            yield Site(statement, _setting(statement, node, "op", _OPERATORS[type(op)]()))
        case ast.Compare(ops=[op, *more]) if type(op) in _OPERATORS:
            others = [_OPERATORS[type(op)](), *more]
            yield Site(statement, _setting(statement, node, "ops", others))
            if isinstance(op, ast.Eq) and _beside_number(node):
                yield Site(statement, _setting(statement, node, "ops", [ast.LtE(), *more]))
        case ast.IfExp() if not _compares(node.test):
            yield Site(statement, _negating(statement, node))
        case ast.Constant(value=bool(value)):
            yield Site(statement, _setting(statement, node, "value", not value))
        case ast.Constant(value=int(value)):
            yield Site(statement, _setting(statement, node, "value", value + 1))
            yield Site(statement, _setting(statement, node, "value", value - 1))
        case ast.Subscript(slice=ast.Slice(lower=None, upper=ast.expr() as end, step=None)):
            yield Site(statement, _setting(statement, node, "slice", _end_of(end)))
        case ast.Call():
            yield from _in_call(statement, node)
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.operator):
            yield from _in_expression(statement, child, node)


def _beside_number(compare: ast.Compare) -> bool:
    """Whether a number is compared with: less and more make sense. Nothing is shorter than 0."""
    sides = [compare.left, compare.comparators[0]]
    match sides:
        case [ast.Call(func=ast.Name(id="len")), ast.Constant(value=0)]:
            return False
    return any(isinstance(one, ast.Constant) and type(one.value) is int for one in sides)


def _in_call(statement: ast.stmt, call: ast.Call) -> Iterator[Site]:
    """The possible defects in a call, besides those in its arguments."""
    match call:
        case ast.Call(args=[first, second, *rest]) if _ordered(call):
            swapped = [second, first, *rest]
            yield Site(statement, _setting(statement, call, "args", swapped))
    match call.func:
        case ast.Name(id=name) if name in _OPPOSITES:
            yield Site(statement, _setting(statement, call.func, "id", _OPPOSITES[name]))
        case ast.Attribute(attr=name) if name in _OPPOSITES:
            yield Site(statement, _setting(statement, call.func, "attr", _OPPOSITES[name]))
        case ast.Attribute(attr="pop") if len(call.args) == 2:
            yield Site(statement, _setting(statement, call.func, "attr", "get"))


def _end_of(count: ast.expr) -> ast.Slice:
    """The slice with so many items at the other end; with a negative number, without those."""
    match count:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ast.Slice(lower=operand)
    return ast.Slice(lower=ast.UnaryOp(ast.USub(), count))


def _ordered(call: ast.Call) -> bool:
    """Whether the first two arguments can be swapped with an effect."""
    first, second = call.args[:2]
    if isinstance(first, ast.Starred) or isinstance(second, ast.Starred):
        return False
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _SYMMETRIC:
            return False
    return ast.dump(first) != ast.dump(second)


def _compares(test: ast.expr) -> bool:
    """Whether this is negated by changing its operator."""
    return isinstance(test, ast.Compare) and len(test.ops) == 1


def _is_untrue(value: ast.expr | None) -> bool:
    """Whether ``None`` in place of this value would be the same, or count as the same."""
    if value is None:
        return True
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)


def _replacing(block: list[ast.stmt], place: int, other: ast.stmt) -> Plant:
    def plant() -> ast.stmt:
        block[place] = ast.copy_location(other, block[place])
        return other

    return plant


def _swapping(block: list[ast.stmt], place: int) -> Plant:
    def plant() -> ast.stmt:
        block[place], block[place + 1] = block[place + 1], block[place]
        return block[place]

    return plant


def _setting(statement: ast.stmt, node: ast.AST, field: str, value: object) -> Plant:
    def plant() -> ast.stmt:
        setattr(node, field, value)
        return statement

    return plant


def _negating(statement: ast.stmt, node: ast.If | ast.While | ast.IfExp) -> Plant:
    return _setting(statement, node, "test", ast.UnaryOp(ast.Not(), node.test))

"""Rewrites a source for mypyc, which leaves to the interpreter what only seems to be said once and for all.

The constructor of a dataclass is made when the module is imported, so mypyc calls it like any interpreted function and
has each field set by name: it is written out here, and an object is made in a tenth of the time. A constant of a module
is looked up in a dictionary each time: declared ``Final``, it is where the machine code says. (Numbers are left alone:
limits that tests lower.) No line moves, so that tracebacks name those of the source that is installed beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
_TYPES = {"TypeVar", "TypeAlias", "NewType", "ParamSpec"}
_FUTURE = "from __future__ import annotations"


def native(source: str) -> str:
    """The same module, of which more becomes machine code."""
    tree, lines = ast.parse(source), source.split("\n")
    _declare_constants(tree, lines)
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and _is_plain_dataclass(node) and not lines[node.end_lineno or 0].strip():
            lines[node.end_lineno or 0] = constructor(node)
    return "\n".join(lines)


# -- constructors ----------------------------------------------------------------------------------------------------


def constructor(dataclass: ast.ClassDef) -> str:
    """``__init__`` in one line, as ``dataclasses`` would make it. Raises ``ValueError`` for a field that is made by a
    factory and may be ``None``: to leave it out could not be told from that."""
    parameters, body = ["self"], []
    for name, annotation, value in _fields(dataclass):
        options = {key: ast.unparse(each) for key, each in _options(value).items()}
        type_, factory, default = ast.unparse(annotation), options.get("default_factory"), options.get("default")
        if "init" in options:  # only ever given to say that it is no parameter
            made = default if factory is None else f"({factory})()"
            body += [] if made is None else [f"self.{name} = {made}"]
        elif factory is not None:
            if _may_be_none(annotation):
                raise ValueError(f"{dataclass.name}.{name} is made by a factory and may be None")
            parameters.append(f"{name}: {type_} | None = None")
            body.append(f"self.{name} = ({factory})() if {name} is None else {name}")
        else:
            parameters.append(f"{name}: {type_}" if default is None else f"{name}: {type_} = {default}")
            body.append(f"self.{name} = {name}")
    if any(isinstance(each, ast.FunctionDef) and each.name == "__post_init__" for each in dataclass.body):
        body.append("self.__post_init__()")
    return f"    def __init__({', '.join(parameters)}) -> None: {'; '.join(body) or 'pass'}  # type: ignore"


def _is_plain_dataclass(node: ast.ClassDef) -> bool:
    """Without bases, generic ones included, and with a constructor that is not its own."""
    names = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    is_dataclass = [name.id for name in names if isinstance(name, ast.Name)] == ["dataclass"]
    own = any(isinstance(each, ast.FunctionDef) and each.name == "__init__" for each in node.body)
    by_keyword = any("kw_only" in _options(value) for _, _, value in _fields(node))
    return is_dataclass and not node.bases and not own and not by_keyword


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.expr | None]]:
    """Names, types and what stands behind the equals sign."""
    for each in node.body:
        if not isinstance(each, ast.AnnAssign) or ast.unparse(each.annotation).startswith("ClassVar"):
            continue
        if isinstance(each.target, ast.Name):
            yield each.target.id, each.annotation, each.value


def _may_be_none(type_: ast.expr) -> bool:
    if isinstance(type_, ast.BinOp):
        return _may_be_none(type_.left) or _may_be_none(type_.right)
    return isinstance(type_, ast.Constant) and type_.value is None


def _options(value: ast.expr | None) -> dict[str, ast.expr]:
    """What is said of a field: the keywords of ``field(…)``, or its default."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "field":
        return {keyword.arg or "": keyword.value for keyword in value.keywords}
    return {} if value is None else {"default": value}


# -- constants -------------------------------------------------------------------------------------------------------


def _declare_constants(tree: ast.Module, lines: list[str]) -> None:
    """In capitals, and set nowhere else."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    changed = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    set_at = [name.id for name in names]
    if _FUTURE not in lines:
        return
    for name, type_, value in reversed([*_constants(tree)]):
        if name.id in changed or set_at.count(name.id) > 1 or _is_number_or_type(type_, value):
            continue
        at, line = name.lineno - 1, lines[name.lineno - 1]
        end = name.end_col_offset or 0
        if type_ is None:
            lines[at] = f"{line[:end]}: Final_{line[end:]}"
        elif type_.end_lineno == name.lineno and "Final" not in ast.unparse(type_):
            lines[at] = f"{line[:end]}: Final_[{ast.unparse(type_)}]{line[type_.end_col_offset :]}"
    lines[lines.index(_FUTURE)] += "; from typing import Final as Final_"


def _constants(tree: ast.Module) -> Iterator[tuple[ast.Name, ast.expr | None, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, type_ = node.targets[0], None
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, type_ = node.target, node.annotation
        else:
            continue
        if isinstance(target, ast.Name) and _CONSTANT.fullmatch(target.id) and node.value is not None:
            yield target, type_, node.value


def _is_number_or_type(type_: ast.expr | None, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in _TYPES
    return _is_made_of_numbers(value) or (type_ is not None and ast.unparse(type_) in _TYPES)


def _is_made_of_numbers(value: ast.expr) -> bool:
    if isinstance(value, ast.Tuple):
        return all(_is_made_of_numbers(each) for each in value.elts)
    if isinstance(value, ast.BinOp):
        return _is_made_of_numbers(value.left) and _is_made_of_numbers(value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_made_of_numbers(value.operand)
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)

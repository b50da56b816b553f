"""Scanner of the TensorFlow names that a program uses, by its syntax trees alone.

Names are followed as Python binds them: imports, assignments of one name to another, functions
(whose bodies run later) and classes with names of their own. Of two branches that bind a name
differently the first one counts. Objects are followed too, from the call that makes them through
the methods whose results are known: `data.Dataset()` stands for an object of that class.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from samegrad._surface.missing_names import NOT_RAGGED, look_up
from samegrad.cli._port_results import may_be_ragged, result_of
from samegrad.cli._port_sources import Piece

_ROOTS = {"tensorflow": "", "samegrad": "", "keras": "keras", "tf_keras": "keras"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Methods that objects of one kind have only, and what they give.
_ONE_CLASS = {"get_concrete_function": "ConcreteFunction()"}
# The function that programs with towers define, and a method of their optimizers.
AVERAGE, COMPUTE = "average_gradients", "compute_gradients"
# An import of Keras above that of samegrad, and the choice of another backend.
KERAS_FIRST, BACKEND = "import keras", "KERAS_BACKEND"
_CAUGHT = {"ValueError", "Exception", "BaseException"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_Names = dict[str, str]


@dataclass(frozen=True)
class Use:
    """A dotted name at a line of a piece, without `tf.`.

    Attributes:
        keyword: None, or the name of an argument given in a call of it.
        falls_back: Whether the line is in a `try` that catches ValueError.
    """

    piece: Piece
    line: int
    path: str
    keyword: str | None = None
    falls_back: bool = False


def scan(pieces: Sequence[Piece]) -> list[Use]:
    """All uses of TensorFlow's names in a program, in the order of its lines.

    Example:
        >>> tree = ast.parse("from tensorflow.keras import layers as l; l.Dense(units=3)")
        >>> [(use.path, use.keyword) for use in scan([Piece("a.py", None, tree)])]
        [('keras.layers', None), ('keras.layers.Dense', None), ('keras.layers.Dense', 'units')]
    """
    scanner = _Scanner(pieces)
    order = {id(piece): place for place, piece in enumerate(pieces)}
    return sorted(scanner.uses, key=lambda use: (order[id(use.piece)], use.line))


# Functions, and what they refuse that TensorFlow's take: objects of these classes.
_REFUSED = (
    ("SparseTensor()", ("Variable",)),
    ("RaggedTensor()", NOT_RAGGED),
    ("RaggedTensorSpec()", ("function", "data.Dataset.from_generator", "TensorArray")),
)


def _elements(node: ast.expr) -> list[ast.expr]:
    """The value, or those in its tuples, lists and dicts."""
    if isinstance(node, ast.Dict):
        return [part for value in node.values for part in _elements(value)]
    if isinstance(node, ast.Tuple | ast.List):
        return [part for value in node.elts for part in _elements(value)]
    return [node]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_complex(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, complex)


class _Scanner(ast.NodeVisitor):
    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.uses: list[Use] = []
        self._names: _Names = {}  # what names stand for, here and now
        self._outside_class: _Names | None = None  # what functions in a class body see
        self._later: list[tuple[Piece, _Function, _Names]] = []
        self._stars: list[str] = []
        self._other_stars = False
        self._falls_back = False
        trees = [piece.tree for piece in pieces]
        # What a program gives objects itself; nobody else has to have it.
        self._own_attributes = {
            node.attr
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        # The program is ported; otherwise its `tensorflow` is samegrad's under `samegrad run`.
        self._is_ported = any(
            "samegrad" in _imported_roots(node) for tree in trees for node in ast.walk(tree)
        )
        self._keras_is_first = self._is_ported  # until samegrad is imported
        self._bound = set(dir(builtins)).union(*(_stored(ast.walk(tree)) for tree in trees))
        for self._piece in pieces:
            self._visit_all(self._piece.tree.body)
        self._finish_functions()

    # Names and what they stand for.

    def _path(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Attribute):
            base = self._path(node.value)
            if base is None or (node.attr in self._own_attributes and base.endswith("()")):
                return None
            if base == "Tensor()" and may_be_ragged(node.attr):
                return None
            return _join(base, node.attr)
        if isinstance(node, ast.Name):
            return self._names.get(node.id, self._star_path(node.id))
        if isinstance(node, ast.Call):
            function = self._path(node.func)
            if function is None and isinstance(node.func, ast.Attribute):
                return _ONE_CLASS.get(node.func.attr)
            return None if function is None else result_of(function)
        return None

    def _star_path(self, name: str) -> str | None:
        """Return the path of a name that `from tensorflow... import *` binds."""
        if not self._stars or name in self._bound:
            return None
        paths = [_join(star, name) for star in self._stars]
        there = [path for path in paths if not look_up(path)[1]]
        if there:
            return there[0]
        return None if self._other_stars else paths[0]

    def _bind(self, name: str, path: str | None) -> None:
        if path is None:
            self._names.pop(name, None)
        else:
            self._names[name] = path

    def _bind_target(self, target: ast.AST, value: ast.AST | None) -> None:
        several = (ast.Tuple, ast.List)
        if isinstance(target, several) and isinstance(value, several):
            starred = any(isinstance(part, ast.Starred) for part in [*target.elts, *value.elts])
            if len(target.elts) == len(value.elts) and not starred:
                for one, other in zip(target.elts, value.elts, strict=True):
                    self._bind_target(one, other)
                return
        if isinstance(target, ast.Name):
            self._bind(target.id, None if value is None else self._path(value))
            return
        for name in _stored(ast.walk(target)):
            self._bind(name, None)
        self.visit(target)

    def _use(self, path: str, line: int, keyword: str | None = None) -> None:
        if path.startswith("__version__.") and not self._is_ported:
            return
        self.uses.append(Use(self._piece, line, path, keyword, self._falls_back))

    # Uses.

    def visit_Import(self, node: ast.Import) -> None:
        self._note_order(node)
        for alias in node.names:
            root = alias.name.partition(".")[0]
            path = _module_path(alias.name)
            self._bind(alias.asname or root, path if alias.asname else _ROOTS.get(root))
            if path:
                self._use(path, alias.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = None if node.level or not node.module else _module_path(node.module)
        self._note_order(node)
        for alias in node.names:
            path = None if module is None else _join(module, alias.name)
            if alias.name != "*":
                self._bind(alias.asname or alias.name, path)
                if path:
                    self._use(path, alias.lineno)
            elif module is None:
                self._other_stars = True
            else:
                self._stars.append(module)
                if module:
                    self._use(module, alias.lineno)

    def _note_order(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note an import of Keras above the first one of samegrad."""
        for root in _imported_roots(node):
            if root == "keras" and self._keras_is_first:
                self._use(KERAS_FIRST, node.lineno)
            self._keras_is_first &= root != "samegrad"

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self._path(node) if isinstance(node.ctx, ast.Load) else None
        if path is None:
            self.visit(node.value)
            return
        self._use(path, node.end_lineno or node.lineno)
        maker: ast.AST = node.value
        while isinstance(maker, ast.Attribute):
            maker = maker.value
        if not isinstance(maker, ast.Name):  # the call that made the object
            self.visit(maker)

    def visit_Name(self, node: ast.Name) -> None:
        # Where an import or an assignment has bound the name, it was looked up there.
        path = None if node.id in self._names else self._star_path(node.id)
        if path is not None:
            self._use(path, node.lineno)

    def visit_Call(self, node: ast.Call) -> None:
        path = self._path(node.func)
        self.generic_visit(node)
        if path is None:
            self._use_of_towers(node)
            if getattr(node.func, "attr", "") == "setdefault" and len(node.args) == 2:
                self._note_backend(node.args[0], node.args[1], node.lineno)
        if path is None or path.endswith("()"):  # what an object takes when it is called
            return
        for keyword in node.keywords:
            if keyword.arg is not None:
                self._use(path, keyword.lineno, keyword.arg)
        for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if path == "Variable" and any(_is_complex(part) for part in ast.walk(value)):
                self._use("Variable.complex128", value.lineno)
            first = path == "Variable" and value in node.args[:1]
            if first and any(map(_is_text, _elements(value))):
                self._use("Variable.string", value.lineno)
            refused = [kind for kind, functions in _REFUSED if path in functions]
            made = [self._path(part) or "" for part in _elements(value)] if refused else []
            for kind in {kind.removeprefix("sparse.") for kind in made}.intersection(refused):
                self._use(f"{path}.{kind[:-2]}", value.lineno)

    def _use_of_towers(self, node: ast.Call) -> None:
        """Note a call that a strategy replaces, in a program that averages gradients itself."""
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name == AVERAGE or (name == COMPUTE and AVERAGE in self._bound):
            self._use(name, node.lineno)

    def _note_backend(self, name: ast.AST, value: ast.AST, line: int) -> None:
        """Note a choice of another backend of Keras in the environment."""
        if getattr(name, "value", None) != BACKEND or not isinstance(value, ast.Constant):
            return
        if value.value != "samegrad" and (self._is_ported or value.value != "tensorflow"):
            self._use(BACKEND, line)

    def visit_Compare(self, node: ast.Compare) -> None:
        self.generic_visit(node)
        for part in (node.left, *node.comparators):
            if self._path(part) == "__version__":
                self._use("__version__.compared", part.lineno)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        # A long sum is as deep as it is long: too deep for recursion.
        left: ast.expr = node
        rights = []
        while isinstance(left, ast.BinOp):
            rights.append(left.right)
            left = left.left
        self._visit_all([left, *reversed(rights)])

    # Bindings.

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self._note_backend(target.slice, node.value, node.lineno)
            self._bind_target(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._bind_target(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        self._bind_target(node.target, None)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._bind_target(node.target, node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._bind_target(target, None)

    def visit_withitem(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        if node.optional_vars is not None:
            made = self._path(node.context_expr)
            itself = node.context_expr if made == "GradientTape()" else None
            self._bind_target(node.optional_vars, itself)

    # Branches.

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        self._branches([node.body, node.orelse])

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self._branches([[*node.body, *node.orelse], []])

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._bind_target(node.target, None)
        self._branches([[*node.body, *node.orelse], []])

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        before = self._falls_back
        self._falls_back |= any(map(_catches_value_errors, node.handlers))
        self._branches([[*node.body, *node.orelse], *([handler] for handler in node.handlers)])
        self._falls_back = before
        self._visit_all(node.finalbody)

    visit_TryStar = visit_Try  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.type is not None:
            self.visit(node.type)
        if node.name is not None:
            self._bind(node.name, None)
        self._visit_all(node.body)

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        self._branches([[case] for case in node.cases] + [[]])

    def visit_match_case(self, node: ast.match_case) -> None:
        for name in _stored(ast.walk(node.pattern)):
            self._bind(name, None)
        self.generic_visit(node)

    def _branches(self, branches: Iterable[Sequence[ast.AST]]) -> None:
        before, after = self._names, _Names()
        for branch in branches:
            self._names = dict(before)
            self._visit_all(branch)
            for name, path in self._names.items():
                if name in after and after[name] != path and path.endswith("()"):
                    after[name] = ""  # one or the other
                after.setdefault(name, path)
        self._names = {name: path for name, path in after.items() if path or name in before}

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    # Scopes.

    def _comprehension(self, node: _Comprehension) -> None:
        before = self._names
        self._names = dict(before)
        for generator in node.generators:
            self.visit(generator.iter)
            self._bind_target(generator.target, None)
            self._visit_all(generator.ifs)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._visit_all(parts)
        self._names = before

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        self._bind(node.name, None)
        before = (self._names, self._outside_class)
        self._outside_class = self._names if self._outside_class is None else self._outside_class
        self._names = dict(self._names)
        self._visit_all(node.body)
        self._names, self._outside_class = before

    def _function(self, node: _Function) -> None:
        arguments = node.args
        defaults = [default for default in arguments.kw_defaults if default is not None]
        self._visit_all([*arguments.defaults, *defaults])
        self._visit_all(a.annotation for a in _arguments(arguments) if a.annotation is not None)
        if not isinstance(node, ast.Lambda):
            self._visit_all([*node.decorator_list, *([node.returns] if node.returns else [])])
            self._bind(node.name, None)
        seen = self._names if self._outside_class is None else self._outside_class
        self._later.append((self._piece, node, dict(seen)))

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function  # noqa: N815

    def _finish_functions(self) -> None:
        """The bodies of the functions of a scope, which see the names that it has at its end."""
        later, self._later = self._later, []
        at_end = self._names
        for self._piece, node, at_definition in later:
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            own = _stored(_of_this_scope(body)) | {a.arg for a in _arguments(node.args)}
            for part in _of_this_scope(body):
                if isinstance(part, ast.Global | ast.Nonlocal):
                    own.difference_update(part.names)
            seen = {**at_definition, **at_end}
            self._names = {name: path for name, path in seen.items() if name not in own}
            self._outside_class = None
            self._visit_all(body)
            self._finish_functions()
        self._names = at_end


def _imported_roots(node: ast.AST) -> list[str]:
    """Return the top names of the modules that a statement imports."""
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        modules = [node.module]
    return [module.partition(".")[0] for module in modules]


def _catches_value_errors(handler: ast.ExceptHandler) -> bool:
    names = {part.id for part in ast.walk(handler.type or handler) if isinstance(part, ast.Name)}
    return handler.type is None or not names.isdisjoint(_CAUGHT)


def _join(base: str, name: str) -> str:
    return f"{base}.{name}" if base else name


def _module_path(module: str) -> str | None:
    root, _, rest = module.partition(".")
    if root not in _ROOTS:
        return None
    return _join(_ROOTS[root], rest) if rest else _ROOTS[root]


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    rest = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _of_this_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes and those below, without the insides of functions, classes and comprehensions."""
    inner = (*_FUNCTIONS, ast.ClassDef, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, inner):
            waiting.extend(ast.iter_child_nodes(node))


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that nodes bind."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names

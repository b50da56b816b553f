"""A function is rewritten from the text that compiles to its code, and from no other."""

import argparse
import functools
import importlib.util
import inspect
import linecache
import subprocess
import sys
import types
import unittest.mock

import numpy as np
import pytest

import samegrad as tf
from samegrad.autograph._source import definition_of

NOT_AVAILABLE = "source code is not available"
DECIDE = "import samegrad as tf\n\ndef decide(x):\n    return x if x > 0 else {}\n"


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_text_of_an_edited_file_is_not_used(tmp_path):
    path = tmp_path / "edited_program.py"
    path.write_text(DECIDE.format("-x"))
    decide = load(path).decide
    path.write_text(DECIDE.format("-2 * x"))
    with pytest.raises(TypeError, match=f"{NOT_AVAILABLE}.*:3 has other code"):
        tf.function(decide)(tf.constant(-1.0))
    with pytest.raises(ValueError, match=f"{NOT_AVAILABLE}.*:3 has other code"):
        tf.autograph.to_code(decide)
    assert decide(-1.0) == 1


def test_the_text_that_was_read_before_an_edit_is_used(tmp_path):
    path = tmp_path / "read_program.py"
    path.write_text(DECIDE.format("-x"))
    decide = load(path).decide
    linecache.getlines(str(path))
    path.write_text(DECIDE.format("-20 * x"))
    assert float(tf.function(decide)(tf.constant(-1.0))) == 1


def test_a_module_loaded_again_after_an_edit_has_the_new_text(tmp_path):
    path = tmp_path / "reloaded_program.py"
    for text, expected in (("-x", 1), ("-20 * x", 20)):
        path.write_text(DECIDE.format(text))
        assert float(tf.function(load(path).decide)(tf.constant(-1.0))) == expected


def test_a_file_that_is_no_longer_python_is_not_used(tmp_path):
    path = tmp_path / "broken_program.py"
    path.write_text(DECIDE.format("-x"))
    decide = load(path).decide
    path.write_text("def decide(x:\n")
    with pytest.raises(TypeError, match=NOT_AVAILABLE):
        tf.function(decide)(tf.constant(-1.0))


def run(*args):
    done = subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_exec_does_not_take_the_text_of_the_command():
    program = """
def decide(x): return -x if x > 0 else x
import samegrad as tf
scope = {}
exec("\\ndef decide(x): return x if x > 0 else -x", scope)
try:
    print(float(tf.function(scope["decide"])(tf.constant(3.0))))
except TypeError as error:
    print(error)
"""
    assert NOT_AVAILABLE in run("-c", program)


@pytest.mark.parametrize("option", ["-O", "-OO"])
def test_optimized_code_is_found(tmp_path, option):
    path = tmp_path / "program.py"
    path.write_text(
        "import samegrad as tf\n\n@tf.function\ndef decide(x):\n"
        '    "Return the absolute value."\n    assert x != 5, "five"\n'
        "    return x if x > 0 else -x\n\nprint(float(decide(tf.constant(-5.0))))\n"
    )
    assert run(option, str(path)).split() == ["5.0"]


def test_each_of_two_lambdas_on_a_line_is_found():
    two = [lambda x: x if x > 0 else -x, lambda x: -x if x > 0 else x]
    equal = [lambda x: x if x > 0 else -x, lambda x: x if x > 0 else -x]
    given = [float(tf.function(f)(tf.constant(-3.0))) for f in (*two, *equal)]
    assert given == [3, -3, 3, 3]


class Base:
    def scaled(self, x):
        return x * 2 if x > 0 else x * 3


class __Private(Base):
    __scale = 4.0

    def scaled(self, x):
        __y = super().scaled(x)
        return __y * self.__scale if __y < 0 else __class__.__scale * __y

    def nested(self, x):
        def __inner(y):
            return y * self.__scale if y > 0 else -y

        return __inner(x)

    key = staticmethod(lambda x, *, __low=2: x if x > __low else __low)


def test_private_names_and_super_in_a_class():
    owner = globals()["__Private"]()
    x = tf.constant(-1.0)
    given = [tf.function(f)(x) for f in (owner.scaled, owner.nested, owner.key)]
    np.testing.assert_array_equal(given, [-12, 1, 2])


def test_assertions_that_pytest_rewrites():
    def checked(x, limit=3):
        class Local:
            first, second = "a", "b"

        if x > 0:
            assert (y := x) < limit, (Local.first, "too large")  # noqa: RUF018
            limit = y
        assert limit in {1, 2, 3}
        return limit

    if not any(name.startswith("@py_assert") for name in checked.__code__.co_varnames):
        pytest.skip("pytest does not rewrite assertions here")
    assert definition_of(checked).node.name == "checked"
    edited = types.FunctionType(checked.__code__.replace(co_consts=(None,) * 30), globals())
    with pytest.raises(Exception, match=NOT_AVAILABLE):
        definition_of(edited)


def test_functions_inside_a_rewritten_function_are_found():
    def outer(x):
        def inner(y):
            assert y != 7, "seven"
            return tf.abs(y) + np.float32(1) if y > 0 else tf.negative(y)

        return inner(x)

    assert float(tf.function(outer)(tf.constant(2.0))) == 3
    assert float(tf.function(outer)(tf.constant(-2.0))) == 2


FORMS = {
    "annotations": "from __future__ import annotations\ndef f(x: no_name, *a: b, **k) -> c: {}",
    "decorated": "import functools\n@functools.cache\n@functools.cache\ndef g(): pass\n"
    "f = functools.wraps(g)(lambda *, x=[lambda: 1]: {})",
    "calls of an imported module": "import os.path, abc as tf\ndef f(): return os.a(), tf.b()",
    "an import under a condition": "try:\n    import abc\nexcept ImportError:\n    pass\n"
    "def f(): return abc.a(1)",
    "recursion": "def f(x): return f(x - 1) if x else 0",
    "a class that names itself": "class C:\n    def f(self): return C, C.g(self)\nf = C.f",
    "a captured name": "def outer(n):\n    def f(): return n, [n for _ in f()]\n    return f\n"
    "f = outer(1)",
    "super in the module": "old = super\nclass C:\n    def f(self): return super().f()\nf = C.f",
    "a class with attributes": "def f():\n    class C:\n        def g(self, v):\n"
    "            self.a, self.b, self.c = v\n    return C",
    "constants": "def f(): return 0.0, -0.0, 1, True, {{1, 2}}, ((1,), b''), 'f.<locals>.x'",
    "a lambda in a class": "class C:\n    f = lambda self: self.__x\nf = C.f",
    "global and nonlocal": "def outer():\n    n = 0\n    def f():\n        global m\n"
    "        nonlocal n\n        m = n = 1\n    return f\nf = outer()",
}
if sys.version_info >= (3, 12):
    FORMS["type parameters"] = "def f[T](x: T) -> T: return T, (lambda: T)"
    FORMS["type parameters of a class"] = "class C[T]:\n    def f(self): return T\nf = C.f"


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_function_is_found(tmp_path, form):
    path = tmp_path / f"form_{abs(hash(form))}.py"
    path.write_text(FORMS[form].format("pass" if form == "annotations" else "0"))
    function = load(path).f
    node = definition_of(function).node
    assert node.lineno >= function.__code__.co_firstlineno


def functions_of(module):
    classes = [c for c in vars(module).values() if inspect.isclass(c)]
    for value in [v for owner in (module, *classes) for v in vars(owner).values()]:
        function = getattr(value, "__func__", getattr(value, "fget", value))
        if inspect.isfunction(function) and function.__code__.co_filename == module.__file__:
            if not inspect.iscoroutinefunction(function):
                yield function


@pytest.mark.parametrize("module", [argparse, unittest.mock, functools], ids=lambda m: m.__name__)
def test_all_functions_of_a_module_are_found(module):
    functions = list(functions_of(module))
    assert len(functions) > 20
    for function in functions:
        definition_of(function)

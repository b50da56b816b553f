"""With Python's values, Python's rules hold: order, laziness, scopes, exceptions, lines."""

import contextlib
import functools
import io
import traceback

import pytest

import samegrad as tf

COUNT = 0


def traced(function, *args):
    """What the function returns while it is traced with rewritten control flow."""
    result = []
    tf.function(lambda: result.append(function(*args)))()
    return result[0]


def test_operands_are_evaluated_once_and_only_if_needed():
    seen = []

    def note(value):
        seen.append(value)
        return value

    def program():
        a = note(0) and note(1)
        b = note(2) or note(3)
        c = note(4) < note(6) < note(5) < note(99)
        d = note("yes") if note(True) else note("no")
        return a, b, c, d

    assert traced(program) == (0, 2, False, "yes")
    assert seen == [0, 2, 4, 6, 5, True, "yes"]


def test_a_break_takes_no_further_item():
    def program():
        items = iter(range(10))
        for item in items:
            if item == 3:
                break
        return list(items)

    assert traced(program) == [4, 5, 6, 7, 8, 9]


def test_lists_grow_in_loops_over_python_values():
    def program():
        squares = []
        for i in range(5):
            if i % 2:
                continue
            squares.append(i * i)
        return squares, [s for s in squares if s], {s: s > 3 for s in squares}

    assert traced(program) == ([0, 4, 16], [4, 16], {0: False, 4: True, 16: True})


def test_closures_globals_and_defaults_are_those_of_the_function():
    total = 1

    def program(step=2, *more, scale=10, **options):
        nonlocal total
        global COUNT
        for i in range(3):
            if i != 1:
                total += step * scale
                COUNT = COUNT + 1

        def inner():
            nonlocal total
            total += 1
            return total

        return inner(), more, options

    assert traced(functools.partial(program, 3, 4, 5, a=6)) == (62, (4, 5), {"a": 6})
    assert total == 62
    assert COUNT == 2


class Base:
    def __init__(self, factor):
        self.factor = factor
        self.__private = 3

    def scale(self, x):
        return x * self.factor

    @property
    def secret(self):
        return self.__private

    @classmethod
    def make(cls, factor):
        return cls(factor) if factor else None

    @staticmethod
    def both(a, b):
        return a and b


class Derived(Base):
    def scale(self, x):
        if self.factor > 1:
            return super().scale(x) + self.__own() + self.secret
        return super().scale(x)

    def __own(self):
        def nested():
            return self.__count() if self.factor else 0

        return nested()

    def __count(self):
        return 100

    def __call__(self, x):
        return self.scale(x) if x > 0 else x


def test_methods_super_and_private_names():
    assert traced(Derived(2).scale, 5) == 113
    assert traced(Derived(2), 5) == 113
    assert traced(lambda: Derived.make(2)(5)) == 113
    assert traced(lambda: Base.both(1, 0)) == 0


def test_exceptions_are_caught_and_raised_as_in_python():
    def program(value):
        try:
            if value > 1:
                raise KeyError(value)
            return "returned"
        except KeyError as error:
            return error.args[0]
        else:
            return "never"
        finally:
            done.append(value)

    done = []
    assert traced(program, 2) == 2
    assert traced(program, 0) == "returned"
    assert done == [2, 0]


def test_a_variable_without_a_value_raises_as_in_python():
    def program(flag):
        if flag:
            y = 1
        return y

    with pytest.raises(UnboundLocalError):
        traced(program, False)


def test_assertions_are_those_of_python():
    def program(x):
        assert x > 0, f"x was {x}"
        return x

    assert traced(program, 3) == 3
    with pytest.raises(AssertionError, match="x was -1"):
        traced(program, -1)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        for _ in range(1):
            result = function(*args)
        return result

    return wrapper


@decorated
def with_decorator(x):
    if x > 0:
        return "positive"
    return "not"


def test_decorators_stay():
    assert traced(with_decorator, 3) == "positive"


def test_generators_and_context_managers_run():
    @contextlib.contextmanager
    def noted(log):
        log.append("in")
        try:
            yield 5
        finally:
            log.append("out")

    def numbers():
        for i in range(3):
            if i != 1:
                yield i

    def program():
        log = []
        with noted(log) as value:
            if value == 5:
                return list(numbers()), log
        return None

    assert traced(program) == ([0, 2], ["in", "out"])


def test_tracebacks_show_the_lines_of_the_program():
    def program(x):
        y = x
        while x > 0:
            if y > 1:
                raise ValueError("here")  # this line
            y = y + 1
        return y

    with pytest.raises(ValueError, match="here") as caught:
        tf.function(program)(tf.constant(1))
    own = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
    assert own[-1].line.endswith("# this line")
    assert own[-1].name == "program"


def test_messages_of_the_engine_name_the_line_of_the_program():
    def program(x):
        for _ in tf.range(2):
            if tf.reduce_sum(x) > 0:
                tf.debugging.enable_check_numerics()
                x = x / 0.0  # divided here
        return x

    line = next(
        i for i, text in enumerate(open(__file__), 1) if text.rstrip().endswith("# divided here")
    )
    try:
        with pytest.raises(tf.errors.NonFiniteError, match=f'test_python_stays.py", line {line},'):
            tf.function(program)(tf.constant([1.0]))
    finally:
        tf.debugging.disable_check_numerics()


def test_print_shows_tensors_when_the_step_runs(capfd):
    @tf.function
    def program(x):
        print("python", 1, sep="-")
        if x > 0:
            print("positive:", x)
            x = x + 1
        return x

    program(tf.constant(3))
    program(tf.constant(-3))
    out, err = capfd.readouterr()
    assert out == "python-1\npositive: 3\n"
    assert not err


def test_blocks_inside_try_and_with_in_loops():
    def program():
        seen = []
        for i in range(4):
            try:
                if i == 1:
                    raise ValueError
                while i > 2:
                    i -= 1
                seen.append(i)
            except ValueError:
                seen.append("error")
            with contextlib.suppress(KeyError):
                for key in ("a", "b"):
                    if key == "b" and i == 2:
                        raise KeyError(key)
                    seen.append(key)
        return "".join(map(str, seen))

    assert traced(program) == program()


def test_code_of_the_standard_library_does_the_same_when_rewritten():
    import textwrap

    class Wrapper(textwrap.TextWrapper):
        pass

    for name, function in vars(textwrap.TextWrapper).items():
        if callable(function):
            setattr(Wrapper, name, tf.autograph.to_graph(rewritten_anyway(function)))
    text = " ".join(f"word{i}-{'x' * (i % 13)}" for i in range(200))
    for width in (10, 33):
        arguments = {"width": width, "break_long_words": width == 10, "max_lines": 20}
        assert Wrapper(**arguments).wrap(text) == textwrap.TextWrapper(**arguments).wrap(text)


def rewritten_anyway(function):
    from samegrad.autograph import _convert

    return _convert._with_code(function, _convert.compile_rewritten(function))


def test_functions_without_source_run_as_they_are():
    scope = {"tf": tf}
    exec("def program(x):\n  return x * 2 if True else 0", scope)
    assert float(tf.function(scope["program"])(tf.constant(2.0))) == 4


def test_installed_libraries_are_not_rewritten(monkeypatch):
    from samegrad.autograph import _convert

    rewritten = []
    original = _convert.compile_rewritten
    monkeypatch.setattr(
        _convert, "compile_rewritten", lambda f: rewritten.append(f.__name__) or original(f)
    )

    def own():
        text = io.StringIO()
        traceback.print_list([], file=text)
        return tf.reduce_sum(tf.nn.relu(tf.constant([1.0])))

    tf.function(own)()
    assert rewritten == ["own"]


def test_a_function_is_rewritten_once_and_never_when_it_runs(monkeypatch):
    from samegrad.autograph import _convert

    rewritten = []
    original = _convert.compile_rewritten
    monkeypatch.setattr(
        _convert, "compile_rewritten", lambda f: rewritten.append(f.__name__) or original(f)
    )

    def helper(x):
        return x if x > 0 else -x

    @tf.function
    def step(x):
        return helper(x) + helper(-x)

    for size in (1.0, 2.0):
        step(tf.constant(size))
    step(tf.constant(3))
    assert rewritten == ["step", "helper"]
    monkeypatch.setattr(_convert, "convert", None)
    assert float(step(tf.constant(4.0))) == 8

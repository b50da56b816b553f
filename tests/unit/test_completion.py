"""Completion offers the public names of every module and class: `dir`, IPython, and jedi."""

import enum
import importlib
import inspect
import pkgutil
import subprocess
import sys
import traceback
import types

import pytest
from IPython.core.completer import IPCompleter, provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import samegrad as tf
from samegrad._surface.missing_names import has_submodule

# Of the classes of classes, which completers add to the attributes of a class.
OF_CLASSES = {"mro", "register"}


# In `tf.testing`, for those who have Hypothesis or another framework installed.
OF_FRAMEWORKS = {"adapters", "strategies"}
# `tf.compat`, `tf.random.experimental`, `tf.math.special` and `tf.experimental.numpy`: names of
# TensorFlow's programs, loaded when a program uses them. Completion leaves them out.
OF_PROGRAMS = {"compat", "experimental", "special", "numpy"}

# Names of Keras 2, and of a trainer of Keras, which each backend implements.
OF_KERAS_2 = {
    "compiled_loss", "compiled_metrics", "distribute_strategy", "evaluate_generator",
    "fit_generator", "make_predict_function", "make_test_function", "make_train_function",
    "predict_classes", "predict_generator", "predict_proba", "predict_step", "reset_states",
    "test_step", "to_yaml", "train_step",
}  # fmt: skip


def public_modules():
    """Paths below `tf` and modules, once for every path."""
    found, waiting = {}, [("tf", tf)]
    while waiting:
        path, module = waiting.pop()
        assert path.count(".") < 8, f"{path}: a public module offers one that is not"
        found[path] = module
        for name in dir(module):
            thing = getattr(module, name)
            if isinstance(thing, types.ModuleType):
                waiting.append((f"{path}.{name}", thing))
    return found


MODULES = public_modules()
LOADED = {id(module): path for path, module in reversed(MODULES.items())}


@pytest.mark.parametrize("path", MODULES)
def test_missing_name_of_a_module_shows_the_line_of_user_code_alone(path):
    with pytest.raises(AttributeError, match="has no attribute 'Densee'") as caught:
        MODULES[path].Densee  # noqa: B018
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert [frame.filename for frame in frames] == [__file__]
    assert "Did you mean" not in "".join(traceback.format_exception_only(caught.value))


def public_classes():
    """Classes of samegrad by one of their paths: Keras documents its own."""
    found = {}
    for path, module in MODULES.items():
        for name in dir(module):
            thing = getattr(module, name)
            own = isinstance(thing, type) and thing.__module__.partition(".")[0] == "samegrad"
            if own and not issubclass(thing, BaseException):
                found.setdefault(thing, f"{path}.{name}")
    return {path: thing for thing, path in found.items()}


CLASSES = public_classes()


@pytest.fixture(scope="module")
def completer():
    shell = InteractiveShell()
    shell.user_ns.update(tf=tf)
    made = IPCompleter(shell=shell, namespace=shell.user_ns, global_namespace={})
    yield made
    InteractiveShell.clear_instance()


def completions(completer, path, jedi):
    completer.use_jedi = jedi
    line = f"{path}."
    with provisionalcompleter():
        found = [one.text for one in completer.completions(line, len(line))]
    return {text.removeprefix(line).removeprefix(".") for text in found}


def test_there_are_many_modules_and_classes():
    assert len(MODULES) > 90 and len(CLASSES) > 60


@pytest.mark.parametrize("path", MODULES)
def test_dir_of_a_module_is_its_public_names(path):
    module = MODULES[path]
    listed = dir(module)
    missing = set(module.__all__) - set(listed)
    assert not missing and sorted(set(listed)) == listed
    surplus = {name for name in listed if not name.startswith("_")} - set(module.__all__)
    assert all(has_submodule(module.__name__, name) for name in surplus)


@pytest.mark.parametrize("path", [path for path in MODULES if not path.startswith("tf.keras")])
def test_dir_of_a_package_has_the_submodules_that_list_their_names(path):
    module = MODULES[path]
    below = {part.name for part in pkgutil.iter_modules(getattr(module, "__path__", []))}
    names = {name for name in below if not name.startswith(("_", "lib"))}
    parts = {name: importlib.import_module(f"{module.__name__}.{name}") for name in names}
    lists = {name for name in names if "__dir__" in vars(parts[name])}
    assert lists - set(dir(module)) <= OF_FRAMEWORKS | OF_PROGRAMS


@pytest.mark.parametrize("jedi", [False, True], ids=["dir", "jedi"])
@pytest.mark.parametrize("path", LOADED.values())
def test_ipython_completes_a_module_by_its_public_names(completer, path, jedi):
    public = {name for name in dir(MODULES[path]) if not name.startswith("_")}
    offered = completions(completer, path, jedi)
    assert {name for name in offered if not name.startswith("_")} == public


@pytest.mark.parametrize("jedi", [False, True], ids=["dir", "jedi"])
@pytest.mark.parametrize("path", CLASSES)
def test_ipython_completes_a_class_by_its_attributes(completer, path, jedi):
    public = {name for name in dir(CLASSES[path]) if not name.startswith("_")}
    offered = {name for name in completions(completer, path, jedi) if not name.startswith("_")}
    assert public <= offered <= public | OF_CLASSES


@pytest.mark.parametrize(
    "path", [path for path, cls in CLASSES.items() if not issubclass(cls, enum.Enum)]
)
def test_public_attributes_of_a_class_are_documented(path):
    cls = CLASSES[path]
    of_class = " ".join(part.__doc__ or "" for part in cls.__mro__)
    undocumented = []
    for name in dir(cls):
        part = inspect.getattr_static(cls, name)
        home = next(base for base in cls.__mro__ if name in vars(base))
        if name.startswith("_") or home.__module__.partition(".")[0] != "samegrad":
            continue
        if isinstance(part, staticmethod | classmethod):
            part = part.__func__
        documents_itself = isinstance(part, types.FunctionType | property) or part.__doc__ != (
            type(part).__doc__
        )
        if not (documents_itself and part.__doc__) and f"{name}:" not in of_class:
            undocumented.append(name)
    assert not undocumented


@pytest.mark.parametrize("statement", ["tf.keras.layers.Dens", "tf.Variabel", "tf.nn.relux"])
def test_a_traceback_says_did_you_mean_once(statement):
    code = f"import samegrad as tf\n{statement}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.lower().count("did you mean") == 1


@pytest.mark.parametrize("name", ["layers.Layer", "metrics.Metric", "Model", "layers.LSTM"])
def test_mixins_of_keras_classes_add_no_helpers(name):
    cls = tf.keras
    for part in name.split("."):
        cls = getattr(cls, part)
    mixins = [part for part in cls.__mro__ if part.__module__.startswith("samegrad._keras.")]
    added = {key for part in mixins for key in vars(part) if not key.startswith("_")}
    of_keras = {key for part in cls.__mro__ if part not in mixins for key in vars(part)}
    assert added - of_keras <= OF_KERAS_2

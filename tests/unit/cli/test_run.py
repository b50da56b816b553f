"""`samegrad run` runs a program as Python does, with samegrad in TensorFlow's place."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from samegrad.cli import main

RUN = ["-m", "samegrad", "run"]
# It tells what a program can see of the way in which it was started.
PROGRAM = """
import atexit, os, pickle, sys
import helper
atexit.register(print, "at exit")
class Own: pass
pickle.loads(pickle.dumps(Own()))
names = sorted({*globals(), '__annotations__'})
print(sys.argv, __name__, __file__, __spec__ and __spec__.name, names, os.getcwd())
print(sys.path[0] == os.path.dirname(__file__), sys.modules["__main__"].Own is Own)
word = sys.argv[1]
if word == "hook": sys.excepthook = lambda kind, error, trace: print(kind, trace.tb_lineno)
def inner():
    if word == "exit": sys.exit(7)
    if word == "stop": raise KeyboardInterrupt
    try: raise helper.Failed("first")
    except OSError as error: raise ValueError("second") from error
if __name__ == "__main__" and word != "--help": inner()
"""


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )


def _without_line(text: str) -> str:
    """Return standard error without the line about both names."""
    first, _, rest = text.partition("\n")
    assert first.startswith("[samegrad] import tensorflow gives samegrad 0.1.0 here"), text
    assert first.endswith("TensorFlow 2.21.0.")
    return rest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program, and a package whose modules can be run."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/prog.py").write_text(PROGRAM)
    (tmp_path / "sub/__init__.py").touch()
    (tmp_path / "sub/helper.py").write_text("class Failed(OSError): pass\n")
    (tmp_path / "helper.py").write_text("class Failed(OSError): pass\n")
    (tmp_path / "bad.py").write_text("x = 1\ndef f(:\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sub/prog.py", "--help"], 0),
        (["sub/prog.py", "exit"], 7),
        (["sub/prog.py", "fail"], 1),
        (["sub/prog.py", "hook"], 1),
        (["sub/prog.py", "stop"], -signal.SIGINT),
        (["-m", "sub.prog", "fail"], 1),
        (["bad.py"], 1),
    ],
)
def test_run_command_behaves_as_python_does(folder: Path, command: list[str], code: int) -> None:
    plain, run = _run(command, folder), _run([*RUN, *command], folder)
    assert plain.returncode == run.returncode == code, run.stderr
    assert plain.stdout == run.stdout
    assert plain.stderr == _without_line(run.stderr)


def test_run_command_refuses_a_missing_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "none.py"]) == 2
    assert "[run] a Python program is needed: got none.py (No such" in capsys.readouterr().err
    assert not any(type(finder).__module__ == "samegrad.tensorflow" for finder in sys.meta_path)


TENSORFLOW = """
import json, multiprocessing, sys
import keras, helper
import tensorflow as tf
import tensorboard.compat.notf  # TensorBoard's own sign that there is no TensorFlow
import tensorflow.keras as K
import tensorflow.keras.layers as L
from tensorflow.keras.layers import Dense
from importlib import metadata, util

def error(statement):
    try: exec(statement, {"tf": tf})
    except (ImportError, AttributeError) as found: return f"{type(found).__name__} {found}"

def names(queue=None):
    import samegrad
    found = {
        "same": [tf.add is samegrad.add, K is tf.keras is samegrad.keras, L.Dense is Dense,
                 Dense is keras.layers.Dense, helper.tensorflow is tf, "add" in dir(tf)],
        "versions": [tf.__version__, tf.version.VERSION, samegrad.__version__, keras.__version__],
        "specs": [util.find_spec(name).name for name in ("tensorflow", "tensorflow.keras")],
        "own specs": [K.__spec__.name, L.__spec__.name],
        "lacking": [util.find_spec(name) for name in ("tensorflow.python", "tensorflow.add")],
        "errors": [error(line) for line in LINES],
        "backend": keras.backend.backend(),
        "file": tf.__file__ == samegrad.__file__ and "samegrad" in repr(tf),
    }
    try: metadata.version("tensorflow")
    except metadata.PackageNotFoundError: found["installed"] = False
    if queue: queue.put(found)
    return found

LINES = ["import tensorflow.python.framework", "from tensorflow.contrib import slim", "tf.Session",
         "from tensorflow import Session", "import tensorflow._api", "import tensorflow.add"]
if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        child = context.Process(target=names, args=(queue,))
        child.start()
        there = queue.get(timeout=60)
        child.join()
        assert there == names(), (method, there, names())
    print(json.dumps(there))
"""


def test_run_command_puts_samegrad_in_the_place_of_tensorflow(tmp_path: Path) -> None:
    """In the program, in what it imports, and in processes that it starts."""
    (tmp_path / "helper.py").write_text("import tensorflow\n")
    (tmp_path / "tensorboard/compat").mkdir(parents=True)
    (tmp_path / "tensorboard/compat/__init__.py").touch()
    (tmp_path / "program.py").write_text(TENSORFLOW)
    done = _run([*RUN, "program.py"], tmp_path)
    assert done.returncode == 0 and _without_line(done.stderr) == "", done.stderr
    found = json.loads(done.stdout)
    versions = found.pop("versions")
    assert versions[:3] == ["2.21.0", "2.21.0", "0.1.0"] and versions[3].startswith("3.15.")
    assert all(found.pop("same"))
    for text, (kind, name) in zip(
        found.pop("errors"),
        [
            ("ModuleNotFoundError", "tensorflow.python"),
            ("ModuleNotFoundError", "tensorflow.contrib"),
            ("AttributeError", "Session"),
            ("ImportError", "Session"),
            ("ModuleNotFoundError", "tensorflow._api"),
            ("ModuleNotFoundError", "tensorflow.add"),
        ],
        strict=True,
    ):
        assert text.startswith(kind) and f"'{name}'" in text
    assert found == {
        "specs": ["tensorflow", "samegrad.keras"],
        "own specs": ["samegrad.keras", "samegrad.keras.layers"],
        "lacking": [None, None],
        "backend": "samegrad",
        "file": True,
        "installed": False,
    }


INSTALL = "import samegrad as tf; tf.install_as_tensorflow()"


@pytest.mark.parametrize(
    ("program", "expected", "error"),
    [
        (f"{INSTALL}; {INSTALL}; import tensorflow; print(tensorflow.add is tf.add)\n"
         "from samegrad.tensorflow import load_ipython_extension as load; load(None)", "True", ""),
        (f"import sys; sys.modules['tensorflow'] = None\n{INSTALL}; import tensorflow\n"
         "print(tensorflow.__version__)", "2.21.0", ""),
        (f"import types, sys; real = types.ModuleType('tensorflow'); real.__version__ = '2.16.1'\n"
         f"sys.modules['tensorflow'] = real\n{INSTALL}", "",
         "RuntimeError: [install_as_tensorflow] TensorFlow must not be loaded in this process: got "
         "tensorflow 2.16.1; call it before the first import of tensorflow."),
    ],
)  # fmt: skip
def test_install_as_tensorflow_works_once_and_before_tensorflow(
    tmp_path: Path, program: str, expected: str, error: str
) -> None:
    done = _run(["-c", program], tmp_path)
    assert done.stdout.strip() == expected, done.stderr
    assert done.stderr.splitlines()[-1] == error if error else not _without_line(done.stderr)


@pytest.mark.parametrize(
    ("environment", "backend"), [({}, True), ({"KERAS_BACKEND": "tensorflow"}, True),
                                 ({"KERAS_BACKEND": "jax"}, False)]
)  # fmt: skip
def test_keras_runs_on_samegrad_in_the_place_of_tensorflow(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], backend: bool
) -> None:
    from samegrad._base.keras_finder import KerasFinder

    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", "/nowhere")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(KerasFinder, "stands_for_tensorflow", True)
    assert KerasFinder()._is_wanted() is backend

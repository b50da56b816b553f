"""Keras runs on samegrad, whatever else is set, and on nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from samegrad._keras import patches, patching, register


def _run(code: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("KERAS_")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**inherited, "HOME": str(home), **environment}, cwd=home,
    )  # fmt: skip


LOAD = "from samegrad._keras import register; keras = register.load(); "


def test_neither_environment_nor_settings_choose_another_backend(tmp_path: Path) -> None:
    (tmp_path / ".keras").mkdir()
    settings = {"backend": "jax", "floatx": "float16", "image_data_format": "channels_first"}
    (tmp_path / ".keras/keras.json").write_text(json.dumps(settings))
    shown = "print(keras.config.backend(), keras.config.floatx(), keras.config.image_data_format())"
    done = _run(LOAD + shown, tmp_path, KERAS_BACKEND="torch")
    assert done.stdout.split() == ["samegrad", "float32", "channels_last"], done.stderr


def test_loading_changes_neither_the_environment_nor_the_home(tmp_path: Path) -> None:
    check = "import os; before = dict(os.environ); " + LOAD + "print(dict(os.environ) == before)"
    done = _run(check, tmp_path)
    assert done.stdout.split() == ["True"], done.stderr
    assert not (tmp_path / ".keras").exists()


def test_no_tensorflow_is_imported(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('TensorFlow was imported')")
    program = LOAD + (
        "import sys; keras.utils.set_random_seed(3); keras.layers.Dense(2);"
        "keras.losses.get('mse');"
        "print(any(name.split('.')[0] == 'tensorflow' for name in sys.modules))"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = _run(program, tmp_path, PYTHONPATH=path)
    assert done.stdout.split() == ["False"], done.stderr


@pytest.mark.parametrize(
    ("environment", "settings", "remedy"),
    [
        ({}, "", "import samegrad before keras, or set KERAS_BACKEND=samegrad."),
        ({}, "torch", "keras.json, or set KERAS_BACKEND=samegrad."),
        ({"KERAS_BACKEND": "numpy"}, "torch", "; unset KERAS_BACKEND, or set KERAS_BACKEND=sameg"),
    ],
)
def test_keras_imported_before_on_another_backend_is_an_error(
    tmp_path: Path, environment: dict[str, str], settings: str, remedy: str
) -> None:
    imported = (
        "import sys, types; config = types.ModuleType('keras.src.backend.config');"
        "config.backend = lambda: 'numpy'; sys.modules['keras.src.backend.config'] = config; "
        "sys.modules['keras'] = types.ModuleType('keras'); "
    )
    _set_backend(tmp_path, settings)
    done = _run(imported + "import samegrad as tf; tf.keras", tmp_path, **environment)
    assert "RuntimeError: [samegrad.keras] Keras runs on one backend per process" in done.stderr
    assert "'numpy'" in done.stderr and remedy in done.stderr


def _set_backend(home: Path, backend: str) -> None:
    if backend:
        (home / ".keras").mkdir()
        (home / ".keras/keras.json").write_text(json.dumps({"backend": backend}))


@pytest.mark.parametrize(
    ("program", "environment", "settings", "ours"),
    [
        ("import samegrad as tf", {}, "", True),
        ("import samegrad", {}, "", True),
        ("from samegrad import nn", {}, "", True),
        ("import helper", {}, "", True),
        ("import samegrad._pytest_plugin, helper", {}, "", True),
        ("import samegrad.testing, samegrad as tf", {}, "", True),
        ("def f():\n    import samegrad as tf\n    import keras\nf()", {}, "", True),
        ("import samegrad as tf", {}, "tensorflow", True),  # Keras writes this name itself
        ("import samegrad as tf", {"KERAS_BACKEND": ""}, "", True),
        ("import samegrad.testing", {"KERAS_BACKEND": "samegrad"}, "jax", True),
        ("import samegrad as tf", {}, "jax", False),
        ("import samegrad as tf", {"KERAS_BACKEND": "torch"}, "", False),
        ("import samegrad as tf", {"KERAS_BACKEND": "tensorflow"}, "", False),
        ("import samegrad.testing", {}, "", False),
        ("from samegrad import testing; testing.CATALOGUE", {}, "", False),
        ("__import__('samegrad._pytest_plugin')", {}, "", False),  # as pytest does
        ("__import__('samegrad.cli.doctor')", {}, "", False),
        ("pass", {"KERAS_BACKEND": "samegrad"}, "", False),
    ],
)  # fmt: skip
def test_first_import_of_keras_takes_samegrad_where_a_program_imported_it(
    tmp_path: Path, program: str, environment: dict[str, str], settings: str, ours: bool
) -> None:
    _set_backend(tmp_path, settings)
    (tmp_path / "helper.py").write_text("import samegrad as tf\n")
    (tmp_path / "keras").mkdir()  # a package that only tells how it was imported
    (tmp_path / "keras/__init__.py").write_text(
        "import sys\nprint('samegrad._keras.register' in sys.modules)\n"
    )
    done = _run(f"{program}\nimport keras", tmp_path, **environment)
    assert done.stdout.split() == [str(ours)], done.stderr


def test_import_of_keras_gives_the_keras_of_samegrad(tmp_path: Path) -> None:
    done = _run(
        "import samegrad as tf\nimport keras\nfrom keras import layers\n"
        "print(keras.backend.backend(), layers.Dense is tf.keras.layers.Dense)\n"
        "print(keras.Sequential([layers.Dense(2)])(tf.ones([2, 3])).shape)",
        tmp_path,
    )
    assert done.stdout.splitlines() == ["samegrad True", "(2, 2)"], done.stderr


def test_an_import_of_keras_that_failed_before_leaves_nothing(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    missing.mkdir()
    (missing / "tensorflow.py").write_text("raise ImportError('there is none')")
    failed = "try:\n    import keras\nexcept ImportError:\n    print('failed')\n"
    used = (
        "import samegrad as tf\nprint(tf.keras.layers.StringLookup(vocabulary=['a'])('a').numpy())"
    )
    path = os.pathsep.join([str(missing), os.environ.get("PYTHONPATH", "")])
    done = _run(failed + used, tmp_path, PYTHONPATH=path, KERAS_BACKEND="tensorflow")
    assert done.stdout.split() == ["failed", "1"], done.stderr


def test_importing_samegrad_does_not_import_keras(tmp_path: Path) -> None:
    done = _run(
        "import sys, samegrad; samegrad.constant(1.0); print('keras' in sys.modules)", tmp_path
    )
    assert done.stdout.split() == ["False"], done.stderr


def test_a_changed_keras_is_refused_by_name_of_the_module() -> None:
    module = "keras.src.losses.loss"
    with pytest.raises(ImportError, match=r"keras\.src\.losses\.loss"):
        patching.patched(module, "def reduce_values(x): return x\n", patches.PATCHES[module])


COUNT = (
    "import samegrad as tf\nfrom samegrad._keras import register\n"
    "times = []\npatched = register.patched\n"
    "register.patched = lambda *given: times.append(1) or patched(*given)\n"
    "tf.keras.Model\nprint(len(times))\n"
)


def test_patches_are_compiled_once_and_again_where_they_changed(tmp_path: Path) -> None:
    kept = {"PYTHONPYCACHEPREFIX": str(tmp_path / "kept"), "PYTHONDONTWRITEBYTECODE": ""}
    first, second = (int(_run(COUNT, tmp_path, **kept).stdout) for _ in range(2))
    assert first > 50 and second == 0
    changed = (
        "from samegrad._keras.patches import PATCHES\nfrom samegrad._keras.patching import Text\n"
        "PATCHES['keras.src.losses.loss'] += [Text('class Loss', 'class Loss', 1)]\n"
    )
    assert _run(changed + COUNT, tmp_path, **kept).stdout.split() == ["1"]


def test_a_patched_module_gives_other_files_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("of a user")
    loader = register._PatchedLoader("keras.src.losses.loss", str(tmp_path / "loss.py"))
    assert loader.get_data(str(tmp_path / "data.txt")) == b"of a user"


def test_a_folder_that_cannot_be_written_keeps_no_bytecode(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = {"PYTHONPYCACHEPREFIX": str(tmp_path / "file"), "PYTHONDONTWRITEBYTECODE": ""}
    for _ in range(2):
        assert int(_run(COUNT, tmp_path, **kept).stdout) > 50


@pytest.mark.parametrize("module", sorted(patches.PATCHES))
def test_every_patch_names_the_text_that_it_replaces(module: str) -> None:
    for patch in patches.PATCHES[module]:
        if isinstance(patch, patching.Span):
            assert len(patch.digest) >= 16, patch.begin


def test_what_only_some_programs_need_is_imported_by_them(tmp_path: Path) -> None:
    for name in ("pandas", "scipy"):  # they can be imported, wherever this runs
        (tmp_path / f"{name}.py").write_text("")
    done = _run(
        "import sys, samegrad as tf; tf.keras.layers.Dense(2)\n"
        "print({'matplotlib', 'tensorflow', 'scipy', 'pandas', 'h5py', 'requests', 'IPython',\n"
        "       'psutil', 'PIL', 'rich', 'ssl'} & {*sys.modules})",
        tmp_path,
    )
    assert done.stdout.split() == ["set()"], done.stdout


def test_tables_are_known_once_a_program_has_imported_pandas(tmp_path: Path) -> None:
    (tmp_path / "pandas.py").write_text(
        "class Series: pass\nclass DataFrame:\n    def __array__(self): return 0\n"
    )
    done = _run(
        "import samegrad as tf; tf.keras.layers.Dense(2)\n"
        "from keras.src.trainers.data_adapters import array_slicing as slicing\n"
        "print(isinstance(1, slicing.pandas.DataFrame))\n"
        "import pandas\n"
        "print(isinstance(pandas.DataFrame(), slicing.pandas.DataFrame),\n"
        "      isinstance(pandas.Series(), slicing.pandas.DataFrame),\n"
        "      slicing.can_slice_array(pandas.DataFrame()))",
        tmp_path,
    )
    assert done.stdout.split() == ["False", "True", "False", "True"], done.stderr


def test_what_is_imported_late_is_there(tmp_path: Path) -> None:
    """Tables, HDF5 files, pictures, downloads."""
    done = _run(
        "import sys, numpy as np, samegrad as tf\n"
        "keras = tf.keras\n"
        "model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])\n"
        "model.summary()\n"
        "model.save('a.h5'); model.save_weights('a.weights.h5')\n"
        "same = keras.models.load_model('a.h5').get_weights()[0] == model.get_weights()[0]\n"
        "keras.saving.KerasFileEditor('a.weights.h5').summary()\n"
        "picture = np.arange(75).reshape(5, 5, 3)\n"
        "keras.utils.save_img('a.png', picture, scale=False)\n"
        "sizes = [np.array(keras.utils.load_img('a.png', target_size=(3, 2), interpolation=way))\n"
        "         .shape for way in ('nearest', 'bilinear', 'bicubic', 'hamming', 'box',\n"
        "                            'lanczos')]\n"
        "got = keras.utils.get_file('b.png', 'file://' + __import__('os').path.abspath('a.png'),\n"
        "                           cache_dir='.')\n"
        "print(same.all(), set(sizes), open(got, 'rb').read() == open('a.png', 'rb').read())\n",
        tmp_path,
    )
    assert "Total params" in done.stdout
    assert done.stdout.splitlines()[-1] == "True {(3, 2, 3)} True", done.stdout + done.stderr


@pytest.mark.parametrize(
    ("package", "call", "error"),
    [
        ("requests", "tf.keras.callbacks.RemoteMonitor().on_epoch_end(0)", "requires the `req"),
        ("PIL", "tf.keras.utils.array_to_img([[[1.0]]])", "Could not import PIL"),
        ("h5py", "tf.keras.models.load_model('a.h5')", "using h5 format requires h5py"),
        ("psutil", "print('unknown')", ""),
    ],
)
def test_what_is_missing_is_said_when_it_is_needed(
    tmp_path: Path, package: str, call: str, error: str
) -> None:
    (tmp_path / "a.h5").touch()
    done = _run(
        f"import sys; sys.modules[{package!r}] = None\nimport samegrad as tf\n"
        f"tf.keras.Sequential\ntry: {call}\nexcept ImportError as found: print(found)",
        tmp_path,
    )
    assert error in done.stdout and done.returncode == 0, done.stdout + done.stderr

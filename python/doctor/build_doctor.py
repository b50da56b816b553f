"""Builds the wheel samegrad-doctor: the sources of samegrad.testing, without the engine.

A backend of PEP 517 without requirements: the modules are copied, and their imports of samegrad are
those of the package. `python build_doctor.py FOLDER` builds it without pip.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "samegrad"
PACKAGE = "samegrad_doctor"
# What a module of samegrad is called in the package.
MODULES = {
    "samegrad.testing": PACKAGE,
    "samegrad._base": f"{PACKAGE}._base",
    "samegrad.cli._errors": f"{PACKAGE}._errors",
    "samegrad.cli.doctor": f"{PACKAGE}.cli",
}
SINGLE = {
    "_base/launchers.py": "_base/launchers.py",
    "_base/tree.py": "_base/tree.py",
    "_base/shown.py": "_base/shown.py",
    "_base/failure_modes.py": "_base/failure_modes.py",
    "_base/tracebacks.py": "_base/tracebacks.py",
    "_base/user_files.py": "_base/user_files.py",
    "cli/_errors.py": "_errors.py",
    "cli/doctor.py": "cli.py",
}
# What needs the engine: its steps, and comparisons of its bits.
LEFT_OUT = (
    "adapters/_samegrad.py", "_invariance.py", "_jobs.py", "_run_diff.py", "_run_evidence.py",
    "_run_frontier.py", "_run_pairs.py", "_same_bits.py", "_training.py",
)  # fmt: skip
# Errors of samegrad's public surface are made of tables that only samegrad has.
SURFACE = re.compile(
    r"^(?:from samegrad\._surface\.\w+ import \w+|guard\(__name__\)"
    r"|if not TYPE_CHECKING:\n    __getattr__ = getattr_of\(__name__\)"
    r"|from typing import TYPE_CHECKING"
    r"|from samegrad\.testing\.adapters\._samegrad import samegrad_step|    \"samegrad_step\","
    r"|from samegrad\.testing\._same_bits import assert_same_bits"
    r"|from samegrad\.testing\._invariance import \((?:\n    \w+,)+\n\)"
    r"|    \"(?:DivisionOutcome|ReplicaInvariance|assert_replica_invariant|assert_same_bits)\",)\n",
    re.MULTILINE,
)


def _version() -> str:
    found = re.search(r'^version = "(.+)"', (HERE.parents[1] / "pyproject.toml").read_text(), re.M)
    assert found is not None, "pyproject.toml of samegrad has a version"
    return found.group(1)


def _text(path: Path) -> str:
    text = path.read_text()
    if path.name == "__init__.py" or path.name == "strategies.py":
        text = SURFACE.sub("", text)
    for known, name in MODULES.items():
        text = re.sub(rf"(?<![\w.]){re.escape(known)}(?![\w])", name, text)
    return text


def contents() -> dict[str, str]:
    """The files of the wheel but for its record."""
    testing = SOURCES / "testing"
    found = {
        f"{PACKAGE}/{path.relative_to(testing)}": _text(path)
        for path in sorted(testing.rglob("*.py"))
        if str(path.relative_to(testing)) not in LEFT_OUT
    }
    found |= {f"{PACKAGE}/{name}": _text(SOURCES / path) for path, name in SINGLE.items()}
    found[f"{PACKAGE}/_base/__init__.py"] = '"""What samegrad and its doctor share."""\n'
    found[f"{PACKAGE}/py.typed"] = ""
    info = f"{PACKAGE}-{_version()}.dist-info"
    found[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.4\nName: samegrad-doctor\nVersion: {_version()}\n"
        "Summary: Check the loss normalization of a data-parallel training step\n"
        "License-Expression: Apache-2.0\nRequires-Python: >=3.10\nRequires-Dist: numpy>=1.24\n"
        f"Description-Content-Type: text/markdown\n\n{(HERE / 'README.md').read_text()}"
    )
    found[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: build_doctor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    found[f"{info}/entry_points.txt"] = f"[console_scripts]\nsamegrad-doctor = {PACKAGE}.cli:main\n"
    return found


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None
) -> str:
    """The hook of PEP 517."""
    files = contents()
    record = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record.append(f"{name},sha256={digest.decode()},{len(text.encode())}")
    info = f"{PACKAGE}-{_version()}.dist-info"
    files[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,"]) + "\n"
    path = Path(wheel_directory) / f"{PACKAGE}-{_version()}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path.name


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """The hook of PEP 517."""
    return []


if __name__ == "__main__":
    print(build_wheel(sys.argv[1]))

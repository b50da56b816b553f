"""samegrad in TensorFlow's place: `import tensorflow` gives samegrad in this process.

`samegrad run PROGRAM.py` does this for a program, `%load_ext samegrad.tensorflow` in a notebook.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import sys
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

from samegrad import version
from samegrad._base import keras_finder
from samegrad._base.launchers import launched
from samegrad._base.tracebacks import user_frames_only
from samegrad._surface.missing_names import explain

# The release whose recorded results the tests compare with.
VERSION = "2.21.0"
_NAME = "tensorflow"
_SAMEGRAD = sys.modules["samegrad"]
# TensorBoard imports this module to learn that it must use its own part of TensorFlow's functions.
_WITHOUT_TENSORFLOW = "tensorboard.compat.notf"


def install_as_tensorflow() -> None:
    """Let `import tensorflow` give samegrad in this process and its spawned processes.

    Packages that the program imports get samegrad as well. The name `tensorflow.__version__` is
    the release of TensorFlow that samegrad follows. A line on standard error shows both versions.
    A second call does nothing.

    Raises:
        RuntimeError: TensorFlow is loaded already.

    Example:
        >>> import samegrad as tf
        >>> tf.install_as_tensorflow()  # doctest: +SKIP
        >>> import tensorflow  # doctest: +SKIP
        >>> tensorflow.add is tf.add, tensorflow.__version__  # doctest: +SKIP
        (True, '2.21.0')
    """
    if _install() and launched().rank == 0:
        print(
            f"[samegrad] import tensorflow gives samegrad {version.VERSION} here, in the place of "
            f"TensorFlow {VERSION}.",
            file=sys.stderr,
            flush=True,
        )


def load_ipython_extension(shell: Any) -> None:
    """Let `import tensorflow` give samegrad in a notebook: `%load_ext samegrad.tensorflow`.

    Args:
        shell: The shell of IPython.

    Raises:
        RuntimeError: TensorFlow is loaded already.

    Example:
        >>> load_ipython_extension(None)  # doctest: +SKIP
    """
    install_as_tensorflow()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find the modules of TensorFlow: they are those of samegrad, but for the root."""

    @user_frames_only
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a module of TensorFlow, None if samegrad lacks it.

        Raises:
            ModuleNotFoundError: A module that samegrad lacks is imported; the message has a hint.
        """
        root, _, below = fullname.partition(".")
        if fullname == _WITHOUT_TENSORFLOW:
            return ModuleSpec(fullname, self)
        if root != _NAME:
            return None
        if not below:
            return ModuleSpec(fullname, self, origin=_SAMEGRAD.__file__, is_package=True)
        module = _module(below)
        if module is None:
            if not _is_import(sys._getframe()):
                return None
            hint = explain(below)
            end = "" if hint.endswith("?") else "."
            raise ModuleNotFoundError(f"No module named {fullname!r}; {hint}{end}", name=fullname)
        return ModuleSpec(fullname, self, loader_state=(module, module.__spec__))

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return samegrad's module, or None for a new one."""
        return spec.loader_state[0] if spec.loader_state else None

    def exec_module(self, module: ModuleType) -> None:
        """Fill the root; give the modules of samegrad back the spec that importlib replaced."""
        spec = module.__spec__
        if spec is not None and spec.loader_state:
            module.__spec__ = spec.loader_state[1]
        elif module.__name__ == _NAME:
            _fill(module)


def _is_import(frame: FrameType | None) -> bool:
    """Tell whether importlib looks for a module to import it; `util.find_spec` only asks."""
    while frame is not None and frame.f_code.co_name != "_find_spec":
        frame = frame.f_back
    caller = frame and frame.f_back
    return caller is not None and caller.f_code.co_name == "_find_and_load_unlocked"


_finder = _Finder()


def _install() -> bool:
    """Install the finder; return False if it was there."""
    if _finder in sys.meta_path:
        return False
    loaded = sys.modules.get(_NAME)
    if loaded is not None:
        raise RuntimeError(
            "[install_as_tensorflow] TensorFlow must not be loaded in this process: got "
            f"tensorflow {getattr(loaded, '__version__', '')}; call it before the first import of "
            "tensorflow."
        )
    sys.modules.pop(_NAME, None)  # None there blocks the import
    sys.meta_path.insert(0, _finder)
    keras_finder.finder.stands_for_tensorflow = True
    _install_in_child_processes()
    return True


def _module(path: str) -> ModuleType | None:
    """Return a public module by its name below `tensorflow`."""
    found: Any = importlib.import_module(_NAME)
    for name in path.split("."):
        found = None if name.startswith("_") else getattr(found, name, None)
    return found if isinstance(found, ModuleType) else None


def _fill(root: ModuleType) -> None:
    """Give the module `tensorflow` the names of samegrad, and TensorFlow's version."""

    @user_frames_only
    def attribute(name: str) -> Any:
        value = getattr(_SAMEGRAD, name)
        if not name.startswith("_"):
            vars(root)[name] = value
        return value

    of_version = ModuleType(f"{_NAME}.version", version.__doc__)
    vars(of_version).update(vars(version), VERSION=VERSION, __name__=of_version.__name__)
    vars(root).update(
        __version__=VERSION,
        version=of_version,
        __doc__=_SAMEGRAD.__doc__,
        __file__=_SAMEGRAD.__file__,
        __getattr__=attribute,
        __dir__=_SAMEGRAD.__dir__,
    )


class _Installation:
    """Installs the finder where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _install, ()


def _install_in_child_processes() -> None:
    """Send the installation to child processes, before they import the program."""
    from multiprocessing import set_forkserver_preload, spawn

    original = spawn.get_preparation_data

    @functools.wraps(original)
    def get_preparation_data(name: str) -> dict[str, Any]:
        return {**original(name), _NAME: _Installation()}

    spawn.get_preparation_data = get_preparation_data
    # From Python 3.14 on, the fork server imports the program first, without the installation.
    set_forkserver_preload([])


__all__ = ["install_as_tensorflow", "load_ipython_extension"]

"""Finds the files of a data set on this computer, or downloads them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from samegrad._base.file_errors import explained_errors
from samegrad._keras.datasets._idx import READ_REMEDY, IdxFile, read_idx

DATA_DIR_VARIABLE = "SAMEGRAD_DATA_DIR"
_TIMEOUT_SECONDS = 30

Array = npt.NDArray[np.uint8]
Arrays = tuple[tuple[Array, Array], tuple[Array, Array]]


class DatasetNotFoundError(FileNotFoundError):
    """No copy of the data set was found, and none could be downloaded."""


@dataclass(frozen=True)
class IdxDataset:
    """A data set of four IDX files.

    Attributes:
        name: Name of its folder, e.g. `fashion-mnist`.
        files: Train images, train labels, test images, test labels.
        mirrors: Addresses of folders that hold the upstream `.gz` files, in order of trial.
        system_folders: Where distributions install the files.
        install_hint: How to install them there, or an empty string.
    """

    name: str
    files: tuple[IdxFile, IdxFile, IdxFile, IdxFile]
    mirrors: tuple[str, ...]
    system_folders: tuple[Path, ...] = ()
    install_hint: str = ""


def load(dataset: IdxDataset, path: str | os.PathLike[str] | None) -> Arrays:
    """Load the four arrays of a data set.

    Args:
        dataset: Which one.
        path: The only folder to look into, or None to search and download.

    Returns:
        `((x_train, y_train), (x_test, y_test))`, writable uint8 arrays.

    Raises:
        DatasetNotFoundError: No folder has all four files and the download failed.
        IdxError: A file is damaged.
        NotADirectoryError: `path` is a file.
    """
    paths = _find_given(dataset, Path(path)) if path is not None else _search(dataset)
    arrays = [read_idx(p, spec) for p, spec in zip(paths, dataset.files, strict=True)]
    return (arrays[0], arrays[1]), (arrays[2], arrays[3])


def cache_folder(dataset: IdxDataset) -> Path:
    """The user's cache for this data set, where pooch's `os_cache` would put it on Linux."""
    # Not `pooch.os_cache`: pooch is imported only when something must be downloaded.
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "samegrad" / dataset.name


def _find_given(dataset: IdxDataset, folder: Path) -> list[Path]:
    with explained_errors("datasets", "look into", folder, READ_REMEDY):
        exists, is_folder = folder.exists(), folder.is_dir()
    if exists and not is_folder:
        raise NotADirectoryError(
            f"[datasets] the data folder must be a folder: got the file {folder}. Give the folder "
            f"that holds {dataset.files[0].name}.gz."
        )
    # A user who names a folder means it: nothing else is tried.
    paths = _find_in([folder / dataset.name, folder], dataset)
    if paths is None:
        missing = [f.name for f in dataset.files if _existing(folder, f.name) is None]
        raise DatasetNotFoundError(
            f"[datasets] the given folder must hold {dataset.name}: {folder} "
            + (f"lacks {', '.join(missing)}" if is_folder else "does not exist")
            + f".{_ways(dataset)}"
        )
    return paths


def _search(dataset: IdxDataset) -> list[Path]:
    folders = [cache_folder(dataset), *dataset.system_folders]
    if root := os.environ.get(DATA_DIR_VARIABLE):
        folders = [Path(root) / dataset.name, Path(root), *folders]
    return _find_in(folders, dataset) or _download(dataset, folders)


def _find_in(folders: Sequence[Path], dataset: IdxDataset) -> list[Path] | None:
    """The four files of the first folder that holds them all."""
    for folder in folders:
        paths = [_existing(folder, file.name) for file in dataset.files]
        found = [path for path in paths if path is not None]
        if len(found) == len(dataset.files):
            return found
    return None


def _existing(folder: Path, name: str) -> Path | None:
    for path in (folder / f"{name}.gz", folder / name):
        with explained_errors("datasets", "look for", path, READ_REMEDY):
            if path.is_file():
                return path
    return None


def _download(dataset: IdxDataset, searched: Sequence[Path]) -> list[Path]:
    """Download all four files into the cache from the first mirror that answers."""
    failures = []
    for mirror in dataset.mirrors:
        try:
            return [_retrieve(mirror, file, cache_folder(dataset)) for file in dataset.files]
        # requests' errors are OSErrors; pooch raises ValueError for a wrong hash.
        except (OSError, ValueError, ImportError) as error:
            failures.append(f"{mirror}: {type(error).__name__}: {error}")
    raise DatasetNotFoundError(
        f"[datasets] {dataset.name} must be found or downloaded: no folder of "
        f"{', '.join(map(str, searched))} holds its four files, and no download worked "
        f"({'; '.join(failures)}).{_ways(dataset)}"
    )


def _retrieve(mirror: str, file: IdxFile, folder: Path) -> Path:
    import pooch

    # pooch writes to a temporary file and moves it after the check: a kill leaves no half file.
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=_TIMEOUT_SECONDS)
    return Path(
        pooch.retrieve(
            f"{mirror}{file.name}.gz",
            known_hash=file.download_hash,
            fname=f"{file.name}.gz",
            path=folder,
            downloader=downloader,
        )
    )


def _ways(dataset: IdxDataset) -> str:
    """The ways to provide the data, for the end of an error message."""
    first = f" Ways: give load_data() a folder with {dataset.files[0].name}.gz and the other three"
    install = f"; {dataset.install_hint}" if dataset.install_hint else ""
    return (
        f"{first}; set {DATA_DIR_VARIABLE} to such a folder; put them into "
        f"{cache_folder(dataset)}{install}; or let load_data() download them from "
        f"{dataset.mirrors[0]}."
    )

"""Pictures of a job: drawn with matplotlib, which is imported only then."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from samegrad.cli._errors import CommandError
from samegrad.cli._records import explained
from samegrad.train import _files


def check_picture(who: str, option: str, path: Path) -> None:
    """Finds out before the training whether a picture can be drawn after it.

    Raises:
        CommandError: matplotlib is missing, does not know the file type, or the folder is missing.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise CommandError(
            f"[{who}] {option} needs matplotlib: it is not installed. Run "
            "`pip install 'samegrad[plot]'`."
        ) from error
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:] not in known:
        raise CommandError(
            f"[{who}] {option} must end in one of {', '.join(sorted(known))}: got "
            f"{path.name!r}. Take .png."
        )
    if not path.absolute().parent.is_dir():
        raise CommandError(
            f"[{who}] the folder of {option} must exist: got {path.absolute().parent}. Create it."
        )


def save_figure(who: str, figure: Any, path: Path) -> None:
    """Writes a figure into a file, whole or not at all.

    Args:
        who: The command, for errors.
        figure: Of matplotlib.
        path: Its ending says the file type.

    Raises:
        OSError: The file cannot be written.
    """
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:])
    with explained(who, "write", path):
        _files.replace_file(path.absolute(), picture.getvalue())

"""Imports of Keras's rarer functions, deferred until one of them is called.

With the packages of a notebook installed, these imports were most of the time that `tf.keras` takes
to load, and a quarter of its memory.
"""

from __future__ import annotations

from samegrad._keras.patching import Span, Text


def _optional(name: str, as_name: str = "", uses: int = 0) -> list[Text | Span]:
    """A package that may be missing: `uses` times Keras asks whether it is."""
    bound = as_name or name
    imported = name + (f" as {as_name}" if as_name else "")
    changes: list[Text | Span] = [
        Text(
            f"try:\n    import {imported}\nexcept ImportError:\n    {bound} = None\n",
            "from keras.src.utils.module_utils import LazyModule\n\n"
            f'{bound} = LazyModule("{name}")\n',
        )
    ]
    if uses:
        changes.append(Text(f"if {bound} is None:", f"if not {bound}.available:", times=uses))
    return changes


_PIL = (
    "try:\n    from PIL import Image as pil_image\n\n    try:\n"
    "        pil_image_resampling = pil_image.Resampling\n    except AttributeError:\n"
    "        pil_image_resampling = pil_image\nexcept ImportError:\n    pil_image = None\n"
    "    pil_image_resampling = None\n"
)


def _pictures(uses: int) -> list[Text | Span]:
    return [
        Text(
            _PIL,
            "from keras.src.utils.module_utils import LazyModule\n\n"
            'pil_image = LazyModule("PIL.Image", pip_name="pillow")\n',
        ),
        Text("if pil_image is None:", "if not pil_image.available:", times=uses),
    ]


_RICH = (
    "from keras.src.utils.module_utils import LazyModule\n\n"
    'rich = LazyModule("samegrad._keras.rich_parts", pip_name="rich")\n'
)

DEFERRED: dict[str, list[Text | Span]] = {
    "keras.src.callbacks.remote_monitor": _optional("requests", uses=1),
    "keras.src.legacy.saving.legacy_h5_format": _optional("h5py", uses=2),
    "keras.src.saving.file_editor": [
        *_optional("IPython", "ipython"),
        Text("import rich.console\n", _RICH),
    ],
    "keras.src.saving.saving_lib": _optional("psutil", uses=1),
    "keras.src.utils.file_utils": [
        Text(
            "from urllib.request import urlretrieve\n",
            "\n\ndef urlretrieve(*args, **kwargs):\n"
            "    from urllib import request\n\n"
            "    return request.urlretrieve(*args, **kwargs)\n",
        )
    ],
    "keras.src.utils.image_dataset_utils": _pictures(1),
    "keras.src.utils.image_utils": [
        *_pictures(2),
        Text("if pil_image_resampling is not None:\n", "if True:\n"),
        *(
            Text(f"pil_image_resampling.{name}", f'"{name}"')
            for name in ("NEAREST", "BILINEAR", "BICUBIC", "HAMMING", "BOX", "LANCZOS")
        ),
        Text(
            "resample = PIL_INTERPOLATION_METHODS[interpolation]",
            "resample = pil_image.Resampling[PIL_INTERPOLATION_METHODS[interpolation]]",
        ),
    ],
    "keras.src.utils.summary_utils": [
        Text("import rich\nimport rich.console\nimport rich.markup\n", _RICH),
        Text("import rich.table\n", ""),
    ],
}

"""Writes small image files of all kinds with Pillow, for TensorFlow and samegrad to read.

python tests/unit/image/record_image_files.py
"""

import base64
import io
import json

import numpy as np
from image_programs import FILES
from PIL import Image


def file_of(array, mode, kind="PNG", **options):
    buffer = io.BytesIO()
    Image.fromarray(array).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


def smooth(rows=24, columns=18):
    """An image whose colours change slowly."""
    places = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), -1)
    parts = [places[..., 0] * 10, places[..., 1] * 14, 255 - places.sum(-1) * 6]
    return np.clip(np.stack(parts, -1), 0, 255).astype(np.uint8)


def made():
    """Files of all kinds."""
    grey, alpha = smooth()[..., 0], np.concatenate([smooth(), smooth()[..., :1]], -1)
    deep = (smooth()[..., 0].astype(np.uint16) * 257)[:4, :5]
    return {
        "rgb.png": file_of(smooth(), "RGB"),
        "grey.png": file_of(grey, "L"),
        "alpha.png": file_of(alpha, "RGBA"),
        "grey_alpha.png": file_of(alpha, "LA"),
        "palette.png": file_of(smooth(), "P"),
        "deep.png": file_of(deep, "I;16"),
        "rgb.bmp": file_of(smooth(), "RGB", kind="BMP"),
        "rgb.jpg": file_of(smooth(), "RGB", kind="JPEG", quality=95, subsampling=0),
        "grey.jpg": file_of(grey, "L", kind="JPEG", quality=90),
        "still.gif": file_of(smooth(), "P", kind="GIF"),
    }


if __name__ == "__main__":
    data = {name: base64.b64encode(content).decode() for name, content in made().items()}
    FILES.write_text(json.dumps(data, indent=1) + "\n")

"""Images from the bytes of files and back: the usual ones by the engine, all others by Pillow."""

from __future__ import annotations

import functools
import inspect
import io
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from samegrad import _core
from samegrad._base.dtypes import DTypeLike, as_dtype, uint8
from samegrad._base.shown import shown
from samegrad._core import InvalidArgumentError
from samegrad._tensor.conversion import Tensor, convert_to_tensor
from samegrad._tensor.host_values import on_host
from samegrad._tensor.text import Text, of_bytes, text_of
from samegrad.image._convert import convert_image_dtype

_PNG = b"\x89PNG\r\n\x1a\n"
_GREY = np.array([0.299, 0.587, 0.114])  # of red, green and blue
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_MOST_PIXELS = 1024 * 1024 * 1024 // 4 // 3  # Pillow's own number
_USUAL = ("JPEG", "PNG", "GIF", "BMP")
_NATURAL = {"1": 1, "L": 1, "LA": 2, "I": 1, "I;16": 1, "I;16B": 1, "P": 3, "RGB": 3, "RGBA": 4}


@functools.cache
def _pillow(who: str) -> Any:
    try:
        import PIL.Image
        import PIL.ImageSequence
    except ImportError as error:
        raise ImportError(
            f"[{who}] images are read and written by Pillow: got {error}; pip install "
            "'samegrad[images]'."
        ) from error
    return PIL


def _one_file(contents: Any, who: str) -> Text:
    found = text_of(contents, who, "contents must be the bytes of a file")
    if found._rank:
        raise ValueError(f"[{who}] contents must be those of one file: got shape {found._shape}.")
    return found


def _most_pixels() -> int:
    """Return the number of pixels above which Pillow warns of an image."""
    pillow = sys.modules.get("PIL.Image")
    most: int | None = _MOST_PIXELS if pillow is None else pillow.MAX_IMAGE_PIXELS
    return sys.maxsize if most is None else most


def plain_pixels(data: bytes, channels: int) -> Tensor | None:
    """Return uint8 [rows, columns, channels] of a file that the engine decodes by itself.

    None for all but JPEG files of 8 bits, grey or in colours, and PNG files of 8 bits, not
    interlaced, without palette and transparent colour; for files that are not in order, of which
    Pillow says what is wrong; and for all where the engine was built without the libraries.

    Args:
        data: Of the file.
        channels: How many are wanted: JPEG files give grey or colours, others what is in the file
            or None; 0: as in the file.
    """
    pixels: Tensor | None = _core.pixels_of_file(data, channels, _most_pixels(), False)
    return pixels


def _deep_pixels(data: bytes, channels: int) -> np.ndarray[Any, Any] | None:
    """Return uint16 [rows, columns, channels] of a 16-bit PNG file; None for other files.

    Of colours Pillow knows the higher 8 bits only.
    """
    if data[24:25] != b"\x10" or not data.startswith(_PNG):
        return None
    pixels = _core.pixels_of_file(data, 0, _most_pixels(), True)
    if pixels is None:
        return None
    array: np.ndarray[Any, Any] = pixels._view()
    count = array.shape[-1]
    if channels in (0, count):
        return array
    colours = array if count % 2 else array[..., :-1]
    opacity = np.full_like(array[..., :1], 0xFFFF) if count % 2 else array[..., -1:]
    if channels < 3 and count > 2:
        red, green, blue = (colours[..., i] * part for i, part in enumerate(_GREY))
        colours = np.round(red + green + blue).astype(np.uint16)[..., None]
    elif channels > 2 and count < 3:
        colours = np.repeat(colours, 3, axis=-1)
    return colours if channels % 2 else np.concatenate([colours, opacity], axis=-1)


def _opened(found: Text, who: str, formats: tuple[str, ...]) -> Any:
    """Return Pillow's image of one file's bytes."""
    pillow, data = _pillow(who), found.numpy()
    try:
        image = pillow.Image.open(io.BytesIO(data), formats=formats)
        return _with_opacity(image, data, pillow) if image.format == "BMP" else image
    except pillow.UnidentifiedImageError:
        raise _corrupt(who, found, f"begins with {shown(data[:8])}") from None
    except (OSError, ValueError, SyntaxError, pillow.Image.DecompressionBombError) as error:
        raise _corrupt(who, found, str(error)) from None


def _with_opacity(image: Any, data: bytes, pillow: Any) -> Any:
    """Return the image with the fourth byte of each pixel, which Pillow leaves out."""
    kind, _, offset, how = image.tile[0]
    if kind != "raw" or how[0] != "BGRX":
        return image
    return pillow.Image.frombytes("RGBA", image.size, data[offset:], "raw", "BGRA", *how[1:])


def _corrupt(who: str, contents: Text, what: str) -> InvalidArgumentError:
    place = contents.origin or "the contents"
    return InvalidArgumentError(
        f"[{who}] an image of this kind is needed: got {len(contents.numpy())} bytes of {place} "
        f"({what}); remove the file, or repair it."
    )


def _pixels(image: Any, channels: int, who: str, contents: Text) -> np.ndarray[Any, Any]:
    """Return [rows, columns, channels], with 16 bits if the file has them."""
    if channels not in (0, *_MODES):
        raise ValueError(f"[{who}] channels must be 0, 1, 2, 3 or 4: got {channels}.")
    try:
        if channels in (1, 2) and image.format == "JPEG" and image.mode == "RGB":
            image.draft("L", None)  # the luma that the file has, not a sum of its colours
        if image.mode == "P" and "transparency" in image.info and channels in (0, 4):
            image = image.convert("RGBA")
        count = channels or _NATURAL.get(image.mode, 3)
        if image.mode.startswith("I"):
            array = np.asarray(image).astype(np.uint16)[..., None]
            opacity = np.full_like(array, 0xFFFF)
            array = np.repeat(array, 3, axis=-1) if count > 2 else array
            return array if count % 2 else np.concatenate([array, opacity], axis=-1)
        if image.mode != _MODES[count]:
            image = image.convert(_MODES[count])
        # Pillow's own way to an array takes three times as long for small images.
        array = np.frombuffer(image.tobytes(), np.uint8)
    except (OSError, ValueError, SyntaxError, IndexError, EOFError) as error:
        raise _corrupt(who, contents, str(error)) from None
    columns, rows = image.size
    return array.reshape(rows, columns, count)


def _in_type(array: np.ndarray[Any, Any], dtype: DTypeLike, is_png: bool = False) -> Tensor:
    wanted = as_dtype(dtype).name
    if wanted == "uint8" and array.dtype == np.uint16:
        array = (array >> 8).astype(np.uint8)
    elif wanted == "uint16" and array.dtype == np.uint8:
        array = array.astype(np.uint16) * (257 if is_png else 256)  # as TensorFlow
    made = Tensor(np.ascontiguousarray(array), copy=False)
    return made if made._dtype == wanted else convert_image_dtype(made, wanted)


def _decoded(
    contents: Any, channels: int, dtype: DTypeLike, who: str, formats: tuple[str, ...] = _USUAL
) -> Tensor:
    found = _one_file(contents, who)
    data = found.numpy()
    is_png = data.startswith(_PNG)
    plain = plain_pixels(data, channels) if formats == _USUAL else None
    if plain is not None:
        return plain if as_dtype(dtype).name == "uint8" else _in_type(plain._view(), dtype, is_png)
    array = _deep_pixels(data, channels) if formats == _USUAL and channels in (0, *_MODES) else None
    if array is None:
        array = _pixels(_opened(found, who, formats), channels, who, found)
    return _in_type(array, dtype, is_png)


def _native_decode(decode: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    given = inspect.signature(decode).bind(None, *args, **kwargs)
    given.apply_defaults()
    more = given.arguments
    if as_dtype(more.get("dtype", uint8)).name != "uint8" or more.get("ratio", 1) != 1:
        return None
    return _core.HostFunction.decode_image(more["channels"] or 0, _most_pixels())


@on_host(_native_decode)
def decode_jpeg(
    contents: Any, channels: int = 0, ratio: int = 1, fancy_upscaling: bool = True,
    try_recover_truncated: bool = False, acceptable_fraction: float = 1.0, dct_method: str = "",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Decode a JPEG file; PNG, GIF and BMP files are decoded as well.

    Colors differ from TensorFlow's by a few of 255, whose faster cosine transform is coarser.

    Args:
        contents: The bytes of a file (`tf.io.read_file`), a string scalar.
        channels: 1 (grayscale), 3 (RGB), or 0: as in the file.
        ratio: The divisor of the sizes: 1, 2, 4 or 8.
        fancy_upscaling: Must be True.
        try_recover_truncated: Must be False.
        acceptable_fraction: Must be 1.
        dct_method: Ignored.
        name: Ignored.

    Returns:
        A uint8 tensor [height, width, channels].

    Raises:
        InvalidArgumentError: The bytes are not such an image, or end early.
        ImportError: Pillow is not installed.

    Example:
        >>> import samegrad as tf
        >>> image = tf.zeros([8, 4, 3], tf.uint8)
        >>> tf.image.decode_jpeg(tf.io.encode_jpeg(image)).shape
        (8, 4, 3)
    """
    who = "tf.image.decode_jpeg"
    if ratio not in (1, 2, 4, 8):
        raise ValueError(f"[{who}] ratio must be 1, 2, 4 or 8: got {shown(ratio)}.")
    if not fancy_upscaling or try_recover_truncated or acceptable_fraction != 1:
        raise NotImplementedError(
            f"[{who}] a file is read as a whole and in full quality: got fancy_upscaling="
            f"{fancy_upscaling}, try_recover_truncated={try_recover_truncated}, "
            f"acceptable_fraction={acceptable_fraction}; leave them out."
        )
    if ratio == 1:
        return _decoded(contents, channels, uint8, who)
    found = _one_file(contents, who)
    image = _opened(found, who, _USUAL)
    mode = "L" if channels in (1, 2) else None
    image.draft(mode, (-(-image.width // ratio), -(-image.height // ratio)))
    return _in_type(_pixels(image, channels, who, found), uint8)


@on_host(_native_decode)
def decode_png(
    contents: Any, channels: int = 0, dtype: DTypeLike = uint8, name: str | None = None
) -> Tensor:
    """Decode a PNG file; JPEG, GIF and BMP files are decoded as well.

    Args:
        contents: The bytes of a file (`tf.io.read_file`), a string scalar.
        channels: 1 (grayscale), 2 (with alpha), 3 (RGB), 4 (with alpha), or 0: as in the file.
        dtype: uint8 or uint16.
        name: Ignored.

    Returns:
        A tensor [height, width, channels], in the dtype `dtype`.

    Raises:
        InvalidArgumentError: The bytes are not such an image, or end early.
        ImportError: Pillow is not installed.

    Example:
        >>> import samegrad as tf
        >>> image = tf.constant([[[1], [2]], [[3], [4]]], tf.uint8)
        >>> tf.io.decode_png(tf.io.encode_png(image)).numpy().ravel()
        array([1, 2, 3, 4], dtype=uint8)
    """
    who = "tf.image.decode_png"
    if as_dtype(dtype).name not in ("uint8", "uint16"):
        raise ValueError(f"[{who}] dtype must be uint8 or uint16: got {as_dtype(dtype).name}.")
    return _decoded(contents, channels, dtype, who)


@on_host()
def decode_bmp(contents: Any, channels: int = 0, name: str | None = None) -> Tensor:
    """Decode a BMP file.

    Args:
        contents: The bytes of a file (`tf.io.read_file`), a string scalar.
        channels: 1 (grayscale), 3 (RGB), 4 (with alpha), or 0: as in the file.
        name: Ignored.

    Returns:
        A uint8 tensor [height, width, channels].

    Raises:
        InvalidArgumentError: The bytes are not such an image, or end early.
        ImportError: Pillow is not installed.

    Example:
        >>> import samegrad as tf
        >>> tf.io.decode_bmp(b"no image")
        Traceback (most recent call last):
        samegrad.errors.InvalidArgumentError: [tf.image.decode_bmp] an image of this kind is ...
    """
    return _decoded(contents, channels, uint8, "tf.image.decode_bmp", ("BMP",))


@on_host()
def decode_gif(contents: Any, name: str | None = None) -> Tensor:
    """Decode all frames of a GIF file.

    Args:
        contents: The bytes of a file (`tf.io.read_file`), a string scalar.
        name: Ignored.

    Returns:
        A uint8 tensor [frames, height, width, 3].

    Raises:
        InvalidArgumentError: The bytes are not such an image, or end early.
        ImportError: Pillow is not installed.

    Example:
        >>> import samegrad as tf
        >>> tf.io.decode_gif(b"no image")
        Traceback (most recent call last):
        samegrad.errors.InvalidArgumentError: [tf.image.decode_gif] an image of this kind is ...
    """
    who = "tf.image.decode_gif"
    found = _one_file(contents, who)
    return _in_type(_frames(_opened(found, who, ("GIF",)), who, found), uint8)


def _frames(image: Any, who: str, contents: Text) -> np.ndarray[Any, Any]:
    frames = _pillow(who).ImageSequence.Iterator(image)
    try:
        return np.stack([np.asarray(frame.convert("RGB")) for frame in frames])
    except (OSError, ValueError, SyntaxError, IndexError, EOFError) as error:
        raise _corrupt(who, contents, str(error)) from None


@on_host(_native_decode)
def decode_image(
    contents: Any, channels: int | None = None, dtype: DTypeLike = uint8,
    name: str | None = None, expand_animations: bool = True,
) -> Tensor:  # fmt: skip
    """Decode a JPEG, PNG, GIF or BMP file.

    Args:
        contents: The bytes of a file (`tf.io.read_file`), a string scalar.
        channels: The number of channels, as in `decode_png`; None and 0: as in the file.
        dtype: uint8, uint16, or a dtype of floats, whose values are in [0, 1].
        name: Ignored.
        expand_animations: Return all frames of GIF files along a new first axis; False: the first
            one.

    Returns:
        A tensor [height, width, channels]; for GIF files [frames, height, width, 3].

    Raises:
        InvalidArgumentError: The bytes are not such an image, or end early.
        ImportError: Pillow is not installed.

    Example:
        >>> import samegrad as tf
        >>> image = tf.constant([[[0], [255]]], tf.uint8)
        >>> tf.image.decode_image(tf.io.encode_png(image), dtype=tf.float32).numpy().ravel()
        array([0., 1.], dtype=float32)
    """
    who = "tf.image.decode_image"
    found = _one_file(contents, who)
    if not found.numpy().startswith(b"GIF"):
        return _decoded(found, channels or 0, dtype, who)
    if channels not in (None, 0, 3):
        raise ValueError(f"[{who}] GIF files have 3 channels: got channels={channels}.")
    frames = _frames(_opened(found, who, ("GIF",)), who, found)
    return _in_type(frames if expand_animations else frames[0], dtype)


def _written(image: Any, who: str, kinds: tuple[str, ...], **options: Any) -> Text:
    array = np.asarray(convert_to_tensor(image))
    if array.ndim != 3 or array.shape[-1] not in _MODES or array.dtype.name not in kinds:
        raise ValueError(
            f"[{who}] an image must be [rows, columns, channels] of {' or '.join(kinds)}: got "
            f"{array.dtype.name} of shape {array.shape}; see tf.image.convert_image_dtype."
        )
    flat = array[..., 0] if array.shape[-1] == 1 else array
    pillow, buffer = _pillow(who), io.BytesIO()
    try:
        pillow.Image.fromarray(flat).save(buffer, **options)
    except (TypeError, OSError, ValueError, SystemError) as error:
        raise ValueError(
            f"[{who}] the image cannot be written: got {array.dtype.name} of shape "
            f"{array.shape} ({error})."
        ) from None
    return of_bytes(buffer.getvalue())


def encode_jpeg(
    image: Any, format: str = "", quality: int = 95, progressive: bool = False,
    optimize_size: bool = False, chroma_downsampling: bool = True, density_unit: str = "in",
    x_density: int = 300, y_density: int = 300, xmp_metadata: Any = "", name: str | None = None,
) -> Text:  # fmt: skip
    r"""Encode an image as a JPEG file.

    Args:
        image: A uint8 tensor of shape [height, width, 1 or 3].
        format: Ignored: it follows from the channels.
        quality: The quality, 0 to 100.
        progressive: Encode it for a coarse display first.
        optimize_size: Spend more time for a smaller file.
        chroma_downsampling: Halve the resolution of the colors.
        density_unit: The unit of the densities: "in" or "cm".
        x_density: Pixels per unit along a row.
        y_density: Pixels per unit along a column.
        xmp_metadata: A string of metadata (XMP) for the file.
        name: Ignored.

    Returns:
        A string scalar, the bytes of the file.

    Raises:
        ValueError: The tensor is not such an image, or the unit is unknown.

    Example:
        >>> import samegrad as tf
        >>> tf.io.encode_jpeg(tf.zeros([2, 2, 3], tf.uint8)).numpy()[:2]
        b'\xff\xd8'
    """
    inches = {"in": 1.0, "cm": 2.54}.get(density_unit)
    if inches is None:
        raise ValueError(
            f"[tf.image.encode_jpeg] density_unit must be 'in' or 'cm': got {shown(density_unit)}."
        )
    about = text_of(xmp_metadata, "tf.image.encode_jpeg").numpy()
    return _written(
        image, "tf.image.encode_jpeg", ("uint8",), format="JPEG", quality=quality,
        progressive=progressive, optimize=optimize_size,
        subsampling=2 if chroma_downsampling else 0,
        dpi=(round(x_density * inches), round(y_density * inches)),
        **({"xmp": about} if about else {}),
    )  # fmt: skip


def encode_png(image: Any, compression: int = -1, name: str | None = None) -> Text:
    r"""Encode an image as a PNG file.

    Args:
        image: A uint8 tensor of shape [height, width, 1 to 4], or a uint16 one of [height, width,
            1].
        compression: The level of compression, 0 to 9; -1: that of the library.
        name: Ignored.

    Returns:
        A string scalar, the bytes of the file.

    Raises:
        ValueError: The tensor is not such an image.

    Example:
        >>> import samegrad as tf
        >>> tf.io.encode_png(tf.zeros([2, 2, 3], tf.uint8)).numpy()[:4]
        b'\x89PNG'
    """
    level = {} if compression < 0 else {"compress_level": compression}
    return _written(image, "tf.image.encode_png", ("uint8", "uint16"), format="PNG", **level)

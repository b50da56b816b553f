"""Programs on images; they run with TensorFlow and with samegrad alike."""

import base64
import json
import pathlib
import zlib

import numpy as np


def floats(rows=5, columns=4, channels=3, count=0):
    """Numbers from 0 to 1, each several times, some pixels grey."""
    shape = (rows, columns, channels) if not count else (count, rows, columns, channels)
    return ((np.arange(np.prod(shape)) * 37 % 101) / 100).astype(np.float32).reshape(shape)


def bytes_of(**sizes):
    return np.round(floats(**sizes) * 255).astype(np.uint8)


IMAGE = floats()
PIXELS = bytes_of()
LARGE = floats(rows=26, columns=22, count=2)
LIKE = np.clip(LARGE + 0.1 * np.sin(np.arange(LARGE.size).reshape(LARGE.shape)), 0, 1)
LIKE = LIKE.astype(np.float32)
BOXES = np.float32([[0.1, 0.2, 0.7, 0.8], [0, 0, 1, 1], [0.9, 0.1, 0.2, 1.3], [-0.2, 0, 0.5, 0.5]])
MANY = ((np.arange(80) * 37 % 101) / 100).astype(np.float32).reshape(20, 4)
ORDERED = np.concatenate(
    [np.minimum(MANY[:, :2], MANY[:, 2:]), np.maximum(MANY[:, :2], MANY[:, 2:])], axis=1
)
SCORES = ((np.arange(20) * 7 % 20) / 20).astype(np.float32)
FRAMES = np.float32([[[0.1, 0.1, 0.5, 0.6], [-0.1, 0.2, 0.3, 1.2]]] * 2)
NO_COLORS = None
CASES = {
    "ssim": lambda i: i.ssim(LARGE, LIKE, 1.0),
    "ssim_bytes": lambda i: i.ssim(
        bytes_of(rows=20, columns=20),
        bytes_of(rows=20, columns=20)[::-1].copy(),
        255,
        filter_size=7,
        filter_sigma=1.0,
        k1=0.02,
        k2=0.05,
    ),
    "ssim_scales": lambda i: i.ssim_multiscale(
        LARGE, LIKE, 1.0, power_factors=[0.2, 0.3, 0.5], filter_size=5
    ),
    "to yiq": lambda i: i.rgb_to_yiq(IMAGE),
    "from yiq": lambda i: i.yiq_to_rgb(LARGE.astype(np.float64)),
    "to yuv": lambda i: i.rgb_to_yuv(LARGE),
    "from yuv": lambda i: i.yuv_to_rgb(IMAGE[0]),
    "sobel": lambda i: i.sobel_edges(LARGE),
    "gradients down": lambda i: i.image_gradients(LARGE)[0],
    "gradients right": lambda i: i.image_gradients(LARGE)[1],
    "patches": lambda i: i.extract_patches(LARGE, [1, 3, 4, 1], [1, 5, 4, 1], [1, 2, 1, 1], "SAME"),
    "patches valid": lambda i: i.extract_patches(
        LARGE, [1, 2, 3, 1], [1, 3, 2, 1], [1, 1, 2, 1], "VALID"
    ),
    "cut boxes": lambda i: i.crop_and_resize(
        LARGE, BOXES, [0, 1, 1, 0], [7, 5], extrapolation_value=2.0
    ),
    "cut boxes nearest": lambda i: i.crop_and_resize(
        LARGE, BOXES, [0, 1, 1, 0], [4, 6], method="nearest"
    ),
    "cut boxes one": lambda i: i.crop_and_resize(LARGE, BOXES, [0, 1, 1, 0], [1, 1]),
    "cut boxes bytes": lambda i: i.crop_and_resize(bytes_of(count=1), BOXES[:2], [0, 0], [3, 3]),
    "suppressed": lambda i: i.non_max_suppression(MANY, SCORES, 9, 0.3),
    "suppressed scores": lambda i: i.non_max_suppression(MANY, SCORES, 20, 0.3, 0.5),
    "suppressed softly": lambda i: i.non_max_suppression_with_scores(
        MANY, SCORES, 12, 0.5, 0.2, 0.5
    )[1],
    "suppressed to a size": lambda i: i.non_max_suppression_padded(
        ORDERED, SCORES, 9, 0.3, 0.2, pad_to_max_output_size=True
    )[0],
    "suppressed in images": lambda i: i.non_max_suppression_padded(
        np.stack([ORDERED, ORDERED[::-1]]),
        np.stack([SCORES, SCORES]),
        9,
        0.3,
        pad_to_max_output_size=True,
    )[0],
    **{
        f"glimpse {centered} {normalized}": lambda i, c=centered, n=normalized: i.extract_glimpse(
            LARGE, [3, 4], [[0.4, -0.3], [1.2, 0.7]], centered=c, normalized=n, noise="zero"
        )
        for centered in (False, True)
        for normalized in (False, True)
    },
    "frames": lambda i: i.draw_bounding_boxes(LARGE, FRAMES, NO_COLORS),
    "frames coloured": lambda i: i.draw_bounding_boxes(LARGE, FRAMES, [[1.0, 0, 0], [0, 1.0, 0.5]]),
    "flip_left_right": lambda i: i.flip_left_right(IMAGE),
    "flip_left_right_batch": lambda i: i.flip_left_right(floats(count=2)),
    "flip_up_down": lambda i: i.flip_up_down(PIXELS),
    "transpose": lambda i: i.transpose(PIXELS),
    **{f"rot90 {k}": lambda i, k=k: i.rot90(PIXELS, k) for k in (-1, 0, 1, 2, 3, 5)},
    "central_crop": lambda i: i.central_crop(floats(rows=7, columns=10), 0.5),
    "central_crop_third": lambda i: i.central_crop(floats(rows=7, columns=10), 0.33),
    "crop": lambda i: i.crop_to_bounding_box(PIXELS, 1, 2, 3, 2),
    "pad": lambda i: i.pad_to_bounding_box(PIXELS, 1, 2, 7, 9),
    "crop_or_pad larger": lambda i: i.resize_with_crop_or_pad(PIXELS, 8, 7),
    "crop_or_pad smaller": lambda i: i.resize_with_crop_or_pad(PIXELS, 2, 3),
    "crop_or_pad both": lambda i: i.resize_with_crop_or_pad(PIXELS, 2, 9),
    "crop_or_pad odd": lambda i: i.resize_with_crop_or_pad(floats(rows=6, columns=3), 3, 6),
    "with_pad wide": lambda i: i.resize_with_pad(IMAGE, 6, 11),
    "with_pad high": lambda i: i.resize_with_pad(IMAGE, 9, 3),
    "with_pad nearest": lambda i: i.resize_with_pad(PIXELS, 7, 4, method="nearest"),
    "grayscale": lambda i: i.rgb_to_grayscale(IMAGE),
    "grayscale_bytes": lambda i: i.rgb_to_grayscale(PIXELS),
    "colours_of_grey": lambda i: i.grayscale_to_rgb(bytes_of(channels=1)),
    "to_hsv": lambda i: i.rgb_to_hsv(IMAGE),
    "from_hsv": lambda i: i.hsv_to_rgb(IMAGE),
    "brightness": lambda i: i.adjust_brightness(IMAGE, 0.3),
    "brightness_bytes": lambda i: i.adjust_brightness(PIXELS, 0.3),
    "darkness_bytes": lambda i: i.adjust_brightness(PIXELS, -0.3),
    "contrast": lambda i: i.adjust_contrast(IMAGE, 1.7),
    "contrast_bytes": lambda i: i.adjust_contrast(PIXELS, 0.4),
    "contrast_batch": lambda i: i.adjust_contrast(floats(count=2), 1.7),
    "saturation": lambda i: i.adjust_saturation(IMAGE, 0.5),
    "saturation_more": lambda i: i.adjust_saturation(IMAGE, 3.0),
    "saturation_bytes": lambda i: i.adjust_saturation(PIXELS, 1.5),
    "hue": lambda i: i.adjust_hue(IMAGE, 0.3),
    "hue_back": lambda i: i.adjust_hue(IMAGE, -0.7),
    "hue_bytes": lambda i: i.adjust_hue(PIXELS, 0.1),
    "gamma": lambda i: i.adjust_gamma(IMAGE, 0.5, gain=0.8),
    "gamma_bytes": lambda i: i.adjust_gamma(PIXELS, 2.0),
    "standardized": lambda i: i.per_image_standardization(IMAGE),
    "standardized_bytes": lambda i: i.per_image_standardization(PIXELS),
    "standardized_constant": lambda i: i.per_image_standardization(np.ones((2, 2, 1), np.float32)),
    "standardized_batch": lambda i: i.per_image_standardization(floats(count=2)),
    "psnr": lambda i: i.psnr(IMAGE, IMAGE[::-1], max_val=1.0),
    "psnr_bytes": lambda i: i.psnr(PIXELS, PIXELS[::-1], max_val=255),
    "psnr_batch": lambda i: i.psnr(floats(count=2), floats(count=2)[:, ::-1], max_val=2.0),
    "total_variation": lambda i: i.total_variation(floats(count=2)),
    "uint8 to float32": lambda i: i.convert_image_dtype(PIXELS, "float32"),
    "float32 to uint8": lambda i: i.convert_image_dtype(IMAGE, "uint8"),
    "float32 to uint8 saturated": lambda i: i.convert_image_dtype(
        IMAGE * 3 - 1, "uint8", saturate=True
    ),
    "float32 to int32 saturated": lambda i: i.convert_image_dtype(
        IMAGE * 3 - 1, "int32", saturate=True
    ),
    "uint8 to uint16": lambda i: i.convert_image_dtype(PIXELS, "uint16"),
    "uint16 to uint8": lambda i: i.convert_image_dtype(PIXELS.astype(np.uint16) * 200, "uint8"),
    "uint8 to int16": lambda i: i.convert_image_dtype(PIXELS, "int16"),
    "int16 to uint8 saturated": lambda i: i.convert_image_dtype(
        PIXELS.astype(np.int16) * 200 - 9000, "uint8", saturate=True
    ),
    "float32 to float64": lambda i: i.convert_image_dtype(IMAGE, "float64"),
    "uint8 to float64": lambda i: i.convert_image_dtype(PIXELS, "float64"),
}


FILES = pathlib.Path(__file__).with_name("image_files.json")


def files():
    """The files that Pillow wrote, by their names."""
    stored = json.loads(FILES.read_text())
    return {name: base64.b64decode(content) for name, content in stored.items()}


# Names of files, and what becomes of their bytes.
DECODED = {
    "rgb.png": lambda i, data: i.decode_png(data),
    "rgb.png as grey.jpg": lambda i, data: i.decode_jpeg(data, channels=3),
    "grey.png": lambda i, data: i.decode_png(data),
    "grey.png colours": lambda i, data: i.decode_png(data, channels=3),
    "grey.png opacity": lambda i, data: i.decode_png(data, channels=4),
    "alpha.png": lambda i, data: i.decode_png(data),
    "alpha.png colours": lambda i, data: i.decode_png(data, channels=3),
    "grey_alpha.png": lambda i, data: i.decode_png(data),
    "palette.png": lambda i, data: i.decode_png(data),
    "deep.png": lambda i, data: i.decode_png(data, dtype="uint16"),
    "deep.png 8": lambda i, data: i.decode_png(data),
    "rgb.png 16": lambda i, data: i.decode_png(data, dtype="uint16"),
    "rgb.bmp": lambda i, data: i.decode_bmp(data),
    "rgb.bmp image": lambda i, data: i.decode_image(data, channels=3, dtype="float32"),
    "still.gif": lambda i, data: i.decode_gif(data),
    "still.gif image": lambda i, data: i.decode_image(data),
    "still.gif picture": lambda i, data: i.decode_image(data, expand_animations=False),
    "rgb.png image": lambda i, data: i.decode_image(data),
    "grey.png image": lambda i, data: i.decode_image(data, channels=3, dtype="float32"),
    "rgb.jpg": lambda i, data: i.decode_jpeg(data),
    "rgb.jpg grey": lambda i, data: i.decode_jpeg(data, channels=1),
    "rgb.jpg image": lambda i, data: i.decode_image(data, channels=3),
    "grey.jpg": lambda i, data: i.decode_jpeg(data),
    "grey.jpg colours": lambda i, data: i.decode_jpeg(data, channels=3),
}


def packed(array):
    """An array as JSON holds it."""
    array = np.asarray(array)
    data = base64.b64encode(zlib.compress(array.tobytes(), 9)).decode()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def unpacked(entry):
    data = zlib.decompress(base64.b64decode(entry["data"]))
    return np.frombuffer(data, entry["dtype"]).reshape(entry["shape"])


class OfTensors:
    """TensorFlow's functions of images, some of which take no arrays."""

    def __init__(self, tf):
        self._tf = tf

    def __getattr__(self, name):
        function = getattr(self._tf.image, name)
        return lambda image, *args, **more: function(self._tf.constant(image), *args, **more)


def record(tf):
    """What each program gives, and what the files are decoded to."""
    stored = files()
    images = OfTensors(tf)
    cases = {name: packed(program(images).numpy()) for name, program in CASES.items()}
    decoded = {
        name: packed(program(tf.io, stored[name.split()[0]]).numpy())
        for name, program in DECODED.items()
    }
    return {"cases": cases, "decoded": decoded}

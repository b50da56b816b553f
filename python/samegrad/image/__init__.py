"""Images as tensors: their files, sizes, places and colours."""

from typing import TYPE_CHECKING

from samegrad._surface.boundary import guard
from samegrad._surface.missing_names import getattr_of
from samegrad.image._boxes import (
    crop_and_resize,
    draw_bounding_boxes,
    extract_patches,
    non_max_suppression,
    non_max_suppression_with_scores,
)
from samegrad.image._colours import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    grayscale_to_rgb,
    hsv_to_rgb,
    per_image_standardization,
    psnr,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
    rgb_to_grayscale,
    rgb_to_hsv,
    total_variation,
)
from samegrad.image._combined_boxes import combined_non_max_suppression
from samegrad.image._convert import convert_image_dtype
from samegrad.image._decode import (
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    encode_jpeg,
    encode_png,
)
from samegrad.image._distorted import (
    sample_distorted_bounding_box,
    stateless_sample_distorted_bounding_box,
)
from samegrad.image._glimpse import extract_glimpse
from samegrad.image._places import (
    central_crop,
    crop_to_bounding_box,
    flip_left_right,
    flip_up_down,
    pad_to_bounding_box,
    random_crop,
    random_flip_left_right,
    random_flip_up_down,
    resize_with_crop_or_pad,
    resize_with_pad,
    rot90,
    transpose,
)
from samegrad.image._quality import (
    image_gradients,
    sobel_edges,
    ssim,
    ssim_multiscale,
)
from samegrad.image._resize import ResizeMethod, resize
from samegrad.image._stateless import (
    stateless_random_brightness,
    stateless_random_contrast,
    stateless_random_crop,
    stateless_random_flip_left_right,
    stateless_random_flip_up_down,
    stateless_random_hue,
    stateless_random_saturation,
)
from samegrad.image._suppression import non_max_suppression_padded
from samegrad.image._yuv import rgb_to_yiq, rgb_to_yuv, yiq_to_rgb, yuv_to_rgb

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "adjust_gamma", "adjust_hue",
    "adjust_saturation", "central_crop", "combined_non_max_suppression", "convert_image_dtype",
    "crop_and_resize", "crop_to_bounding_box", "decode_bmp", "decode_gif", "decode_image",
    "decode_jpeg", "decode_png", "draw_bounding_boxes", "encode_jpeg", "encode_png",
    "extract_glimpse", "extract_patches", "flip_left_right", "flip_up_down", "grayscale_to_rgb",
    "hsv_to_rgb", "image_gradients", "non_max_suppression", "non_max_suppression_padded",
    "non_max_suppression_with_scores",
    "pad_to_bounding_box", "per_image_standardization", "psnr", "random_brightness",
    "random_contrast", "random_crop", "random_flip_left_right", "random_flip_up_down", "random_hue",
    "random_saturation", "resize", "resize_with_crop_or_pad", "resize_with_pad", "rgb_to_grayscale",
    "rgb_to_hsv", "rgb_to_yiq", "rgb_to_yuv", "rot90", "sample_distorted_bounding_box",
    "sobel_edges", "ssim", "ssim_multiscale", "stateless_random_brightness",
    "stateless_random_contrast", "stateless_random_crop", "stateless_random_flip_left_right",
    "stateless_random_flip_up_down", "stateless_random_hue", "stateless_random_saturation",
    "stateless_sample_distorted_bounding_box", "total_variation", "transpose", "yiq_to_rgb",
    "yuv_to_rgb",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__ = getattr_of(__name__)
guard(__name__)

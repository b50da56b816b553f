"""keras.backend.image: colours, sizes, filters, and images moved and bent."""

from __future__ import annotations

from samegrad._keras.image.colours import hsv_to_rgb, rgb_to_grayscale, rgb_to_hsv
from samegrad._keras.image.filters import gaussian_blur, sobel_edges
from samegrad._keras.image.sampling import map_coordinates
from samegrad._keras.image.sizes import resize, scale_and_translate
from samegrad._keras.image.transforms import (
    affine_transform,
    compute_homography_matrix,
    elastic_transform,
    perspective_transform,
)

__all__ = [
    "affine_transform", "compute_homography_matrix", "elastic_transform", "gaussian_blur",
    "hsv_to_rgb", "map_coordinates", "perspective_transform", "resize", "rgb_to_grayscale",
    "rgb_to_hsv", "scale_and_translate", "sobel_edges",
]  # fmt: skip

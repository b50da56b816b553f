"""keras.backend.image: colours, sizes, filters, and places between pixels."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest
from backend_checks import check_gradients, same_when_traced

import samegrad as tf
from samegrad._keras import image
from samegrad._keras.image.filters import smoothed

RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(size=(2, 5, 6, 3))
SHIFT = np.array([1.0, 0.0, 1.5, 0.0, 1.0, -1.0, 0.0, 0.0])


def _first(x: Any) -> Any:
    return np.moveaxis(np.asarray(x), -1, -3)


def test_hues_are_those_of_python_and_lead_back() -> None:
    grey = np.repeat(IMAGES[..., :1], 3, -1)
    for x in (IMAGES, grey, np.zeros_like(IMAGES)):
        wanted = np.apply_along_axis(lambda v: colorsys.rgb_to_hsv(*v), -1, x)
        hsv = image.rgb_to_hsv(x, "channels_last")
        np.testing.assert_allclose(hsv, wanted, atol=1e-12)
        np.testing.assert_allclose(image.hsv_to_rgb(hsv, "channels_last"), x, atol=1e-12)
    first = image.rgb_to_hsv(_first(IMAGES[0]), "channels_first")
    np.testing.assert_allclose(first, _first(image.rgb_to_hsv(IMAGES[0], "channels_last")))
    check_gradients(image.rgb_to_hsv, IMAGES[:1, :2, :2])
    same_when_traced(image.hsv_to_rgb, IMAGES)
    with pytest.raises(ValueError, match="expected float dtype"):
        image.rgb_to_hsv(np.ones((2, 2, 3), "uint8"))


def test_grey_is_a_weighted_mean() -> None:
    wanted = (IMAGES * [0.2989, 0.587, 0.114]).sum(-1, keepdims=True)
    np.testing.assert_allclose(image.rgb_to_grayscale(IMAGES, "channels_last"), wanted)
    whole = image.rgb_to_grayscale((IMAGES * 255).astype("uint8"), "channels_last")
    assert whole.dtype == "uint8"
    with pytest.raises(ValueError, match="Invalid channel size"):
        image.rgb_to_grayscale(np.ones((2, 2, 2)), "channels_last")


def test_images_are_cut_or_filled_up_to_the_new_ratio() -> None:
    cut = image.resize(IMAGES, (4, 4), "nearest", crop_to_aspect_ratio=True)
    np.testing.assert_array_equal(cut, image.resize(IMAGES[:, :, :5], (4, 4), "nearest"))
    filled = image.resize(
        IMAGES[:, :4], (6, 6), "nearest", pad_to_aspect_ratio=True, fill_value=7.0
    )
    np.testing.assert_array_equal(filled.numpy()[:, 1:5], IMAGES[:, :4])
    assert np.all(filled.numpy()[:, [0, 5]] == 7.0)
    first = image.resize(_first(IMAGES), (3, 4), data_format="channels_first")
    np.testing.assert_allclose(first, _first(image.resize(IMAGES, (3, 4))))
    for arguments in ({"interpolation": "none"}, {"fill_mode": "wrap"}):
        with pytest.raises(ValueError, match="Invalid value"):
            image.resize(IMAGES, (3, 4), **arguments)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
def test_places_outside_are_read_as_the_image_continues(mode: str, order: int) -> None:
    kind = {"nearest": "edge", "mirror": "reflect", "reflect": "symmetric"}.get(mode, mode)
    more = {"constant_values": 5.0} if mode == "constant" else {}
    x = RNG.normal(size=7)
    padded = np.pad(x, 20, mode=kind, **more)
    places = RNG.uniform(-12, 18, size=40)
    near = np.round(places).astype(int) + 20
    low, share = np.floor(places).astype(int) + 20, places - np.floor(places)
    linear = padded[low] * (1 - share) + padded[low + 1] * share
    wanted = padded[near] if order == 0 else linear
    found = image.map_coordinates(x, places[None], order, mode, 5.0)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    shifted = np.array([1, 0, -3.3, 0, 1, 0, 0, 0])
    moved = image.affine_transform(
        x[None, :, None], shifted, "bilinear", mode, 5.0, "channels_last"
    )
    wanted = image.map_coordinates(x, np.arange(7)[None] - 3.3, 1, mode, 5.0)
    np.testing.assert_allclose(moved.numpy()[0, :, 0], wanted, rtol=1e-5, atol=1e-5)


def test_several_axes_are_read_at_once_and_whole_numbers_rounded() -> None:
    x = np.arange(20).reshape(4, 5)
    places = np.array([[0.5, 2.0, 1.25], [1.0, 3.5, 0.0]])
    found = image.map_coordinates(x, places, 1)
    assert found.dtype == "int64"
    np.testing.assert_array_equal(found, np.round(places[0] * 5 + places[1]))
    check_gradients(lambda a, p: image.map_coordinates(a, p, 1), x + 0.5, places + 0.1)
    with pytest.raises(ValueError, match="First dim of `coordinates`"):
        image.map_coordinates(x, places[:1], 1)
    with pytest.raises(NotImplementedError, match="order<=1"):
        image.map_coordinates(x, places, 2)


def test_affine_transforms_move_pixels() -> None:
    same = np.array([1.0, 0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(image.affine_transform(IMAGES, same), IMAGES)
    moved = image.affine_transform(IMAGES, SHIFT).numpy()
    np.testing.assert_allclose(moved[:, 1:, :4], (IMAGES[:, :-1, 1:5] + IMAGES[:, :-1, 2:]) / 2)
    assert np.all(moved[:, 0] == 0)
    first = image.affine_transform(_first(IMAGES[0]), SHIFT, data_format="channels_first")
    np.testing.assert_allclose(first, _first(moved[0]))
    several = np.stack([same, SHIFT])
    both = image.affine_transform(IMAGES, several).numpy()
    np.testing.assert_allclose(both[1], moved[1])
    same_when_traced(image.affine_transform, IMAGES, several)


def test_a_perspective_takes_the_end_points_to_the_start_points() -> None:
    start = np.array([[[0.0, 0.0], [0.0, 5.0], [4.0, 0.0], [4.0, 5.0]]])
    end = start + RNG.normal(size=start.shape) * 0.3
    a0, a1, a2, b0, b1, b2, c0, c1 = image.compute_homography_matrix(start, end).numpy()[0]
    for (u, v), (x, y) in zip(start[0], end[0], strict=True):
        k = c0 * x + c1 * y + 1
        np.testing.assert_allclose(
            [(a0 * x + a1 * y + a2) / k, (b0 * x + b1 * y + b2) / k], [u, v], atol=1e-12
        )
    same = image.perspective_transform(IMAGES, start[0], start[0])
    np.testing.assert_allclose(same, IMAGES, atol=1e-5)
    points = (np.repeat(start, 2, 0), np.repeat(end, 2, 0))
    same_when_traced(image.perspective_transform, IMAGES, *points, tolerance=1e-4)
    with pytest.raises(ValueError, match="expected \\(4,2\\)"):
        image.perspective_transform(IMAGES, start[:, :3], end[:, :3])


def test_blurring_keeps_what_is_even_and_edges_are_its_slopes() -> None:
    even = np.ones((1, 9, 9, 2))
    blurred = image.gaussian_blur(even, (3, 5), (1.0, 2.0), "channels_last").numpy()
    np.testing.assert_allclose(blurred[:, 2:-2, 1:-1], 1.0)
    point = np.zeros((1, 9, 9, 1))
    point[0, 4, 4] = 1.0
    spread = image.gaussian_blur(point, (3, 3), (1.0, 1.0), "channels_last").numpy()[0, 3:6, 3:6, 0]
    bell = np.exp([-0.5, 0, -0.5]) / np.exp([-0.5, 0, -0.5]).sum()
    np.testing.assert_allclose(spread, np.outer(bell, bell))
    slope = np.arange(6.0)[None, :, None, None] + 3 * np.arange(7.0)[None, None, :, None]
    edges = image.sobel_edges(slope, "channels_last").numpy()
    assert edges.shape == (1, 6, 7, 1, 2)
    np.testing.assert_allclose(edges[0, 1:-1, 1:-1, 0], np.broadcast_to([8.0, 24.0], (4, 5, 2)))


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3", "lanczos5"])
def test_scaling_by_one_keeps_images_and_moves_are_whole_pixels(method: str) -> None:
    one, none = np.ones(2), np.zeros(2)
    found = image.scale_and_translate(IMAGES, IMAGES.shape, one, none, (1, 2), method)
    np.testing.assert_allclose(found, IMAGES, atol=1e-6)
    moved = image.scale_and_translate(IMAGES, IMAGES.shape, one, one, (1, 2), method).numpy()
    np.testing.assert_allclose(moved[:, 1:, 1:], IMAGES[:, :-1, :-1], atol=1e-6)
    wide = image.scale_and_translate(IMAGES, (2, 5, 12, 3), [2.0], [0.0], (2,), method)
    assert wide.shape == (2, 5, 12, 3)
    check_gradients(
        lambda x: image.scale_and_translate(x, (1, 2, 4, 3), [0.7], [0.2], (2,), method),
        IMAGES[:1, :2, :3],
    )


def test_smoothing_is_blurring_along_one_axis_after_the_other_traced_too() -> None:
    sigma = tf.constant(0.9, "float64")
    wanted = image.gaussian_blur(IMAGES, (5, 5), (0.9, 0.9), "channels_last")
    for size in (5, 9):  # a wider window has no weights outside
        np.testing.assert_allclose(smoothed(tf.constant(IMAGES), sigma, size), wanted)
    traced = tf.function(lambda x, s: smoothed(x, s, 9))
    np.testing.assert_allclose(traced(IMAGES, sigma), wanted)

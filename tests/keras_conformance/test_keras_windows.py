"""keras.backend.nn: convolutions, pooling, and patches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backend_checks import check_gradients, same_when_traced

from samegrad._keras import nn

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(2, 5, 6, 3))
KERNEL = RNG.normal(size=(2, 3, 3, 4))


def _first(x: Any) -> Any:
    return np.moveaxis(np.asarray(x), -1, 1)


def _convolved(x: Any, kernel: Any, stride: int) -> Any:
    rows = range(0, x.shape[1] - kernel.shape[0] + 1, stride)
    columns = range(0, x.shape[2] - kernel.shape[1] + 1, stride)
    windows = [
        [x[:, i : i + kernel.shape[0], j : j + kernel.shape[1]] for j in columns] for i in rows
    ]
    return np.einsum("ijnabc,abcd->nijd", np.array(windows), kernel)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_is_the_product_of_windows_and_kernel(stride: int) -> None:
    found = nn.conv(IMAGES, KERNEL, stride, "valid", "channels_last")
    np.testing.assert_allclose(found, _convolved(IMAGES, KERNEL, stride), rtol=1e-10)
    first = nn.conv(_first(IMAGES), KERNEL, stride, "valid", "channels_first")
    np.testing.assert_allclose(first, _first(found), rtol=1e-10)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("padding", ["valid", "same"])
def test_channels_first_are_channels_last_turned(dimensions: int, padding: str) -> None:
    sizes = (5, 6, 7)[:dimensions]
    x = RNG.normal(size=(2, *sizes, 4))
    kernel = RNG.normal(size=(*(2, 3, 2)[:dimensions], 2, 6))  # two groups
    turned = RNG.normal(size=(*(2, 3, 2)[:dimensions], 5, 4))
    cases = [
        (lambda x, f: nn.conv(x, kernel, 1, padding, f, 2), x),
        (lambda x, f: nn.conv_transpose(x, turned, 2, padding, None, f), x),
        (lambda x, f: nn.max_pool(x, 2, 2, padding, f), x),
        (lambda x, f: nn.average_pool(x, 2, None, padding, f), x),
        (lambda x, f: nn.adaptive_average_pool(x, 2, f), x),
        (lambda x, f: nn.adaptive_max_pool(x, 2, f), x),
    ]
    for function, given in cases:
        last = function(given, "channels_last")
        first = function(_first(given), "channels_first")
        np.testing.assert_allclose(np.asarray(first), _first(last), rtol=1e-12)


def test_windows_with_any_number_of_images_are_those_of_eager_code() -> None:
    turned = RNG.normal(size=(2, 3, 4, 3))
    for function in (
        lambda x: nn.conv(x, KERNEL, 2, "same", "channels_first"),
        lambda x: nn.conv_transpose(x, turned, 2, "valid", None, "channels_first"),
        lambda x: nn.depthwise_conv(x, KERNEL, 1, "same", "channels_first"),
        lambda x: nn.max_pool(x, (2, 3), 1, "same", "channels_first"),
        lambda x: nn.unfold(x, (2, 3), 1, 1, 2),
    ):
        same_when_traced(function, _first(IMAGES))


def test_a_depthwise_convolution_has_filters_for_each_channel() -> None:
    found = nn.depthwise_conv(IMAGES, KERNEL, 1, "valid", "channels_last").numpy()
    for c in range(3):
        alone = _convolved(IMAGES[..., c : c + 1], KERNEL[:, :, c : c + 1], 1)
        np.testing.assert_allclose(found[..., 4 * c : 4 * c + 4], alone, rtol=1e-10)
    point = RNG.normal(size=(1, 1, 12, 2))
    mixed = nn.separable_conv(IMAGES, KERNEL, point, 1, "valid", "channels_last")
    np.testing.assert_allclose(mixed, found @ point[0, 0], rtol=1e-10)
    signal = nn.depthwise_conv(IMAGES[:, 0], KERNEL[0], 2, "same", "channels_last", 1)
    assert signal.shape == (2, 3, 12)


def test_a_convolution_without_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="window"):
        nn.conv(np.ones((1, 2, 2, 1)), np.ones((3, 3, 1, 1)), data_format="channels_last")
    with pytest.raises(ValueError, match="rank must be 3"):
        nn.depthwise_conv(np.ones((1, 2, 2, 2, 1)), np.ones((1, 1, 1, 1, 1)))


def test_windows_of_more_than_256_elements_are_pooled_along_one_axis_after_the_other() -> None:
    x = RNG.normal(size=(1, 40, 41, 2))
    found = nn.max_pool(x, (20, 21), (20, 20), "valid", "channels_last").numpy()
    assert found.shape == (1, 2, 2, 2)
    np.testing.assert_array_equal(found[0, 1, 1], x[0, 20:40, 20:41].max((0, 1)))


def test_folding_adds_up_what_unfolding_spread() -> None:
    x = RNG.normal(size=(2, 3, 5, 6))
    windows = nn.unfold(x, (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    assert windows.shape == (2, 18, 6)
    np.testing.assert_array_equal(windows[:, 0, 1], padded[:, 0, 0, 1])
    np.testing.assert_array_equal(windows[:, 17, 2], padded[:, 2, 3, 4])
    other = RNG.normal(size=windows.shape)
    folded = nn.fold(other, (5, 6), (2, 3), (1, 2), (1, 0), (2, 1)).numpy()
    assert np.isclose((windows * other).sum(), (x * folded).sum())  # each is the other's transpose
    same_when_traced(lambda y: nn.fold(y, (5, 6), (2, 3), (1, 2), (1, 0), (2, 1)), other)
    check_gradients(lambda y: nn.fold(y, (5, 6), (2, 3), (1, 2), (1, 0), (2, 1)), other[:1])


def test_depth_and_space_change_places_and_back() -> None:
    x = RNG.normal(size=(2, 8, 3, 5))
    wide = nn.depth_to_space(x, 2, "channels_first")
    assert wide.shape == (2, 2, 6, 10)
    np.testing.assert_array_equal(nn.space_to_depth(wide, 2, "channels_first"), x)

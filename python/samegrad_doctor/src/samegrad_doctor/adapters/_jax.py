"""Steps of JAX: replicas one after the other, or over devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from samegrad_doctor._layouts import StepError, rows_of
from samegrad_doctor._tree import map_structure
from samegrad_doctor._updates import Outcome, Step


def jax_step(
    gradient: Callable[[Any, Any], Any], parameters: Any, join: Callable[[list[Any]], Any]
) -> Step:
    """Create a JAX step that runs the replicas of pmap or shard_map one after the other.

    Args:
        gradient: gradient(parameters, batch) of a replica's loss: `jax.grad(loss)`, jitted or not.
        parameters: The parameters, a pytree.
        join: join(gradients) reduces the list of per-replica gradients (pytrees) to one update, as
            `psum` or `pmean` over the axis of devices does.

    Returns:
        A step whose update is the reduced gradient.
    """

    def step(shares: list[Any]) -> Outcome:
        import jax

        joined = join([gradient(parameters, share) for share in shares])
        return Outcome([np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(joined)])

    step.framework, step.source = "jax", gradient  # type: ignore[attr-defined]
    return step


def jax_devices_step(
    build: Callable[[Sequence[Any]], Callable[..., Any]],
    parameters: Any,
    *,
    stacked: bool = True,
    mask: bool = False,
    has_loss: bool = False,
) -> Step:
    """Create a JAX step over devices, by `pmap`, `shard_map` or `jit` with shardings.

    Devices take equal shards: unequal ones are padded with zeros, and the step gets a mask.
    Without a mask, `diagnose` needs equal_shards=True.

    Args:
        build: build(devices), called once per number of devices, returns step(parameters, batch),
            or step(parameters, batch, mask), whose result is the gradient.
        parameters: The parameters, passed to the step.
        stacked: Give arrays a first axis of devices, as `pmap` takes and returns them: (devices,
            examples, …), or (devices, micro-batches, examples, …) if there are several. Else
            shards are concatenated: (examples, …), or (micro-batches, examples, …).
        mask: Pass a mask: 1 for examples, 0 for padding.
        has_loss: The step returns (gradient, loss).

    Returns:
        A step whose update is the gradient on the first device; the devices' copies are compared.

    Raises:
        StepError: When the step runs: there are too few devices, or shards are unequal and there
            is no mask.

    Example:
        >>> def build(devices):  # doctest: +SKIP
        ...     def gradient(w, x, y):
        ...         return jax.lax.pmean(jax.grad(mean_loss)(w, (x, y)), "devices")
        ...     return jax.pmap(gradient, "devices", in_axes=(None, 0), devices=devices)
        >>> diagnose(jax_devices_step(build, w), batch, equal_shards=True).correct  # doctest: +SKIP
        True
    """
    built: dict[int, Callable[..., Any]] = {}

    def step(shares: list[Any]) -> Outcome:
        import jax

        count = len(shares)
        devices = jax.devices()
        if len(devices) < count:
            raise StepError(
                f"[jax_devices_step] {count} replicas need as many devices: got {len(devices)}; on "
                f"CPUs set XLA_FLAGS=--xla_force_host_platform_device_count={max(count, 8)} before "
                "jax is imported."
            )
        if count not in built:
            built[count] = build(devices[:count])
        batch, ones = _filled(shares, stacked)
        if not mask and not ones.all():
            sizes = "+".join(str(_rows(share)) for share in shares)
            raise StepError(
                f"[jax_devices_step] devices take equal shares: got {sizes} examples; take a mask "
                "(mask=True), or judge even splits only: diagnose(…, equal_shards=True)."
            )
        result = built[count](parameters, batch, *([ones] if mask else []))
        gradient, loss = result if has_loss else (result, None)
        leaves = jax.tree_util.tree_leaves(gradient)
        copies = [_copies(leaf, stacked) for leaf in leaves]
        most = max(map(len, copies), default=1)
        copies = [own * (most // len(own)) for own in copies]
        reported = None if loss is None else float(np.mean(np.asarray(loss)))
        return Outcome([own[0] for own in copies], reported, list(zip(*copies, strict=True)))

    step.framework, step.source = "jax", build  # type: ignore[attr-defined]
    return step


def _rows(share: Any) -> int:
    return sum(map(rows_of, share)) if isinstance(share, list) else rows_of(share)


def _filled(shares: list[Any], stacked: bool) -> tuple[Any, Any]:
    """All shares as one batch of equal shares, and the mask."""
    micro = isinstance(shares[0], list)
    parts = [part for share in shares for part in (share if micro else [share])]
    longest = max(1, *map(rows_of, parts)) if len(parts) > 1 else rows_of(parts[0])

    def joined(*arrays: Any) -> Any:
        filled = np.stack(
            [np.concatenate([a, np.zeros((longest - len(a), *a.shape[1:]), a.dtype)])
             for a in map(np.asarray, arrays)]
        )  # fmt: skip
        inner = filled.shape[1:]
        filled = filled.reshape(len(shares), -1, *inner)  # devices, micro-batches, rows
        if stacked:
            return filled if micro else filled[:, 0]
        filled = np.moveaxis(filled, 0, 1).reshape(-1, len(shares) * longest, *inner[1:])
        return filled if micro else filled[0]

    ones = joined(*(np.ones(rows_of(part), np.float32) for part in parts))
    return map_structure(joined, parts[0], *parts[1:]), ones


def _copies(leaf: Any, stacked: bool) -> list[Any]:
    """Return the gradient of each device."""
    if stacked:
        return list(np.asarray(leaf))
    if getattr(leaf, "is_fully_replicated", False):
        return [np.asarray(shard.data) for shard in leaf.addressable_shards]
    return [np.asarray(leaf)]

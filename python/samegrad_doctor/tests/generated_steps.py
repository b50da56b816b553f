"""Steps generated over kinds, reductions, counts and shapes, each of them wrong and right.

A member of a kind is a function of a group of examples. A wrong step computes it on every
per-replica batch or micro-batch, a right one on the whole batch. The truth is what random splits
say, without the doctor. `python generated_steps.py COUNT [KIND ...]` prints the verdicts.
"""

from __future__ import annotations

import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from samegrad_doctor import StepError, diagnose

Vector = np.ndarray


class Group(NamedTuple):
    """Examples: inputs, targets, labels of 0 or 1, and numbers of tokens."""

    x: Vector
    y: Vector
    label: Vector
    tokens: Vector


@dataclass
class Network:
    """A network of one hidden layer with one output."""

    first: Vector
    second: Vector

    def output(self, group: Group) -> Vector:
        return np.asarray(np.tanh(group.x @ self.first) @ self.second)

    def back(self, group: Group, factors: Vector) -> Vector:
        """Return the gradient of the outputs' sum, each times its factor."""
        hidden = np.tanh(group.x @ self.first)
        inner = factors[:, None] * self.second * (1 - hidden**2)
        return np.concatenate([(group.x.T @ inner).ravel(), hidden.T @ factors])

    def losses(self, group: Group) -> Vector:
        return np.asarray(np.square(self.output(group) - group.y))

    def of_losses(self, group: Group, times: Vector | float = 1.0) -> Vector:
        """Return the gradient of the sum of the squared losses, each times a number."""
        return self.back(group, 2 * (self.output(group) - group.y) * times)


Draw = Callable[[Sequence[Any]], Any]
Of = Callable[[Network, Group], Vector]  # the gradient of a loss of a group


def pos_weight(one_of: Draw, rng: np.random.Generator) -> Of:
    """Binary cross-entropy whose positives are weighted by counts of the group."""
    rule = one_of(["ratio", "smooth", "root", "both", "log"])
    by = one_of(["count", "tokens"])

    def of(net: Network, group: Group) -> Vector:
        each = group.tokens if by == "tokens" else np.ones(len(group.x))
        total, positive = each.sum(), (each * group.label).sum()
        negative = total - positive
        weight, other = {
            "ratio": (negative / max(positive, 1), 1.0),
            "smooth": ((negative + 1) / (positive + 1), 1.0),
            "root": (np.sqrt(negative / max(positive, 1)), 1.0),
            "both": (total / (2 * max(positive, 1)), total / (2 * max(negative, 1))),
            "log": (np.log(1 + negative / (positive + 1)), 1.0),
        }[rule]
        chance = 1 / (1 + np.exp(-net.output(group)))
        scale = np.where(group.label > 0, weight, other)
        return net.back(group, (chance - group.label) * scale) / len(group.x)

    return of


def clamped_mean(one_of: Draw, rng: np.random.Generator) -> Of:
    """A mean loss that is clamped, flooded, or a function of the mean."""
    rule, by = (
        one_of(["most", "least", "flood", "root", "log", "huber"]),
        float(rng.uniform(0.5, 2)),
    )

    def of(net: Network, group: Group) -> Vector:
        mean = float(net.losses(group).mean())
        slope = {
            "most": float(mean < by), "least": float(mean > by), "flood": np.sign(mean - by),
            "root": 0.5 / np.sqrt(mean + 1e-12), "log": 1 / (1 + mean),
            "huber": min(1.0, by / mean),
        }[rule]  # fmt: skip
        return net.of_losses(group, slope / len(group.x))

    return of


def normalized(one_of: Draw, rng: np.random.Generator) -> Of:
    """Targets (advantages, rewards) less their mean, by their deviation."""
    rule = one_of(["both", "mean", "deviation", "peak"])

    def of(net: Network, group: Group) -> Vector:
        mean = group.y.mean() if rule in ("both", "mean") else 0.0
        by = {"both": group.y.std() + 1e-3, "mean": 1.0, "deviation": group.y.std() + 1e-3,
              "peak": np.abs(group.y).max()}[rule]  # fmt: skip
        return net.back(group, (group.y - mean) / by) / len(group.x)

    return of


def chosen(one_of: Draw, rng: np.random.Generator) -> Of:
    """The hard examples of a group."""
    rule, part = one_of(["top", "above", "negatives", "quantile"]), float(rng.uniform(0.3, 0.8))

    def of(net: Network, group: Group) -> Vector:
        losses, count = net.losses(group), len(group.x)
        if rule == "top":
            keep = np.argsort(np.argsort(-losses)) < max(1, int(part * count))
        elif rule == "above":
            keep = losses <= losses.mean() + losses.std() * part
        elif rule == "negatives":
            most = int(2 * group.label.sum())
            rank = np.argsort(np.argsort(-np.where(group.label > 0, -np.inf, losses)))
            keep = (group.label > 0) | (rank < most)
        else:
            keep = losses >= np.quantile(losses, 1 - part)
        return net.of_losses(group, keep / max(keep.sum(), 1))

    return of


def balanced(one_of: Draw, rng: np.random.Generator) -> Of:
    """A product of two means (load balancing), a spread, a center, a correlation."""
    rule = one_of(["product", "spread", "center", "square"])

    def of(net: Network, group: Group) -> Vector:
        out, count = net.output(group), len(group.x)
        factors = {
            "product": np.full(count, group.label.mean() + 0.1),
            "spread": 2 * (out - out.mean()),
            "center": 2 * (out - group.y.mean()),
            "square": np.full(count, 2 * out.mean()),
        }[rule]
        return net.back(group, factors) / count

    return of


def chunked(one_of: Draw, rng: np.random.Generator) -> Of:
    """Chunks that the step cuts, whose means are averaged; some do not fill."""
    size, pieces = int(rng.integers(2, 6)), one_of([2, 3, 0])
    drop = one_of([False, False, True])

    def of(net: Network, group: Group) -> Vector:
        count = len(group.x)
        cuts = np.array_split(np.arange(count), pieces) if pieces else np.split(
            np.arange(count), range(size, count, size))  # fmt: skip
        cuts = [cut for cut in cuts if len(cut)]
        cuts = [cut for cut in cuts if len(cut) == len(cuts[0])] if drop else cuts
        each = [net.of_losses(Group(*(a[cut] for a in group))) / len(cut) for cut in cuts]
        return np.mean(each, axis=0)

    return of


def objects(one_of: Draw, rng: np.random.Generator) -> Of:
    """Examples without objects have no gradient; the objects of the group divide."""
    by = one_of(["label", "tokens"])

    def of(net: Network, group: Group) -> Vector:
        number = group.label * (group.tokens if by == "tokens" else 1.0)
        return net.of_losses(group, number) / max(number.sum(), 1)

    return of


def triplets(one_of: Draw, rng: np.random.Generator) -> Of:
    """Pairs of a positive and a negative with a margin: nothing alone."""
    margin, mean = float(rng.uniform(0.2, 2)), one_of(["pairs", "active", "examples"])

    def of(net: Network, group: Group) -> Vector:
        out, up, down = net.output(group), group.label > 0, group.label == 0
        active = ((out[None] - out[:, None] + margin) > 0) * up[:, None] * down[None]
        number = {"pairs": up.sum() * down.sum(), "active": active.sum(), "examples": len(out)}
        return net.back(group, active.sum(0) - active.sum(1)) / max(number[mean], 1)

    return of


KINDS: dict[str, Callable[[Draw, np.random.Generator], Of]] = {
    "pos_weight": pos_weight,
    "clamped": clamped_mean,
    "normalized": normalized,
    "chosen": chosen,
    "balanced": balanced,
    "chunked": chunked,
    "objects": objects,
    "triplets": triplets,
}


class Case(NamedTuple):
    """A step with its batch and options."""

    step: Callable[[Any], Vector]
    batch: Any
    options: dict[str, Any]


def joined(groups: Sequence[Any]) -> Group:
    return Group(*map(np.concatenate, zip(*groups, strict=True)))


def parts_of(shares: Sequence[Any]) -> list[list[Any]]:
    return [share if isinstance(share, list) else [share] for share in shares]


def case_of(kind: str, number: int, wrong: bool) -> Case:
    """Return a member of a kind."""
    rng = np.random.default_rng(zlib.crc32(f"{kind} {number}".encode()))

    def one_of(options: Sequence[Any]) -> Any:
        return options[int(rng.integers(len(options)))]

    rows, width, hidden = (int(rng.integers(*ends)) for ends in ((10, 33), (3, 10), (3, 9)))
    net = Network(rng.normal(size=(width, hidden)), rng.normal(size=hidden))
    x = rng.normal(size=(rows, width))
    label = (rng.uniform(size=rows) < one_of([0.15, 0.3, 0.5])).astype(float)
    label[rng.integers(rows)] = 1.0
    y = np.tanh(x @ net.first) @ net.second + rng.normal(size=rows) * one_of([0.3, 1.0])
    batch = (x, y, label, rng.integers(1, 12, rows).astype(float))
    of = KINDS[kind](one_of, rng) if kind in KINDS else None
    main, scope = one_of([0.0, 0.0, 1.0, 1.0, 30.0]), one_of(["share", "part"])
    by, single = one_of(["count", "count", "even", "label"]), one_of([True, False])
    micro = one_of([(1,), (1,), (1, 2), (2, 3)])
    options: dict[str, Any] = {} if micro == (1,) else {"micro_batches": micro}
    scope = scope if options else "share"

    def step(shares: Any) -> Vector:
        own = parts_of(shares)
        everything = joined([part for share in own for part in share])
        groups = [everything]
        if wrong:
            groups = [joined(share) for share in own]
            groups = [part for share in own for part in share] if scope == "part" else groups
            groups = [Group(*group) for group in groups if len(group[0])]
        sizes = {"count": [len(group[0]) for group in groups], "even": [1.0] * len(groups),
                 "label": [group[2].sum() + 1e-9 for group in groups]}[by]  # fmt: skip
        total = sum(sizes)
        update = sum(
            size / total * of(net, group) for size, group in zip(sizes, groups, strict=True)
        )
        if main:
            update = update + main * net.of_losses(everything) / len(everything.x)
        return update.astype(np.float32) if single else update

    return Case(step, batch, options) if of else OTHERS[kind](rng, one_of, net, batch, wrong)


def _clipped(rng, one_of, net: Network, batch: Any, wrong: bool) -> Case:
    """Scaled gradients are limited before they are unscaled, on each replica or once."""
    scale, how = 2.0 ** one_of([8, 10, 16]), one_of(["norm", "value", "array"])
    alone = [np.linalg.norm(net.of_losses(Group(*(a[[i]] for a in batch)))) for i in range(10)]
    limit = float(np.median(alone)) * one_of([0.02, 0.3, 1.0, 3.0]) * scale

    def clip(gradient: Vector) -> Vector:
        if how == "value":
            return np.clip(gradient, -limit / 6, limit / 6)
        if how == "array":
            return np.concatenate([clip_norm(part) for part in np.array_split(gradient, 2)])
        return clip_norm(gradient)

    def clip_norm(gradient: Vector) -> Vector:
        return gradient * min(1.0, limit / max(np.linalg.norm(gradient), 1e-300))

    after = one_of(["each", "sum"])

    def step(shares: Any) -> Vector:
        count = sum(len(share[0]) for share in shares)
        each = [net.of_losses(Group(*share)) * scale for share in shares if len(share[0])]
        if not wrong:
            return clip(sum(each) / count) / scale
        if after == "sum":  # the limit is of what is not divided by the replicas
            return clip(sum(each) / count * len(shares)) / scale / len(shares)
        return sum(clip(own / count * len(shares)) for own in each) / scale / len(shares)

    return Case(step, batch, {})


def _sampled(rng, one_of, net: Network, batch: Any, wrong: bool) -> Case:
    """Every rank shuffles the whole batch by a seed of its own, and takes its part."""
    how, seed = one_of(["shuffle", "replace", "drop"]), int(rng.integers(1000))

    def step(shares: Any) -> Vector:
        whole, world = joined(shares), len(shares)
        count, update = len(whole.x), 0.0
        for rank in range(world):
            draws = np.random.default_rng(seed + rank * wrong)
            if how == "replace" and wrong:
                own = joined([shares[rank]]) if len(shares[rank][0]) else whole
                size = len(own.x)
                mine = draws.integers(size, size=size) if world > 1 else np.arange(size)
                update = update + net.of_losses(Group(*(a[mine] for a in own)))
                continue
            mine = draws.permutation(count)[rank::world]
            if how == "drop" and wrong and world > 1:
                mine = mine[: max(1, int(0.8 * len(mine)))]
            update = update + net.of_losses(Group(*(a[mine] for a in whole)))
        return update / count

    return Case(step, batch, {})


def _variance(rng, one_of, net: Network, batch: Any, wrong: bool) -> Case:
    """Inputs are normalized by moments that leave out the variance between replicas."""
    of, gradient = one_of(["variance", "deviation", "second"]), one_of([False, True])

    def step(shares: Any) -> Vector:
        whole = joined(shares)
        mean = whole.x.mean(axis=0)
        sizes = np.array([len(share[0]) for share in shares if len(share[0])])
        each = np.stack([share[0].var(axis=0) for share in shares if len(share[0])])
        if of == "deviation":
            each = np.sqrt(each)
        inner = sizes / sizes.sum() @ each if wrong else (
            whole.x.var(axis=0) if of != "deviation" else whole.x.std(axis=0))  # fmt: skip
        by = inner + 1e-2 if of == "deviation" else np.sqrt(inner + 1e-2)
        center = mean if not gradient else 0.0
        return net.of_losses(whole._replace(x=(whole.x - center) / by)) / len(whole.x)

    return Case(step, batch, {})


def _two_counts(rng, one_of, net: Network, batch: Any, wrong: bool) -> Case:
    """Weight by one count what a replica averages by another."""
    own, other = one_of([("count", "tokens"), ("tokens", "count"), ("count", "label"),
                         ("tokens", "label"), ("label", "count")])  # fmt: skip

    def amount(share: Any, what: str) -> float:
        return {"count": float(len(share[0])), "tokens": share[3].sum(),
                "label": (share[2] + 0.2).sum()}[what]  # fmt: skip

    def step(shares: Any) -> Vector:
        shares = [share for share in shares if len(share[0])]
        total = sum(amount(share, other if wrong else own) for share in shares)
        update = 0.0
        for share in shares:
            group = Group(*share)
            times = {"count": 1.0, "tokens": group.tokens, "label": group.label + 0.2}[own]
            mean = net.of_losses(group, times) / amount(share, own)
            update = update + mean * amount(share, other if wrong else own) / total
        return np.asarray(update)

    return Case(step, batch, {})


def _auxiliary(rng, one_of, net: Network, batch: Any, wrong: bool) -> Case:
    """A linear auxiliary loss with its own (local) count beside a main one."""
    how, size = one_of(["mean of means", "local mean", "labelled"]), one_of([0.003, 0.03, 0.3, 3.0])

    def step(shares: Any) -> Vector:
        whole = joined(shares)
        update = net.of_losses(whole) / len(whole.x)
        if not wrong:
            number = whole.label.sum() if how == "labelled" else len(whole.x)
            times = whole.label if how == "labelled" else np.ones(len(whole.x))
            return update + size * net.back(whole, times) / max(number, 1)
        for share in shares:
            group = Group(*share)
            if not len(group.x):
                continue
            times = group.label if how == "labelled" else np.ones(len(group.x))
            number = max(times.sum(), 1) * (1 if how == "local mean" else len(shares))
            update = update + size * net.back(group, times) / number
        return update

    return Case(step, batch, {})


OTHERS = {
    "clipped": _clipped,
    "sampled": _sampled,
    "variance": _variance,
    "two counts": _two_counts,
    "auxiliary": _auxiliary,
}


def moves(case: Case) -> bool:
    """Return True if the update of the batch is not 0, but for rounding."""
    micro = case.options.get("micro_batches", (1,))
    update = case.step([case.batch if micro == (1,) else [case.batch]])
    return bool(np.linalg.norm(update) > 1e-9)


def is_wrong(case: Case, splits: int = 24) -> float:
    """Return the share of random splits whose update is not that of one device."""
    rng, rows = np.random.default_rng(1), len(case.batch[0])
    micro = case.options.get("micro_batches", (1,))
    whole = np.asarray(case.step([case.batch if micro == (1,) else [case.batch]]), np.float64)
    off = []
    for place in range(splits):
        replicas, k = 2 + place % 2, micro[place % len(micro)]
        cuts = np.sort(rng.choice(np.arange(1, rows), replicas * k - 1, replace=False))
        parts = [tuple(a[b:e] for a in case.batch)
                 for b, e in zip([0, *cuts], [*cuts, rows], strict=True)]  # fmt: skip
        shares = parts if micro == (1,) else [parts[r * k : r * k + k] for r in range(replicas)]
        update = np.asarray(case.step(shares), np.float64)
        off.append(np.linalg.norm(update - whole) > 1e-4 * np.linalg.norm(whole))
    return float(np.mean(off))


def verdict(case: Case) -> tuple[str, str]:
    """Return "correct", "wrong" or "not decided", and the printed diagnosis."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = diagnose(case.step, case.batch, **case.options)
        except StepError as error:
            return "not decided", str(error)
    return ("correct" if found.correct else "wrong"), str(found)


def main(count: int, kinds: Sequence[str], show: str) -> None:
    """Print the verdicts of members of kinds."""
    for kind in kinds or [*KINDS, *OTHERS]:
        table: dict[str, Counter[str]] = {"wrong": Counter(), "right": Counter()}
        for number in range(count):
            for wrong in (True, False):
                case = case_of(kind, number, wrong)
                off = is_wrong(case)
                truth = "wrong" if off > 0.5 else "right" if off == 0 else None
                if truth is None or not moves(case):
                    continue
                said, text = verdict(case)
                if show == "all":
                    print(f"{kind} {number} {truth} {said}: {text.splitlines()[0]}", flush=True)
                table[truth][said] += 1
                if said in show.split(",") and said != {"right": "correct"}.get(truth, truth):
                    print(f"--- {kind} {number} {wrong}, truth {truth}: {text}")
        print(f"{kind:12s}", {truth: dict(found) for truth, found in table.items()}, flush=True)


if __name__ == "__main__":
    names = [word for word in sys.argv[2:] if not word.startswith("--show")]
    shown = next((w.partition("=")[2] for w in sys.argv if w.startswith("--show")), "")
    main(int(sys.argv[1]), names, shown)

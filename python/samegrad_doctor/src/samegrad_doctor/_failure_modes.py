"""Texts of loss normalization failure modes."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """Texts of a failure mode.

    Args:
        name: A short name.
        sentence: A description.
        formula: The weight of an example.
        fix: The remedy.
    """

    name: str
    sentence: str
    formula: str
    fix: str


SUM_SHARES = (
    "sum the per-replica losses (reduce SUM), and divide each loss by the global batch size, once"
)

MEAN_THEN_SUM = Words(
    "mean per replica, then sum",
    "each replica divides by its own examples, and the replicas are summed: the update is too "
    "large by a factor of R, the number of replicas",
    "w_i / W_r  instead of  w_i / W",
    "divide by the global batch size: nn.compute_average_loss(losses), or by the tokens of all "
    "replicas: nn.compute_weighted_mean_loss(losses, mask)",
)
MEAN_OF_MEANS = Words(
    "mean of the replicas' means",
    "each replica averages its own examples (or local examples times replicas divide), and every "
    "replica gets the same weight regardless of its number of examples",
    "w_i / (R W_r)  instead of  w_i / W",
    "divide by the examples of all replicas, and leave out the division by the replicas: "
    "nn.compute_average_loss(per_example, global_batch_size=...)",
)
SHARE_THEN_MEAN = Words(
    "divided by the global batch, then averaged",
    "losses are already divided by the global batch size, and the replicas' gradients are averaged "
    "instead of summed: the update is too small by a factor of R, the number of replicas",
    "w_i / (W R)  instead of  w_i / W",
    SUM_SHARES,
)
TIMES_REPLICAS = Words(
    "multiplied by the replicas",
    "the update of the whole batch is multiplied by the number of replicas: a factor that nothing "
    "divides again, a learning rate that grows with the replicas, or the gradient of a loss that "
    "is all-reduced already (the adjoint of an all-reduce is an all-reduce)",
    "w_i R / W  instead of  w_i / W",
    "remove the factor, or differentiate only the per-replica loss, and sum the gradients",
)
# Other causes of the same update, which cannot be distinguished.
_ALSO = {
    "once on every replica": "; each replica adds it, or a blanket factor of the world size hits "
    "it that is meant for the data",
    "divided by the replicas": "; it is averaged over replicas though only one adds it, or is "
    "scaled twice",
}


def counted_regularization(
    count: str, data: str = "", fix: str = "", divided: bool = False
) -> Words:
    """Return the texts of a term without examples that is counted wrongly.

    Args:
        count: How the term is counted.
        data: Another failure mode of the data, after "; ".
        fix: The remedy of that.
        divided: True if the number of examples divides the term, also on one device.
    """
    once, formula = (
        ("divides it by all examples", "β ∇Ω with β other than 1 / N")
        if divided
        else ("has it once", "β ∇Ω with β other than 1")
    )
    return Words(
        f"regularisation counts {count}{data}",
        "a term that belongs to no example (regularisation, an auxiliary loss) counts "
        f"{count}, where one device {once}{_ALSO.get(count, '')}",
        formula,
        "divide it by the number of replicas on each of them: nn.scale_regularization_loss(losses)"
        + (fix and f"; {fix}"),
    )


def part_with(words: Words, rest: str | None = None, parameters: bool = False) -> Words:
    """Return the texts of a failure mode in a part of the step.

    Args:
        words: The failure mode of the part.
        rest: The name of the failure mode of the rest; None if the rest is correct.
        parameters: True for a part of the parameters, not of the loss.
    """
    if parameters:
        name, what = "a part of the parameters", "the gradients of some parameters are scaled so"
    else:
        name = (
            "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count"
        )
        what = (
            "a term of the examples has a count of its own (which of the two is which cannot be "
            "told from their sum)"
        )
    others = "the rest is correct" if rest is None else f"and for the rest: {rest}"
    return Words(
        f"{name}: {words.name}",
        f"{what}: {words.sentence}; {others}",
        words.formula,
        f"for that part: {words.fix}",
    )

"""Words for mistakes of loss scaling that the doctor and the check of traced programs share."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """Description of a failure mode.

    Args:
        name: A few words.
        sentence: What happens.
        formula: The weight that an example gets.
        fix: What to write instead.
    """

    name: str
    sentence: str
    formula: str
    fix: str


SUM_SHARES = (
    "sum the shares (reduce SUM), and divide each loss by the count of the global batch, once"
)

MEAN_THEN_SUM = Words(
    "mean per replica, then sum",
    "each replica divides by its own examples, and the replicas are added: the update is too large "
    "by the number of replicas",
    "w_i / W_r  instead of  w_i / W",
    "divide by the examples of all replicas: nn.compute_average_loss(losses)",
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
    "share of the global batch, then mean",
    "losses are divided by the global batch already, and the replicas' gradients are averaged "
    "instead of added: the update is too small by the number of replicas",
    "w_i / (W R)  instead of  w_i / W",
    SUM_SHARES,
)
TIMES_REPLICAS = Words(
    "multiplied by the replicas",
    "the update of the whole batch is multiplied by the number of replicas: a factor that nothing "
    "divides again, a learning rate that grows with the replicas, or the gradient of a loss that "
    "is all-reduced already (the adjoint of an all-reduce is an all-reduce)",
    "w_i R / W  instead of  w_i / W",
    "leave out the factor, or differentiate each replica's share only, and sum the gradients",
)
# What gives the same update, and cannot be told apart from it.
_ALSO = {
    "once on every replica": "; each replica adds it, or a blanket factor of the world size hits "
    "it that is meant for the data",
    "divided by the replicas": "; it is averaged over replicas though only one adds it, or is "
    "scaled twice",
}


def counted_regularization(
    count: str, data: str = "", fix: str = "", divided: bool = False
) -> Words:
    """A term that belongs to no example counts wrongly.

    Args:
        count: How it counts.
        data: What is wrong with the data besides, after "; ".
        fix: What to do about that.
        divided: Whether examples divide it, on one device as well.
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
    """A part of the step has a mistake of its own.

    Args:
        words: The mistake of the part.
        rest: The name of that of the rest; None if the rest is right.
        parameters: Whether it is a part of the parameters, not of the loss.
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
    others = "the rest is right" if rest is None else f"and for the rest: {rest}"
    return Words(
        f"{name}: {words.name}",
        f"{what}: {words.sentence}; {others}",
        words.formula,
        f"for that part: {words.fix}",
    )


# Those that show in a traced program before it runs, by the keys that the engine gives them.
PROGRAM_MISTAKES: dict[str, Words] = {
    "mean_then_sum": MEAN_THEN_SUM,
    "share_then_mean": SHARE_THEN_MEAN,
    "regularization": counted_regularization("once on every replica"),
    "times_replicas": TIMES_REPLICAS,
    "penalty": part_with(MEAN_THEN_SUM),
    "mean_of_means": MEAN_OF_MEANS,
    "nonlinear_share": Words(  # shows in no update by itself
        "a replica's share is used as if it were the whole",
        "a function that is not linear (a root, a square, a limit) is taken of one replica's share "
        "of a sum, and the sum of the results is not the function of the sum",
        "Σ_r f(s_r)  instead of  f(Σ_r s_r)",
        "all-reduce the share first; limit gradients after they are summed: samegrad's optimizers "
        "take clipnorm and global_clipnorm",
    ),
}

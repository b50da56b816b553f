"""The catalogue of loss normalization failure modes: points of the grammar, one entry each.

The right weight is w_i / W: the example's own weight (1 if none is given) by that of all examples
of all replicas. Of rows that predict the same, the first one is named. Failure modes behind the
catalogue do not show in weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from samegrad_doctor._grammar import NORM, SEEN, WHO, Point, Sum
from samegrad_doctor._situation import Situation
from samegrad_doctor._updates import Vector
from samegrad_doctor._words import remedy

RIGHT = Point()


@dataclass(frozen=True)
class FailureMode:
    """A named failure mode: an entry of the catalogue, or a point of the grammar without one.

    Args:
        name: A few words.
        sentence: What happens.
        formula: The weight that an example gets. Default: that of the point.
        fix: What to write instead, in samegrad's words. Default: the remedy's.
        point: The weights; the correct ones for a failure mode that does not show in weights.
        remedy: The key of what to do, in the words of all frameworks.
        uneven: Whether it takes examples of different weight. Default: as the point says.
        empty: Whether it takes a replica without examples.
        report: What it means where a reported loss or metric shows it.
        factor: A number that all weights of several replicas are multiplied by.

    Raises:
        TypeError: `point` is not a point of the grammar, or a text is not a string.
        ValueError: There is no such remedy.
    """

    name: str
    sentence: str
    formula: str = ""
    fix: str = ""
    point: Point = RIGHT
    remedy: str = "count"
    uneven: bool | None = None
    empty: bool = False
    report: str = ""
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.point, Point):
            raise TypeError(
                f"[FailureMode] point must be a point of the grammar: got {self.point!r}."
            )
        for name in ("name", "sentence", "formula", "fix", "remedy", "report"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(
                    f"[FailureMode] {name} must be a string: got {getattr(self, name)!r:.80}."
                )
        if not self.formula and self.point != RIGHT:
            object.__setattr__(self, "formula", f"{self.point.formula}  instead of  w_i / W")
        if not self.fix:
            object.__setattr__(self, "fix", remedy(self.remedy))

    def predict(self, situation: Situation) -> Vector:
        """Compute the weights that this failure mode gives the examples of a situation.

        Args:
            situation: The layout and the weights of the examples.

        Returns:
            A vector with the weight of each example; the correct ones if the failure mode has no
            effect there.
        """
        several = situation.replicas * situation.micro_batches > 1
        return self.point(situation) * self.factor**several

    @property
    def weighted(self) -> bool:
        """Return True if it needs examples of different weights."""
        return self.point.weighted if self.uneven is None else self.uneven

    def fix_for(self, framework: str) -> str:
        """Return the fix in the API of a framework.

        Args:
            framework: "samegrad", "pytorch", "jax" or "tensorflow".

        Returns:
            The text of the fix.
        """
        return self.fix if framework == "samegrad" else remedy(self.remedy, framework)


def unnamed(point: Point) -> FailureMode:
    """A point of the grammar that no row names: its formula tells it."""
    key = (SEEN[point.seen].remedy or WHO[point.who].remedy) or (
        "accumulate" if point.micro else "factor" if point.fixed else
        "weights" if point.weighted else "count"
    )  # fmt: skip
    said = "what an example counts has no name, only this formula"
    return FailureMode(point.words, said, point=point, remedy=key)


_PART: tuple[Sum, ...] = (("weight", "part"),)
_REPLICA: tuple[Sum, ...] = (("weight", "replica"),)
_WINDOW: tuple[Sum, ...] = (("weight", "window"),)
MEAN, BOTH, STEPS = (0, -1, 0), (0, -1, -1), (0, 0, -1)  # powers of R, A and K
WORLD, WORLD_STEPS = (-1, 0, 0), (-1, 0, -1)
_ALIKE = "the last, shorter batch counts as much as the others"


# fmt: off
MEAN_THEN_SUM = FailureMode(
    "mean per replica, then sum",
    "each replica divides by its own examples, and the replicas are summed: the update is too "
    "large by a factor of R, the number of replicas", point=Point(_REPLICA),
    fix="divide by the global batch size: nn.compute_average_loss(losses), or by the tokens of all "
    "replicas: nn.compute_weighted_mean_loss(losses, mask)")
MEAN_OF_MEANS = FailureMode(
    "mean of the replicas' means",
    "each replica averages its own examples (or local examples times replicas divide), and every "
    "replica gets the same weight regardless of its number of examples",
    "w_i / (R W_r)  instead of  w_i / W", point=Point(_REPLICA, powers=MEAN),
    fix="divide by the examples of all replicas, and leave out the division by the replicas: "
    "nn.compute_average_loss(per_example, global_batch_size=...)",
    report="every replica (or batch) gets the same weight regardless of its number of examples")
SHARE_THEN_MEAN = FailureMode(
    "divided by the global batch, then averaged",
    "losses are already divided by the global batch size, and the replicas' gradients are averaged "
    "instead of summed: the update is too small by a factor of R, the number of replicas",
    point=Point(powers=WORLD), remedy="sum",
    report="it is divided by the replicas, as a Mean metric does that is fed with shares")
TIMES_REPLICAS = FailureMode(
    "multiplied by the replicas",
    "the update of the whole batch is multiplied by the number of replicas: a factor that nothing "
    "divides again, a learning rate that grows with the replicas, or the gradient of a loss that "
    "is all-reduced already (the adjoint of an all-reduce is an all-reduce)",
    point=Point(powers=(1, 0, 0)), remedy="factor", report="it is multiplied by the replicas",
    fix="remove the factor, or differentiate only the per-replica loss, and sum the gradients")
CATALOGUE: tuple[FailureMode, ...] = (
    # Over replicas: how often a share is divided, and who reaches the sum.
    MEAN_THEN_SUM, SHARE_THEN_MEAN, MEAN_OF_MEANS,
    FailureMode("mean per replica, then divided by the replicas twice",
            "the replicas' means are averaged, and the loss had been divided by the number of "
            "replicas before", point=Point(_REPLICA, powers=(-2, 0, 0)), remedy="sum"),
    TIMES_REPLICAS,
    FailureMode("the replicas are not reduced", "the update is that of the first replica alone",
            point=Point(_REPLICA, who="only first replica"), remedy="reduce",
            report="it is that of the first replica alone"),
    FailureMode("the replicas are not reduced, though divided by all",
            "losses are divided by the global batch, but the first replica's gradient alone is "
            "applied", point=Point(who="only first replica"), remedy="reduce",
            report="it is the share of the first replica alone"),
    FailureMode("only the last replica is kept",
            "replicas overwrite each other instead of being added, so that the last one alone "
            "counts", point=Point(_REPLICA, who="only last replica"), remedy="reduce",
            report="it is that of the last replica alone"),
    FailureMode("shares are weighted by their counts twice",
            "each replica gives a sum, and is weighted by its count as if it gave a mean",
            point=Point((NORM,), _REPLICA)),
    FailureMode("the last replica is left out",
            "losses are divided by the global batch, but the gradient of the last replica does "
            "not reach the sum", point=Point(who="not last replica"), remedy="reduce"),
    FailureMode("divided by the count of the first replica",
            "every replica divides by the examples that the first one has, and the replicas are "
            "averaged", point=Point((("weight", "first replica"),), powers=WORLD)),
    FailureMode("empty replicas count in the divisor",
            "replicas that have no examples left still count in the divisor, so that the others "
            "are scaled down", "w_i A / (W R), A of R replicas having examples",
            point=Point(powers=(-1, 1, 0)), empty=True),
    FailureMode("empty replicas count in the divisor of the means",
            "each replica averages its own examples, and the sum of the means is divided by all "
            "replicas, also by those that have no examples left",
            "w_i / (R W_r)  instead of  w_i / W, also where a replica is empty",
            point=Point(_REPLICA, powers=WORLD), empty=True),
    # Weights and tokens, padding, and samples that come twice or never.
    FailureMode("divided by examples instead of weights",
            "weighted losses are divided by the number of examples of the global batch, not by the "
            "sum of their weights (or each example is averaged by itself, and all count alike)",
            "w_i / N  instead of  w_i / W", point=Point((("count", "all"),)), remedy="weights"),
    FailureMode("divided by the local number of examples instead of weights",
            "each replica divides weighted losses by its number of examples, and the replicas are "
            "averaged", point=Point((("count", "replica"),), powers=WORLD), remedy="weights"),
    FailureMode("padding counts as examples",
            "every share is padded to the largest one, and the padded length divides",
            point=Point((("count", "largest replica"),), powers=WORLD), remedy="weights",
            uneven=False),
    FailureMode("padding counts as tokens",
            "each replica divides by its examples times the longest of them, padding included (or "
            "weights by the largest one of the share), and the replicas are averaged",
            point=Point((("padded", "replica"),), powers=WORLD),
            remedy="weights"),
    FailureMode("padding counts as tokens of the global batch",
            "losses are divided by all examples times the longest of them, padding included",
            point=Point((("padded", "all"),)), remedy="weights"),
    FailureMode("padding counts as tokens of every micro-batch",
            "each micro-batch divides by its examples times the longest of them, padding included, "
            "and micro-batches and replicas are averaged",
            point=Point((("padded", "part"),), powers=WORLD_STEPS), remedy="weights"),
    FailureMode("padding counts as examples of the largest shard",
            "every replica divides by the weights of the one that has most",
            point=Point((("weight", "largest replica"),), powers=WORLD), remedy="weights",
            uneven=True),
    FailureMode("shards are padded by repeating examples",
            "every shard is padded to the size of the largest one by repeating examples, as a "
            "sampler with equal shards does; repeated examples count twice",
            point=Point((("count", "largest replica"),), seen="filled", powers=WORLD),
            remedy="sampler", uneven=False, report="repeated examples count twice"),
    FailureMode("examples are repeated until the shards are equal",
            "the first examples are taken again until the number of examples can be divided by the "
            "replicas, as a distributed sampler does; repeated examples count twice",
            point=Point((NORM,), seen="sampler"), remedy="sampler",
            report="repeated examples count twice"),
    FailureMode("repeated examples are summed, though divided by the true count",
            "examples are repeated to make shards equal; losses are divided by the true count or a "
            "fixed one, so that repeated examples count twice",
            point=Point(seen="sampler"), remedy="sampler"),
    FailureMode("padded shards are summed, though divided by the true count",
            "shards are padded to the size of the largest one by repeating examples; losses are "
            "divided by the true count or a fixed one, so that repeated examples count twice",
            point=Point(seen="filled"), remedy="sampler"),
    FailureMode("the rest of the batch is dropped",
            "the remainder of the batch after an equal split does not count",
            point=Point((NORM,), seen="rest"), remedy="sampler",
            report="the last examples are left out"),
    FailureMode("summed and not divided", "losses are summed and not divided",
            point=Point(()), report="losses are summed and not divided"),
    # Over micro-batches: gradient accumulation, and metrics over batches.
    FailureMode("micro-batches are not divided",
            "the means of the micro-batches are summed without dividing by their number (or by a "
            "number of micro-batches that is not theirs, as in a last, shorter window)",
            point=Point(_PART, powers=MEAN), remedy="accumulate",
            report="the losses of the micro-batches are summed"),
    FailureMode("micro-batches are divided twice",
            "losses are divided by the count of the whole window, and by the number of "
            "micro-batches again", fix="leave out the division by the number of micro-batches",
            point=Point(powers=STEPS), remedy="accumulate",
            report="it is divided by the number of micro-batches once too often"),
    FailureMode("mean of the micro-batches' means",
            "every micro-batch of every replica counts alike, however many examples it has",
            point=Point(_PART, powers=BOTH), remedy="accumulate", report=_ALIKE),
    FailureMode("mean of the micro-batches' global means",
            "each micro-batch is divided by its count over all replicas, and the micro-batches "
            "count alike, however many examples they have", point=Point(_WINDOW, powers=STEPS),
            remedy="accumulate", report=_ALIKE),
    FailureMode("multiplied by the micro-batches",
            "losses are divided by the count of the whole window, and multiplied by the number of "
            "micro-batches", point=Point(powers=(0, 0, 1)), remedy="factor",
            report="it is multiplied by the number of micro-batches"),
    FailureMode("means of micro-batches are added over replicas",
            "micro-batches are averaged on each replica, and the replicas are added",
            point=Point(_PART, powers=STEPS), remedy="accumulate"),
    FailureMode("means of micro-batches are summed everywhere",
            "each micro-batch divides by its own examples, and all of all replicas are added",
            point=Point(_PART), remedy="accumulate"),
    FailureMode("global means of micro-batches are summed",
            "each micro-batch is divided by its count over all replicas, and they are summed "
            "without dividing by their number", point=Point(_WINDOW), remedy="accumulate"),
    FailureMode("divided by the count of the last micro-batch",
            "the sum of a window is divided by the count of its last micro-batch, and the replicas "
            "are averaged", point=Point((("weight", "last part"),), powers=WORLD),
            remedy="accumulate"),
    FailureMode("only the last micro-batch is kept",
            "gradients are overwritten instead of accumulated, so that the last micro-batch alone "
            "counts", point=Point(_PART, who="only last micro-batch", powers=WORLD), remedy="keep",
            report="it is that of the last batch"),
    FailureMode("only the last micro-batch is kept, and divided by their number",
            "means of micro-batches are divided by their number, but overwritten instead of "
            "accumulated", point=Point(_PART, who="only last micro-batch", powers=WORLD_STEPS),
            remedy="keep"),
    FailureMode("only the first micro-batch counts",
            "the mean of the first micro-batch is all that is taken, in whichever one it is made",
            point=Point(_PART, who="only first micro-batch", powers=WORLD),
            remedy="accumulate",
            report="it is that of the first batch"),
    FailureMode("the other micro-batches are lost",
            "losses are divided by the whole window, but the gradients of the last micro-batch "
            "alone reach the update", point=Point(who="only last micro-batch"), remedy="keep"),
    FailureMode("the first micro-batch is lost",
            "losses are divided by the whole window, but gradients are reset after the first "
            "micro-batch", point=Point(who="not first micro-batch"), remedy="keep"),
    FailureMode("the first micro-batch is lost, and the others are averaged by themselves",
            "every micro-batch counts alike, and gradients are reset after the first one",
            point=Point(_PART, who="not first micro-batch", powers=WORLD_STEPS), remedy="keep"),
    FailureMode("gradients are reduced again in every micro-batch",
            "what was summed over the replicas already is summed again with the next micro-batch",
            "w_i R^(K-k) / W  instead of  w_i / W, for micro-batch k of K",
            point=Point(who="again"), remedy="once"),
    FailureMode("means are reduced again in every micro-batch",
            "each micro-batch is averaged by itself, and what was summed over the replicas already "
            "is summed again with the next one",
            "w_i R^(K-k) / (R K W_rk)  instead of  w_i / W, for micro-batch k of K",
            point=Point(_PART, who="again", powers=WORLD_STEPS), remedy="once"),
)
COPIES_DIFFER = FailureMode(
    "the replicas' parameters differ", "after the step the copies of the parameters are not equal",
    "θ_r differs with r", remedy="reduce")
EMPTY_SHARE = FailureMode(
    "a replica without examples changes the update",
    "the mean over zero examples is NaN, or counts as a mean", "0 / 0 on the empty replica")
CLIPPED_REPLICAS = FailureMode(
    "gradients are clipped before the all-reduce",
    "each replica clips its own gradient, so that the sum differs from the clipped gradient of "
    "the batch", "Σ clip(g_r)  instead of  clip(Σ g_r)", remedy="clip")
CLIPPED_PARTS = FailureMode(
    "gradients are clipped in every micro-batch",
    "each micro-batch clips its own gradient before it is summed, so that the sum differs "
    "from the clipped gradient of the window", "Σ clip(g_rk)  instead of  clip(Σ g_rk)",
    remedy="clip window")
CLIPPED_SHARDS = FailureMode(
    "gradients are clipped by the norm of a shard",
    "each replica clips its part of the parameters by the norm of that part, instead of by the "
    "global norm",
    "g_p min(1, c / |g_p|)  instead of  g_p min(1, c / |g|), for part p of the parameters",
    "sum the squares of all parts over the replicas, and scale all parts by the same number",
    remedy="clip")
CLIPPED_SCALED = FailureMode(
    "gradients are clipped before they are unscaled",
    "every update has one tiny norm: a limit divided by a power of two, as if the gradients of a "
    "scaled loss were limited, and divided by the loss scale afterwards",
    "clip(s g) / s  instead of  clip(g), s being the loss scale", remedy="unscale")
LIMITED_OTHERWISE = FailureMode(
    "gradient clipping depends on the replicas",
    "the direction of the update is right and its length is not: a norm or a limit is counted "
    "once per replica or micro-batch, or taken of gradients that are not yet divided",
    "clip(f g) / f  instead of  clip(g), f depending on the split",
    "reduce and divide first, then clip by the norm of the result", remedy="clip")
_OF_THE_BATCH = (
    "what depends on the batch as a whole (moments of batch normalization, negatives of a "
    "contrastive loss, the number of positives, a root or a ratio of means)")
LOCAL_STATISTICS = FailureMode(
    "batch statistics are not synchronised",
    f"{_OF_THE_BATCH} is computed by each replica from its own shard",
    "Σ n_r/N u(share r)  instead of  u(batch)", remedy="statistics")
STATISTICS_OF_PARTS = FailureMode(
    "batch statistics are those of each micro-batch",
    f"{_OF_THE_BATCH} is computed by each micro-batch from its own examples",
    "Σ n_k/N u(micro-batch k)  instead of  u(batch)",
    remedy="statistics of a window")
STATISTICS_OF_ONE = FailureMode(
    "the statistics are those of one replica",
    "what is kept after the step (moving moments, a codebook) is made by the first or the last "
    "replica from its own shard; the results of the others are lost",
    "u(share of one replica)  instead of  u(batch)", remedy="statistics")
STATISTICS_OF_ONE_PART = FailureMode(
    "the statistics are those of one micro-batch",
    "what is kept after the step (moving moments, a codebook) is made from the first or the last "
    "micro-batch alone", "u(one micro-batch)  instead of  u(batch)",
    remedy="statistics of a window")
EQUAL_STATISTICS = FailureMode(
    "batch statistics are merged with equal weights",
    "moments of the replicas are averaged as if the shards were equal; equal shards are correct",
    "Σ μ_r / R  instead of  Σ n_r μ_r / N", remedy="statistics")
OWN_MOMENTS = FailureMode(
    "the optimizer's moments are those of the replicas' own gradients",
    "a moment that is not a linear function of the averaged values (Adam's mean of squared "
    "gradients; a variance, without the differences of the replicas' means) is computed on each "
    "replica from its own shard, and then averaged",
    "Σ g_r² / R  instead of  (Σ g_r)²", remedy="moments")
UPDATED_AGAIN = FailureMode(
    "the statistics are updated in every micro-batch",
    "a moving mean moves with each micro-batch instead of once per step, so that the last one "
    "counts most and the old value is forgotten faster",
    "d^K h + (1 - d) Σ d^(K-1-k) m_k  instead of  d h + (1 - d) m", remedy="statistics")
NO_GRADIENT_OF_EXCHANGE = FailureMode(
    "no gradient passes through what the replicas exchange",
    "what replicas gather from each other (moments, negatives of a contrastive loss) is taken as "
    "a constant, so that a part of the gradient is missing",
    "∂L_r/∂(own outputs)  instead of  Σ_r ∂L_r/∂(all outputs)", remedy="statistics")
SAME_NOISE = FailureMode(
    "dropout or noise is equal on all replicas",
    "every replica draws the same random numbers (masks, noise, the interpolation factors of a "
    "gradient penalty) for its own examples",
    "mask(row of the share)  instead of  mask(row of the batch)", remedy="draw")
OWN_PIECES = FailureMode(
    "each replica splits its own shard",
    "what an example does depends on its place in the share, though neighbours may change places: "
    "the step cuts its batch by itself (accumulation inside of the step) and averages the pieces, "
    "or takes a part of it (a penalty of the first half)",
    "Σ u(piece of a share)  instead of  u(piece of the batch)",
    remedy="accumulate")
OWN_PAIRS = FailureMode(
    "each replica pairs the examples of its own shard",
    "examples are mixed or compared with others of their share (mixup, a flip or roll of the "
    "batch), so that every split makes other pairs: another loss, though it may be the same one "
    "on average",
    "Σ u(pairs of a share)  instead of  u(pairs of the batch)", remedy="pairs")
STEPS_INSIDE = FailureMode(
    "the parameters change between micro-batches",
    "the gradient of a later micro-batch is that of other parameters: the optimizer steps in every "
    "micro-batch, or changes something else that the next one sees, instead of once per window",
    "Σ g_k(θ_k)  instead of  Σ g_k(θ)", remedy="step")
OWN_NUMBERS = FailureMode(
    "one random factor per replica, shared by its examples",
    "each replica draws a number once for all its examples (the interpolation factor of a "
    "gradient penalty in the shape [1, 1, 1, 1], a noise level), or has a setting of its own: "
    "what an example does to the update depends on which replica has it",
    "Σ w_i g_i(ε_r) / W  instead of  Σ w_i g_i(ε_i) / W, ε_i drawn for each example", remedy="draw")
CONSTANT_FOR_WEIGHTS = FailureMode(
    "divided by a constant instead of the weights",
    "weighted losses (of tokens, of what is not masked) are summed and divided by a fixed number "
    "(batch x longest sentence, say) or by nothing; replicas agree with one device, but a batch of "
    "few tokens takes a smaller step than one of many; a sum that is meant so may stay",
    "w_i / C  instead of  w_i / W", remedy="weights")
# fmt: on

HIDDEN = (
    "the update is limited or normalized, which hides factors in front of the limit: switch it "
    "off to judge the loss"
)
# Other causes of the same update, which cannot be distinguished.
_ALSO = {
    "once on every replica": "; each replica adds it, or a blanket factor of the world size hits "
    "it that is meant for the data",
    "divided by the replicas": "; it is averaged over replicas though only one adds it, or is "
    "scaled twice",
}


def term_counted(count: str, divided: bool = False, row: FailureMode | None = None) -> FailureMode:
    """Return the failure mode of a term without examples that is counted wrongly.

    Args:
        count: How the term is counted.
        divided: True if the number of examples divides the term, also on one device.
        row: Another failure mode of the data.
    """
    data, fix = ("", "") if row is None else (f"; and the data: {row.name}", f"; {row.fix}")
    once, right = ("divides it by all examples", "1 / N") if divided else ("has it once", "1")
    return FailureMode(
        f"regularisation counts {count}{data}",
        "a term that belongs to no example (regularisation, an auxiliary loss) counts "
        f"{count}, where one device {once}{_ALSO.get(count, '')}",
        f"β ∇Ω with β other than {right}", remedy("term") + fix, remedy="term",
    )  # fmt: skip


def part_with(
    first: FailureMode | None, second: FailureMode | None, parameters: bool = False
) -> FailureMode | None:
    """Return the failure mode of a part of the loss or parameters, with one for the rest.

    Args:
        first: That of the rest; None if the rest is correct.
        second: That of the part; `first` is that of the part if this is None.
        parameters: True for a part of the parameters, not of the loss.
    """
    if (row := second or first) is None:
        return None
    name, what = (
        "a part of the loss (gradient penalty, auxiliary loss) is averaged over another count",
        "a term of the examples has a count of its own (which of the two is which cannot be told "
        "from their sum)",
    )
    if parameters:
        name, what = "a part of the parameters", "the gradients of some parameters are scaled so"
    found = beside(row, first if second is not None else None, f"{name}: ", f"{what}: ")
    return replace(found, fix=f"for that part: {row.fix}")


def beside(row: FailureMode, rest: FailureMode | None, name: str, what: str) -> FailureMode:
    """Return a failure mode of a part, beside that of the rest (None if the rest is correct)."""
    others = "the rest is correct" if rest is None else f"and for the rest: {rest.name}"
    return replace(row, name=f"{name}{row.name}", sentence=f"{what}{row.sentence}; {others}")

"""Mistakes that do not show in the weights of examples: limits, statistics, noise, other terms."""

from __future__ import annotations

from samegrad.testing._catalogue._situation import Mistake

COPIES_DIFFER = Mistake(
    "the replicas' parameters differ",
    "after the step the copies of the parameters are not equal",
    "θ_r differs with r",
    "reduce the gradients of all parameters before the update, on every replica",
)
EMPTY_SHARE = Mistake(
    "a replica without examples changes the update",
    "a mean over no examples is no number, or counts as a mean",
    "0 / 0 on the empty replica",
    "add up sums and counts over the replicas, and divide once",
)
CLIPPED_REPLICAS = Mistake(
    "gradients are clipped before the replicas are joined",
    "each replica limits its own gradient, so that the sum is another one than the limited "
    "gradient of the batch",
    "Σ clip(g_r)  instead of  clip(Σ g_r)",
    "reduce first, then clip, then update: samegrad's optimizers take clipnorm and global_clipnorm",
)
CLIPPED_PARTS = Mistake(
    "gradients are clipped in every micro-batch",
    "each micro-batch limits its own gradient before it is added up, so that the sum is another "
    "one than the limited gradient of the window",
    "Σ clip(g_rk)  instead of  clip(Σ g_rk)",
    "add up and reduce first, then clip, then update: "
    "keras.optimizers.Adam(gradient_accumulation_steps=N)",
)
CLIPPED_SHARDS = Mistake(
    "gradients are clipped by the norm of a shard",
    "each replica limits the part of the parameters that it keeps by the norm of that part, "
    "instead of by the norm of all",
    "g_p min(1, c / |g_p|)  instead of  g_p min(1, c / |g|), for part p of the parameters",
    "sum the squares of all parts over the replicas, and scale all parts by the same number",
)
LIMITED_OTHERWISE = Mistake(
    "the limit of the gradient depends on the replicas",
    "the direction of the update is right and its length is not: a norm or a limit is counted "
    "once per replica, or taken of gradients that are not yet divided",
    "clip(f g) / f  instead of  clip(g), f depending on the layout",
    "reduce and divide first, then clip by the norm of the result",
)
LOCAL_STATISTICS = Mistake(
    "batch statistics are not synchronised",
    "what depends on the batch as a whole (the moments of batch normalization, the negatives of "
    "a contrastive loss) is computed by each replica from its own share",
    "Σ n_r/N u(share r)  instead of  u(batch)",
    "use count-weighted moments of all replicas (keras.layers.BatchNormalization does), or gather "
    "the outputs with their gradients",
)
EQUAL_STATISTICS = Mistake(
    "batch statistics are merged with equal weights",
    "moments of the replicas are averaged as if the shares were equal; even shares are right",
    "Σ μ_r / R  instead of  Σ n_r μ_r / N",
    "sum Σx, Σx² and the counts over the replicas, and divide once",
)
NO_GRADIENT_OF_EXCHANGE = Mistake(
    "no gradient passes through what the replicas exchange",
    "what replicas gather from each other (moments, negatives of a contrastive loss) is taken as "
    "a constant, so that a part of the gradient is missing",
    "∂L_r/∂(own outputs)  instead of  Σ_r ∂L_r/∂(all outputs)",
    "gather with gradients: the adjoint of a gather sums over the replicas",
)
SAME_NOISE = Mistake(
    "dropout or noise is equal on all replicas",
    "every replica draws the same random numbers (masks, noise, the interpolation factors of a "
    "gradient penalty) for its own examples",
    "mask(row of the share)  instead of  mask(row of the batch)",
    "give every replica its own seed, or draw for the rows of the global batch",
)
OWN_NUMBERS = Mistake(
    "one random factor per replica, shared by its examples",
    "each replica draws a number once for all its examples (the interpolation factor of a "
    "gradient penalty in the shape [1, 1, 1, 1], a noise level), or has a setting of its own: "
    "what an example does to the update depends on which replica has it",
    "Σ w_i g_i(ε_r) / W  instead of  Σ w_i g_i(ε_i) / W, ε_i drawn for each example",
    "draw for the rows of the global batch: random.uniform((tf.shape(x)[0], 1, 1, 1))",
)
CONSTANT_FOR_WEIGHTS = Mistake(
    "divided by a constant instead of the weights",
    "weighted losses (of tokens, of what is not masked) are added up and divided by a fixed number "
    "(batch x longest sentence, say) or by nothing; replicas agree with one device, but a batch of "
    "few tokens takes a smaller step than one of many; a sum that is meant so may stay",
    "w_i / C  instead of  w_i / W",
    "divide by the sum of the weights of all replicas: nn.compute_weighted_mean_loss",
)

OTHER: tuple[Mistake, ...] = (
    COPIES_DIFFER,
    EMPTY_SHARE,
    CLIPPED_REPLICAS,
    CLIPPED_PARTS,
    CLIPPED_SHARDS,
    LIMITED_OTHERWISE,
    LOCAL_STATISTICS,
    EQUAL_STATISTICS,
    NO_GRADIENT_OF_EXCHANGE,
    SAME_NOISE,
    OWN_NUMBERS,
    CONSTANT_FOR_WEIGHTS,
)

"""An optax optimizer over devices: the mean of the devices' means, and one mean of all tokens.

Run it with `python optax_step.py`. It needs JAX and optax.
"""

import jax
import numpy as np
import optax
from jax import numpy as jnp
from samegrad_doctor import diagnose

LENGTHS = [3, 6, 1, 5, 2, 6, 4, 1, 2, 3, 5, 2]
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1e6), optax.sgd(0.1))


def losses(parameters, batch):
    """Return the masked loss of each token."""
    tokens, labels, mask = batch
    logits = jnp.tanh(tokens @ parameters["inner"]) @ parameters["outer"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels) * mask


def mean_loss(parameters, batch):
    return losses(parameters, batch).sum() / batch[2].sum()


def total_loss(parameters, batch):
    return losses(parameters, batch).sum()


mean_gradient = jax.jit(jax.grad(mean_loss))
total_gradient = jax.jit(jax.grad(total_loss))


@jax.jit
def update_of(gradient, parameters):
    """Return the change of the parameters that optax makes."""
    updates, _ = OPTIMIZER.update(gradient, OPTIMIZER.init(parameters), parameters)
    return updates


def mean_of_means(parameters, batches):
    """Average the gradients of the devices, as pmean does."""
    gradients = [mean_gradient(parameters, batch) for batch in batches]
    return jax.tree.map(lambda *parts: sum(parts) / len(parts), *gradients)


def one_mean(parameters, batches):
    """Sum gradients and tokens over the devices, as psum does, and divide once."""
    gradients = [total_gradient(parameters, batch) for batch in batches]
    count = sum(mask.sum() for _, _, mask in batches)
    return jax.tree.map(lambda *parts: sum(parts) / count, *gradients)


def main():
    rng = np.random.default_rng(0)
    parameters = {"inner": jnp.array(rng.normal(size=(8, 10)) / 3, jnp.float32),
                  "outer": jnp.array(rng.normal(size=(10, 3)) / 3, jnp.float32)}  # fmt: skip
    mask = (np.arange(6) < np.array(LENGTHS)[:, None]).astype(np.float32)
    batch = rng.normal(size=(12, 6, 8)).astype(np.float32), rng.integers(3, size=(12, 6)), mask
    for combine in (mean_of_means, one_mean):

        def step(batches, combine=combine):
            return update_of(combine(parameters, batches), parameters)

        found = diagnose(step, batch, weights=LENGTHS)
        print(f"{combine.__name__}: {found}\n")


if __name__ == "__main__":
    main()

"""The parts of `samegrad wgan-gp`."""

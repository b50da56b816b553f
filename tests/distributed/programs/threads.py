"""Writes how many threads a rank has."""

import sys

import samegrad as tf

tf.distribute.MultiWorkerMirroredStrategy()
sys.stdout.write(f"{tf.config.threading.get_intra_op_parallelism_threads()}\n")

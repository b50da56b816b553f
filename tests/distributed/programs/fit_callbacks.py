"""`fit` with callbacks that write or decide: FOLDER and stop, kill, apart, derived or leave."""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import samegrad as tf
from samegrad.distribute import mpi

folder, what = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
keras = tf.keras
keras.utils.set_random_seed(5)
strategy = tf.distribute.MultiWorkerMirroredStrategy(total_replicas=4, timeout=60)
rank = mpi.rank()
written = set()


def watch(event, details):
    if event != "open" or not isinstance(details[0], str) or not isinstance(details[1], str):
        return
    if details[1][:1] in "wax" and str(folder) in os.path.abspath(details[0]):
        written.add(os.path.relpath(details[0], folder).split(os.sep)[0].split(".")[0])


sys.addaudithook(watch)
rng = np.random.default_rng(0)
x = rng.normal(size=(90, 12)).astype(np.float32)
y = rng.integers(0, 3, size=90)
with strategy.scope():
    model = keras.Sequential(
        [keras.layers.Input((12,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(3)]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class Leaves(keras.callbacks.Callback):
    """One rank alone wants to stop, or is killed."""

    def on_epoch_end(self, epoch, logs=None):
        if what == "stop" and rank == mpi.size() - 1 and epoch == 2:
            self.model.stop_training = True

    def on_train_batch_end(self, batch, logs=None):
        leaves = what == "leave" or (what == "leave alone" and rank == mpi.size() - 1)
        last = what == "leave last" and rank == mpi.size() - 1 and batch == 2
        if last or (leaves and self.model.optimizer.iterations == 8):
            self.model.stop_training = True
        if what == "kill" and rank == mpi.size() - 1 and self.model.optimizer.iterations == 8:
            os.kill(os.getpid(), signal.SIGKILL)


class Evaluates(keras.callbacks.ModelCheckpoint):
    """Does at each end of an epoch what all ranks must do."""

    def on_epoch_end(self, epoch, logs=None):
        self.model.evaluate(x, y, batch_size=32, verbose=0)
        super().on_epoch_end(epoch, logs)


class Logger(keras.callbacks.CSVLogger):
    """A class of the program."""


own = folder if what != "apart" else folder / str(rank)  # what others do not see
callbacks = [
    keras.callbacks.CSVLogger(str(folder / "log.csv")),
    keras.callbacks.ModelCheckpoint(str(folder / "best.weights.h5"), save_best_only=True,
                                    save_weights_only=True, verbose=1),
    keras.callbacks.ModelCheckpoint(str(folder / "model.keras")),
    keras.callbacks.ReduceLROnPlateau(monitor="val_loss", patience=1, min_delta=0.05, verbose=1),
    keras.callbacks.EarlyStopping(monitor="val_loss", patience=3, min_delta=0.05,
                                  restore_best_weights=True, verbose=1),
    keras.callbacks.BackupAndRestore(str(own / "backup"), save_freq=2,
                                     delete_checkpoint=what != "apart"),
    Leaves(),
]  # fmt: skip
checkpoints = [each for each in callbacks if isinstance(each, keras.callbacks.ModelCheckpoint)]
if what == "derived":
    checkpoints.append(Evaluates(str(folder / "derived.weights.h5"), save_best_only=True,
                                 save_weights_only=True, verbose=1))  # fmt: skip
    callbacks += [checkpoints[-1], Logger(str(folder / "derived.csv"))]
try:
    import tensorboardX  # noqa: F401

    callbacks.insert(0, keras.callbacks.TensorBoard(str(folder / "board")))
except ImportError:
    pass
history = model.fit(
    x, y, batch_size=32, epochs=12, validation_split=0.2, callbacks=callbacks, verbose=2
)
learning = float(model.optimizer.learning_rate)
sys.stdout.write(
    f"END epochs {len(history.epoch)} until {history.epoch[-1]} "
    f"weights {tf.fingerprint(model.get_weights())} "
    f"rate {learning:.3g} stopped {int(model.stop_training)}\n"
)
best = [float(each.best or 0.0).hex() for each in checkpoints]
sys.stdout.write(f"BEST {best}\n")
sys.stdout.write(f"HISTORY {tf.fingerprint(history.history)}\n")
sys.stdout.write(f"WRITTEN {rank}: {sorted(written)}\n")

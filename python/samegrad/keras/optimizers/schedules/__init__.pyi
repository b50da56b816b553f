# Made by samegrad._keras.stubs. Do not edit.
from keras.src.optimizers.schedules.learning_rate_schedule import CosineDecay as CosineDecay
from keras.src.optimizers.schedules.learning_rate_schedule import CosineDecayRestarts as CosineDecayRestarts
from keras.src.optimizers.schedules.learning_rate_schedule import ExponentialDecay as ExponentialDecay
from keras.src.optimizers.schedules.learning_rate_schedule import InverseTimeDecay as InverseTimeDecay
from keras.src.optimizers.schedules.learning_rate_schedule import LearningRateSchedule as LearningRateSchedule
from keras.src.optimizers.schedules.learning_rate_schedule import PiecewiseConstantDecay as PiecewiseConstantDecay
from keras.src.optimizers.schedules.learning_rate_schedule import PolynomialDecay as PolynomialDecay
from keras.src.optimizers.schedules.learning_rate_schedule import deserialize as deserialize
from keras.src.optimizers.schedules.learning_rate_schedule import serialize as serialize

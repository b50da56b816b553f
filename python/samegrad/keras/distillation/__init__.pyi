# Made by samegrad._keras.stubs. Do not edit.
from keras.src.distillation.distillation_loss import DistillationLoss as DistillationLoss
from keras.src.distillation.distillation_loss import FeatureDistillation as FeatureDistillation
from keras.src.distillation.distillation_loss import LogitsDistillation as LogitsDistillation
from keras.src.distillation.distiller import Distiller as Distiller

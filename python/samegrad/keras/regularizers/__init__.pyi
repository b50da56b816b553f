# Made by samegrad._keras.stubs. Do not edit.
from keras.src.regularizers import deserialize as deserialize
from keras.src.regularizers import get as get
from keras.src.regularizers import serialize as serialize
from keras.src.regularizers.regularizers import L1 as L1
from keras.src.regularizers.regularizers import L1 as l1
from keras.src.regularizers.regularizers import L1L2 as L1L2
from keras.src.regularizers.regularizers import L1L2 as l1_l2
from keras.src.regularizers.regularizers import L2 as L2
from keras.src.regularizers.regularizers import L2 as l2
from keras.src.regularizers.regularizers import OrthogonalRegularizer as OrthogonalRegularizer
from keras.src.regularizers.regularizers import OrthogonalRegularizer as orthogonal_regularizer
from keras.src.regularizers.regularizers import Regularizer as Regularizer

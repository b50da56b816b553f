# Made by samegrad._keras.stubs. Do not edit.
from keras.src.dtype_policies import deserialize as deserialize
from keras.src.dtype_policies import get as get
from keras.src.dtype_policies import serialize as serialize
from keras.src.dtype_policies.dtype_policy import AWQDTypePolicy as AWQDTypePolicy
from keras.src.dtype_policies.dtype_policy import DTypePolicy as DTypePolicy
from keras.src.dtype_policies.dtype_policy import FloatDTypePolicy as FloatDTypePolicy
from keras.src.dtype_policies.dtype_policy import GPTQDTypePolicy as GPTQDTypePolicy
from keras.src.dtype_policies.dtype_policy import Int4DTypePolicy as Int4DTypePolicy
from keras.src.dtype_policies.dtype_policy import QuantizedDTypePolicy as QuantizedDTypePolicy
from keras.src.dtype_policies.dtype_policy import QuantizedFloat8DTypePolicy as QuantizedFloat8DTypePolicy
from keras.src.dtype_policies.dtype_policy_map import DTypePolicyMap as DTypePolicyMap

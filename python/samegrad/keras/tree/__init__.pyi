# Made by samegrad._keras.stubs. Do not edit.
from keras.src.tree.tree_api import MAP_TO_NONE as MAP_TO_NONE
from keras.src.tree.tree_api import assert_same_paths as assert_same_paths
from keras.src.tree.tree_api import assert_same_structure as assert_same_structure
from keras.src.tree.tree_api import flatten as flatten
from keras.src.tree.tree_api import flatten_with_path as flatten_with_path
from keras.src.tree.tree_api import is_nested as is_nested
from keras.src.tree.tree_api import lists_to_tuples as lists_to_tuples
from keras.src.tree.tree_api import map_shape_structure as map_shape_structure
from keras.src.tree.tree_api import map_structure as map_structure
from keras.src.tree.tree_api import map_structure_up_to as map_structure_up_to
from keras.src.tree.tree_api import pack_sequence_as as pack_sequence_as
from keras.src.tree.tree_api import traverse as traverse

"""Arguments of version 1 in their order, where those of version 2 differ.

An entry `old:new` is passed under another name, `-old` is ignored. None stands for a default.
"""

from __future__ import annotations

_REDUCTION = "input_tensor axis keepdims name reduction_indices:axis keep_dims:keepdims"
_BINARY_CHECK = "x y -data summarize message name"
_UNARY_CHECK = "x -data summarize message name"
_FRACTIONAL = "value pooling_ratio pseudo_random overlapping -deterministic seed -seed2 name"
_POOLING = "value:input ksize strides padding data_format name input"
_SEGMENTS = "data indices segment_ids name num_segments -sparse_gradient"
_SOFTMAX = "logits axis name dim:axis"
_TRANSPOSED = (
    "value:input filter:filters output_shape strides padding data_format name input filters "
    "dilations"
)
_REDUCTIONS = ("all", "any", "logsumexp", "max", "mean", "min", "prod", "sum")

ORDERS = {
    **{f"reduce_{name}": _REDUCTION for name in _REDUCTIONS},
    **{f"assert_{name}": _BINARY_CHECK for name in (
        "equal", "greater", "greater_equal", "less", "less_equal", "none_equal")},
    **{f"assert_{name}": _UNARY_CHECK for name in (
        "negative", "non_negative", "non_positive", "positive")},
    "argmax": "input axis name dimension:axis output_type",
    "argmin": "input axis name dimension:axis output_type",
    "assert_near": "x y rtol atol -data summarize message name",
    "assert_rank": "x rank -data -summarize message name",
    "assert_rank_at_least": "x rank -data -summarize message name",
    "assert_rank_in": "x ranks -data -summarize message name",
    "assert_scalar": "tensor name message",
    "batch_to_space": "input crops block_size:block_shape name block_shape",
    "boolean_mask": "tensor mask name axis",
    "cond": "pred true_fn false_fn -strict name fn1:true_fn fn2:false_fn",
    "confusion_matrix": "labels predictions num_classes dtype name weights",
    "constant": "value dtype shape name -verify_shape",
    "convert_to_tensor": "value dtype name preferred_dtype:dtype_hint dtype_hint",
    "count_nonzero": "input_tensor:input axis keepdims dtype name reduction_indices:axis "
    "keep_dims:keepdims input",
    "expand_dims": "input axis name dim:axis",
    "gather": "params indices validate_indices name axis batch_dims",
    "gather_nd": "params indices name batch_dims bad_indices_policy",
    "gradients": "ys xs grad_ys name -colocate_gradients_with_ops gate_gradients "
    "aggregation_method stop_gradients unconnected_gradients",
    "hessians": "ys xs name -colocate_gradients_with_ops gate_gradients aggregation_method",
    "in_top_k": "predictions targets k name",
    "log_softmax": _SOFTMAX,
    "multinomial": "logits num_samples seed name output_dtype:dtype",
    "norm": "tensor ord axis keepdims name keep_dims:keepdims",
    "ones_like": "tensor:input dtype name -optimize",
    "pad": "tensor paddings mode name constant_values",
    "reverse_sequence": "input seq_lengths seq_axis batch_axis name seq_dim:seq_axis "
    "batch_dim:batch_axis",
    "shape": "input name out_type",
    "size": "input name out_type",
    "softmax": _SOFTMAX,
    "squeeze": "input axis name squeeze_dims:axis",
    "transpose": "a perm name conjugate",
    "sparse_split": "-keyword_required sp_input num_split axis name split_dim:axis",
    "zeros_like": "tensor:input dtype name -optimize",
    "image.crop_and_resize": "image boxes box_ind:box_indices crop_size method extrapolation_value "
    "name box_indices",
    "image.extract_image_patches": "images ksizes:sizes strides rates padding name sizes",
    "image.draw_bounding_boxes": "images boxes name colors",
    "io.decode_csv": "records record_defaults field_delim use_quote_delim name na_value "
    "select_cols",
    "io.decode_raw": "input_bytes out_type little_endian name bytes:input_bytes",
    "io.parse_example": "serialized features name example_names",
    "io.parse_single_example": "serialized features name example_names",
    "nn.avg_pool": _POOLING,
    "nn.fractional_avg_pool": _FRACTIONAL,
    "nn.fractional_max_pool": _FRACTIONAL,
    "nn.avg_pool2d": _POOLING,
    "nn.conv1d": "value:input filters stride padding -use_cudnn_on_gpu data_format name input "
    "dilations",
    "nn.conv2d": "input filter:filters strides padding -use_cudnn_on_gpu data_format dilations "
    "name filters",
    "nn.conv2d_transpose": _TRANSPOSED,
    "nn.conv3d": "input filter:filters strides padding data_format dilations name filters",
    "nn.conv3d_transpose": _TRANSPOSED,
    "nn.convolution": "input filter:filters padding strides dilation_rate:dilations name "
    "data_format filters dilations",
    "nn.crelu": "features name axis",
    "nn.depth_to_space": "input block_size name data_format",
    "nn.depthwise_conv2d": "input filter strides padding rate:dilations name data_format "
    "dilations",
    "nn.embedding_lookup": "params ids -partition_strategy name -validate_indices max_norm",
    "nn.embedding_lookup_sparse": "params sp_ids sp_weights -partition_strategy name combiner "
    "max_norm allow_fast_lookup",
    "nn.max_pool": _POOLING,
    "nn.moments": "x axes shift name keep_dims:keepdims keepdims",
    "nn.separable_conv2d": "input depthwise_filter pointwise_filter strides padding "
    "rate:dilations name data_format dilations",
    "nn.softmax_cross_entropy_with_logits_v2": "labels logits axis name dim:axis",
    "nn.space_to_batch": "input paddings block_size:block_shape name block_shape",
    "nn.space_to_depth": "input block_size name data_format",
    "nn.weighted_cross_entropy_with_logits": "labels logits pos_weight name targets:labels",
    "nn.weighted_moments": "x axes frequency_weights name keep_dims:keepdims keepdims",
    "random.multinomial": "logits num_samples seed name output_dtype:dtype",
    "random.poisson": "lam shape dtype seed name",
    "space_to_batch": "input paddings block_size:block_shape name block_shape",
    "sparse.add": "a b threshold thresh:threshold",
    "sparse.concat": "axis sp_inputs name expand_nonconcat_dim:expand_nonconcat_dims "
    "concat_dim:axis expand_nonconcat_dims",
    "sparse.reduce_max": "sp_input axis keepdims reduction_axes:axis keep_dims:keepdims",
    "sparse.reduce_sum": "sp_input axis keepdims reduction_axes:axis keep_dims:keepdims",
    "sparse.segment_mean": _SEGMENTS,
    "sparse.segment_sqrt_n": _SEGMENTS,
    "sparse.segment_sum": _SEGMENTS,
    "strings.length": "input name unit",
    "strings.reduce_join": "inputs axis keep_dims:keepdims separator name reduction_indices:axis "
    "keepdims",
    "strings.substr": "input pos len name unit",
    "strings.to_hash_bucket": "string_tensor:input num_buckets name input",
    "strings.to_number": "string_tensor:input out_type name input",
}  # fmt: skip

# What means something else in version 1.
OTHER = {
    "autograph.to_code", "autograph.to_graph", "data.Iterator", "debugging.assert_all_finite",
    "fingerprint", "image.resize", "image.sample_distorted_bounding_box", "initializers",
    "layers", "losses", "metrics", "nn.ctc_beam_search_decoder", "nn.ctc_loss", "nn.dilation2d",
    "nn.erosion2d", "nn.max_pool_with_argmax", "nn.nce_loss", "nn.pool",
    "nn.safe_embedding_lookup_sparse", "nn.sampled_softmax_loss", "optimizers",
    "random_normal_initializer", "random_uniform_initializer", "strings.split", "summary.histogram",
    "summary.image", "summary.scalar", "summary.text",
}  # fmt: skip

_AT = {
    "math": "accumulate_n angle betainc bincount ceil conj count_nonzero cumprod digamma erf erfc "
    "expm1 floordiv igamma igammac imag invert_permutation is_finite is_inf is_nan lbeta lgamma "
    "log log1p log_sigmoid mod polygamma real reciprocal rint rsqrt segment_max segment_mean "
    "segment_min segment_prod segment_sum squared_difference unsorted_segment_max "
    "unsorted_segment_mean unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n "
    "unsorted_segment_sum zeta confusion_matrix",
    "linalg": "cholesky cholesky_solve global_norm qr svd trace",
    "nn": "depth_to_space space_to_depth",
    "io": "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature decode_csv "
    "decode_raw matching_files parse_example parse_single_example parse_tensor read_file "
    "serialize_tensor write_file",
    "random": "truncated_normal",
    "strings": "reduce_join regex_replace substr",
    "debugging": "assert_greater_equal assert_less_equal assert_near assert_negative "
    "assert_non_negative assert_non_positive assert_none_equal assert_positive "
    "assert_rank_at_least assert_rank_in assert_scalar assert_type assert_integer",
    "image": "random_crop",
}
# Where version 2 has functions of version 1.
MOVED = {
    **{name: f"{home}.{name}" for home, names in _AT.items() for name in names.split()},
    **{name: f"queue.{name}" for name in (
        "FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue")},
    "diag": "linalg.tensor_diag", "diag_part": "linalg.tensor_diag_part",
    "floor_div": "math.floordiv", "floormod": "math.floormod", "lin_space": "linspace",
    "matrix_band_part": "linalg.band_part", "matrix_determinant": "linalg.det",
    "matrix_diag": "linalg.diag", "matrix_diag_part": "linalg.diag_part",
    "matrix_inverse": "linalg.inv", "matrix_set_diag": "linalg.set_diag",
    "matrix_solve": "linalg.solve", "matrix_transpose": "linalg.matrix_transpose",
    "matrix_triangular_solve": "linalg.triangular_solve",
    "multinomial": "random.categorical", "random.multinomial": "random.categorical",
    "sparse_segment_mean": "sparse.segment_mean", "sparse_segment_sum": "sparse.segment_sum",
    "sparse_segment_sqrt_n": "sparse.segment_sqrt_n", "sparse_fill_empty_rows":
    "sparse.fill_empty_rows", "sparse_reset_shape": "sparse.reset_shape", "sparse_split":
    "sparse.split", "sparse_to_indicator": "sparse.to_indicator", "sparse_softmax":
    "sparse.softmax", "sparse_maximum": "sparse.maximum", "sparse_minimum": "sparse.minimum",
    "random_gamma": "random.gamma", "random_normal": "random.normal",
    "random_poisson": "random.poisson", "random_shuffle": "random.shuffle",
    "random_uniform": "random.uniform", "random.set_random_seed": "random.set_seed",
    "self_adjoint_eig": "linalg.eigh", "self_adjoint_eigvals": "linalg.eigvalsh",
    "set_random_seed": "random.set_seed",
    "sparse_tensor_dense_matmul": "sparse.sparse_dense_matmul",
    "sparse_tensor_to_dense": "sparse.to_dense", "sparse_reorder": "sparse.reorder",
    "string_join": "strings.join", "string_strip": "strings.strip",
    "string_to_hash_bucket_fast": "strings.to_hash_bucket_fast",
    "string_to_number": "strings.to_number", "nn.softmax_cross_entropy_with_logits_v2":
    "nn.softmax_cross_entropy_with_logits",
    "tensor_scatter_add": "tensor_scatter_nd_add", "tensor_scatter_update":
    "tensor_scatter_nd_update", "where_v2": "where",
    "image.resize_image_with_crop_or_pad": "image.resize_with_crop_or_pad",
    "image.extract_image_patches": "image.extract_patches",
    "gfile.Copy": "io.gfile.copy", "gfile.DeleteRecursively": "io.gfile.rmtree",
    "gfile.Exists": "io.gfile.exists", "gfile.FastGFile": "io.gfile.GFile",
    "gfile.GFile": "io.gfile.GFile", "gfile.Glob": "io.gfile.glob",
    "gfile.IsDirectory": "io.gfile.isdir", "gfile.ListDirectory": "io.gfile.listdir",
    "gfile.MakeDirs": "io.gfile.makedirs", "gfile.MkDir": "io.gfile.mkdir",
    "gfile.Open": "io.gfile.GFile", "gfile.Remove": "io.gfile.remove",
    "gfile.Rename": "io.gfile.rename", "gfile.Walk": "io.gfile.walk",
    "train.NewCheckpointReader": "train.load_checkpoint",
    "nn.log_uniform_candidate_sampler": "random.log_uniform_candidate_sampler",
    "nn.uniform_candidate_sampler": "random.uniform_candidate_sampler",
}  # fmt: skip

__all__ = ["MOVED", "ORDERS", "OTHER"]

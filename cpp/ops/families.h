// The op definitions that each file of this folder adds to the op table.
#pragma once

#include <vector>

#include "ir/op_def.h"

namespace samegrad {

std::vector<OpDef> unary_ops();
std::vector<OpDef> binary_ops();
std::vector<OpDef> select_ops();
std::vector<OpDef> fused_ops();
std::vector<OpDef> alias_ops();
std::vector<OpDef> reduce_ops();
std::vector<OpDef> arg_reduce_ops();
std::vector<OpDef> scan_ops();
std::vector<OpDef> order_ops();
std::vector<OpDef> softmax_ops();
std::vector<OpDef> cross_entropy_ops();
std::vector<OpDef> attention_ops();
std::vector<OpDef> random_ops();
std::vector<OpDef> fact_ops();
std::vector<OpDef> collective_ops();
std::vector<OpDef> control_ops();
std::vector<OpDef> rounds_ops();
std::vector<OpDef> array_rows_ops();
std::vector<OpDef> gradient_rule_ops();
std::vector<OpDef> movement_ops();
std::vector<OpDef> index_ops();
std::vector<OpDef> scatter_ops();
std::vector<OpDef> matmul_ops();
std::vector<OpDef> conv_ops();
std::vector<OpDef> pool_ops();
std::vector<OpDef> print_ops();

}  // namespace samegrad

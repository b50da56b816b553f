#include "kernels/unary_table.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
template UnaryKernel unary_of<std::int32_t>(UnaryFn fn);
template UnaryKernel unary_of<std::int64_t>(UnaryFn fn);
template UnaryKernel unary_of<std::uint8_t>(UnaryFn fn);
template UnaryKernel unary_of<bool>(UnaryFn fn);
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

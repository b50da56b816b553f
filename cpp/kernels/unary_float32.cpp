#include "kernels/unary_table.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
template UnaryKernel unary_of<float>(UnaryFn fn);
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

// All dtypes but floats, each of which takes as long as these together.
#include "kernels/unary_table.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
#define SAMEGRAD_OTHER(T) template UnaryKernel unary_of<T>(UnaryFn fn);
#include "kernels/instantiate.def"
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

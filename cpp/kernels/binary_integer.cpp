// All dtypes but floats, each of which takes as long as these together.
#include "kernels/binary_table.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
#define SAMEGRAD_OTHER(T) template BinaryKernel binary_of<T>(BinaryFn fn);
#include "kernels/instantiate.def"
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

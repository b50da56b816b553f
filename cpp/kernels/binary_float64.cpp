#include "kernels/binary_table.h"

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
template BinaryKernel binary_of<double>(BinaryFn fn);
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

// The table of one instruction-set variant: the only symbol its shared object exports.
#include "kernels/variant.h"

#define SAMEGRAD_TEXT_OF(name) #name
#define SAMEGRAD_TEXT(name) SAMEGRAD_TEXT_OF(name)

namespace samegrad::SAMEGRAD_ISA_NAMESPACE {
namespace {

constexpr KernelTable kTable = {
#if defined(__x86_64__)
    .isa = "x86-64-" SAMEGRAD_TEXT(SAMEGRAD_ISA_NAMESPACE),
#else
    .isa = SAMEGRAD_TEXT(SAMEGRAD_ISA_NAMESPACE),
#endif
    .unary = unary_kernel,
    .binary = binary_kernel,
    .select = select_kernel,
    .cast = cast_kernel,
    .row_reduce = row_reduce_kernel,
    .column_reduce = column_reduce_kernel,
    .arg_max = arg_max_kernel,
    .arg_min = arg_min_kernel,
    .product = product_kernels,
    .pool = pool_kernels,
    .softmax = softmax_kernels,
    .random = random_kernels,
    .random_integers = random_integers_kernel,
};

}  // namespace
}  // namespace samegrad::SAMEGRAD_ISA_NAMESPACE

extern "C" __attribute__((visibility("default"))) const samegrad::KernelTable*
samegrad_kernel_table() {
  return &samegrad::SAMEGRAD_ISA_NAMESPACE::kTable;
}

#include "ops/registry.h"

#include <utility>

#include "ir/op_def.h"

namespace samegrad {

#define SAMEGRAD_OP_FAMILY(name) std::vector<OpDef> name##_ops();
#include "ops/families.def"
#undef SAMEGRAD_OP_FAMILY

namespace {

bool add_all() {
  using Family = std::vector<OpDef> (*)();
  constexpr Family kFamilies[] = {
#define SAMEGRAD_OP_FAMILY(name) name##_ops,
#include "ops/families.def"
#undef SAMEGRAD_OP_FAMILY
  };
  for (Family family : kFamilies) {
    for (OpDef& op : family()) OpRegistry::instance().add(std::move(op));
  }
  return true;
}

}  // namespace

void register_all_ops() {
  [[maybe_unused]] static const bool added = add_all();
}

}  // namespace samegrad

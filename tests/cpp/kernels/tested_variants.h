// The instruction-set variants that the tests compare: a build may have some of them only.
#pragma once

#include <string>
#include <vector>

#include "kernels/dispatch.h"

namespace samegrad {

// Names of those that were built and run here. SAMEGRAD_BUILT_VARIANTS: suffixes, "v2 v3".
inline std::vector<std::string> tested_variants() {
  const std::string built = std::string(" ") + SAMEGRAD_BUILT_VARIANTS + " ";
  std::vector<std::string> names;
  for (const std::string& name : isa_variants_supported()) {
    const std::string suffix = name.substr(name.rfind('-') + 1);
    if (built.find(" " + suffix + " ") != std::string::npos) names.push_back(name);
  }
  return names;
}

}  // namespace samegrad

// Dispatch: lists the instruction-set variants and those that this machine runs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/table.h"

namespace samegrad {

// Names of the variants this machine can run ("x86-64-v2", …), the best one last.
std::vector<std::string> isa_variants_supported();

// True for each variant, by name, that has fused multiply-add; of all processors. Variants that
// agree in it have the same bits.
std::map<std::string, bool> isa_fused();

// The table of one variant, loaded once and kept; "x86-64-v3" and "v3" name the same.
// RuntimeError if the name is unknown, the machine cannot run it, or its file cannot be loaded.
const KernelTable& load_kernels(const std::string& name);

}  // namespace samegrad

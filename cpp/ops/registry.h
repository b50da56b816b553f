// Fills the op table.
#pragma once

namespace samegrad {

// Adds the ops of every family to OpRegistry::instance(); further calls do nothing.
void register_all_ops();

}  // namespace samegrad

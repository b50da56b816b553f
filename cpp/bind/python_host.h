// The Python process as the host of traces.
#pragma once

#include "train/host.h"

namespace samegrad {

extern Host python_host;

}  // namespace samegrad

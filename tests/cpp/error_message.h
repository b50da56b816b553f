// The messages of errors that tests provoke.
#pragma once

#include <string>

#include "base/error.h"

namespace samegrad::testing {

// Returns the message of the engine's error that the call raises, or "" if it raises none.
template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace samegrad::testing

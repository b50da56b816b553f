#include "bind/python_host.h"

#include <pybind11/pybind11.h>

#include "bind/user_location.h"

namespace samegrad {
namespace {

void run_without_gil(const Host::Work& work) {
  const pybind11::gil_scoped_release release;
  work();
}

}  // namespace

constinit Host python_host{&user_location, &run_without_gil};

}  // namespace samegrad

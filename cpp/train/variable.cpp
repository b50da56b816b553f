#include "train/variable.h"

#include "base/error.h"

namespace samegrad {

void Variable::set(std::vector<Array> components) {
  check_value(components.size() == component_count_, name_, "has ", component_count_,
              " component(s): got ", components.size(), ".");
  for (const Array& array : components) {
    check_type(array.dtype() == dtype(), name_, "holds ", name_of(dtype()), ": got ",
               name_of(array.dtype()), "; convert the value with samegrad.cast.");
    check_value(array.shape() == shape(), name_, "has shape ", to_string(shape()),
                ": got a value of shape ", to_string(array.shape()), ".");
  }
  components_ = std::move(components);
}

}  // namespace samegrad

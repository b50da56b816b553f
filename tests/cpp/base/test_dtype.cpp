// The table of element types, and what visits it.
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "check.h"

using namespace samegrad;

namespace {

template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kType);
    return error.what();
  }
  return "";
}

TEST("a row of the table is found by its dtype, its name and its type of elements") {
  for (const DTypeRow& row : kDTypes) {
    CHECK(dtype_from_name(row.name) == row.dtype);
    CHECK_EQ(std::string(name_of(row.dtype)), row.name);
    const std::size_t bytes = visit(row.dtype, [&]<class T>() {
      CHECK(kDTypeOf<T> == row.dtype);
      return sizeof(T);
    });
    CHECK_EQ(bytes, size_of(row.dtype));
    CHECK(bytes <= kMostElementBytes);
  }
}

TEST("every dtype is of one kind") {
  CHECK_EQ(kFloats | kInts | kIntegers | kBools, kAll);
  CHECK_EQ(kFloats & kIntegers, 0u);
  CHECK_EQ(kNumbers & kBools, 0u);
  for (const DTypeRow& row : kDTypes) {
    CHECK_EQ(is_floating(row.dtype), (bit_of(row.dtype) & kFloats) != 0);
  }
}

TEST("a visit of some dtypes refuses the others by name, and never takes another's bytes") {
  std::vector<std::size_t> visited;
  for (const DTypeRow& row : kDTypes) {
    const std::string error = error_of([&] {
      visit<kFloats>("mean", row.dtype, [&]<class T>() { visited.push_back(sizeof(T)); });
    });
    if (is_floating(row.dtype)) {
      CHECK_EQ(error, "");
      CHECK_EQ(visited.back(), size_of(row.dtype));
    } else {
      CHECK(error.find("[mean]") == 0, error);
      CHECK(error.find("float32 or float64: got " + std::string(row.name)) != std::string::npos,
            error);
    }
  }
}

TEST("what is no dtype is an error, not the last row of the table") {
  const auto beyond = DType(std::size(kDTypes));
  CHECK(error_of([&] { visit(beyond, []<class T>() {}); }).find("got no dtype") !=
        std::string::npos);
  CHECK(error_of([] { dtype_from_name("float128"); }).find("uint8 and bool: got 'float128'") !=
        std::string::npos);
}

}  // namespace

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
  for (const DTypeEntry& row : kDTypes) {
    CHECK(dtype_from_name(row.name) == row.dtype);
    CHECK_EQ(std::string(name_of(row.dtype)), row.name);
    const std::size_t bytes = visit(row.dtype, [&]<class T>() {
      CHECK(kDTypeOf<T> == row.dtype);
      return sizeof(T);
    });
    CHECK_EQ(bytes, size_of(row.dtype));
    CHECK(bytes <= kMaxElementBytes);
  }
}

TEST("a type that is stored only is computed in that of its sums") {
  for (const DTypeEntry& row : kDTypes) {
    CHECK_EQ(is_storage_dtype(row.dtype), row.bytes == 2 && is_floating(row.dtype));
    CHECK_EQ((bit_of(row.dtype) & kComputed) != 0, !is_storage_dtype(row.dtype));
    CHECK(sum_type(row.dtype) == (is_storage_dtype(row.dtype) ? DType::kFloat32 : row.dtype));
  }
}

TEST("float16 is rounded to the nearest or even number, at both ends of its range too") {
  const auto bits = [](auto x) { return int(Float16(x).bits); };
  CHECK_EQ(bits(65519.996f), 0x7bff);
  CHECK_EQ(bits(65520.0f), 0x7c00);
  CHECK_EQ(bits(2049), 0x6800);
  CHECK_EQ(bits(2051), 0x6802);
  CHECK_EQ(bits(0x1p-25), 0);
  CHECK_EQ(bits(0x1.0000000001p-25), 1);  // by way of float32 it would be 0
  CHECK_EQ(bits(-0.0f), 0x8000);
  CHECK_EQ(int(BFloat16(std::int64_t(257) << 40).bits), int(BFloat16(256.0 * 0x1p40).bits));
  CHECK_EQ(int(BFloat16((std::int64_t(257) << 40) + 1).bits), int(BFloat16(258.0 * 0x1p40).bits));
}

TEST("every dtype is of one kind") {
  CHECK_EQ(kFloats | kInts | kIntegers | kBools, kAll);
  CHECK_EQ(kFloats & kIntegers, 0u);
  CHECK_EQ(kNumbers & kBools, 0u);
  for (const DTypeEntry& row : kDTypes) {
    CHECK_EQ(is_floating(row.dtype), (bit_of(row.dtype) & kFloats) != 0);
  }
}

TEST("a visit of some dtypes refuses the others by name, and never takes another's bytes") {
  std::vector<std::size_t> visited;
  for (const DTypeEntry& row : kDTypes) {
    const std::string error = error_of([&] {
      visit<kFloats>("mean", row.dtype, [&]<class T>() { visited.push_back(sizeof(T)); });
    });
    if (is_floating(row.dtype)) {
      CHECK_EQ(error, "");
      CHECK_EQ(visited.back(), size_of(row.dtype));
    } else {
      CHECK(error.find("[mean]") == 0, error);
      CHECK(error.find("float32, float64, float16 or bfloat16: got " + std::string(row.name)) !=
                std::string::npos,
            error);
    }
  }
}

TEST("what is not a dtype is an error, not the last row of the table") {
  const auto beyond = DType(std::size(kDTypes));
  CHECK(error_of([&] { visit(beyond, []<class T>() {}); }).find("got no dtype") !=
        std::string::npos);
  CHECK(error_of([] { dtype_from_name("float128"); }).find("uint64 and bool: got 'float128'") !=
        std::string::npos);
}

}  // namespace

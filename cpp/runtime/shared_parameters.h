// Shared memory of all ranks on one machine, for values that are equal on all of them. A variable
// in it exists once, and each rank updates a part of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tensor/array.h"

namespace samegrad {

class SharedParameters {
 public:
  // Pages of zeros, which take memory once they are reserved or written; null where the system
  // gives none.
  static std::shared_ptr<SharedParameters> create(std::int64_t bytes);
  // Opens the memory of another process of this machine by name; null where this is impossible.
  static std::shared_ptr<SharedParameters> open(const std::string& name, std::int64_t bytes);
  ~SharedParameters();
  SharedParameters(const SharedParameters&) = delete;
  SharedParameters& operator=(const SharedParameters&) = delete;

  // By which others open it while this process lives.
  std::string name() const;
  // A part of it as an array, at an address of its own; offset is a multiple of kGrain.
  std::shared_ptr<Buffer> map(const std::shared_ptr<SharedParameters>& self, std::int64_t offset,
                              std::size_t bytes) const;
  // Replaces memory of map() by a private copy of its present contents, which no other process
  // changes.
  static void keep_for_itself(const Buffer& mapped);
  // Takes the memory of one of `count` shares before anything is written, in large pages where the
  // system has them. False if there is not enough: a process that writes to memory that the system
  // cannot supply is killed.
  bool reserve(std::int64_t share, std::int64_t count) const;

  // Pages have 4, 16 or 64 KiB, as the system was built.
  static constexpr std::int64_t kGrain = 64 << 10, kLargePage = 2 << 20;
  // The first offset at which an array of so many bytes may begin after another one.
  static std::int64_t next_offset(std::int64_t end, std::int64_t bytes);

 private:
  SharedParameters(int file, std::int64_t bytes) : file_(file), bytes_(bytes) {}

  const int file_;
  const std::int64_t bytes_;
};

// The position of a variable's value in memory that all ranks map.
class SharedLocation {
 public:
  SharedLocation(std::shared_ptr<SharedParameters> memory, std::int64_t offset)
      : memory_(std::move(memory)), offset_(offset) {}

  // The place as an array that may be written into; `now` is the variable's. Who else holds an
  // array of the place keeps what is in it.
  Array array(const Array& now);

 private:
  const std::shared_ptr<SharedParameters> memory_;
  const std::int64_t offset_;
  std::weak_ptr<Buffer> mapped_;
};

// True if this process has mapped shared parameters at any time. Forked children would see them
// change.
bool has_shared_parameters();

}  // namespace samegrad

// PerReplica: one value that all replicas share, or one value for each replica.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace samegrad {

// at(replica) returns the value of a replica in both cases. Indices and iterators are those of the
// stored values. An object without values belongs to no replica yet.
template <class T>
class PerReplica {
 public:
  using value_type = T;
  using iterator = typename std::vector<T>::iterator;
  using const_iterator = typename std::vector<T>::const_iterator;

  PerReplica() = default;
  PerReplica(std::initializer_list<T> values) : values_(values) {}
  PerReplica(std::vector<T> values) : values_(std::move(values)) {}
  PerReplica(std::size_t replicas, const T& value) : values_(replicas, value) {}
  template <std::input_iterator I>
  PerReplica(I begin, I end) : values_(begin, end) {}

  bool is_shared() const { return values_.size() == 1; }
  const T& at(std::size_t replica) const { return values_[index_of(replica)]; }
  T& at(std::size_t replica) { return values_[index_of(replica)]; }

  // The values in order: the shared one, or those of all replicas.
  const std::vector<T>& values() const { return values_; }
  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  const T& operator[](std::size_t index) const { return values_[checked(index)]; }
  T& operator[](std::size_t index) { return values_[checked(index)]; }
  const T& back() const { return values_.back(); }
  T& back() { return values_.back(); }
  const_iterator begin() const { return values_.begin(); }
  const_iterator end() const { return values_.end(); }
  iterator begin() { return values_.begin(); }
  iterator end() { return values_.end(); }

  void push_back(T value) { values_.push_back(std::move(value)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    return values_.emplace_back(std::forward<Args>(args)...);
  }
  void pop_back() { values_.pop_back(); }
  void clear() { values_.clear(); }
  void swap(PerReplica& other) noexcept { values_.swap(other.values_); }

  bool operator==(const PerReplica&) const = default;

 private:
  std::size_t checked(std::size_t index) const {
    SG_ASSERT(index < values_.size(), "value ", index, " of ", values_.size());
    return index;
  }
  std::size_t index_of(std::size_t replica) const { return is_shared() ? 0 : checked(replica); }

  std::vector<T> values_;
};

}  // namespace samegrad

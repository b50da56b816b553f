// Strongly typed indices: an id of one list cannot index another.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <ostream>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/stable_list.h"

namespace samegrad {

// The index of a T in its list; -1, the default: none. index() and number() convert it for other
// lists, messages and hashes.
template <class T>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::integral auto number) : number_(std::int32_t(number)) {}

  constexpr bool exists() const { return number_ >= 0; }
  constexpr std::size_t index() const { return std::size_t(number_); }
  constexpr std::int32_t number() const { return number_; }

  constexpr Id& operator++() {
    ++number_;
    return *this;
  }
  constexpr Id& operator--() {
    --number_;
    return *this;
  }
  friend constexpr Id operator+(Id id, std::int32_t places) { return Id(id.number_ + places); }
  friend constexpr Id operator-(Id id, std::int32_t places) { return Id(id.number_ - places); }
  friend constexpr std::int32_t operator-(Id a, Id b) { return a.number_ - b.number_; }
  constexpr auto operator<=>(const Id&) const = default;
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << id.number_; }

 private:
  std::int32_t number_ = -1;
};

// The ids [first, last), from the last one if `reversed`.
template <class I>
class IdRange {
 public:
  class iterator {
   public:
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using reference = I;
    using pointer = void;

    constexpr iterator() = default;
    constexpr iterator(I id, std::int32_t step) : id_(id), step_(step) {}
    constexpr I operator*() const { return id_; }
    constexpr iterator& operator++() {
      id_ = id_ + step_;
      return *this;
    }
    constexpr iterator operator++(int) { return std::exchange(*this, {id_ + step_, step_}); }
    constexpr bool operator==(const iterator& other) const { return id_ == other.id_; }

   private:
    I id_;
    std::int32_t step_ = 1;
  };

  constexpr IdRange(I first, I last) : first_(first), last_(last) {}
  constexpr IdRange reversed() const { return {last_ - step_, first_ - step_, -step_}; }
  constexpr iterator begin() const { return {first_, step_}; }
  constexpr iterator end() const { return {last_, step_}; }

 private:
  constexpr IdRange(I first, I last, std::int32_t step) : first_(first), last_(last), step_(step) {}

  I first_, last_;
  std::int32_t step_ = 1;
};

// A list whose elements are found by their ids alone. `List` holds them.
template <class I, class T, class List = std::vector<T>>
class IndexedVector {
 public:
  using value_type = T;
  using iterator = typename List::iterator;
  using const_iterator = typename List::const_iterator;

  IndexedVector() = default;
  explicit IndexedVector(std::size_t size) : list_(size) {}
  IndexedVector(std::size_t size, const T& value) : list_(size, value) {}

  decltype(auto) operator[](I id) {
    SG_ASSERT(contains(id), "id ", id, " of a list of ", size());
    return list_[id.index()];
  }
  decltype(auto) operator[](I id) const {
    SG_ASSERT(contains(id), "id ", id, " of a list of ", size());
    return list_[id.index()];
  }
  decltype(auto) back() { return list_.back(); }
  decltype(auto) back() const { return list_.back(); }

  std::size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  bool contains(I id) const { return id.exists() && id.index() < size(); }
  IdRange<I> ids() const { return {I(0), next_id()}; }
  // The id of the element that is appended next.
  I next_id() const { return I(size()); }
  // The id of an element of this list.
  I id_of(const T& element) const {
    const auto at = &element - list_.data();
    SG_ASSERT(at >= 0 && std::size_t(at) < size(), "an element of another list");
    return I(at);
  }

  I push_back(T value) {
    list_.push_back(std::move(value));
    return I(size() - 1);
  }
  void pop_back() { list_.pop_back(); }
  void assign(std::size_t size, const T& value) { list_.assign(size, value); }
  void resize(std::size_t size) { list_.resize(size); }
  void reserve(std::size_t size) { list_.reserve(size); }
  void clear() { list_.clear(); }

  iterator begin() { return list_.begin(); }
  iterator end() { return list_.end(); }
  const_iterator begin() const { return list_.begin(); }
  const_iterator end() const { return list_.end(); }
  bool operator==(const IndexedVector&) const = default;

 private:
  List list_;
};

template <class I, class T>
using IndexedStableList = IndexedVector<I, T, StableList<T>>;

}  // namespace samegrad

template <class T>
struct std::hash<samegrad::Id<T>> {
  std::size_t operator()(samegrad::Id<T> id) const noexcept { return id.index(); }
};

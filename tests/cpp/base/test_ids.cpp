// Ids, and lists that are found in by them alone.
#include <map>
#include <sstream>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "check.h"

using namespace samegrad;

namespace {

using Cat = Id<struct CatTag>;
using Dog = Id<struct DogTag>;
using Cats = IndexedVector<Cat, int>;

template <class List, class I>
concept Finds = requires(List list, I id) {
  list[id];
};
template <class A, class B>
concept Compares = requires(A a, B b) {
  a == b;
};

static_assert(Finds<Cats, Cat> && !Finds<Cats, Dog> && !Finds<Cats, int>);
static_assert(Finds<const IndexedStableList<Dog, int>, Dog> &&
              !Finds<const IndexedStableList<Dog, int>, Cat>);
static_assert(Compares<Cat, Cat> && !Compares<Cat, Dog> && !Compares<Cat, int>);
static_assert(!std::is_convertible_v<int, Cat> && !std::is_convertible_v<Cat, int>);
static_assert(!std::is_constructible_v<Cat, Dog> && !std::is_assignable_v<Cat&, Dog>);
static_assert(sizeof(Cat) == sizeof(std::int32_t) && std::is_trivially_copyable_v<Cat>);

template <class Ids>
std::string listed(const Ids& ids) {
  std::ostringstream out;
  for (const auto id : ids) out << id << ' ';
  return out.str();
}

TEST("an id starts as none, which no list contains") {
  CHECK(!Cat().exists() && Cat() == Cat(-1) && Cat(0).exists());
  Cats cats(2);
  CHECK(!cats.contains(Cat()) && cats.contains(Cat(1)) && !cats.contains(Cat(2)));
  CHECK(!Cats().contains(Cat(0)));
}

TEST("ids are counted with and compared as their numbers") {
  Cat cat(4);
  CHECK(cat + 2 == Cat(6) && cat - 1 == Cat(3) && Cat(7) - cat == 3);
  CHECK(cat < Cat(5) && Cat() < Cat(0));
  CHECK(++cat == Cat(5));
  CHECK(--cat == Cat(4));
  CHECK(cat.index() == 4 && cat.number() == 4);
  CHECK_EQ(std::hash<Cat>()(cat), std::size_t(4));
  const std::unordered_map<Cat, int> by_hash{{Cat(), 1}, {Cat(3), 2}};
  CHECK(by_hash.at(Cat()) == 1 && by_hash.at(Cat(3)) == 2);
}

TEST("the ids of a list come in order and from the last one, and none of an empty one") {
  CHECK_EQ(listed(Cats(3).ids()), "0 1 2 ");
  CHECK_EQ(listed(Cats(3).ids().reversed()), "2 1 0 ");
  CHECK_EQ(listed(Cats(3).ids().reversed().reversed()), "0 1 2 ");
  CHECK_EQ(listed(Cats().ids()), "");
  CHECK_EQ(listed(Cats().ids().reversed()), "");
}

TEST("ids are those of when they were asked for, though the list grows") {
  Cats cats(2, 7);
  for (Cat cat : cats.ids()) cats.push_back(cats[cat] + 1);
  CHECK_EQ(cats.size(), std::size_t(4));
}

TEST("what is appended has the id that was the next one") {
  IndexedVector<Dog, std::string> dogs;
  for (int i = 0; i < 1000; ++i) {
    const Dog next = dogs.next_id();
    CHECK(dogs.push_back(std::to_string(i)) == next);
    CHECK(dogs.id_of(dogs[next]) == next && dogs.back() == std::to_string(i));
  }
  dogs.pop_back();
  CHECK(dogs.next_id() == Dog(999));
}

TEST("flags are written in place") {
  IndexedVector<Cat, bool> flags(3, false);
  flags[Cat(1)] = true;
  CHECK(!flags[Cat(0)] && flags[Cat(1)] && !flags[Cat(2)]);
  flags.assign(2, true);
  CHECK((flags == IndexedVector<Cat, bool>(2, true)));
}

TEST("elements of a stable list stay where they are while it and its copies grow") {
  IndexedStableList<Dog, int> dogs;
  CHECK(dogs.empty() && dogs.begin() == dogs.end());
  for (int i = 0; i < 21; ++i) dogs.push_back(i);
  IndexedStableList<Dog, int> copy = dogs;
  for (IndexedStableList<Dog, int>* list : {&dogs, &copy}) {
    std::vector<const int*> places;
    for (const int& element : *list) places.push_back(&element);
    for (int i = 21; i < 1000; ++i) CHECK(list->push_back(i) == Dog(std::size_t(i)));
    CHECK(list->size() == 1000 && list->back() == 999);
    int next = 0;
    for (const int& element : std::as_const(*list)) {
      CHECK(element == next && element == (*list)[Dog(std::size_t(next))]);
      if (next < 21) CHECK(&element == places[std::size_t(next)]);
      ++next;
    }
  }
  for (const std::size_t size : {997u, 40u, 32u, 3u, 50u}) {
    copy.resize(size);
    CHECK(copy.size() == size && copy.back() == (size < 50 || size > 900 ? int(size) - 1 : 0));
  }
  CHECK(copy[Dog(2)] == 2 && copy[Dog(3)] == 0);
  copy.pop_back();
  copy.resize(1000);
  dogs = IndexedStableList<Dog, int>();
  CHECK(dogs.empty() && copy.size() == 1000);
}

}  // namespace

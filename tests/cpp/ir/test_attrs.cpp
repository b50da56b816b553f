// Structs of attributes, as those see them who do not know the struct.
#include <cmath>

#include "base/error.h"
#include "check.h"
#include "error_message.h"
#include "fake_ops.h"
#include "tensor/attrs.h"

namespace samegrad::testing {
namespace {

enum class Colour : std::uint8_t { kRed, kGreen };
constexpr std::array<const char*, 2> names_of(Colour) {
  return {"red", "green"};
}

// A field of each kind.
struct AllKinds {
  bool flag = false;
  std::int64_t whole = 3;
  Scalar number = 0.0;
  std::string text = "a";
  Ints list = {1, 2};
  DType dtype = DType::kFloat32;
  Colour colour = Colour::kRed;

  static constexpr auto fields() {
    return std::tuple(defaulted("flag", &AllKinds::flag, "A flag."),
                      required("whole", &AllKinds::whole, "An int."),
                      defaulted("number", &AllKinds::number, "A number."),
                      defaulted("text", &AllKinds::text, "A text."),
                      defaulted("list", &AllKinds::list, "A list."),
                      defaulted("dtype", &AllKinds::dtype, "A dtype."),
                      defaulted("colour", &AllKinds::colour, "A name."));
  }
};

// Lists one of the fields that it has from its base, and one of its own.
struct Derived : AllKinds {
  using Base = AllKinds;
  std::int64_t own = 7;

  static constexpr auto fields() {
    return std::tuple(defaulted("number", &Derived::number, ""),
                      defaulted("own", &Derived::own, ""));
  }
};

template <class Change>
Attrs changed(Change change) {
  AllKinds attrs;
  change(attrs);
  return attrs;
}

Attrs with_number(Scalar number) {
  return changed([&](AllKinds& a) { a.number = number; });
}

TEST("attributes that differ in a field of any kind are others") {
  const Attrs other[] = {changed([](AllKinds& a) { a.flag = true; }),
                         changed([](AllKinds& a) { a.whole = 4; }),
                         with_number(1.0),
                         changed([](AllKinds& a) { a.text = "b"; }),
                         changed([](AllKinds& a) {
                           a.list = {1, 2, 0};
                         }),
                         changed([](AllKinds& a) { a.dtype = DType::kFloat64; }),
                         changed([](AllKinds& a) { a.colour = Colour::kGreen; })};
  const Attrs same = AllKinds{};
  CHECK(same == Attrs(AllKinds{}) && same.hash() == Attrs(AllKinds{}).hash());
  for (std::size_t i = 0; i < std::size(other); ++i) {
    CHECK(!(other[i] == same) && other[i].hash() != same.hash(), i);
    CHECK(other[i] == Attrs(other[i].as<AllKinds>()), i);
  }
}

TEST("numbers are told apart by their bits") {
  const auto same = [](Scalar a, Scalar b) {
    const Attrs x = with_number(a), y = with_number(b);
    CHECK_EQ(x == y, x.hash() == y.hash());
    return x == y;
  };
  CHECK(!same(0.0, -0.0));
  CHECK(!same(1e6, 1e6 + 0.25));
  CHECK(!same(1.0, 1));
  CHECK(same(std::nan(""), std::nan("")));
  CHECK(!same(std::nan(""), std::nan("1")));
  CHECK(same(16777217, 16777217));
}

TEST("texts and lists do not run into each other") {
  const Attrs a = changed([](AllKinds& x) { x.list = {1, 2, 3}; });
  const Attrs b = changed([](AllKinds& x) { x.list = {1, 2}; });
  const Attrs none = changed([](AllKinds& x) { x.list = {}; });
  CHECK(!(a == b) && a.hash() != b.hash() && !(b == none) && b.hash() != none.hash());
}

TEST("attributes print as Python's arguments") {
  CHECK_EQ(to_string(Attrs(AllKinds{})),
           "flag=False, whole=3, number=0, text='a', list=(1, 2), dtype=float32, colour='red'");
  CHECK_EQ(to_string(changed(
               [](AllKinds& a) { a = {true, -1, 0.1, "", {5}, DType::kBool, Colour::kGreen}; })),
           "flag=True, whole=-1, number=0.1, text='', list=(5,), dtype=bool, colour='green'");
  CHECK(to_string(with_number(-0.0)).find(" number=-0,") != std::string::npos);
  CHECK_EQ(to_string(Attrs(Derived{})), "number=0, own=7");
  CHECK_EQ(to_string(Attrs()), "");
}

TEST("a struct reads as itself and as what it is derived from, and as no other") {
  Derived derived;
  derived.number = 2.5;
  derived.colour = Colour::kGreen;
  Attrs attrs = derived;
  CHECK(attrs.as<Derived>().own == 7 && attrs.as<AllKinds>().colour == Colour::kGreen);
  CHECK(!Attrs(AllKinds{}).get_if<Derived>() && !attrs.get_if<FakeAttrs>());
  CHECK(!Attrs().get_if<AllKinds>());
  const std::string op = "paint";
  attrs.set_owner(op);
  CHECK_EQ(message_of([&] { (void)attrs.as<FakeAttrs>(); }),
           "[paint] has Derived and is asked for FakeAttrs.");
  CHECK_EQ(message_of([] { (void)Attrs().as<FakeAttrs>(); }),
           "[attributes] has no attributes and is asked for FakeAttrs.");
}

TEST("a node's attributes name its operation when they are asked for another struct") {
  Graph graph;
  Builder b(graph);
  const OpDef op = row_with_attributes();
  b.apply(op, Values{graph.add_argument(vector_type(3))}, FakeAttrs{.size = 1});
  CHECK_EQ(message_of([&] { (void)graph.nodes[NodeId(0)].attrs.as<OtherAttrs>(); }),
           "[configured] has FakeAttrs and is asked for OtherAttrs.");
}

TEST("copies share their attributes") {
  const Attrs one = AllKinds{};
  const Attrs copy = one;
  CHECK(&one.as<AllKinds>() == &copy.as<AllKinds>());
}

TEST("attributes are set by name") {
  AttrDraft draft("paint", schema_of<AllKinds>());
  draft.set("flag", true);
  draft.set("whole", std::int64_t(8));
  draft.set("number", Scalar(0.5));
  draft.set("text", std::string("t"));
  draft.set("list", Ints{9});
  draft.set("dtype", DType::kInt32);
  draft.set("colour", std::string("green"));
  CHECK(draft.finish() == Attrs(AllKinds{true, 8, 0.5, "t", {9}, DType::kInt32, Colour::kGreen}));
}

TEST("unknown names, wrong kinds and what is missing are refused, with the operation") {
  const auto said = [](auto set) {
    return message_of([&] {
      AttrDraft draft("paint", schema_of<AllKinds>());
      set(draft);
      (void)draft.finish();
    });
  };
  CHECK_EQ(said([](AttrDraft&) {}), "[paint] attribute 'whole' is required.");
  CHECK_EQ(said([](AttrDraft& d) { d.set("wholes", std::int64_t(1)); }),
           "[paint] there is no attribute 'wholes'.");
  CHECK_EQ(said([](AttrDraft& d) { d.set("whole", Scalar(2.5)); }),
           "[paint] attribute 'whole' must be an int: got 2.5.");
  CHECK_EQ(said([](AttrDraft& d) { d.set("list", std::int64_t(1)); }),
           "[paint] attribute 'list' must be a tuple of ints: got 1.");
  CHECK_EQ(said([](AttrDraft& d) { d.set("flag", std::string("yes")); }),
           "[paint] attribute 'flag' must be a bool: got 'yes'.");
  CHECK_EQ(said([](AttrDraft& d) { d.set("colour", std::string("blue")); }),
           "[paint] colour must be 'red' or 'green': got 'blue'.");
}

TEST("a draft takes the fields of the same name, and tells if others say anything") {
  const auto taken = [](const Attrs& from, Attrs& made) {
    AttrDraft draft("paint", schema_of<Derived>());
    const bool all = draft.take(from);
    made = draft.finish();
    return all;
  };
  Attrs made;
  CHECK(taken(with_number(0.25), made) && made.as<Derived>().number == Scalar(0.25));
  CHECK(!taken(changed([](AllKinds& a) { a.colour = Colour::kGreen; }), made));
  CHECK(!taken(changed([](AllKinds& a) { a.list = {}; }), made));
}

TEST("changing integers copies attributes only if one changes") {
  const Attrs one = AllKinds{};
  const auto plus = [&](std::int64_t from, std::int64_t by) {
    return one.with_integers([=](std::int64_t x) { return x == from ? x + by : x; });
  };
  CHECK(&plus(99, 1).as<AllKinds>() == &one.as<AllKinds>());
  CHECK(plus(3, 10).as<AllKinds>().whole == 13 && plus(2, 10).as<AllKinds>().list == Ints({1, 12}));
  CHECK(one == Attrs(AllKinds{}));
}

}  // namespace
}  // namespace samegrad::testing

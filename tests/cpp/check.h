// A small test frame: TEST("behaviour, as a sentence") { … CHECK(…); … } and one main per program.
//
// The program runs all tests, or those whose name contains its first argument.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace check {

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Test {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Registration {
  Registration(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

template <class... Parts>
[[noreturn]] void fail(const char* file, int line, const Parts&... parts) {
  std::ostringstream message;
  message << file << ':' << line << ": ";
  (message << ... << parts);
  throw std::runtime_error(message.str());
}

template <class A, class B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
  if (!(a == b)) fail(file, line, text, ": ", a, " != ", b);
}

inline int run_all(const std::string& filter) {
  int passed = 0, failed = 0;
  for (const Test& test : tests()) {
    if (std::string(test.name).find(filter) == std::string::npos) continue;
    try {
      test.body();
      ++passed;
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED %s\n  %s\n", test.name, error.what());
    }
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

}  // namespace check

#define CHECK_JOIN_(a, b) a##b
#define CHECK_JOIN(a, b) CHECK_JOIN_(a, b)

#define TEST(name) CHECK_TEST(name, __COUNTER__)
#define CHECK_TEST(name, number)                                                                   \
  static void CHECK_JOIN(test_, number)();                                                         \
  static const check::Registration CHECK_JOIN(register_, number)(name, CHECK_JOIN(test_, number)); \
  static void CHECK_JOIN(test_, number)()

// Further arguments are printed on failure.
#define CHECK(condition, ...)                                                                      \
  do {                                                                                             \
    if (!(condition)) check::fail(__FILE__, __LINE__, #condition, " " __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

#define CHECK_EQ(a, b) check::equal((a), (b), #a " == " #b, __FILE__, __LINE__)

#define CHECK_THROWS(expression, Exception)                                                 \
  do {                                                                                      \
    bool thrown = false;                                                                    \
    try {                                                                                   \
      static_cast<void>(expression);                                                        \
    } catch (const Exception&) {                                                            \
      thrown = true;                                                                        \
    }                                                                                       \
    if (!thrown) check::fail(__FILE__, __LINE__, #expression " did not throw " #Exception); \
  } while (false)

#define CHECK_MAIN                                  \
  int main(int argc, char** argv) {                 \
    return check::run_all(argc > 1 ? argv[1] : ""); \
  }

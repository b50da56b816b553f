// Calls that end the process, run in a child.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

// Return the standard error of a call that aborts; "" if it does not abort.
template <class F>
std::string said_before_abort(const F& f) {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    f();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 1024> some;
  for (ssize_t n; (n = read(ends[0], some.data(), some.size())) > 0;) {
    said.append(some.data(), std::size_t(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? said : "";
}

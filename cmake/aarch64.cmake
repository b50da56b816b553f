# Toolchain of a cross build for 64-bit ARM with Debian's g++-aarch64-linux-gnu. SAMEGRAD_SYSROOT in
# the environment is a folder with the libraries of that processor (.ci/aarch64 makes one); without
# it there are those of the compiler's package, which suffice for the kernels.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(libraries /usr/aarch64-linux-gnu)
if(DEFINED ENV{SAMEGRAD_SYSROOT})
  set(libraries $ENV{SAMEGRAD_SYSROOT})
  set(CMAKE_SYSROOT ${libraries})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;${libraries})

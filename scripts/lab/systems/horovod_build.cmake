# Without debug symbols, which setup.py asks for and nobody here reads. CI measures nothing with it, and
# compiles it in half the time.
if("$ENV{CI}" STREQUAL "true")
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -DNDEBUG" CACHE STRING "")
else()
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -DNDEBUG" CACHE STRING "")
endif()

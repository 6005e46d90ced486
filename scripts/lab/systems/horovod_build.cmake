# Without debug symbols, which setup.py asks for and nobody here reads.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -DNDEBUG" CACHE STRING "")

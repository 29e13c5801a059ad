/* The stand-in of NIXL's C interface in a version that can keep lists sorted, and does. */
#define SORTED
#include "nixl.c"

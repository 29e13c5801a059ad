/* The other half of a pair that does not fit: -DSHIM stands in for libstreamsan.so, otherwise for libstreamsan_mpi.so.
 * Both answer and ask as a release with another version of the interface would. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#ifdef SHIM
const void *streamsan_mpi_link(unsigned version, const void *names, unsigned long count, const void *inside) {
    printf("asked with version %u and %lu names\n", version, count);
    return names && inside ? NULL : "nothing was passed";
}
#else
typedef const void *link_function(unsigned, const void *, unsigned long, const void *);

int main(void) {
    link_function *link = (link_function *)dlsym(RTLD_DEFAULT, "streamsan_mpi_link");
    const struct { const char *text; unsigned long len; } name = {"MPI_Send", 8};
    if (!link) return 1;
    printf("%s\n", link(1u << 31, &name, 1, &name) ? "linked" : "refused");
    return 0;
}
#endif

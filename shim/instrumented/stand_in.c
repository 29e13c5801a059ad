/* The library that is found under the name of ThreadSanitizer's shared runtime. It leads to
 * libstreamsan_host.so, and has what that runtime adds to the C library's dynamic symbols: a
 * program that was linked with it takes these from it. */
#include <stddef.h>

extern int __cxa_atexit(void (*)(void *), void *, void *);

/* As the real runtime does: the function is called at the end of the process, also where the object
 * that asked for it has gone before. */
int atexit(void (*function)(void)) { return __cxa_atexit((void (*)(void *))function, NULL, NULL); }

/* What is said to the sanitizers' common part. */
void __sanitizer_print_stack_trace(void) {}
void __sanitizer_set_report_path(const char *path) { (void)path; }
void __sanitizer_set_report_fd(void *fd) { (void)fd; }
void __sanitizer_set_death_callback(void (*function)(void)) { (void)function; }
void __sanitizer_report_error_summary(const char *summary) { (void)summary; }
int RunningOnValgrind(void) { return 0; }

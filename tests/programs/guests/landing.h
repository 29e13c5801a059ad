/* A pinned buffer that a copy brings sevens into, for programs in languages whose runtimes have SIGSEGV handlers of their own. */
#ifndef LANDING_H
#define LANDING_H
enum { LANDING_BYTES = 1 << 16 };
char *landing_open(void);
void landing_start(void);  /* the copy: bytes that are there already */
void landing_finish(void); /* waits for it */
#endif

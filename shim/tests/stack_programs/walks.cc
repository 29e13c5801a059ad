// One scenario by its name: prints captures, or numbers that the test checks.
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <stdint.h>
#include <vector>

extern "C" {
void probe_print();
int probe_python();
size_t probe_capture(uint64_t *out, size_t max);
void probe_modules_changed();
size_t probe_known();
}
#define NOINLINE __attribute__((noinline, noclone))
#define KEEP asm volatile("" ::: "memory")

static const char *scenario;

NOINLINE void at_leaf() { probe_print(); KEEP; }
NOINLINE int at_recursion(int n) { volatile int x = n; if (n == 0) at_leaf(); else at_recursion(n - 1); KEEP; return x; }
NOINLINE int at_dynamic(int n) { char *p = (char *)alloca(n); memset(p, 1, n); at_leaf(); KEEP; return p[n / 2]; }
NOINLINE int at_aligned(int n) { alignas(128) char x[256]; memset(x, n, sizeof x); asm volatile("" ::"r"(x) : "memory"); at_dynamic(n); KEEP; return x[n & 127]; }
struct Throws { NOINLINE void at_catch(int n) { try { at_aligned(n); if (n == 77) throw n; } catch (int) { abort(); } KEEP; } };

NOINLINE void *at_thread(void *) { at_recursion(2); KEEP; return 0; }
static pthread_t start(size_t stack, void *(*f)(void *)) {
  pthread_attr_t a; pthread_attr_init(&a); pthread_attr_setstacksize(&a, stack);
  pthread_t t; if (pthread_create(&t, &a, f, 0)) abort();
  return t;
}

NOINLINE void at_handler(int) { at_leaf(); KEEP; }
NOINLINE void at_raiser() { raise(SIGUSR1); KEEP; }
static int *volatile nowhere;
NOINLINE void at_fault() { *nowhere = 1; KEEP; }
static void on_fault(int) { at_leaf(); _exit(0); }

static ucontext_t home, away;
NOINLINE void at_coroutine() { at_recursion(1); KEEP; swapcontext(&away, &home); }
static void at_cold() { uint64_t b[96]; probe_capture(b, 96); swapcontext(&away, &home); }
NOINLINE void at_switch_to(void (*f)(), void *stack, size_t size) {
  getcontext(&away); away.uc_stack.ss_sp = stack; away.uc_stack.ss_size = size; away.uc_link = &home;
  makecontext(&away, f, 0); swapcontext(&home, &away); KEEP;
}
NOINLINE void at_switch(void *stack, size_t size) { at_switch_to(at_coroutine, stack, size); KEEP; }

// Call sites that take turns at the same stack pointers, frames found by their frame pointer or not, depths that change.
NOINLINE size_t at_one(int n) { uint64_t b[96]; volatile size_t got = n ? at_one(n - 1) : probe_capture(b, 96); KEEP; return got; }
NOINLINE size_t at_two(int n) { uint64_t b[96]; volatile size_t got = n ? at_one(n - 1) + 0 : probe_capture(b, 96); KEEP; return got; }
NOINLINE size_t at_sized(int n) { volatile char *p = (volatile char *)alloca(16 + n * 48); p[n] = 1; size_t got = n & 1 ? at_one(n) : at_two(n); KEEP; return got + p[n] - 1; }
NOINLINE void *at_turns(void *) {
  size_t total = 0;
  for (int i = 0; i < 300; i++) {
    total += at_one(i % 5); total += at_two(i % 5); total += at_two(i % 5);
    total += at_sized(i % 11); if (i % 50 == 0) total += at_one(i);
  }
  return (void *)total;
}

typedef void (*jitted)(void (*)());
// push rbp; mov rbp, rsp; call rdi; pop rbp; ret -- with no unwind information at all
static jitted make_jit(bool frame) {
  unsigned char with[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  unsigned char without[] = {0x48, 0x83, 0xec, 0x18, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x18, 0xc3};
  void *p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (frame) memcpy(p, with, sizeof with); else memcpy(p, without, sizeof without);
  return (jitted)p;
}
NOINLINE void at_jit(bool frame) { make_jit(frame)(at_leaf); KEEP; }

NOINLINE void *at_short(void *) { uint64_t b[96]; size_t n = probe_capture(b, 96); return (void *)n; }
static long resident() { FILE *f = fopen("/proc/self/statm", "r"); long a, b; if (fscanf(f, "%ld %ld", &a, &b) != 2) abort(); fclose(f); return b * 4; }

struct Ender { ~Ender() { if (!strcmp(scenario, "thread-exit")) at_leaf(); KEEP; } };
static thread_local Ender ender;
NOINLINE void *at_ending(void *) { Ender *volatile e = &ender; (void)e; return 0; }

__attribute__((constructor)) static void at_start(int, char **argv) { scenario = argv[1] ? argv[1] : ""; if (!strcmp(scenario, "before-main")) at_leaf(); KEEP; }
__attribute__((destructor)) static void at_end() { if (!strcmp(scenario, "after-main")) at_leaf(); KEEP; }

int main(int, char **argv) {
  auto is = [](const char *name) { return !strcmp(scenario, name); };
  if (is("recursion")) at_recursion(3);
  if (is("no-python")) { printf("%d\n", probe_python()); fflush(stdout); at_leaf(); }
  if (is("deep")) at_recursion(500);
  if (is("odd-frames")) { Throws t; t.at_catch(100); }
  if (is("thread")) { pthread_join(start(64 << 10, at_thread), 0); }
  if (is("signal")) { signal(SIGUSR1, at_handler); at_raiser(); }
  if (is("fault")) { signal(SIGSEGV, on_fault); at_fault(); }
  if (is("alternate-stack") || is("alternate-fault")) {
    stack_t s; memset(&s, 0, sizeof s); s.ss_size = 64 << 10; s.ss_sp = malloc(s.ss_size); sigaltstack(&s, 0);
    struct sigaction a; memset(&a, 0, sizeof a); a.sa_flags = SA_ONSTACK;
    if (is("alternate-stack")) { a.sa_handler = at_handler; sigaction(SIGUSR1, &a, 0); at_recursion(0); at_raiser(); }
    else { a.sa_handler = on_fault; sigaction(SIGSEGV, &a, 0); at_fault(); }
  }
  if (is("fork")) { at_recursion(1); pid_t p = fork(); if (!p) { at_recursion(2); _exit(0); } int s; waitpid(p, &s, 0); return s != 0; }
  if (is("coroutine-heap")) { size_t n = 64 << 10; at_switch(malloc(n), n); at_recursion(0); }
  if (is("coroutine-edge")) { // the stack's end is the end of readable memory
    char *p = (char *)mmap(0, 10 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p + 4096, 8 * 4096, PROT_READ | PROT_WRITE); at_switch(p + 4096, 8 * 4096); at_recursion(0);
  }
  if (is("appetite")) { // how much stack the first capture takes
    size_t n = 64 << 10; unsigned char *p = (unsigned char *)malloc(n); memset(p, 0xa5, n);
    at_switch_to(at_cold, p, n); size_t i = 0; while (p[i] == 0xa5) i++;
    printf("%zu\n", n - i);
  }
  if (is("coroutine-gone")) for (int i = 0; i < 50; i++) {
    char *p = (char *)mmap(0, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    at_switch(p, 64 << 10); munmap(p, 64 << 10); at_recursion(0);
  }
  if (is("jit-frame")) at_jit(true);
  if (is("jit-bare")) at_jit(false);
  if (is("again")) {
    std::vector<pthread_t> all;
    for (int i = 0; i < 4; i++) all.push_back(start(256 << 10, at_turns));
    at_turns(0); at_turns(0);
    for (auto t : all) pthread_join(t, 0);
    printf("%zu\n", probe_known());
  }
  if (is("many-stacks")) { // more than are kept, each a few times
    for (int i = 0; i < 9000; i++) for (int j = 0; j < 2; j++) at_sized(i % 3000);
    printf("%zu\n", probe_known());
  }
  if (is("threads")) {
    uint64_t b[96]; probe_capture(b, 96); long before = 0; size_t least = 96;
    for (int i = 0; i < 4000; i++) {
      void *n; pthread_join(start(32 << 10, at_short), &n); if ((size_t)n < least) least = (size_t)n;
      if (i == 400) before = resident();
    }
    printf("%ld %zu\n", resident() - before, least);
  }
  if (is("thread-exit")) { pthread_join(start(64 << 10, at_ending), 0); }
  if (is("plugin")) {
    // The same addresses, first with one library, then with another.
    for (int round = 0; round < 2; round++) for (int i = 2; i < 4; i++) {
      void *h = dlopen(argv[i], RTLD_NOW); if (!h) { puts(dlerror()); return 1; }
      void (*f)(void (*)()) = (void (*)(void (*)()))dlsym(h, "at_plugin"); f(at_leaf);
      printf("loaded %s at %p\n", argv[i], (void *)f); fflush(stdout);
      dlclose(h); probe_modules_changed();
    }
  }
  if (is("many")) { // several threads walk at once while libraries come and go
    std::vector<pthread_t> all; static volatile bool stop = false;
    auto walker = [](void *) -> void * { size_t total = 0; while (!stop) { uint64_t b[96]; total += probe_capture(b, 96); } return (void *)total; };
    for (int i = 0; i < 4; i++) all.push_back(start(64 << 10, walker));
    for (int i = 0; i < 200; i++) { void *h = dlopen(argv[2 + (i & 1)], RTLD_NOW); void (*f)(void (*)()) = (void (*)(void (*)()))dlsym(h, "at_plugin"); f([] { uint64_t b[96]; probe_capture(b, 96); }); dlclose(h); probe_modules_changed(); }
    stop = true; for (auto t : all) { void *n; pthread_join(t, &n); printf("%d\n", (size_t)n > 0); }
  }
  KEEP;
  return 0;
}

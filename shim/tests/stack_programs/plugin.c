// A library that calls back. PAD moves the call, so that rules and names of two builds differ.
#ifndef PAD
#define PAD 8
#endif
__attribute__((noinline)) void HELPER(void (*f)(void)) { volatile char x[PAD]; x[0] = 1; f(); __asm__ volatile("" ::"r"(x) : "memory"); }
void at_plugin(void (*f)(void)) { volatile char x[PAD]; x[0] = 1; HELPER(f); __asm__ volatile("" ::"r"(x) : "memory"); }

// Preloaded: tells whoever asks for it another size of pages than the kernel's: PAGE_SIZE in the environment. Kernels for Arm have
// pages of 4, 16 or 64 KiB. Says once that it was asked.
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

unsigned long getauxval(unsigned long type) {
    static int asked;
    if (type == AT_PAGESZ && getenv("PAGE_SIZE")) {
        if (!__atomic_exchange_n(&asked, 1, __ATOMIC_RELAXED)) (void)!write(2, "page size: asked\n", 17);
        return strtoul(getenv("PAGE_SIZE"), 0, 10);
    }
    Elf64_auxv_t entry;
    unsigned long value = 0;
    int file = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    while (read(file, &entry, sizeof entry) == sizeof entry)
        if (entry.a_type == type) value = entry.a_un.a_val;
    close(file);
    return value;
}

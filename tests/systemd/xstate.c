/* Lets User-Mode Linux run on processors with AMX.
 *
 * Before Linux 6.13 it hands the kernel a buffer for the extended state that is too small for AMX's tiles, and the kernel refuses to set a
 * state that is not whole. Loaded by LD_PRELOAD, this completes the state with what the process has: only the part behind the buffer.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define WHOLE 16384 /* bytes: more than any processor's extended state */

long ptrace(enum __ptrace_request request, ...) {
    static long (*real)(enum __ptrace_request, ...);
    va_list more;
    va_start(more, request);
    int pid = va_arg(more, int);
    void *address = va_arg(more, void *);
    void *data = va_arg(more, void *);
    va_end(more);
    if (!real)
        real = (long (*)(enum __ptrace_request, ...))dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
        static char whole[WHOLE] __attribute__((aligned(64)));
        struct iovec given = *(struct iovec *)data, all = {whole, WHOLE};
        if (real(PTRACE_GETREGSET, pid, address, &all) < 0)
            return -1;
        if (given.iov_len < all.iov_len)
            memcpy(whole, given.iov_base, given.iov_len);
        else
            memcpy(whole, given.iov_base, all.iov_len);
        return real(PTRACE_SETREGSET, pid, address, &all);
    }
    return real(request, pid, address, data);
}

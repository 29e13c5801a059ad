# Asks in line whether a device can reach an address, in place of calling the runtime for each load
# and store of code that is compiled with -fsanitize=thread. For the GNU assembler on x86-64:
#
#   gcc -fsanitize=thread -Xassembler DIR/streamsan_inline.s -c a.c
#   clang -fsanitize=thread -no-integrated-as -Wa,--defsym,.Lcallq=1,DIR/streamsan_inline.s -c a.c
#   nvcc -Xcompiler -fsanitize=thread -Xcompiler -Xassembler,DIR/streamsan_inline.s -c a.cu
#
# Link with -lstreamsan_host. The assembler reads this file in front of what the compiler wrote. It
# redefines `call` (`callq`, which clang writes): a call of one of the functions below becomes a look at one byte. Only where a
# device can reach the 64 KiB around the address, the run of the instruction is moved on, as
# shim/src/host/touches/runs.rs lays it out; anything else is the function's to do. Compilers hold
# nothing in the registers that a function may change, so these are free here.
#
# Nothing is emitted for what is not asked: code without such calls stays as it is.

	# Given twice, as link-time optimisation may, it counts once.
	.ifndef .Lstreamsan_inline
	.set .Lstreamsan_inline, 1

	# Size and kind (bytes times 8, plus 1 for a store) are in the key of the run above the address.
	.macro __streamsan_access name, what
	movq	__streamsan_granules@GOTPCREL(%rip), %rcx
	movq	%rdi, %rax
	shrq	$16, %rax
	cmpb	$0, (%rcx,%rax)
	jne	2f
1:
	# Out of the way, so that the usual way has no jump. No call stands there: unwinders do not know
	# the place. The function returns to where a call in line would have returned.
	.subsection 1
2:
	movq	__streamsan_gate_1@GOTPCREL(%rip), %r8
	cmpq	$0, 8(%r8)
	je	1b
	leaq	1b(%rip), %rdx
	movzbl	%dl, %ecx
	shll	$8, %ecx
	movq	16(%r8), %rax
	addq	%fs:(%rax), %rcx
	cmpq	$65536, %rcx
	jb	3f
	movabsq	$\what << 48, %rsi
	orq	%rdx, %rsi
	cmpq	%rsi, (%rcx)
	jne	3f
	cmpq	%rdi, 8(%rcx)
	jne	3f
	movl	24(%r8), %esi
	cmpl	%esi, 24(%rcx)
	jne	3f
	addq	16(%rcx), %rdi
	movq	%rdi, 8(%rcx)
	jmp	1b
3:
	pushq	%rdx
	jmp	\name@PLT
	.previous
	.endm

	# First with @PLT, as in code that may lie anywhere, then without it. A chain: a call that is none
	# of these costs two comparisons a function, and nothing else.
	.macro __streamsan_chain suffix, real, target:vararg
	.ifc "\target","__tsan_func_entry\suffix"
	.else
	.ifc "\target","__tsan_func_exit\suffix"
	.else
	.ifc "\target","__tsan_read4\suffix"
	__streamsan_access __tsan_read4, 32
	.else
	.ifc "\target","__tsan_write4\suffix"
	__streamsan_access __tsan_write4, 33
	.else
	.ifc "\target","__tsan_read8\suffix"
	__streamsan_access __tsan_read8, 64
	.else
	.ifc "\target","__tsan_write8\suffix"
	__streamsan_access __tsan_write8, 65
	.else
	.ifc "\target","__tsan_read1\suffix"
	__streamsan_access __tsan_read1, 8
	.else
	.ifc "\target","__tsan_write1\suffix"
	__streamsan_access __tsan_write1, 9
	.else
	.ifc "\target","__tsan_read2\suffix"
	__streamsan_access __tsan_read2, 16
	.else
	.ifc "\target","__tsan_write2\suffix"
	__streamsan_access __tsan_write2, 17
	.else
	.ifc "\target","__tsan_read16\suffix"
	__streamsan_access __tsan_read16, 128
	.else
	.ifc "\target","__tsan_write16\suffix"
	__streamsan_access __tsan_write16, 129
	.else
	.ifc "\target","__tsan_unaligned_read2\suffix"
	__streamsan_access __tsan_unaligned_read2, 16
	.else
	.ifc "\target","__tsan_unaligned_write2\suffix"
	__streamsan_access __tsan_unaligned_write2, 17
	.else
	.ifc "\target","__tsan_unaligned_read4\suffix"
	__streamsan_access __tsan_unaligned_read4, 32
	.else
	.ifc "\target","__tsan_unaligned_write4\suffix"
	__streamsan_access __tsan_unaligned_write4, 33
	.else
	.ifc "\target","__tsan_unaligned_read8\suffix"
	__streamsan_access __tsan_unaligned_read8, 64
	.else
	.ifc "\target","__tsan_unaligned_write8\suffix"
	__streamsan_access __tsan_unaligned_write8, 65
	.else
	.ifc "\target","__tsan_unaligned_read16\suffix"
	__streamsan_access __tsan_unaligned_read16, 128
	.else
	.ifc "\target","__tsan_unaligned_write16\suffix"
	__streamsan_access __tsan_unaligned_write16, 129
	.else
	.ifb \suffix
	\real	\target
	.else
	__streamsan_chain , \real, \target
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endif
	.endm

	# The other spelling is left for the call itself.
	.ifdef .Lcallq
	.macro callq target:vararg
	__streamsan_chain "@PLT", call, \target
	.endm
	.else
	.macro call target:vararg
	__streamsan_chain "@PLT", callq, \target
	.endm
	.endif
	.endif

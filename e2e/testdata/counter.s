# The boot sector of a guest that counts. About nine times a second it writes the next number to
# the second disk, and then prints it behind what it has read from the processor's clock at its
# start: <8 digits 8 digits>. Before that it reads the number before back, and prints <!> if
# that is not what it wrote. Assemble it with:
#
#	as --32 -o counter.o counter.s && ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o counter counter.o

	.code16
	.globl _start
_start:
	cli
	xor %ax, %ax
	mov %ax, %ds
	mov %ax, %es
	mov %ax, %ss
	mov $0x7c00, %sp
	cld
	sti
	rdtsc
	mov %eax, start

again:
	hlt			# the clock of the BIOS ticks 18 times a second
	hlt
	mov count, %ebx
	test %ebx, %ebx
	jz write
	mov $0x42, %ah
	call disk
	jc fault
	cmp %ebx, buffer
	je write
fault:
	mov $'<', %al
	call put
	mov $'!', %al
	call put
	mov $'>', %al
	call put
write:
	incl count
	mov count, %eax
	mov %eax, buffer
	mov $0x4300, %ax
	call disk
	jc fault
	mov $'<', %al
	call put
	mov start, %eax
	call hex
	mov $' ', %al
	call put
	mov count, %eax
	call hex
	mov $'>', %al
	call put
	mov $'\n', %al
	call put
	jmp again

# disk reads the first sector of the second disk into the buffer, or writes it, by what is in AX.
disk:
	mov $packet, %si
	mov $0x81, %dl
	int $0x13
	ret

# hex prints EAX.
hex:
	mov $8, %cx
1:
	rol $4, %eax
	push %eax
	and $15, %al
	add $'0', %al
	cmp $'9', %al
	jbe 2f
	add $('a' - '9' - 1), %al
2:
	call put
	pop %eax
	loop 1b
	ret

# put prints AL.
put:
	mov %al, %ah
	mov $0x3fd, %dx
1:
	in %dx, %al
	test $0x20, %al
	jz 1b
	mov %ah, %al
	mov $0x3f8, %dx
	out %al, %dx
	ret

start:	.long 0
count:	.long 0
packet:	.byte 16, 0		# the packet of the extended calls: one sector, the first
	.word 1
	.word buffer, 0
	.quad 0
	.equ buffer, 0x8000

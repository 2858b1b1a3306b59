# A guest for tests: a boot sector that says that it is up, starts the watchdog i6300esb
# in slot 0x15 of bus 0 with two stages of a second each and no interrupt, and then does nothing.
#
# as --32 -o watchdog.o watchdog.s && ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o watchdog.bin watchdog.o && xxd -p watchdog.bin
.code16
.globl _start
_start:
  cli
  xorw %ax,%ax
  movw %ax,%ds
  cld
  movw $hello,%si
print:
  lodsb
  orb %al,%al
  jz start
  movw $0x3f8,%dx
  outb %al,%dx
  jmp print
start:
  movl $0x8000a860,%eax
  movw $0xcf8,%dx
  outl %eax,%dx
  movw $7,%ax
  movw $0xcfc,%dx
  outw %ax,%dx
  movl $0x8000a868,%eax
  movw $0xcf8,%dx
  outl %eax,%dx
  movb $2,%al
  movw $0xcfc,%dx
  outb %al,%dx
again:
  hlt
  jmp again
hello: .asciz "test guest is up\n"

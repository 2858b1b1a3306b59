# The guest of the tests: a boot sector. It says on the first serial port what it
# does, powers off on the power button, and obeys single letters from the port:
# o powers off, r reboots, d makes it deaf to the power button.
#
# as --32 -o guest.o guest.s && ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o guest.bin guest.o && xxd -p guest.bin
.code16
.globl _start
_start:
  cli
  xorw %ax,%ax
  movw %ax,%ds
  movw %ax,%ss
  movw $0x7c00,%sp
  cld
  sti
  movw $0x602,%dx
  movw $0x100,%ax
  outw %ax,%dx
  movw $hello,%si
  call print
again:
  hlt
  movw $0x3fd,%dx
  inb %dx,%al
  testb $1,%al
  jz button
  movw $0x3f8,%dx
  inb %dx,%al
  cmpb $'o',%al
  je off
  cmpb $'r',%al
  je reboot
  cmpb $'d',%al
  jne button
  movb $1,deaf
  movw $isdeaf,%si
  call print
button:
  cmpb $1,deaf
  je again
  movw $0x600,%dx
  inw %dx,%ax
  testb $1,%ah
  jz again
  movw $pressed,%si
  call print
off:
  movw $bye,%si
  call print
  movw $0x604,%dx
  movw $0x2000,%ax
  outw %ax,%dx
  jmp again
reboot:
  movw $0xcf9,%dx
  movb $6,%al
  outb %al,%dx
  jmp again
print:
  lodsb
  orb %al,%al
  jz done
  pushw %ax
  movw $0x3fd,%dx
full:
  inb %dx,%al
  testb $0x20,%al
  jz full
  popw %ax
  movw $0x3f8,%dx
  outb %al,%dx
  jmp print
done: ret
deaf: .byte 0
hello: .asciz "test guest is up\n"
isdeaf: .asciz "deaf now\n"
pressed: .asciz "power button pressed\n"
bye: .asciz "powering off\n"

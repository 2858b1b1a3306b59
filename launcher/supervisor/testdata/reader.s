# A guest for tests: a boot sector that shows what QEMU opened as its disks. It obeys
# single letters from the first serial port: x writes there the first 24 bytes of each
# disk after the first, w writes the second sector of the first disk to the first one
# of the second disk, r reboots, o powers off.
#
# as --32 -o reader.o reader.s && ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o reader.bin reader.o && xxd -p reader.bin
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
  movw $hello,%si
  call print
again:
  hlt
  movw $0x3fd,%dx
  inb %dx,%al
  testb $1,%al
  jz again
  movw $0x3f8,%dx
  inb %dx,%al
  cmpb $'o',%al
  je off
  cmpb $'r',%al
  je reboot
  cmpb $'w',%al
  je copy
  cmpb $'x',%al
  jne again
  movb $0x81,drive
each:
  movw $0x4200,%ax
  call disk
  jc last
  movw $label,%si
  call print
  movw $0x8000,%si
  movw $24,%cx
  call bytes
  movw $end,%si
  call print
  incb drive
  jmp each
last:
  movw $all,%si
  call print
  jmp again
copy:
  movb $0x80,drive
  movb $1,packet+8
  movw $0x4200,%ax
  call disk
  jc fails
  movb $0x81,drive
  movb $0,packet+8
  movw $0x4300,%ax
  call disk
  jc fails
  movw $written,%si
  call print
  jmp again
fails:
  movb $0,packet+8
  movw $failed,%si
  call print
  jmp again
off:
  movw $0x604,%dx
  movw $0x2000,%ax
  outw %ax,%dx
  jmp again
reboot:
  movw $0xcf9,%dx
  movb $6,%al
  outb %al,%dx
  jmp again
disk:
  movw $packet,%si
  movb drive,%dl
  int $0x13
  ret
bytes:
  lodsb
  call write
  loop bytes
  ret
print:
  lodsb
  orb %al,%al
  jz done
  call write
  jmp print
write:
  pushw %ax
  movw $0x3fd,%dx
full:
  inb %dx,%al
  testb $0x20,%al
  jz full
  popw %ax
  movw $0x3f8,%dx
  outb %al,%dx
done: ret
drive: .byte 0
packet: .byte 16,0
.word 1,0x8000,0
.quad 0
hello: .asciz "test guest is up\n"
label: .asciz "disk begins with "
end: .asciz "\n"
all: .asciz "that was the last disk\n"
written: .asciz "disk written\n"
failed: .asciz "disk failed\n"

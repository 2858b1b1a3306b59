# A boot sector. It says on the first serial port what it does, powers off on the power
# button, and obeys single letters from the port: o powers off, r reboots, d makes it
# ignore the power button, w writes 8 MiB to the second disk, b reads 256 KiB of the
# first, p reports a panic at the port of the panic device, g starts a watchdog ib700
# that expires after two seconds.
#
# as --32 -o guest.o guest.s && ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o guest.bin guest.o
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
  cmpb $'w',%al
  je fill
  cmpb $'b',%al
  je load
  cmpb $'p',%al
  je panic
  cmpb $'g',%al
  je guard
  cmpb $'d',%al
  jne button
  movb $1,ignores
  movw $ignoring,%si
  call print
button:
  cmpb $1,ignores
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
fill:
  movw $256,%cx
more:
  pushw %cx
  movw $packet,%si
  movw $0x4300,%ax
  movb $0x81,%dl
  int $0x13
  popw %cx
  jc fails
  addl $64,packet+8
  loop more
  movw $written,%si
  call print
  jmp again
fails:
  movw $failed,%si
  call print
  jmp again
load:
  movw $8,%cx
part:
  pushw %cx
  movw $packet,%si
  movw $0x4200,%ax
  movb $0x80,%dl
  int $0x13
  popw %cx
  loop part
  movw $loaded,%si
  call print
  jmp again
guard:
  movw $0x443,%dx
  movb $0xe,%al
  outb %al,%dx
  jmp again
panic:
  movw $0x505,%dx
  movb $1,%al
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
ignores: .byte 0
packet: .byte 16,0
.word 64,0x8000,0
.quad 0
hello: .asciz "test guest is up\n"
ignoring: .asciz "power button ignored\n"
pressed: .asciz "power button pressed\n"
bye: .asciz "powering off\n"
written: .asciz "disk written\n"
loaded: .asciz "disk read\n"
failed: .asciz "disk failed\n"

// Package kvm says whether a guest runs on the kernel's KVM.
//
// That /dev/kvm opens and makes a virtual machine says little: there are nodes,
// mostly virtual machines themselves, whose KVM does so and then runs no kernel,
// because it interprets a guest's instructions and knows only some. So [Probe]
// runs a guest: a few instructions of 64-bit code with an interrupt, which a
// kernel needs too, and looks at what they computed. It takes a few milliseconds.
//
// [Usable] asks the Probe and, where the device may not be opened, as in a
// container that was not given it, takes the second best: whether the processors
// say that they can.
//
// Trap: the probe's guest is tiny. That it runs makes it likely that a kernel
// does; that it does not run makes it certain that none does.
package kvm

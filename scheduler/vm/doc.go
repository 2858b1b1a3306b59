// Package vm decides what is to be done for a VirtualMachine. It decides when its VMI is
// made and deleted, from which revision of its spec, and what its status says.
//
// [Decide] is a function of what was observed. It makes one step at a time: a plan that is
// carried out in part, or not at all, is decided on again and converges. The VMI has the
// name of the VM and is controlled by it. A VM does nothing to the guest itself. A stop
// deletes the VMI, and the VMI's own finalizer holds it until the guest is off.
//
//	run strategy     no VMI                   VMI alive     Succeeded              Failed
//	Always           start                    keep          delete, start          delete, start
//	RerunOnFailure   start if asked for, or   keep          delete                 ask for a start, delete
//	                 the strategy is new
//	Manual           start if asked for       keep          keep                   keep
//	Halted           nothing                  delete        delete                 delete
//	Once             start                    keep          keep                   keep
//
// A VM may name an instance type and a preference. The first time, a ControllerRevision of
// the VM's own gets a copy of each, and every later start uses that. Until the VM names
// another one, no change or deletion of the object changes the VM.
//
// Requests for a stop delete the VMI that they name, except under Once and Halted. A VMI
// that ended without ever running is a failed start. Under Always, RerunOnFailure and Once
// the next one waits for 10 s, 40 s, 90 s and so on, at most 5 minutes.
package vm

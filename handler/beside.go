package handler

import "github.com/podvisor/podvisor/launcher/protocol"

// isHeld says that the guest, which is the next thing to be started, must not start yet.
func isHeld(o Observed) bool {
	s := o.Session
	return o.Beside != nil && s.State != nil && s.State.Phase == protocol.Waiting && s.Put == nil
}

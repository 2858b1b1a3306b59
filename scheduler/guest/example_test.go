package guest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/podvisor/podvisor/scheduler/guest"
	"github.com/podvisor/podvisor/vmi"
)

// An observation asks a guest. What is refused is a finding to decide on.
func Example() {
	observe := func(ctx context.Context, g guest.Guests, v *vmi.VirtualMachineInstance) (frozen bool, _ *vmi.Finding) {
		var info vmi.VirtualMachineInstanceGuestAgentInfo
		var refused *vmi.Refusal
		if errors.As(g.Call(ctx, v, "guestosinfo", nil, &info), &refused) {
			return false, &refused.Finding
		}
		return info.FSFreezeStatus != "", nil
	}
	_, why := observe(context.Background(), guest.Guests{}, &vmi.VirtualMachineInstance{Status: vmi.VirtualMachineInstanceStatus{Phase: vmi.PhaseSucceeded}})
	fmt.Println(why.Reason)
	// Output: Unavailable
}

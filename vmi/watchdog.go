package vmi

// Watchdog acts when the guest stops resetting its timer: exactly one model is
// set.
//
// +podvisor:exactlyOne:of=i6300esb;diag288,message="a watchdog has exactly one model"
type Watchdog struct {
	// Name is the device's name, unique in the VMI.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	WatchdogDevice `json:",inline"`
}

// WatchdogDevice is the model of a watchdog.
type WatchdogDevice struct {
	// I6300ESB is the model of amd64.
	// +optional
	I6300ESB *I6300ESBWatchdog `json:"i6300esb,omitempty"`

	// Diag288 is the model of s390x.
	// +optional
	// +podvisor:unserved=VMIs of this architecture do not run yet
	Diag288 *Diag288Watchdog `json:"diag288,omitempty"`
}

// I6300ESBWatchdog is a watchdog on the PCI bus.
type I6300ESBWatchdog struct {
	// Action is what happens when the timer expires: poweroff ends the VMI, reset
	// restarts the guest, shutdown asks it to power off. Default: reset.
	// +optional
	Action WatchdogAction `json:"action,omitempty"`
}

// Diag288Watchdog is the watchdog of s390x.
type Diag288Watchdog struct {
	// Action is what happens when the timer expires: poweroff ends the VMI, reset
	// restarts the guest, shutdown asks it to power off. Default: reset.
	// +optional
	Action WatchdogAction `json:"action,omitempty"`
}

// WatchdogAction is what happens when a watchdog's timer expires.
//
// +podvisor:enum
type WatchdogAction string

// The actions of a watchdog. The zero value stands for reset.
const (
	WatchdogPoweroff WatchdogAction = "poweroff"
	WatchdogReset    WatchdogAction = "reset"
	WatchdogShutdown WatchdogAction = "shutdown"
)

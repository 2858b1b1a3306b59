package vmi

// Clock says what the guest's clock shows at start, and which timers the guest
// has.
type Clock struct {
	ClockOffset `json:",inline"`

	// Timer switches the guest's timers on and off.
	// +optional
	Timer *Timer `json:"timer,omitempty"`
}

// ClockOffset is what the guest's clock shows. If both fields are set, UTC wins.
type ClockOffset struct {
	// UTC sets the clock to UTC, plus an offset. Default, if timezone is not set
	// either.
	// +optional
	UTC *ClockUTC `json:"utc,omitempty"`

	// Timezone sets the clock to the local time of a zone, for example
	// Europe/Rome. The launcher must know the zone. Windows expects this.
	// +optional
	Timezone *string `json:"timezone,omitempty"`
}

// ClockUTC is a clock that follows UTC.
type ClockUTC struct {
	// OffsetSeconds is added to UTC, in seconds. If it is set, the guest's own
	// changes to its clock are lost when the VMI ends. At most a century. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=-3153600000
	// +kubebuilder:validation:Maximum=3153600000
	OffsetSeconds *int `json:"offsetSeconds,omitempty"`
}

// Timer is the set of a guest's timers. One that is left out is as the machine
// type has it.
type Timer struct {
	// HPET is the high precision event timer.
	// +optional
	HPET *HPETTimer `json:"hpet,omitempty"`

	// KVM is the paravirtual clock that Linux uses.
	// +optional
	KVM *KVMTimer `json:"kvm,omitempty"`

	// PIT is the programmable interval timer.
	// +optional
	PIT *PITTimer `json:"pit,omitempty"`

	// RTC is the real time clock.
	// +optional
	RTC *RTCTimer `json:"rtc,omitempty"`

	// Hyperv is the paravirtual clock that Windows uses.
	// +optional
	Hyperv *HypervTimer `json:"hyperv,omitempty"`
}

// TickPolicy says what becomes of ticks that a guest missed while it did not
// run.
//
// +podvisor:enum
type TickPolicy string

// The tick policies. The zero value stands for the hypervisor's choice. The PIT
// knows delay, catchup and discard; the RTC delay and catchup; the HPET delay,
// merge and discard as well as catchup.
const (
	// TickPolicyDelay: late ticks come one after the other at the usual rate, so
	// the guest's time stays behind.
	TickPolicyDelay TickPolicy = "delay"
	// TickPolicyCatchup: late ticks come at a higher rate until time is right.
	TickPolicyCatchup TickPolicy = "catchup"
	// TickPolicyMerge: late ticks come as one.
	TickPolicyMerge TickPolicy = "merge"
	// TickPolicyDiscard: late ticks do not come at all.
	TickPolicyDiscard TickPolicy = "discard"
)

// RTCTrack is the clock that the real time clock follows.
//
// +podvisor:enum
type RTCTrack string

// The clocks that an RTC can follow. The zero value stands for guest.
const (
	RTCTrackGuest RTCTrack = "guest"
	RTCTrackWall  RTCTrack = "wall"
)

// HPETTimer is the high precision event timer.
type HPETTimer struct {
	// TickPolicy says what becomes of ticks that the guest missed: delay,
	// catchup, merge or discard.
	// +optional
	TickPolicy TickPolicy `json:"tickPolicy,omitempty"`

	// Enabled says whether the guest has the timer. Default: true.
	// +optional
	Enabled *bool `json:"present,omitempty"`
}

// KVMTimer is the paravirtual clock of KVM.
type KVMTimer struct {
	// Enabled says whether the guest has the timer. Default: true.
	// +optional
	Enabled *bool `json:"present,omitempty"`
}

// PITTimer is the programmable interval timer.
type PITTimer struct {
	// TickPolicy says what becomes of ticks that the guest missed: delay,
	// catchup or discard.
	// +optional
	TickPolicy TickPolicy `json:"tickPolicy,omitempty"`

	// Enabled says whether the guest has the timer. Default: true.
	// +optional
	Enabled *bool `json:"present,omitempty"`
}

// RTCTimer is the real time clock.
type RTCTimer struct {
	// TickPolicy says what becomes of ticks that the guest missed: delay or
	// catchup.
	// +optional
	TickPolicy TickPolicy `json:"tickPolicy,omitempty"`

	// Enabled says whether the guest has the timer. Default: true. QEMU gives it to
	// every guest, also where this is false.
	// +optional
	Enabled *bool `json:"present,omitempty"`

	// Track is the clock that the timer follows: guest, which stops while the
	// guest is paused, or wall, the node's. Default: guest.
	// +optional
	Track RTCTrack `json:"track,omitempty"`
}

// HypervTimer is the paravirtual clock of Hyper-V.
type HypervTimer struct {
	// Enabled says whether the guest has the timer. Default: true.
	// +optional
	Enabled *bool `json:"present,omitempty"`
}

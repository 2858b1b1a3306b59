package validate

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// zone is the name of a time zone: a path below the zones of the launcher.
var zone = regexp.MustCompile(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`)

// clock checks the zone and what the timers do with ticks that the guest missed.
func clock(at *field.Path, c *vmi.Clock) field.ErrorList {
	if c == nil {
		return nil
	}
	var l field.ErrorList
	if z := c.Timezone; z != nil && *z != "" && !zone.MatchString(*z) {
		l = append(l, field.Invalid(at.Child("timezone"), *z, "must be the name of a time zone, such as Europe/Rome"))
	}
	if u := c.UTC; u != nil && u.OffsetSeconds != nil {
		l = append(l, within(at.Child("utc", "offsetSeconds"), int64(*u.OffsetSeconds), -100*vmi.MostSeconds, 100*vmi.MostSeconds)...)
	}
	t := c.Timer
	if t == nil {
		return l
	}
	timer := at.Child("timer")
	if h := t.HPET; h != nil {
		l = append(l, oneOf(timer.Child("hpet", "tickPolicy"), h.TickPolicy, vmi.TickPolicyDelay, vmi.TickPolicyCatchup, vmi.TickPolicyMerge, vmi.TickPolicyDiscard)...)
	}
	if p := t.PIT; p != nil {
		l = append(l, oneOf(timer.Child("pit", "tickPolicy"), p.TickPolicy, vmi.TickPolicyDelay, vmi.TickPolicyCatchup, vmi.TickPolicyDiscard)...)
	}
	if r := t.RTC; r != nil {
		l = append(l, oneOf(timer.Child("rtc", "tickPolicy"), r.TickPolicy, vmi.TickPolicyDelay, vmi.TickPolicyCatchup)...)
		l = append(l, oneOf(timer.Child("rtc", "track"), r.Track, vmi.RTCTrackGuest, vmi.RTCTrackWall)...)
	}
	return l
}

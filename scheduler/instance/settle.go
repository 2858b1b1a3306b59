package instance

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// changing are the parts of a message that are others with each try: numbers, and the
// identifiers of sandboxes and connections.
var changing = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// steady is the text without what changes with each try.
func steady(text string) string { return changing.ReplaceAllString(text, "#") }

// bareBackOff is the message of a kubelet that waits before it pulls again and does
// not repeat the cause.
var bareBackOff = regexp.MustCompile(`^Back-off pulling image "[^"]*"$`)

// settle is the finding, with the volume before its message, or the one that the
// condition has if that says the same, but for what changes with each try. The kubelet
// alternates between ErrImagePull and ImagePullBackOff: the first is kept.
func settle(o Observed, t vmi.ConditionType, volume string, f vmi.Finding) vmi.Finding {
	now := vmi.Finding{Reason: f.Reason, Message: strings.TrimSpace(volume + f.Message)}
	c := o.VMI.Status.Condition(t)
	if c == nil || c.Status != corev1.ConditionFalse {
		return now
	}
	old := vmi.Finding{Reason: c.Reason, Message: c.Message}
	switch {
	case isPull(old.Reason) && isPull(now.Reason):
		now.Reason = old.Reason
		if strings.HasPrefix(old.Message, volume) && samePull(strings.TrimPrefix(old.Message, volume), f.Message) {
			return old
		}
	case old.Reason == now.Reason && steady(old.Message) == steady(now.Message):
		return old
	}
	return now
}

// samePull reports whether the messages of two tries to pull an image have the same
// cause: one may have it with more around it, and a later one not at all.
func samePull(before, now string) bool {
	a, b := steady(before), steady(now)
	return strings.Contains(a, b) || strings.Contains(b, a) || bareBackOff.MatchString(now)
}

func isPull(reason string) bool { return reason == errImagePull || reason == imagePullBackOff }

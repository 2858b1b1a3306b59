package instance

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// The messages here are those of kubelets and container runtimes, which give them no other
// form. They are compared, and nothing is decided by what they say.

// changing are the parts of a message that are others with each try: numbers, and the
// identifiers of sandboxes and connections.
var changing = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// identifier is what changes in the messages about volumes, whose names may have
// numbers.
var identifier = regexp.MustCompile(`[0-9a-f]{12,}`)

// steady is the message of a finding without what changes with each try.
func steady(f vmi.Finding) string {
	switch f.Reason {
	case failedAttach, failedMount, failedMap:
		return identifier.ReplaceAllString(f.Message, "#")
	}
	return changing.ReplaceAllString(f.Message, "#")
}

// bareBackOff is the message of a kubelet that waits before it pulls again and does
// not repeat the cause.
var bareBackOff = regexp.MustCompile(`^Back-off pulling image "[^"]*"$`)

// settle is the finding, with the volume before its message, or the one that the
// condition has if that says the same, but for what changes with each try. The kubelet
// alternates between ErrImagePull and ImagePullBackOff: the finding goes on to the second
// once, and stays there.
func settle(o Observed, t vmi.ConditionType, volume string, f vmi.Finding) vmi.Finding {
	now := vmi.Finding{Reason: f.Reason, Message: strings.TrimSpace(volume + f.Message)}
	c := o.VMI.Status.Condition(t)
	if c == nil || c.Status != corev1.ConditionFalse {
		return now
	}
	old := vmi.Finding{Reason: c.Reason, Message: c.Message}
	switch {
	case isPull(old.Reason) && isPull(now.Reason):
		if old.Reason == imagePullBackOff {
			now.Reason = imagePullBackOff
		}
		if said, ok := strings.CutPrefix(old.Message, volume); ok && samePull(said, f.Message) {
			now.Message = old.Message
		}
	case old.Reason == now.Reason && steady(old) == steady(now):
		return old
	}
	return now
}

// samePull reports whether the messages of two tries to pull an image have the same
// cause: one may have it with more around it, and a later one not at all.
func samePull(before, now string) bool {
	a, b := changing.ReplaceAllString(before, "#"), changing.ReplaceAllString(now, "#")
	return strings.Contains(a, b) || strings.Contains(b, a) || bareBackOff.MatchString(now)
}

func isPull(reason string) bool { return reason == errImagePull || reason == imagePullBackOff }

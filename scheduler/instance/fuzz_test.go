package instance_test

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
)

// FuzzMessages gives the messages of nodes and containers, which may be any text, to
// the decisions that read them.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{"", "Crashed: x", `pull "example/fedora:40": not found`, "example/fedora:40", "example/fedora:40example/fedora:40.", "A\n: \xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		silent := observe(stored(vmi.PhaseScheduling), launcher(bound))
		silent.Silence = silence(time.Minute, 0, event("FailedMount", text, 0, 0), event("FailedMount", "1"+text, 0, 0))
		again := observe(stored(vmi.PhaseScheduling, condition(vmi.ConditionSynchronized, "ErrImagePull", text)), launcher(bound, waiting("ImagePullBackOff", "2"+text)))
		for _, o := range []instance.Observed{
			silent, again,
			observe(stored(vmi.PhaseScheduling), launcher(bound, waiting("ErrImagePull", text))),
			observe(stored(vmi.PhaseRunning), launcher(exited(1, 1e12, text))),
			observe(stored(vmi.PhaseRunning), launcher(func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, text })),
		} {
			s := statusOf(t, instance.Decide(o))
			for _, c := range s.Conditions {
				require.True(t, utf8.ValidString(c.Message) || !utf8.ValidString(text), "%q", c.Message)
			}
		}
	})
}

package causes

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var badImage = Mistake{Name: "bad image", Kubernetes: "not found", Reasons: []string{"ErrImagePull"}, Message: "volume root"}

// vmiThat is a VMI that says why it is not ready.
func vmiThat(reason, message string) *vmi.VirtualMachineInstance {
	v := vmitest.New()
	v.Status.Reason = reason
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: "GuestNotRunning", Message: message}, metav1.Time{})
	return v
}

// podThat is a pod whose container waits.
func podThat(reason, message string) *corev1.Pod {
	p := &corev1.Pod{}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return p
}

// fed are watches of which one has all objects in their order, so that what is seen
// first is certain.
func fed(objects ...watch.Event) watches {
	all := watch.NewFakeWithChanSize(len(objects), false)
	for _, o := range objects {
		all.Modify(o.Object)
	}
	all.Stop()
	return watches{pods: watch.NewFake(), events: watch.NewFake(), vms: watch.NewFake(), vmis: all}
}

func TestTheCauseIsTheFirstOneThatIsSaid(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		said  []watch.Event
		known bool
		err   bool
	}{
		{"by the pod and then by the VMI", []watch.Event{{Object: podThat("ContainerCreating", "")}, {Object: podThat("ErrImagePull", "not found")}, {Object: vmiThat("ErrImagePull", "volume root: not found")}}, true, false},
		{"by an event and then by the VMI", []watch.Event{{Object: &corev1.Event{Reason: "Failed", Message: "not found"}}, {Object: vmiThat("ErrImagePull", "volume root: not found")}}, true, false},
		{"by the VMI alone", []watch.Event{{Object: vmiThat("", "no pod")}, {Object: vmiThat("ErrImagePull", "volume root: not found")}}, false, false},
		{"another reason names nothing", []watch.Event{{Object: vmiThat("FailedCreate", "volume root: not found")}}, false, true},
		{"another message names nothing", []watch.Event{{Object: vmiThat("ErrImagePull", "volume data")}}, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := fed(tt.said...).await(t.Context(), badImage, time.Now())
			if tt.err {
				require.ErrorContains(t, err, "watch bad image: the watch ended")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.known, c.Kubernetes != nil)
			require.Equal(t, "ErrImagePull", c.Reason)
		})
	}
}

func TestTheCauseOfAVMIsWhatItSaysBetweenTwoTries(t *testing.T) {
	t.Parallel()
	vm := func(status vmi.PrintableStatus) *vmi.VirtualMachine {
		v := &vmi.VirtualMachine{Status: vmi.VirtualMachineStatus{PrintableStatus: status, Reason: "CannotStart"}}
		v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: "VMINotExists", Message: "volume root"}, metav1.Time{})
		return v
	}
	m := Mistake{Name: "a VM", VM: true, Reasons: []string{"CannotStart"}, Message: "volume root"}
	early := []watch.Event{{Object: vmiThat("CannotStart", "volume root")}, {Object: vm(vmi.StatusStarting)}}
	_, err := fed(early...).await(t.Context(), m, time.Now())
	require.ErrorContains(t, err, "the watch ended")
	c, err := fed(append(early, watch.Event{Object: vm(vmi.StatusCrashLoopBackOff)})...).await(t.Context(), m, time.Now())
	require.NoError(t, err)
	require.Equal(t, "CannotStart", c.Reason)
	m.VM = false
	_, err = fed(watch.Event{Object: vm(vmi.StatusCrashLoopBackOff)}).await(t.Context(), m, time.Now())
	require.ErrorContains(t, err, "the watch ended", "a VM is not looked at")
}

func TestThereAreTwentyMistakesAtLeast(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, m := range All(func(name string) string { return name }) {
		require.True(t, m.Refused || len(m.Reasons) > 0, m.Name)
		require.NotEmpty(t, m.Message, m.Name)
		require.LessOrEqual(t, len(m.Name), 31, m.Name)
		names[m.Name] = true
	}
	require.GreaterOrEqual(t, len(names), 20)
}

func TestTheTable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cause Cause
		want  []string
	}{
		{Cause{Kubernetes: new(1500 * time.Millisecond), VMI: 2 * time.Second, Reason: "ErrImagePull", Message: "a\n  b"}, []string{"bad", "image", "1.50", "s", "2.00", "s", "ErrImagePull", "a", "b"}},
		{Cause{VMI: 20 * time.Millisecond, Reason: "FailedCreate", Message: "c"}, []string{"bad", "image", "-", "0.02", "s", "FailedCreate", "c"}},
	} {
		require.Equal(t, tt.want, strings.Fields(Line(badImage, tt.cause)))
		require.Equal(t, strings.Index(Header(), "reason"), strings.Index(Line(badImage, tt.cause), tt.cause.Reason))
	}
}

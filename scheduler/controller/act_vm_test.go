package controller_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/controller"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// meanwhile calls do after the first patch of a spec.
type meanwhile struct {
	http.RoundTripper
	do *func()
}

func (m meanwhile) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := m.RoundTripper.RoundTrip(r)
	if f := *m.do; f != nil && r.Method == http.MethodPatch && !strings.HasSuffix(r.URL.Path, "/status") {
		*m.do = nil
		f()
	}
	return answer, err
}

func TestFailedStartsOfAnotherTemplateCountNoMoreWhoeverElseWrites(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		patch string
		want  vmi.StartFailure
	}{
		"the loop of VMs writes the status": {`{"status":{"desiredGeneration":7}}`, vmi.StartFailure{LastFailedVMIUID: "x"}},
		"a VMI of the new template fails":   {`{"status":{"startFailure":{"consecutiveFailCount":1,"lastFailedVMIUID":"y"}}}`, vmi.StartFailure{ConsecutiveFailCount: 1, LastFailedVMIUID: "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := vmitest.NewVM(vmi.RunAlways)
			v.Namespace, v.Name, v.Annotations = "default", "web-0", map[string]string{}
			v.Status.StartFailure = &vmi.StartFailure{ConsecutiveFailCount: 3, LastFailedVMIUID: "x"}
			cfg := fake.New(v).Config()
			direct, err := client.New(cfg)
			require.NoError(t, err)
			do := func() {
				_, err := direct.VirtualMachines("default").Patch(t.Context(), "web-0", types.MergePatchType, []byte(tt.patch), metav1.PatchOptions{}, "status")
				require.NoError(t, err)
			}
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return meanwhile{next, &do} })
			api, err := client.New(cfg)
			require.NoError(t, err)
			from, err := direct.VirtualMachines("default").Get(t.Context(), "web-0", metav1.GetOptions{})
			require.NoError(t, err)
			to := from.DeepCopy()
			to.Spec.Template.Spec.Domain.CPU = &vmi.CPU{Cores: 2}
			p := &vmpool.VirtualMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
			_, err = controller.Execute(t.Context(), controller.Executor{Client: api, Kube: kubefake.NewClientset()}, vmpool.VirtualMachinePools, p,
				scheduler.Plan{Actions: []scheduler.Action{scheduler.ChangeVM{From: from, To: to}}})
			require.NoError(t, err)
			now, err := direct.VirtualMachines("default").Get(t.Context(), "web-0", metav1.GetOptions{})
			require.NoError(t, err)
			require.Nil(t, do, "another has written")
			require.Equal(t, uint32(2), now.Spec.Template.Spec.Domain.CPU.Cores)
			require.Equal(t, &tt.want, now.Status.StartFailure)
		})
	}
}

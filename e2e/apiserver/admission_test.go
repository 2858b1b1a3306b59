package apiserver

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/admission"
	"github.com/podvisor/podvisor/vmi"
)

// sparse is a manifest that leaves out what it can, in lists too, and that writes
// a quantity as no program would.
func sparse(namespace string) string {
	return `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: vm, namespace: ` + namespace + `, labels: {app: web}}
spec:
  domain:
    memory: {guest: 1024Mi}
    devices:
      disks:
      - {name: a}
      - {name: b, disk: {bus: virtio}}
      interfaces:
      - {name: net, masquerade: {}, ports: [{port: 80}, {name: dns, port: 53, protocol: UDP}]}
  networks: [{name: net, pod: {}}]
  nodeSelector: {zone: a}
  tolerations: [{key: x, operator: Exists}]
  volumes:
  - {name: a, containerDisk: {image: example/a}}
  - {name: b, emptyDisk: {capacity: 1Gi}}
  - {name: c, cloudInitNoCloud: {userData: "#cloud-config"}}
`
}

// bare is a manifest that lists its volumes only.
func bare(namespace string) string {
	return `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: vm, namespace: ` + namespace + `}
spec:
  domain:
    resources: {limits: {cpu: 2, memory: 1024Mi}}
  volumes:
  - {name: a, containerDisk: {image: example/a}}
  - {name: b, emptyDisk: {capacity: 1Gi}}
`
}

func TestWhatIsLeftOutIsFilledInAndWhatIsWrittenStays(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		manifest   func(string) string
		path, want string
	}{
		"lists stay as they were written, but for what is constant": {
			sparse, "{.spec.domain.memory.guest} {.spec.domain.cpu.sockets} {.spec.domain.devices.disks[*].name} {.spec.domain.devices.disks[*].disk.bus} {.spec.domain.devices.interfaces[0].ports[*].protocol} {.spec.volumes[0].containerDisk.imagePullPolicy}",
			"1024Mi 1 a b virtio TCP UDP ",
		},
		"lists that are missing are there": {
			bare, "{.spec.domain.memory.guest} {.spec.domain.resources.requests.cpu} {.spec.domain.cpu.sockets} {.spec.domain.devices.disks[*].name} {.spec.domain.devices.disks[*].disk.bus} {.spec.domain.devices.interfaces} {.spec.networks}",
			`1Gi 2 2 a b sata sata [{"bridge":{},"name":"default"}] [{"name":"default","pod":{}}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWebhooks(t, nil)
			w.serve()
			said, err := kubectl(t, tt.manifest(w.name), "create", "-f", "-")
			require.NoError(t, err, said)
			said, err = kubectl(t, "", "-n", w.name, "get", "vmi", "vm", "-o", "jsonpath="+tt.path+" {.metadata.finalizers}")
			require.NoError(t, err)
			require.Equal(t, tt.want+` ["`+vmi.Finalizer+`"]`, said)
		})
	}
}

// With and without a webhook that answers the second request.
func TestTheSameManifestTwiceIsNoChange(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]func(string) string{"lists": sparse, "no lists": bare} {
		for way, args := range map[string][]string{
			"client-side apply": {"apply", "-f", "-"},
			"server-side apply": {"apply", "--server-side", "-f", "-"},
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				w := newWebhooks(t, nil)
				stop := w.serve()
				manifest := manifest(w.name)
				said, err := kubectl(t, manifest, args...)
				require.NoError(t, err, said)
				first, err := w.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
				require.NoError(t, err)
				require.NotNil(t, first.Spec.Domain.CPU, "it was completed")
				unchanged := func() {
					t.Helper()
					said, err := kubectl(t, manifest, args...)
					require.NoError(t, err, said)
					t.Log(said)
					again, err := w.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
					require.NoError(t, err)
					require.Equal(t, first, again)
					said, err = kubectl(t, manifest, append([]string{"diff"}, args[1:]...)...)
					require.NoError(t, err, "diff finds: %s", said)
				}
				unchanged()
				stop()
				unchanged()
			})
		}
	}
}

func TestAVMIThatWasStoredWithoutDefaultsIsNotCompletedLater(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	said, err := kubectl(t, sparse(w.name), "apply", "-f", "-")
	require.NoError(t, err, said)
	first, err := w.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, first.Spec.Domain.CPU)
	w.serve()
	said, err = kubectl(t, sparse(w.name), "apply", "-f", "-")
	require.NoError(t, err, said)
	_, err = w.vmis.Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"spec":{"domain":{"memory":{"guest":"1Gi"}}}}`), metav1.PatchOptions{})
	require.NoError(t, err, "the same quantity, written differently, is no change")
	again, err := w.vmis.Get(t.Context(), "vm", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, first.Spec, again.Spec)
	_, err = w.vmis.Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"spec":{"terminationGracePeriodSeconds":31}}`), metav1.PatchOptions{})
	require.ErrorContains(t, err, "cannot be changed")
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	_, err := w.vmis.Create(t.Context(), impossible("vm"), metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	var status apierrors.APIStatus
	require.True(t, errors.As(err, &status))
	d := status.Status().Details
	require.Equal(t, []string{"vm", vmi.GroupName, vmi.VirtualMachineInstances.Kind}, []string{d.Name, d.Group, d.Kind})
	var fields []string
	for _, c := range d.Causes {
		require.NotEmpty(t, c.Type)
		require.NotEmpty(t, c.Message)
		fields = append(fields, c.Field)
	}
	require.Equal(t, []string{"spec.domain.devices.disks[1].name", "spec.domain.memory.guest"}, fields)

	generated := impossible("")
	generated.GenerateName = "web-"
	_, err = w.vmis.Create(t.Context(), generated, metav1.CreateOptions{})
	require.ErrorContains(t, err, `"web-`)
}

func TestOnlyAChangedSpecIsReviewed(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	v := w.create(guest("vm"))
	before := w.reviews.Load()
	_, err := w.vmis.Patch(t.Context(), "vm", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"},"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	w.delete(v.Name)
	require.Equal(t, before, w.reviews.Load())
}

func TestVMIsAreCreatedWhileTheWebhooksFail(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, func(w *webhooks) { w.limits = true })
	w.create(guest("before-the-webhooks"))
	stop := w.serve()
	for name, h := range map[string]http.HandlerFunc{
		"a-fault":    func(out http.ResponseWriter, _ *http.Request) { http.Error(out, "no", http.StatusInternalServerError) },
		"nonsense":   func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write([]byte("{}")) },
		"a-panic":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no-answer":  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"no-webhook": http.NotFound,
	} {
		w.answer(h)
		began := time.Now()
		v := w.create(guest(name))
		t.Logf("%s: created in %s", name, time.Since(began).Round(time.Millisecond))
		require.Nil(t, v.Spec.Domain.CPU)
		require.Contains(t, v.Finalizers, vmi.Finalizer, "the policy needs no webhook")
	}
	stop()
	w.create(impossible("no-listener"))
	w.answer(admission.Webhooks{})
	w.serve()
	w.control()
	// virt-controller validates what the webhooks did not.
	w.awaitReason("no-listener", vmi.ConditionSynchronized, "InvalidSpec")
	w.awaitPhase("no-answer", vmi.PhaseScheduling)
}

func TestCertificatesFollowEachOtherWithoutAGap(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, func(w *webhooks) {
		w.config.AuthorityLife, w.config.Life, w.config.Spread, w.config.Pause = 54*time.Second, 24*time.Second, 9*time.Second, time.Millisecond
		w.fresh = true
	})
	w.serve()
	secret := func(name string) *corev1.Secret {
		s, err := world.kube.CoreV1().Secrets(w.name).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return s
	}
	var authorities, certificates []string
	note := func(list *[]string, data []byte) {
		if !slices.Contains(*list, string(data)) {
			*list = append(*list, string(data))
		}
	}
	n := 0
	last := time.Now() // when the webhooks were in force
	end := time.Now().Add(2 * timeout)
	for len(authorities) < 2 || len(certificates) < 5 {
		require.False(t, time.Now().After(end), "%d authorities and %d certificates", len(authorities), len(certificates))
		if err := w.inForce(); err != nil {
			// A certificate is renewed 8 s before its end: only a host that stood lets it end.
			require.Greater(t, time.Since(last), 5*time.Second, "%v", err)
			t.Logf("%s after the last review: %v", time.Since(last).Round(time.Millisecond), err)
			eventually(t, w.inForce)
		}
		last = time.Now()
		n += 3
		time.Sleep(20 * time.Millisecond)
		note(&authorities, secret(w.config.Secret).Data["ca.key"])
		note(&certificates, secret(w.config.Serving).Data["tls.crt"])
	}
	t.Logf("%d reviews with %d authorities and %d certificates", n, len(authorities), len(certificates))
}

func TestReplicasShareOneCertificate(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.keepAuthority()
	a, b := w.serving(), w.serving()
	eventually(t, a.Ready)
	eventually(t, b.Ready)
	eventually(t, func() error {
		one, _ := a.Certificate(nil)
		two, _ := b.Certificate(nil)
		if !slices.Equal(one.Certificate[0], two.Certificate[0]) {
			return errors.New("they serve with different certificates")
		}
		return nil
	})
}

func TestAnAuthorityThatIsLostIsWrittenAgain(t *testing.T) {
	t.Parallel()
	w := newWebhooks(t, nil)
	w.serve()
	kube := world.kube.AdmissionregistrationV1()
	_, err := kube.MutatingWebhookConfigurations().Patch(t.Context(), w.config.Webhooks, types.JSONPatchType, []byte(`[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, kube.ValidatingWebhookConfigurations().Delete(t.Context(), w.config.Webhooks, metav1.DeleteOptions{}))
	require.NoError(t, kube.MutatingWebhookConfigurations().Delete(t.Context(), w.config.Webhooks, metav1.DeleteOptions{}))
	w.register()
	eventually(t, w.inForce)
}

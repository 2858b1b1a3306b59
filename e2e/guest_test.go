package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// ready is what the demo guest writes when it has booted.
const ready = "serving HTTP on port 80"

// guest makes a VMI with the demo guest, the user data and a masqueraded
// interface.
func guest(name, userData string, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := vmitest.New(append([]vmitest.Option{
		vmitest.WithName(name),
		vmitest.WithContainerDisk("root", images.Reference("demo-guest")),
		vmitest.WithCloudInit("seed", userData),
		vmitest.WithMasquerade("default"),
	}, options...)...)
	v.UID = ""
	v.Labels = map[string]string{"app": name}
	return v
}

// cloudConfig is a #cloud-config of the lines.
func cloudConfig(lines ...string) string {
	return "#cloud-config\n" + strings.Join(lines, "\n") + "\n"
}

// service makes a Service with the name for the port 80 of the pods labelled
// app=name.
func (s space) service(name string) {
	s.t.Helper()
	_, err := world.kube.CoreV1().Services(s.name).Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// visitor is a pod from which the tests look at guests.
type visitor struct {
	space
	pod string
}

// newVisitor starts a visitor.
func (s space) newVisitor() visitor {
	s.t.Helper()
	yes, no, user := true, false, int64(1000)
	p, err := world.kube.CoreV1().Pods(s.name).Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "visitor-"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64),
			SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "visitor", Image: images.Reference("tools"), ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{"sleep", "3600"},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	s.kubectl("wait", "--for=condition=Ready", "pod/"+p.Name, "--timeout=300s")
	return visitor{s, p.Name}
}

// exec runs a program in the visitor and returns what it printed. It starts no kubectl,
// for the reason of readConsole.
func (v visitor) exec(program ...string) (string, error) {
	to := world.kube.CoreV1().RESTClient().Post().Namespace(v.name).Resource("pods").Name(v.pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: program, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	session, err := remotecommand.NewWebSocketExecutor(world.config, http.MethodGet, to.URL().String())
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	if err := session.StreamWithContext(v.t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(program, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// fetch gets a page, or an error.
func (v visitor) fetch(url string) (string, error) {
	return v.exec("wget", "-q", "-O", "-", url)
}

// awaitPage gets a page as soon as it is served.
func (v visitor) awaitPage(url string) string {
	v.t.Helper()
	var page string
	eventually(v.t, long, func() (err error) {
		page, err = v.fetch(url)
		return err
	})
	return page
}

package fault

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scene is the components of a namespace, of which one is tried.
type scene struct {
	controller *component
	handler    *component // nil: it is played
	tried      *component
	kubelet    *kubelet // of the handler
}

// newScene starts what a point needs. It is ended also after an error.
func newScene(ctx context.Context, namespace string, p Point) (s scene, err error) {
	if p.Component == "virt-controller" {
		s.controller, err = newController(ctx, namespace, p, "n1", "n2")
		s.tried = s.controller
	} else {
		if err := makeNode(ctx, namespace); err != nil {
			return s, err
		}
		if s.controller, err = newController(ctx, namespace, Point{}, namespace); err != nil {
			return s, err
		}
		s.handler, s.kubelet, err = newHandler(ctx, namespace, p)
		s.tried = s.handler
	}
	if err == nil {
		world.reviews.serve(namespace, s.controller.addr, s.controller.proxy)
	}
	return s, err
}

// newHandler starts the virt-handler of the node that has the name of the namespace.
func newHandler(ctx context.Context, namespace string, p Point) (*component, *kubelet, error) {
	pods := world.kube.CoreV1().Pods(home)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "virt-handler-" + namespace},
		Spec: corev1.PodSpec{NodeName: namespace, ServiceAccountName: "virt-handler", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "virt-handler", Image: "example/virt-handler:v1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, nil, err
	}
	c := &component{name: "virt-handler", namespace: namespace}
	c.command = c.handlerCommand
	c.token, err = newToken(ctx, "virt-handler", &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID})
	if err != nil {
		return nil, nil, err
	}
	c.kubelet = world.nodes.handled(namespace, namespace, filepath.Join(world.dir, namespace+"-"+c.name, "pods"))
	return c, c.kubelet, c.start(p, "")
}

func (c *component) handlerCommand(listen string) *exec.Cmd {
	in := func(name string) string { return filepath.Join(c.dir, name) }
	for _, name := range []string{"pods", "plugins", "cdi"} {
		_ = os.MkdirAll(in(name), 0o711) // without it the program says so
	}
	cmd := exec.Command(filepath.Join(world.dir, "virt-handler"), "-kubeconfig", in("kubeconfig"), "-node-name", c.namespace,
		"-kubelet-pods", in("pods"), "-device-plugins", in("plugins"), "-cdi", in("cdi"), "-kvm", "no", "-allow-emulation",
		"-processors", in("processors.json"), "-pod-resources", in("pod-resources.sock"), "-listen", listen, "-streams", address())
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "POD_NAMESPACE=" + home}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", c.log, c.log
	return cmd
}

func (s scene) awaitReady(ctx context.Context) error {
	err := s.controller.awaitReady(ctx)
	if s.handler != nil && err == nil {
		err = s.handler.awaitReady(ctx)
	}
	return err
}

// oracle says what is wrong on the node.
func (s scene) oracle() error {
	if s.kubelet == nil {
		return nil
	}
	return s.kubelet.oracle()
}

func (s scene) end() {
	for _, c := range []*component{s.handler, s.controller} {
		if c != nil && c.first != nil {
			world.reviews.stop(c.namespace)
			c.end()
		}
	}
	if s.kubelet != nil {
		s.kubelet.end()
	}
}

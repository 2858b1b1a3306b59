package fault

import (
	"context"
	"errors"
	"net"
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
	beside     *component // the handler of the other node
	tried      *component
	kubelet    *kubelet // of the handlers
}

// newScene starts what a point needs. It is ended also after an error.
func newScene(ctx context.Context, namespace string, p Point) (s scene, err error) {
	if p.Component == "virt-controller" {
		s.controller, err = newController(ctx, namespace, p, map[string]string{"n1": world.nodes.movers.host, "n2": world.nodes.movers.host})
		s.tried = s.controller
	} else {
		s.handler, s.beside = handlerOn(namespace, namespace), handlerOn(namespace, namespace+"-b")
		s.tried = s.handler
		err = s.startHandlers(ctx, namespace, p)
	}
	if err == nil {
		world.reviews.serve(namespace, s.controller.addr, s.controller.proxy)
	}
	return s, err
}

func handlerName(node string) string { return "virt-handler-" + node }

// handlerOn is the virt-handler of a node.
func handlerOn(namespace, node string) *component {
	host, _, _ := net.SplitHostPort(address())
	c := &component{name: handlerName(node), namespace: namespace, node: node, streams: net.JoinHostPort(host, "8186")}
	c.command = c.handlerCommand
	return c
}

// startHandlers starts a virt-handler on each of two nodes of the namespace's own, and what
// they need. The first one is tried.
func (s *scene) startHandlers(ctx context.Context, namespace string, p Point) (err error) {
	hosts := map[string]string{}
	for _, c := range []*component{s.handler, s.beside} {
		if err := makeNode(ctx, c.node); err != nil {
			return err
		}
		hosts[c.node], _, _ = net.SplitHostPort(c.streams)
	}
	if s.controller, err = newController(ctx, namespace, Point{}, hosts); err != nil {
		return err
	}
	s.kubelet, err = world.nodes.handled(namespace, s.handler.node, s.beside.node)
	s.handler.kubelet = s.kubelet
	return errors.Join(err, s.handler.startHandler(ctx, p), s.beside.startHandler(ctx, Point{}))
}

// startHandler starts a virt-handler.
func (c *component) startHandler(ctx context.Context, p Point) error {
	pods := world.kube.CoreV1().Pods(home)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: corev1.PodSpec{NodeName: c.node, ServiceAccountName: "virt-handler", AutomountServiceAccountToken: new(false),
			Containers: []corev1.Container{{Name: "virt-handler", Image: "example/virt-handler:v1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	c.token, err = newToken(ctx, "virt-handler", &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID})
	if err != nil {
		return err
	}
	return c.start(p, "")
}

func (c *component) handlerCommand(listen string) *exec.Cmd {
	in := func(name string) string { return filepath.Join(c.dir, name) }
	for _, name := range []string{"pods", "plugins", "cdi"} {
		_ = os.MkdirAll(in(name), 0o711) // without it the program says so
	}
	cmd := exec.Command(filepath.Join(world.dir, "virt-handler"), "-kubeconfig", in("kubeconfig"), "-node-name", c.node,
		"-kubelet-pods", in("pods"), "-device-plugins", in("plugins"), "-cdi", in("cdi"), "-kvm", "no", "-allow-emulation",
		"-processors", in("processors.json"), "-pod-resources", in("pod-resources.sock"), "-listen", listen, "-streams", c.streams)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "POD_NAMESPACE=" + home}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", c.log, c.log
	return cmd
}

func (s scene) awaitReady(ctx context.Context) error {
	for _, c := range []*component{s.controller, s.handler, s.beside} {
		if c == nil {
			continue
		}
		if err := c.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// oracle says what is wrong on the node.
func (s scene) oracle() error {
	if s.kubelet == nil {
		return nil
	}
	return s.kubelet.oracle()
}

func (s scene) end() {
	for _, c := range []*component{s.handler, s.beside, s.controller} {
		if c != nil && c.first != nil {
			world.reviews.stop(c.namespace)
			c.end()
		}
	}
	if s.kubelet != nil {
		s.kubelet.end()
	}
}

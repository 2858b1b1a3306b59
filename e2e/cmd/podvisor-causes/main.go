// Command podvisor-causes measures how long VMIs take to say what is wrong, for the
// mistakes that users make most often, in a local cluster of its own. Run it by
// `make causes`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/causes"
	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/e2e/local"
	"github.com/podvisor/podvisor/internal/command"
)

// limit is how long one mistake is waited for.
const limit = 2 * time.Minute

var program = command.Program{
	Name: "podvisor-causes",
	Usage: `usage: podvisor-causes [FLAG...]

Makes the commonest mistakes in a local cluster of its own, one after the other.
Prints when Kubernetes and when the VMI names the cause, and what the VMI says.
`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Status(run(ctx, os.Args[1:])))
}

func run(ctx context.Context, args []string) (err error) {
	var flags flag.FlagSet
	name := flags.String("name", "causes", "the cluster's name")
	keep := flags.Bool("keep", false, "leave the cluster when done")
	if err := program.ParseFlags(&flags, args); err != nil {
		return err
	}
	site, err := local.Up(ctx, local.Config{Name: *name, Out: os.Stdout})
	if !*keep {
		defer func() { err = errors.Join(err, site.Down(ctx)) }()
	}
	if err != nil {
		return err
	}
	return measure(ctx, causes.Site{Kube: site.Kube, VMIs: site.VMIs})
}

// measure makes all mistakes. One whose cause is not named does not keep the others
// from being measured.
func measure(ctx context.Context, s causes.Site) error {
	fmt.Printf("\n%s\n", causes.Header())
	var failed []error
	for _, m := range causes.All(images.Reference) {
		cause, err := one(ctx, s, m)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.Name, err))
			continue
		}
		fmt.Println(causes.Line(m, cause))
	}
	return errors.Join(failed...)
}

// one makes a mistake in a namespace of its own, in which pods must be restricted.
func one(ctx context.Context, s causes.Site, m causes.Mistake) (causes.Cause, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := s.Kube.CoreV1().Namespaces()
	ns, err := all.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "causes-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return causes.Cause{}, err
	}
	s.Namespace = ns.Name
	cause, err := causes.Measure(ctx, s, m)
	return cause, errors.Join(err, all.Delete(context.WithoutCancel(ctx), ns.Name, metav1.DeleteOptions{}))
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/vmi"
)

// webhooks is the name of Podvisor's webhook configurations.
const webhooks = "virt-controller.kubevirt.io"

// creations is how many VMIs are created for each figure, with and without webhooks.
const creations = 3000

// Admission measures what the webhooks add to the creation of a VMI, and
// prints it. VMIs are created in two namespaces, of which one is excepted from
// the webhooks meanwhile. Each creation is a dry run: nothing is stored, so the
// rest of a creation is as short as it can be.
func (b *Bench) Admission(ctx context.Context) (err error) {
	bare, err := b.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-bare-"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, b.except(ctx, nil), b.Kube.CoreV1().Namespaces().Delete(ctx, bare.Name, metav1.DeleteOptions{}))
	}()
	if err := b.except(ctx, []string{bare.Name}); err != nil {
		return err
	}
	for namespace, want := range map[string]bool{bare.Name: false, b.Namespace: true} {
		if err := b.settled(ctx, namespace, want); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(b.Out, "\ncreation of a VMI, %d each          median      p99   processor time: %s, %s\n", creations, watched[0], watched[1])
	for _, parallel := range []int{1, 20} {
		without, with, err := b.compare(ctx, bare.Name, b.Namespace, parallel)
		if err != nil {
			return err
		}
		for _, row := range []struct {
			name string
			of   creation
		}{{"without webhooks", without}, {"with webhooks", with}} {
			_, _ = fmt.Fprintf(b.Out, "  %2d at a time, %-16s  %8.1f ms %8.1f ms %8.2f ms %8.2f ms\n", parallel, row.name,
				ms(quantile(row.of.took, 0.5)), ms(quantile(row.of.took, 0.99)), ms(row.of.processor[watched[0]])/creations, ms(row.of.processor[watched[1]])/creations)
		}
		_, _ = fmt.Fprintf(b.Out, "  %2d at a time, ratio             %8.2f    %8.2f\n", parallel,
			ms(quantile(with.took, 0.5))/ms(quantile(without.took, 0.5)), ms(quantile(with.took, 0.99))/ms(quantile(without.took, 0.99)))
	}
	return nil
}

// creation is what all creations in one namespace took: each of them, and all of them of the
// processor time of programs.
type creation struct {
	took      []time.Duration
	processor map[string]time.Duration
}

// alternations is how often creations in two namespaces alternate, so that what else the host
// does meets both. Which is first is drawn: what the API server does from time to time, such as
// collecting its garbage, would meet the same one each time.
const alternations = 30

// compare creates VMIs in two namespaces alternately, so many at a time.
func (b *Bench) compare(ctx context.Context, first, second string, parallel int) (creation, creation, error) {
	out := [2]creation{}
	for range alternations {
		for _, i := range rand.Perm(len(out)) {
			namespace := []string{first, second}[i]
			var took []time.Duration
			processor, err := b.during(ctx, func() (err error) {
				took, err = b.create(ctx, namespace, parallel, creations/alternations)
				return err
			})
			if err != nil {
				return creation{}, creation{}, err
			}
			out[i].took = append(out[i].took, took...)
			if out[i].processor == nil {
				out[i].processor = map[string]time.Duration{}
			}
			for name, t := range processor {
				out[i].processor[name] += t
			}
		}
	}
	return out[0], out[1], nil
}

// except makes the webhooks pass over the namespaces.
func (b *Bench) except(ctx context.Context, namespaces []string) error {
	selector := metav1.LabelSelector{}
	if len(namespaces) > 0 {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: namespaces}}
	}
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/webhooks/0/namespaceSelector", "value": selector}})
	if err != nil {
		return err
	}
	kube := b.Kube.AdmissionregistrationV1()
	_, err = kube.MutatingWebhookConfigurations().Patch(ctx, webhooks, types.JSONPatchType, patch, metav1.PatchOptions{})
	_, err2 := kube.ValidatingWebhookConfigurations().Patch(ctx, webhooks, types.JSONPatchType, patch, metav1.PatchOptions{})
	return errors.Join(err, err2)
}

// settled waits until VMIs in the namespace are completed by the webhook, or
// are not.
func (b *Bench) settled(ctx context.Context, namespace string, want bool) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		v, err := b.try(ctx, namespace, "probe")
		if err == nil && (v.Spec.Domain.CPU != nil) == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the webhooks to change: %w", errors.Join(ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// try creates a VMI without storing it.
func (b *Bench) try(ctx context.Context, namespace, name string) (*vmi.VirtualMachineInstance, error) {
	v := b.Guest(name)
	v.Namespace = namespace
	return b.Instances.VirtualMachineInstances(namespace).Create(ctx, v, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// create tries to create n VMIs, so many at a time, and returns how long each took.
func (b *Bench) create(ctx context.Context, namespace string, parallel, n int) ([]time.Duration, error) {
	names := make(chan string)
	var mu sync.Mutex
	var all []time.Duration
	var errs []error
	var wg sync.WaitGroup
	for range parallel {
		wg.Go(func() {
			for name := range names {
				start := time.Now()
				_, err := b.try(ctx, namespace, name)
				took := time.Since(start)
				mu.Lock()
				all, errs = append(all, took), append(errs, err)
				mu.Unlock()
			}
		})
	}
	for i := range n {
		names <- fmt.Sprintf("vmi-%d", i)
	}
	close(names)
	wg.Wait()
	return all, errors.Join(errs...)
}

func quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

package controller

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/client"
	"github.com/podvisor/podvisor/vmi/client/fake"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// send writes to the API server what no client of ours would.
func send(t *testing.T, s *fake.Server, method, name, kind, body string) string {
	t.Helper()
	r := httptest.NewRequest(method, "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"+name, strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Less(t, w.Code, 300, w.Body.String())
	return w.Body.String()
}

func TestAVMIThatCannotBeDecodedStopsNoOther(t *testing.T) {
	t.Parallel()
	s := fake.New(vmitest.New())
	// As it is stored while another schema is in force.
	send(t, s, http.MethodPost, "", "application/json", `{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance",
		"metadata":{"name":"broken","namespace":"default","finalizers":["`+vmi.Finalizer+`"]},"spec":{"domain":{"cpu":{"cores":-1},"memory":{"guest":"64Mi"}}}}`)
	api, err := client.New(s.Config())
	require.NoError(t, err)
	i := api.VirtualMachineInstances("default")
	kube := kubefake.NewClientset()
	c, err := New(Config{Client: api, Kube: kube, Launcher: rendering})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	defer func() { cancel(); require.NoError(t, <-done) }()
	seen := func(ok func() error) {
		t.Helper()
		var err error
		require.Eventually(t, func() bool { err = ok(); return err == nil }, time.Minute, 5*time.Millisecond, "%v", &err)
	}
	synchronized := func() *vmi.Condition {
		v, err := i.Get(ctx, "broken", metav1.GetOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err) || v != nil, "%v", err)
		return v.Status.Condition(vmi.ConditionSynchronized)
	}

	seen(func() error {
		v, err := i.Get(ctx, "testvmi", metav1.GetOptions{})
		if err == nil && v.Status.Phase != vmi.PhaseScheduling {
			err = fmt.Errorf("phase %s", v.Status.Phase)
		}
		return err
	})
	seen(func() error {
		if c := synchronized(); c == nil || c.Reason != "UnreadableSpec" || !strings.HasPrefix(c.Message, "spec.domain.cpu.cores: -1: must be a whole number") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	var events []string
	seen(func() error {
		l, err := kube.CoreV1().Events("default").List(ctx, metav1.ListOptions{})
		events = nil
		for _, e := range l.Items {
			if e.InvolvedObject.Name == "broken" {
				events = append(events, e.Type+" "+e.Reason)
			}
		}
		if err == nil && len(events) == 0 {
			err = fmt.Errorf("no event")
		}
		return err
	})
	require.Equal(t, []string{"Warning UnreadableSpec"}, events)
	require.Equal(t, 1, c.Unreadable())
	pods, err := kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, pods.Items, 1, "of the other VMI")

	// Repaired, it starts; broken again and deleted, it ends with its pod.
	send(t, s, http.MethodPatch, "/broken", string(types.MergePatchType), `{"spec":{"domain":{"cpu":{"cores":1}}}}`)
	var p *corev1.Pod
	seen(func() error {
		v, err := i.Get(ctx, "broken", metav1.GetOptions{})
		if err == nil {
			p, err = kube.CoreV1().Pods("default").Get(ctx, pod.Name(v), metav1.GetOptions{})
		}
		if err == nil && (v.Status.Phase != vmi.PhaseScheduling || v.Status.Condition(vmi.ConditionSynchronized) != nil) {
			err = fmt.Errorf("status %+v", v.Status)
		}
		return err
	})
	require.Equal(t, 0, c.Unreadable())
	send(t, s, http.MethodPatch, "/broken", string(types.MergePatchType), `{"spec":["something else"]}`)
	seen(func() error {
		if c := synchronized(); c == nil || !strings.HasPrefix(c.Message, "spec: a list: must be an object") {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	require.Contains(t, send(t, s, http.MethodGet, "/broken", "", ""), `"spec":["something else"]`, "no write of the status changes it")
	require.NotNil(t, p)
	require.NoError(t, i.Delete(ctx, "broken", metav1.DeleteOptions{}))
	seen(func() error {
		_, err := i.Get(ctx, "broken", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		_, err = kube.CoreV1().Pods("default").Get(ctx, p.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("its pod is still there: %w", err)
		}
		return nil
	})
}

package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/podvisor/podvisor/internal/certificate"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

const (
	handlerApp = "virt-handler"
	// handlersTime is less than the webhook's timeoutSeconds.
	handlersTime = 20 * time.Second
	// handlersPeriod is the time between two looks at the pods of virt-handler.
	handlersPeriod = 200 * time.Millisecond
)

// Uninstalls answers admission reviews at [UninstallPath]: it refuses the
// deletion of what Podvisor consists of while there are VMIs, or objects that make VMIs.
// Without them, the deletion of the namespace, of one of their definitions or of what
// Helm deletes first ends virt-handler first: only before its rights are deleted can it remove from the nodes
// what it has put there. It also deletes the APIServices: Kubernetes finishes no deletion
// of a namespace while the server of one does not answer.
type Uninstalls struct {
	// Kube deletes the DaemonSet of virt-handler and lists its pods. Required.
	Kube kubernetes.Interface
	// Metadata lists the objects of scheduler.GuestKinds, also those that cannot be decoded,
	// and deletes the APIServices. Required.
	Metadata metadata.Interface
	// Namespace is where Podvisor is installed. Required.
	Namespace string
	// Hold keeps the webhook in force after its own deletion, or ends that:
	// [Serving.Hold]. Nil: it ends with its deletion.
	Hold func(ctx context.Context, held bool) error
	// Wait is how long a deletion waits for the end of virt-handler on all nodes. 0:
	// 20 seconds.
	Wait time.Duration
	// Logger logs each refusal, and the end of virt-handler. Nil: nothing is logged.
	Logger *slog.Logger
}

// ServeHTTP answers one review.
func (u Uninstalls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer(w, r, u.Logger, func(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if why := u.refusal(ctx, req); why != "" {
			resource := schema.GroupResource{Group: req.Resource.Group, Resource: req.Resource.Resource}
			return refused(apierrors.NewConflict(resource, req.Name, errors.New(why)))
		}
		return allowed()
	})
}

// refusal says why the object must not be deleted, or nothing.
func (u Uninstalls) refusal(ctx context.Context, req *admissionv1.AdmissionRequest) string {
	switch of := req.Resource.Resource; {
	case of == "namespaces" && req.Name != u.Namespace, of == "configmaps" && req.Namespace != u.Namespace:
		return "" // another one's
	}
	left, err := u.left(ctx)
	dryRun := req.DryRun != nil && *req.DryRun
	switch {
	case err != nil:
		return fmt.Sprintf("list the objects that need it: %v; try again", err)
	case left != "" && !dryRun:
		if err := u.hold(ctx, true); err != nil && u.Logger != nil {
			u.Logger.Warn("a second deletion of Podvisor will not be refused", "err", err)
		}
		return left
	case left != "" || dryRun || !beginsUninstall(req):
		return left
	}
	// One may have been created meanwhile.
	err = u.endHandlers(ctx)
	if err == nil {
		left, err = u.left(ctx)
	}
	if err == nil && left == "" {
		err = errors.Join(u.hold(ctx, false), u.deleteAPIServices(ctx))
	}
	if err != nil {
		return fmt.Sprintf("end virt-handler, the APIServices and the webhook that would refuse it: %v; try again", err)
	}
	return left
}

func (u Uninstalls) hold(ctx context.Context, held bool) error {
	if u.Hold == nil {
		return nil
	}
	return u.Hold(ctx, held)
}

// left says that there are VMIs, or objects that make VMIs, and what to do, or is "". The
// API server is asked, because a cache may be behind it.
func (u Uninstalls) left(ctx context.Context) (string, error) {
	for _, d := range scheduler.GuestKinds() {
		list, err := u.Metadata.Resource(d.Resource()).List(ctx, metav1.ListOptions{Limit: 1})
		switch {
		case apierrors.IsNotFound(err): // there is no such kind any more
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err): // the deletion was allowed, and has come to the role and the account
		case err != nil:
			return "", err
		case len(list.Items) > 0:
			return remains(d, list), nil
		}
	}
	return "", nil
}

// remains is the refusal for the objects in the list, which may have more.
func remains(d vmi.Definition, list *metav1.PartialObjectMetadataList) string {
	var others string
	if n := list.GetRemainingItemCount(); n != nil && *n > 0 {
		others = fmt.Sprintf(" and %d more", *n)
	}
	first := list.Items[0]
	return fmt.Sprintf("%s %s/%s%s would be left without Podvisor: delete them first (kubectl delete vm,vmirs,vmi --all --all-namespaces), then repeat this command; "+
		"to keep Podvisor, apply its manifests again (see docs/operations.md)", d.Kind, first.Namespace, first.Name, others)
}

// beginsUninstall reports whether the deletion is one of those that an uninstall
// begins with, whatever its order. One by Helm begins with a ConfigMap, and the webhook
// reviews no other.
func beginsUninstall(req *admissionv1.AdmissionRequest) bool {
	return req.Resource.Resource == "namespaces" || req.Resource.Resource == "configmaps" || slices.ContainsFunc(scheduler.GuestKinds(), func(d vmi.Definition) bool {
		return d.Resource().GroupResource().String() == req.Name
	})
}

// endHandlers deletes the DaemonSet of virt-handler and waits until its pods are
// gone. A node that does not respond keeps its pod: it is not waited for longer
// than Wait.
func (u Uninstalls) endHandlers(ctx context.Context) error {
	wait := u.Wait
	if wait == 0 {
		wait = handlersTime
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := u.Kube.AppsV1().DaemonSets(u.Namespace).Delete(ctx, handlerApp, metav1.DeleteOptions{PropagationPolicy: &background})
	if ignoreNotFound(err) != nil {
		return fmt.Errorf("delete DaemonSet %s/%s: %w", u.Namespace, handlerApp, err)
	}
	if u.Logger != nil && err == nil {
		u.Logger.Info("ended virt-handler, because Podvisor is being uninstalled", "daemonset", u.Namespace+"/"+handlerApp)
	}
	next := time.NewTicker(handlersPeriod)
	defer next.Stop()
	for {
		pods, err := u.handlers(ctx)
		if err == nil && len(pods) == 0 || ctx.Err() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-next.C:
		}
	}
}

// deleteAPIServices deletes what sends requests of users to virt-controller.
func (u Uninstalls) deleteAPIServices(ctx context.Context) error {
	var errs []error
	for _, name := range certificate.APIServices() {
		if err := u.Metadata.Resource(certificate.APIServiceResource).Delete(ctx, name, metav1.DeleteOptions{}); ignoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("delete APIService %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// handlers are the pods of virt-handler.
func (u Uninstalls) handlers(ctx context.Context) ([]corev1.Pod, error) {
	list, err := u.Kube.CoreV1().Pods(u.Namespace).List(ctx, metav1.ListOptions{LabelSelector: vmi.AppLabel + "=" + handlerApp})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

package apiserver

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// may asks the API server what the user may do with the resource in the namespace, which is of
// the group of VMIs if it names none.
func (s space) may(user, verb, resource, sub string) bool {
	s.t.Helper()
	of := schema.ParseGroupResource(resource)
	r, err := world.kube.AuthorizationV1().SubjectAccessReviews().Create(s.t.Context(), &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: s.name, Group: cmp.Or(of.Group, vmi.GroupName), Resource: of.Resource, Subresource: sub, Verb: verb},
	}}, metav1.CreateOptions{})
	require.NoError(s.t, err)
	return r.Status.Allowed
}

// The roles that Kubernetes' controller manager adds to view, edit and admin.
func TestTheRolesOfUsersReachEveryKindThatRunsGuests(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	for _, role := range []string{"view", "edit"} {
		_, err := world.kube.RbacV1().RoleBindings(s.name).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kubevirt.io:" + role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		r, err := world.kube.RbacV1().ClusterRoles().Get(t.Context(), "kubevirt.io:"+role, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, "true", r.Labels["rbac.authorization.k8s.io/aggregate-to-"+role])
		require.Equal(t, role == "edit", r.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] == "true", "admin has what edit has")
	}
	eventually(t, func() error {
		if !s.may("edit", "create", vmi.VirtualMachineInstances.Resource().Resource, "") || !s.may("view", "get", vmi.VirtualMachineInstances.Resource().Resource, "") {
			return fmt.Errorf("the bindings are not in force yet")
		}
		return nil
	})
	for _, d := range scheduler.GuestKinds() {
		resource := d.Resource().GroupResource().String()
		for _, verb := range []string{"get", "list", "watch"} {
			require.True(t, s.may("view", verb, resource, ""), "%s %s", verb, resource)
			require.True(t, s.may("edit", verb, resource, ""), "%s %s", verb, resource)
		}
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			require.False(t, s.may("view", verb, resource, ""), "%s %s", verb, resource)
			require.True(t, s.may("edit", verb, resource, ""), "%s %s", verb, resource)
			for _, sub := range []string{"status", "finalizers"} {
				require.False(t, s.may("edit", verb, resource, sub), "%s %s/%s", verb, resource, sub)
			}
		}
		require.Equal(t, d.Scale != nil, s.may("view", "get", resource, "scale"))
		require.False(t, s.may("view", "patch", resource, "scale"))
		require.Equal(t, d.Scale != nil, s.may("edit", "patch", resource, "scale"))
	}
}

// What a VM was started from is trusted as far as no user of a namespace writes it.
func TestNoRoleOfUsersWritesRevisions(t *testing.T) {
	t.Parallel()
	newSpace(t)
	for _, role := range []string{"system:aggregate-to-edit", "system:aggregate-to-admin", "kubevirt.io:edit"} {
		r, err := world.kube.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, r.Rules, role)
		for _, rule := range r.Rules {
			require.NotContains(t, rule.Resources, "controllerrevisions", role)
			require.NotContains(t, rule.Resources, "*", role)
		}
	}
}

func TestReservedLabelsAreNotInTemplates(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	m, set := s.owners()
	m.Spec.Template.ObjectMeta.Labels = map[string]string{vmi.NodeNameLabel: "n1", "app": "web"}
	set.Spec.Template.ObjectMeta.Labels[vmi.CreatedByLabel] = "x"
	vms, sets := world.vmis.VirtualMachines(s.name), world.vmis.VirtualMachineInstanceReplicaSets(s.name)
	_, err := vms.Update(t.Context(), m, metav1.UpdateOptions{})
	require.ErrorContains(t, err, "spec.template.metadata.labels: kubevirt.io/nodeName may be written by Podvisor only")
	_, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
	require.ErrorContains(t, err, "spec.template.metadata.labels: kubevirt.io/created-by may be written by Podvisor only")
	m.ObjectMeta = metav1.ObjectMeta{Name: "new"}
	_, err = vms.Create(t.Context(), m, metav1.CreateOptions{})
	require.ErrorContains(t, err, "spec.template.metadata.labels: kubevirt.io/nodeName")
	delete(m.Spec.Template.ObjectMeta.Labels, vmi.NodeNameLabel)
	_, err = vms.Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestAVMHasItsFinalizerAndAnUpdateWithoutItKeepsIt(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	m, set := s.owners()
	require.Equal(t, []string{vmi.VMFinalizer}, m.Finalizers)
	require.Empty(t, set.Finalizers)
	m.Finalizers = []string{"example.com/mine"}
	m, err := world.vmis.VirtualMachines(s.name).Update(t.Context(), m, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"example.com/mine", vmi.VMFinalizer}, m.Finalizers)
}

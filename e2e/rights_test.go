package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/e2e/install"
	"github.com/podvisor/podvisor/vmi"
)

// rare are the rights of the components that neither the installation nor the life of a
// VMI uses, and what uses them.
var rare = map[string]string{
	"virt-certificates list virtualmachineinstancereplicasets":            "an uninstall with VMIs: TestPodvisorIsNotDeletedUnderVMIs",
	"virt-certificates list virtualmachineinstances":                      "an uninstall with VMIs: TestPodvisorIsNotDeletedUnderVMIs",
	"virt-certificates list virtualmachines":                              "an uninstall with VMIs: TestPodvisorIsNotDeletedUnderVMIs",
	"virt-handler patch virtualmachineinstances/status":                   "two versions of Podvisor are in the cluster: TestARollbackAndAnUpgradeLeaveVMIsRunning",
	"virt-controller patch virtualmachineinstances/status":                "a VMI was handed over and its pod ends, or it moves: TestDecide in scheduler/instance",
	"virt-controller patch virtualmachines/status":                        "a user calls a verb of a VM, or two versions of Podvisor are in the cluster",
	"virt-controller create datavolumes":                                  "the cluster has the Containerized Data Importer: TestAVMIsStartedWhenItsDataVolumesAreFilled",
	"virt-controller get datavolumes":                                     "the cluster has the Containerized Data Importer: TestAVMIsStartedWhenItsDataVolumesAreFilled",
	"virt-controller list datavolumes":                                    "the cluster has the Containerized Data Importer: TestAVMIsStartedWhenItsDataVolumesAreFilled",
	"virt-controller watch datavolumes":                                   "the cluster has the Containerized Data Importer: TestAVMIsStartedWhenItsDataVolumesAreFilled",
	"virt-controller get network-attachment-definitions":                  "a VMI has a network of Multus: TestGuestsOfTwoNodesReachEachOtherOnTheNetworksOfMultusAsSoonAsTheyAreDefined",
	"virt-controller create persistentvolumeclaims":                       "a VMI has persistent state: TestAGuestStartedByUEFIHasTheSameTPMAfterAStop",
	"virt-controller patch persistentvolumeclaims":                        "a VMI with persistent state moves: TestAGuestThatMovesKeepsItsTPMAndItsFirmware",
	"virt-controller delete persistentvolumeclaims":                       "a VMI with persistent state moves: TestAGuestThatMovesKeepsItsTPMAndItsFirmware",
	"virt-controller update secrets":                                      "an uninstall with VMIs: TestPodvisorIsNotDeletedUnderVMIs",
	"virt-certificates list virtualmachinepools":                          "an uninstall with VMIs: TestPodvisorIsNotDeletedUnderVMIs",
	"virt-controller create virtualmachines":                              "there is a pool: TestAPoolIsScaledAndItsTemplateReachesItsVMs",
	"virt-controller delete virtualmachines":                              "there is a pool: TestAPoolIsScaledAndItsTemplateReachesItsVMs",
	"virt-controller get virtualmachinepools":                             "there is a pool: TestAPoolIsScaledAndItsTemplateReachesItsVMs",
	"virt-controller patch virtualmachinepools/status":                    "there is a pool: TestAPoolIsScaledAndItsTemplateReachesItsVMs",
	"virt-controller update virtualmachinepools/finalizers":               "the plugin OwnerReferencesPermissionEnforcement asks for it",
	"virt-controller create virtualmachineinstancemigrations":             "a VMI has to leave its node, or its VM is migrated by the verb: scheduler/evacuation",
	"virt-controller delete virtualmachineinstancemigrations":             "a VMI has more than five migrations that have ended: TestDecide in scheduler/migration",
	"virt-controller get virtualmachineinstancemigrations":                "a VMI is migrated: TestAGuestMovesThereAndBackAndItsUsersGoOn",
	"virt-controller patch virtualmachineinstancemigrations":              "a VMI is migrated: TestAGuestMovesThereAndBackAndItsUsersGoOn",
	"virt-controller patch virtualmachineinstancemigrations/status":       "a VMI is migrated: TestAGuestMovesThereAndBackAndItsUsersGoOn",
	"virt-controller create pods/eviction":                                "launchers are outdated, and the configuration has them evicted: TestVMIsWithAnOutdatedLauncherAreMovedOrEvictedInBatches",
	"virt-controller get virtualmachineclusterinstancetypes":              "a VM names one that the cache does not have",
	"virt-controller get virtualmachineclusterpreferences":                "a VM names one that the cache does not have",
	"virt-controller get virtualmachineinstancetypes":                     "a VM names one that the cache does not have",
	"virt-controller get virtualmachinepreferences":                       "a VM names one that the cache does not have",
	"virt-controller get namespaces":                                      "a MigrationPolicy selects namespaces: TestThePolicyOfAVMI",
	"virt-controller act components":                                      "the policies ask for it",
	"virt-controller update virtualmachineinstances/finalizers":           "the plugin OwnerReferencesPermissionEnforcement asks for it",
	"virt-controller update virtualmachineinstancereplicasets/finalizers": "the plugin OwnerReferencesPermissionEnforcement asks for it",
	"virt-controller update virtualmachines/finalizers":                   "the plugin OwnerReferencesPermissionEnforcement asks for it",
	"virt-controller delete controllerrevisions":                          "a VM is started again after it was changed",
	"virt-controller delete apiservices":                                  "an uninstall: TestPodvisorIsDeletedAsItIsInstalled",
	"virt-controller create subjectaccessreviews":                         "a user calls a verb: TestTheRoleEditMayCallEveryVerbAndViewNone",
	"virt-controller delete daemonsets":                                   "an uninstall: TestPodvisorIsNotDeletedUnderVMIs",
	"virt-controller get nodes":                                           "a pod is on a node that the cache does not have",
	"virt-controller get persistentvolumeclaims":                          "a VMI names a claim that the cache does not have",
	"virt-controller get pods":                                            "a pod is missing in the cache, or is evicted",
	"virt-controller get virtualmachineinstances":                         "a pod is evicted, or its VMI is missing in the cache",
	"virt-controller get priorityclasses":                                 "the cluster has a class for pods that name none",
	"virt-controller list events":                                         "a pod waits and does not say why: TestASecretThatIsMissingIsSaidAndTheVMIStartsWhenItIsThere",
	"virt-controller patch kubevirts/status":                              "there is a KubeVirt",
	"virt-handler act components":                                         "the policies ask for it",
	"virt-handler get customresourcedefinitions":                          "virt-handler ends and may not read its DaemonSet",
	"virt-controller create serviceaccounts/token":                        "a user opens a stream: TestAStreamIsOpenedWithATokenForOneNode",
	"virt-controller create tokenreviews":                                 "metrics are read: TestMetricsAreReadWithTheRoleForThem in apiserver",
	"virt-handler create tokenreviews":                                    "a user opens a stream: TestAStreamIsOpenedWithATokenForOneNode",
	"virt-handler create subjectaccessreviews":                            "metrics are read: TestAVMIBootsServesAndPowersOff",
	"virt-handler get daemonsets":                                         "virt-handler ends",
}

// granted are the rights that the manifests give to accounts, as "account verb
// resource".
func granted(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../manifests/rbac/virt-*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for doc := range strings.SplitSeq(string(text), "\n---\n") {
			var role rbacv1.ClusterRole
			require.NoError(t, yaml.Unmarshal([]byte(doc), &role))
			for _, r := range role.Rules {
				for _, resource := range r.Resources {
					for _, verb := range r.Verbs {
						out = append(out, fmt.Sprintf("%s %s %s", role.Name, verb, resource))
					}
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// used are the rights that the components have used since the cluster was made.
func used(t *testing.T) map[string]bool {
	t.Helper()
	f, err := os.Open(world.cluster.AuditLog)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	out := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		var e struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ Resource, Subresource string }
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the last line may not be whole
		}
		if account, ok := strings.CutPrefix(e.User.Username, "system:serviceaccount:"+install.Namespace+":"); ok {
			resource := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
			out[account+" "+e.Verb+" "+resource] = true
			if e.Verb == "watch" { // an informer begins with a list where the API server cannot stream one
				out[account+" list "+resource] = true
			}
		}
	}
	require.NoError(t, lines.Err())
	return out
}

func TestTheComponentsUseEveryRightThatTheyHave(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.create(guest("rights", cloudConfig("hostname: rights")))
	s.useBothKinds(s.editor())
	v := s.awaitPhase("rights", vmi.PhaseRunning)
	s.delete("rights")
	s.awaitGone(v)
	all, has := granted(t), used(t)
	for _, right := range all {
		if !has[right] && rare[right] == "" {
			t.Errorf("nothing uses the right %s: remove it, or say in rare what uses it", right)
		}
	}
	for right := range rare {
		require.Contains(t, all, right, "a right that is not granted is in rare")
	}
}

// editor is an account of the namespace that has Kubernetes' own role edit, and no other.
func (s space) editor() string {
	s.t.Helper()
	s.kubectl("create", "serviceaccount", "editor")
	s.kubectl("create", "rolebinding", "editor", "--clusterrole=edit", "--serviceaccount="+s.name+":editor")
	account := "system:serviceaccount:" + s.name + ":editor"
	eventually(s.t, soon, func() error {
		_, err := world.kubectl.Run(s.t.Context(), "-n", s.name, "--as="+account, "auth", "can-i", "create", "virtualmachines.kubevirt.io")
		return err
	})
	return account
}

// useBothKinds creates a VM and a replica set, stops their guests and deletes them, as
// the account.
func (s space) useBothKinds(account string) {
	t := s.t
	t.Helper()
	as := func(args ...string) string { return s.kubectl(append([]string{"--as=" + account}, args...)...) }
	template := &vmi.VirtualMachineInstanceTemplateSpec{Spec: guest("x", cloudConfig("hostname: x")).Spec}
	template.ObjectMeta.Labels = map[string]string{"set": "many"}
	for _, o := range []vmi.Object{
		&vmi.VirtualMachine{
			TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachines.Kind}, ObjectMeta: metav1.ObjectMeta{Name: "one"},
			Spec: vmi.VirtualMachineSpec{RunStrategy: new(vmi.RunAlways), Template: template},
		},
		&vmi.VirtualMachineInstanceReplicaSet{
			TypeMeta: metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachineInstanceReplicaSets.Kind}, ObjectMeta: metav1.ObjectMeta{Name: "many"},
			Spec: vmi.VirtualMachineInstanceReplicaSetSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: template.ObjectMeta.Labels}, Template: template},
		},
	} {
		manifest, err := json.Marshal(o)
		require.NoError(t, err)
		_, err = world.kubectl.RunInput(t.Context(), bytes.NewReader(manifest), "-n", s.name, "--as="+account, "apply", "-f", "-")
		require.NoError(t, err)
	}
	as("wait", "--for=jsonpath={.status.printableStatus}=Running", "vm/one", "--timeout="+long.String())
	as("wait", "--for=jsonpath={.status.readyReplicas}=1", "vmirs/many", "--timeout="+long.String())
	as("patch", "vm", "one", "--type=merge", "-p", `{"spec":{"runStrategy":"Halted"}}`)
	as("scale", "vmirs", "many", "--replicas=0")
	as("wait", "--for=jsonpath={.status.printableStatus}=Stopped", "vm/one", "--timeout="+long.String())
	as("wait", "--for=delete", "vmi", "-l", "set=many", "--timeout="+long.String())
	as("delete", "vm/one", "vmirs/many", "--timeout="+long.String())
}

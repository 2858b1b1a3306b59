package pod

import (
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
)

// Annotations of a launcher pod.
const (
	defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"
	// evictAnnotation makes the descheduler ask for an eviction and leave it to
	// the VMI's eviction strategy what follows.
	evictAnnotation = "descheduler.alpha.kubernetes.io/request-evict-only"
	// The names that Istio's versions read. Both list the links whose traffic a
	// sidecar takes over as if processes of the pod had sent it.
	istioAnnotation       = "istio.io/reroute-virtual-interfaces"
	legacyIstioAnnotation = "traffic.sidecar.istio.io/kubevirtInterfaces"
	// kubectlAnnotations belong to the object that kubectl applied.
	kubectlAnnotations = "kubectl.kubernetes.io"
)

// maxLabel is the longest label value.
const maxLabel = 63

// maxInName is how much of a VMI's name its pod's name shows. The kubelet keeps the
// pod's log in a folder <namespace>_<pod>_<uid>, whose name has at most 255
// bytes: 63 of the namespace, 36 of the UID, two underscores, and of the pod's name
// the 20 around the VMI's.
const maxInName = 255 - 63 - 36 - 2 - 20

// Name is the name of the VMI's pod: virt-launcher-<name>-<five characters that
// follow from the UID>. It looks generated, but is always the same for the same
// VMI. So creating the pod twice is impossible, whatever a cache says, and a VMI of
// the same name that comes later gets another pod.
func Name(v *vmi.VirtualMachineInstance) string {
	return generateName(v) + digest(string(v.UID), 5)
}

// generateName is the beginning of the pod's name. The name of an object has at
// most 253 characters, the VMI's like the pod's.
func generateName(v *vmi.VirtualMachineInstance) string {
	name := v.Name
	if len(name) > maxInName {
		name = strings.TrimRight(name[:maxInName], "-.")
	}
	return vmi.LauncherApp + "-" + name + "-"
}

func owner(v *vmi.VirtualMachineInstance) metav1.OwnerReference {
	return *metav1.NewControllerRef(v, vmi.VirtualMachineInstances.GroupVersionKind)
}

func labels(v *vmi.VirtualMachineInstance) map[string]string {
	l := map[string]string{}
	for k, val := range v.Labels {
		l[k] = val
	}
	delete(l, vmi.MigrationJobLabel) // a target has that of its migration
	delete(l, vmi.NodeNameLabel)     // is of the pod that the VMI runs in
	delete(l, vmi.MigrationTargetNodeLabel)
	delete(l, vmi.OutdatedLauncherLabel) // the pod has the launcher of now
	l[vmi.AppLabel] = vmi.LauncherApp
	l[vmi.CreatedByLabel] = string(v.UID)
	l[vmi.VMNameLabel] = v.Hostname()
	l[vmi.VMIIDLabel] = id(v.Name)
	return l
}

// id is the name if it fits a label, and otherwise its beginning with a hash.
func id(name string) string {
	if len(name) <= maxLabel {
		return name
	}
	return name[:maxLabel-9] + "-" + digest(name, 8)
}

func annotations(v *vmi.VirtualMachineInstance) map[string]string {
	a := map[string]string{}
	for k, val := range v.Annotations {
		// What Multus has attached is for Multus to write. Which pod a VMI has to leave, and for
		// whom, is not known when a pod is made.
		if !strings.HasPrefix(k, kubectlAnnotations) && k != cni.StatusAnnotation && k != vmi.EvictionInProgressAnnotation && k != vmi.EvictionSourceAnnotation {
			a[k] = val
		}
	}
	maps.Copy(a, cni.Selection(v))
	a[vmi.DomainAnnotation] = v.Name
	a[defaultContainerAnnotation] = vmi.ComputeContainer
	a[evictAnnotation] = ""
	return a
}

// translated says that the guest's traffic reaches the pod network by the pod's
// address, and so passes what a service mesh puts into the pod.
func translated(s *vmi.VirtualMachineInstanceSpec, c Config) bool {
	return slices.ContainsFunc(s.Domain.Devices.Interfaces, func(i vmi.Interface) bool { return network.TraitsOf(i, c.Bindings).Translated })
}

// digest is n characters of those that a name may have.
func digest(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:n]
}

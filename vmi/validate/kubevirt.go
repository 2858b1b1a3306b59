package validate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi"
)

// KubeVirt returns what is wrong with a cluster's configuration, or nothing.
func KubeVirt(k *vmi.KubeVirt) field.ErrorList {
	at := field.NewPath("spec", "configuration")
	l := append(quantity.Faults(at, &k.Spec.Configuration), configuration(at, &k.Spec.Configuration)...)
	if s := k.Spec.WorkloadUpdateStrategy; s != nil {
		l = append(l, workloadUpdates(field.NewPath("spec", "workloadUpdateStrategy"), s)...)
	}
	return l
}

func workloadUpdates(at *field.Path, s *vmi.WorkloadUpdateStrategy) field.ErrorList {
	var l field.ErrorList
	for i, m := range s.WorkloadUpdateMethods {
		l = append(l, exactlyOneOf(at.Child("workloadUpdateMethods").Index(i), m, vmi.WorkloadUpdateLiveMigrate, vmi.WorkloadUpdateEvict)...)
	}
	if n := s.BatchEvictionSize; n != nil && *n < 1 {
		l = append(l, field.Invalid(at.Child("batchEvictionSize"), *n, "must be at least 1"))
	}
	if d := s.BatchEvictionInterval; d != nil && d.Duration < 0 {
		l = append(l, field.Invalid(at.Child("batchEvictionInterval"), d.Duration.String(), "must not be negative"))
	}
	return l
}

// OnlyKubeVirt returns why k cannot be created beside those that exist, or nil:
// a cluster has one configuration.
func OnlyKubeVirt(k *vmi.KubeVirt, existing []*vmi.KubeVirt) *field.Error {
	for _, e := range existing {
		if e.Namespace != k.Namespace || e.Name != k.Name {
			return field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(
				"a cluster has one KubeVirt, and %s/%s is there already: change that one, or delete it first", e.Namespace, e.Name))
		}
	}
	return nil
}

func configuration(at *field.Path, c *vmi.KubeVirtConfiguration) field.ErrorList {
	var l field.ErrorList
	l = append(l, processorName(at.Child("cpuModel"), c.CPUModel)...)
	if p := c.PermittedHostDevices; p != nil {
		l = append(l, permitted(at.Child("permittedHostDevices"), p)...)
	}
	if q := c.CPURequest; q != nil && q.Sign() <= 0 {
		l = append(l, field.Invalid(at.Child("cpuRequest"), q.String(), "must be more than 0"))
	} else if q != nil {
		l = append(l, tooMuch(at.Child("cpuRequest"), *q, maxCPU)...)
	}
	if r := c.AdditionalGuestMemoryOverheadRatio; r != nil {
		l = append(l, overheadRatio(at.Child("additionalGuestMemoryOverheadRatio"), *r)...)
	}
	l = append(l, agentVersions(at.Child("supportedGuestAgentVersions"), c.SupportedGuestAgentVersions)...)
	l = append(l, architectures(at, c)...)
	l = append(l, oneOf(at.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	if n := c.Network; n != nil {
		l = append(l, networkConfiguration(at.Child("network"), n)...)
	}
	if b := c.SMBIOS; b != nil {
		l = append(l, smbios(at.Child("smbios"), b)...)
	}
	if m := c.MigrationConfiguration; m != nil {
		l = append(l, migrations(at.Child("migrations"), m)...)
	}
	l = append(l, component(at.Child("controllerConfiguration"), c.ControllerConfiguration)...)
	l = append(l, component(at.Child("handlerConfiguration"), c.HandlerConfiguration)...)
	if d := c.DeveloperConfiguration; d != nil {
		l = append(l, developer(at.Child("developerConfiguration"), d)...)
	}
	return l
}

func migrations(at *field.Path, m *vmi.MigrationConfiguration) field.ErrorList {
	l := notNegative(at, m.BandwidthPerMigration, m.CompletionTimeoutPerGiB)
	if t := m.ProgressTimeout; t != nil && *t < 0 {
		l = append(l, field.Invalid(at.Child("progressTimeout"), *t, "must not be negative"))
	}
	if k := m.NodeDrainTaintKey; k != nil {
		l = append(l, invalid(at.Child("nodeDrainTaintKey"), *k, validation.IsQualifiedName(*k))...)
	}
	if n := m.Network; n != nil && *n != "" {
		l = append(l, definition(at.Child("network"), *n)...)
	}
	return l
}

// mostOverhead is the largest ratio of the overhead: beyond it, it is a slip.
const mostOverhead = 100

func overheadRatio(at *field.Path, s string) field.ErrorList {
	if r, err := strconv.ParseFloat(s, 64); err != nil || !(r > 0 && r <= mostOverhead) {
		return field.ErrorList{field.Invalid(at, s, fmt.Sprintf("must be a decimal number of more than 0 and at most %d, such as 1.2", mostOverhead))}
	}
	return nil
}

func networkConfiguration(at *field.Path, n *vmi.NetworkConfiguration) field.ErrorList {
	here := at.Child("defaultNetworkInterface")
	l := oneOf(here, n.DefaultNetworkInterface, "bridge", "masquerade")
	if p := n.PermitBridgeInterfaceOnPodNetwork; p != nil && !*p && n.DefaultNetworkInterface == "bridge" {
		l = append(l, field.Invalid(here, n.DefaultNetworkInterface,
			"must not be bridge while permitBridgeInterfaceOnPodNetwork is false: choose masquerade, or permit bridge"))
	}
	return l
}

// maxSMBIOS is the longest string of an SMBIOS table that guests are sure to
// read.
const maxSMBIOS = 64

func smbios(at *field.Path, b *vmi.SMBIOSConfiguration) field.ErrorList {
	var l field.ErrorList
	for _, f := range []struct{ name, value string }{
		{"manufacturer", b.Manufacturer}, {"product", b.Product}, {"version", b.Version}, {"sku", b.Sku}, {"family", b.Family},
	} {
		odd := strings.ContainsFunc(f.value, func(r rune) bool { return r < ' ' || r > '~' })
		if odd || len(f.value) > maxSMBIOS {
			l = append(l, field.Invalid(at.Child(f.name), f.value, fmt.Sprintf("must be at most %d printable ASCII characters", maxSMBIOS)))
		}
	}
	return l
}

func component(at *field.Path, c *vmi.ComponentConfiguration) field.ErrorList {
	if c == nil || c.RestClient == nil || c.RestClient.RateLimiter == nil || c.RestClient.RateLimiter.TokenBucketRateLimiter == nil {
		return nil
	}
	b := c.RestClient.RateLimiter.TokenBucketRateLimiter
	at = at.Child("restClient", "rateLimiter", "tokenBucketRateLimiter")
	var l field.ErrorList
	if !(b.QPS >= 1) {
		l = append(l, field.Invalid(at.Child("qps"), b.QPS, "must be at least 1: with less no request is sent"))
	}
	if b.Burst < 1 {
		l = append(l, field.Invalid(at.Child("burst"), b.Burst, "must be at least 1: with less no request is sent"))
	}
	return l
}

func developer(at *field.Path, d *vmi.DeveloperConfiguration) field.ErrorList {
	var l field.ErrorList
	if d.CPUAllocationRatio < 0 {
		l = append(l, field.Invalid(at.Child("cpuAllocationRatio"), d.CPUAllocationRatio, "must be at least 1"))
	}
	if m := d.MemoryOvercommit; m != 0 && m < 10 {
		l = append(l, field.Invalid(at.Child("memoryOvercommit"), m, "must be at least 10"))
	}
	if p := d.LessPVCSpaceToleration; p < 0 || p > 99 {
		l = append(l, field.Invalid(at.Child("pvcTolerateLessSpaceUpToPercent"), p, "must be from 0, which is the default of 10, to 99"))
	}
	if b := d.MinimumReservePVCBytes; b > vmi.MaxDiskBytes {
		l = append(l, field.Invalid(at.Child("minimumReservePVCBytes"), b, "must be at most 1Pi"))
	}
	for _, k := range slices.Sorted(maps.Keys(d.NodeSelectors)) {
		v, key := d.NodeSelectors[k], at.Child("nodeSelectors").Key(k)
		l = append(l, invalid(key, k, validation.IsQualifiedName(k))...)
		l = append(l, invalid(key, v, validation.IsValidLabelValue(v))...)
	}
	return l
}

// permitted checks the devices of nodes that VMIs may have.
func permitted(at *field.Path, p *vmi.PermittedHostDevices) field.ErrorList {
	var l field.ErrorList
	check := func(at *field.Path, resource string, external bool) {
		if problems := validation.IsQualifiedName(resource); len(problems) > 0 {
			l = append(l, field.Invalid(at.Child("resourceName"), resource, strings.Join(problems, "; ")))
		}
		if !external {
			l = append(l, field.Invalid(at.Child("externalResourceProvider"), external, "must be true: virt-handler offers no such devices, a device plugin of their own does"))
		}
	}
	for i, d := range p.PCIHostDevices {
		check(at.Child("pciHostDevices").Index(i), d.ResourceName, d.ExternalResourceProvider)
	}
	for i, d := range p.MediatedDevices {
		check(at.Child("mediatedDevices").Index(i), d.ResourceName, d.ExternalResourceProvider)
	}
	return l
}

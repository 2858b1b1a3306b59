package validate

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/vmi/quantity"
	"github.com/podvisor/podvisor/vmi/migrationpolicy"
)

// maxDowntimeMs is the longest pause at the end of a migration that libvirt takes.
const maxDowntimeMs = 2_000_000

// MigrationPolicy returns what is wrong with a MigrationPolicy, or nothing.
func MigrationPolicy(p *migrationpolicy.MigrationPolicy) field.ErrorList {
	at, s := field.NewPath("spec"), &p.Spec
	var l field.ErrorList
	if selectors := at.Child("selectors"); s.Selectors == nil {
		l = append(l, field.Required(selectors, "say which VMIs the policy is for: {} is for all"))
	} else {
		l = append(l, labelsOf(selectors.Child("namespaceSelector"), s.Selectors.NamespaceSelector)...)
		l = append(l, labelsOf(selectors.Child("virtualMachineInstanceSelector"), s.Selectors.VirtualMachineInstanceSelector)...)
	}
	l = append(l, quantity.Faults(at, s)...)
	l = append(l, notNegative(at, s.BandwidthPerMigration, s.CompletionTimeoutPerGiB)...)
	if d := s.MaxDowntimeMs; d != nil && (*d == 0 || *d > maxDowntimeMs) {
		l = append(l, field.Invalid(at.Child("maxDowntimeMs"), *d, "must be from 1 to 2000000"))
	}
	return l
}

// notNegative are the faults of the limits of one migration that are set.
func notNegative(at *field.Path, bandwidth *resource.Quantity, seconds *int64) field.ErrorList {
	var l field.ErrorList
	if bandwidth != nil && bandwidth.Sign() < 0 {
		l = append(l, field.Invalid(at.Child("bandwidthPerMigration"), bandwidth.String(), "must not be negative"))
	}
	if seconds != nil && *seconds < 0 {
		l = append(l, field.Invalid(at.Child("completionTimeoutPerGiB"), *seconds, "must not be negative"))
	}
	return l
}

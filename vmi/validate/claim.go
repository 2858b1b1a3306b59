package validate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// claimed is a device that dynamic resource allocation gives to the pod.
type claimed struct {
	at *field.Path
	// device is the resource that the device names beside its claim.
	device         string
	claim, request string
}

func claimedDevice(at *field.Path, device string, r *vmi.ClaimRequest) claimed {
	c := claimed{at: at, device: device}
	if r.ClaimName != nil {
		c.claim = *r.ClaimName
	}
	if r.RequestName != nil {
		c.request = *r.RequestName
	}
	return c
}

// claims checks the devices of one list that come from claims.
func claims(at *field.Path, all []claimed, off bool) field.ErrorList {
	if len(all) > 0 && off {
		return field.ErrorList{field.Invalid(at, plural(len(all), "device"), "devices by resource claims are switched off in this cluster's configuration: leave them out")}
	}
	var l field.ErrorList
	for _, c := range all {
		if c.device != "" {
			l = append(l, field.Invalid(c.at, c.device, "must have one of deviceName and claimName: leave one out"))
		}
		if c.claim == "" {
			l = append(l, field.Required(c.at.Child("claimName"), "name one of the spec's resourceClaims"))
		}
		if c.request == "" {
			l = append(l, field.Required(c.at.Child("requestName"), "name the request of the claim that the device is allocated for"))
		}
	}
	return l
}

// resourceClaims checks the claims of the pod, and that each that a device names
// is there.
func resourceClaims(spec *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	var l field.ErrorList
	at, devices := spec.Child("resourceClaims"), spec.Child("domain", "devices")
	names := map[string]bool{}
	for i := range s.ResourceClaims {
		c := &s.ResourceClaims[i]
		l = append(l, resourceClaim(at.Index(i), c)...)
		if names[c.Name] {
			l = append(l, repeated(at.Index(i).Child("name"), c.Name, "claim"))
		}
		names[c.Name] = true
	}
	missing := func(device *field.Path, r *vmi.ClaimRequest) {
		if r == nil || r.ClaimName == nil || *r.ClaimName == "" || names[*r.ClaimName] {
			return
		}
		l = append(l, as(at.String(), field.Invalid(device.Child("claimName"), *r.ClaimName, "there is no claim of this name: add one to resourceClaims")))
	}
	for i, g := range s.Domain.Devices.GPUs {
		missing(devices.Child("gpus").Index(i), g.ClaimRequest)
	}
	for i, d := range s.Domain.Devices.HostDevices {
		missing(devices.Child("hostDevices").Index(i), d.ClaimRequest)
	}
	return l
}

// resourceClaim checks what a pod with the claim would be refused for.
func resourceClaim(at *field.Path, c *corev1.PodResourceClaim) field.ErrorList {
	l := invalid(at.Child("name"), c.Name, validation.IsDNS1123Label(c.Name))
	if n := count(c.ResourceClaimName != nil, c.ResourceClaimTemplateName != nil); n != 1 {
		l = append(l, field.Invalid(at, plural(n, "source"), "must be exactly one of resourceClaimName and resourceClaimTemplateName"))
	}
	return l
}

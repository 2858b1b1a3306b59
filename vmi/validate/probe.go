package validate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

func probes(at *field.Path, s *vmi.VirtualMachineInstanceSpec) field.ErrorList {
	pod := slices.ContainsFunc(s.Networks, func(n vmi.Network) bool { return n.Pod != nil })
	l := append(probe(at.Child("readinessProbe"), s.ReadinessProbe, pod), probe(at.Child("livenessProbe"), s.LivenessProbe, pod)...)
	if p := s.LivenessProbe; p != nil && p.SuccessThreshold > 1 {
		l = append(l, field.Invalid(at.Child("livenessProbe", "successThreshold"), p.SuccessThreshold, "must be 1: the first failure that counts ends the VMI"))
	}
	return l
}

const needsPodNetwork = "needs an interface on the pod network: probes reach the guest by the pod's address"

// probe checks that there is one question, and that it can reach the guest.
func probe(at *field.Path, p *vmi.Probe, podNetwork bool) field.ErrorList {
	if p == nil {
		return nil
	}
	var l field.ErrorList
	switch n := count(p.Exec != nil, p.GuestAgentPing != nil, p.HTTPGet != nil, p.TCPSocket != nil); {
	case n == 0:
		l = append(l, field.Required(at, "must have exactly one of exec, guestAgentPing, httpGet and tcpSocket"))
	case n > 1:
		l = append(l, field.Invalid(at, plural(n, "handler"), "must have exactly one of exec, guestAgentPing, httpGet and tcpSocket"))
	}
	if h := p.HTTPGet; h != nil {
		if !podNetwork {
			l = append(l, field.Invalid(at.Child("httpGet"), field.OmitValueType{}, needsPodNetwork))
		}
		l = append(l, oneOf(at.Child("httpGet", "scheme"), h.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
		l = append(l, probedPort(at.Child("httpGet", "port"), h.Port)...)
		for i, header := range h.HTTPHeaders {
			for _, why := range validation.IsHTTPHeaderName(header.Name) {
				l = append(l, field.Invalid(at.Child("httpGet", "httpHeaders").Index(i).Child("name"), header.Name, why))
			}
		}
	}
	if t := p.TCPSocket; t != nil {
		if !podNetwork {
			l = append(l, field.Invalid(at.Child("tcpSocket"), field.OmitValueType{}, needsPodNetwork))
		}
		l = append(l, probedPort(at.Child("tcpSocket", "port"), t.Port)...)
	}
	if e := p.Exec; e != nil && len(e.Command) == 0 {
		l = append(l, field.Required(at.Child("exec", "command"), "name a program in the guest, and its arguments"))
	}
	for _, t := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", p.InitialDelaySeconds}, {"timeoutSeconds", p.TimeoutSeconds}, {"periodSeconds", p.PeriodSeconds},
		{"successThreshold", p.SuccessThreshold}, {"failureThreshold", p.FailureThreshold},
	} {
		l = append(l, within(at.Child(t.name), int64(t.value), 0, vmi.MostSeconds)...)
	}
	return l
}

// probedPort checks the number of a port, or the name of one of the interface's.
func probedPort(at *field.Path, p intstr.IntOrString) field.ErrorList {
	var l field.ErrorList
	why := validation.IsValidPortNum(int(p.IntVal))
	if p.Type == intstr.String {
		why = validation.IsValidPortName(p.StrVal)
	}
	for _, w := range why {
		l = append(l, field.Invalid(at, p.String(), w))
	}
	return l
}

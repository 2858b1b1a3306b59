package main

import (
	"os"

	"github.com/podvisor/podvisor/internal/ops"
	"github.com/podvisor/podvisor/scheduler/subresource"
)

// subresources answer the verbs of VMs and VMIs.
func subresources(s *ops.Setup, api clients) (*subresource.Server, error) {
	return subresource.New(subresource.Config{
		Client: api.verbVMIs, Kube: api.verbKube, Logger: s.Log, Guests: api.guests,
		Settings: s.Settings.Config,
		ConfigVersion: func() string {
			if k := s.Settings.State().KubeVirt; k != nil {
				return k.ResourceVersion
			}
			return ""
		},
	})
}

// hostname is the name of the pod, or "" if there is none.
func hostname() string {
	name, _ := os.Hostname()
	return name
}

package cloudinit_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

func TestMistakesOfCloudInitAreWarnings(t *testing.T) {
	t.Parallel()
	user := func(s string) vmi.VolumeSource {
		return vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: s}}
	}
	network := func(s string) vmi.VolumeSource {
		return vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{NetworkData: s}}
	}
	drive := func(user, network string) vmi.VolumeSource {
		return vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{UserData: user, NetworkData: network}}
	}
	const head = "cloud-init ignores what does not begin with #cloud-config or #! in its first line"
	for name, tt := range map[string]struct {
		volume vmi.VolumeSource
		want   []string
	}{
		"a configuration":              {user("#cloud-config\nhostname: a\n"), nil},
		"a configuration of nothing":   {user("#cloud-config\n"), nil},
		"a script":                     {user("#!/bin/sh\nexit 0\n"), nil},
		"several parts":                {user("Content-Type: multipart/mixed; boundary=x\n"), nil},
		"a template":                   {user("## template: jinja\n#cloud-config\nhostname: {{ v1.name }}\n"), nil},
		"a configuration for Ignition": {drive(`{"ignition": {"version": "3.4.0"}}`, ""), nil},
		"no head":                      {user("hostname: a\n"), []string{"cloudInitNoCloud.userData: " + head}},
		"a head that is not first":     {user("\n#cloud-config\nhostname: a\n"), []string{"cloudInitNoCloud.userData: " + head}},
		"no head, in base64":           {vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataBase64: base64.StdEncoding.EncodeToString([]byte("a: b"))}}, []string{"cloudInitNoCloud.userData: " + head}},
		"broken YAML":                  {user("#cloud-config\nusers:\n- name: a\n  shell: b\n bad: c\n"), []string{"cloudInitNoCloud.userData: cloud-init cannot read it as YAML: yaml: line 4: did not find expected key"}},
		"a list":                       {user("#cloud-config\n- a\n"), []string{"cloudInitNoCloud.userData: cloud-init cannot read it as YAML: it is not a mapping of keys to values"}},
		"a network":                    {network("version: 2\nethernets: {}\n"), nil},
		"a network that is broken":     {network("version: 2\n ethernets: {}\n"), []string{"cloudInitNoCloud.networkData: cloud-init cannot read it as YAML: yaml: line 2: mapping values are not allowed in this context"}},
		"a network of a drive":         {drive("", `{"links": []}`), nil},
		"a network of a drive in YAML": {drive("", "version: 2\n"), []string{"cloudInitConfigDrive.networkData: a ConfigDrive has network data as JSON in the form of OpenStack, and this is not JSON; cloudInitNoCloud takes it as YAML"}},
		"two mistakes":                 {drive("a", "b"), []string{"cloudInitConfigDrive.userData: " + head, "cloudInitConfigDrive.networkData: a ConfigDrive has network data as JSON in the form of OpenStack, and this is not JSON; cloudInitNoCloud takes it as YAML"}},
		"another kind of volume":       {vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{}}, nil},
		"what is not base64":           {vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserDataBase64: "?"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := cloudinit.Warnings(&vmi.Volume{Name: "seed", VolumeSource: tt.volume})
			require.Equal(t, tt.want, got)
			for _, w := range got {
				require.Less(t, len(w), 256-len("spec.template.spec.volumes[255]."), "an API server shortens it")
			}
		})
	}
}

package cloudinit

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/vmi"
)

// heads are what user data begins with, as cloud-init distinguishes its forms:
// https://cloudinit.readthedocs.io/en/latest/explanation/format.html. A program that is
// not cloud-init, such as Ignition, reads JSON.
var heads = []string{
	"#!", "#cloud-config", "#include", "#cloud-boothook", "#part-handler", "## template:", "#upstart-job",
	"Content-Type:", "MIME-Version:", "{", "\x1f\x8b",
}

// cloudConfig is the head of user data in YAML.
const cloudConfig = "#cloud-config"

// Warnings are what cloud-init in the guest will not understand of the data in the volume:
// nothing else reports it before the guest boots, and the guest reports it on its console
// only. Each begins with the field. Nothing is known of data in Secrets, and what is not
// base64 is validation's to refuse.
func Warnings(v *vmi.Volume) []string {
	var out []string
	add := func(field, fault string) {
		if fault != "" {
			out = append(out, field+": "+fault)
		}
	}
	if c := v.CloudInitNoCloud; c != nil {
		add("cloudInitNoCloud.userData", userFault(text(c.UserData, c.UserDataBase64)))
		add("cloudInitNoCloud.networkData", mapping(text(c.NetworkData, c.NetworkDataBase64)))
	}
	if c := v.CloudInitConfigDrive; c != nil {
		add("cloudInitConfigDrive.userData", userFault(text(c.UserData, c.UserDataBase64)))
		if d := text(c.NetworkData, c.NetworkDataBase64); len(d) > 0 && !json.Valid(d) {
			add("cloudInitConfigDrive.networkData", "a ConfigDrive has network data as JSON in the form of OpenStack, and this is not JSON; cloudInitNoCloud takes it as YAML")
		}
	}
	return out
}

// text is the data in one of its two forms. Empty: there is none to judge.
func text(plain, encoded string) []byte {
	if plain != "" {
		return []byte(plain)
	}
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil
	}
	return b
}

// userFault is why cloud-init ignores the user data. Empty: it does not.
func userFault(d []byte) string {
	if len(d) == 0 {
		return ""
	}
	for _, h := range heads {
		if bytes.HasPrefix(d, []byte(h)) {
			if h != cloudConfig || bytes.HasPrefix(d, []byte("#cloud-config-archive")) {
				return ""
			}
			return mapping(d)
		}
	}
	return "cloud-init ignores what does not begin with #cloud-config or #! in its first line"
}

// mapping is why the data is not a YAML mapping. Empty: it is one, or there is none.
func mapping(d []byte) string {
	if len(bytes.TrimSpace(d)) == 0 || len(d) > MaxBytes {
		return ""
	}
	text, err := yaml.YAMLToJSON(d)
	if err == nil {
		if bytes.HasPrefix(text, []byte("{")) || string(text) == "null" {
			return ""
		}
		err = errors.New("it is not a mapping of keys to values")
	}
	// An API server shortens a warning of more than 256 characters.
	return fmt.Sprintf("cloud-init cannot read it as YAML: %.120s", strings.Join(strings.Fields(err.Error()), " "))
}

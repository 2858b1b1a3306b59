package validate

import (
	"encoding/base64"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/internal/shorten"
	"github.com/podvisor/podvisor/vmi"
)

// maxPrivate is how much is shown of what a user may think private, in bytes.
const maxPrivate = 19

// maxCloudInit is the largest user data or network data, in bytes.
const maxCloudInit = 2048

// cloudInit checks cloud-init's data: one form of each kind, and at least one. A
// reference without a name is none.
func cloudInit(at *field.Path, c *vmi.CloudInitNoCloud) field.ErrorList {
	l, users := oneForm(at, form{"userData", "userDataBase64", "secretRef", c.UserData, c.UserDataBase64, c.UserDataSecretRef})
	more, networks := oneForm(at, form{"networkData", "networkDataBase64", "networkDataSecretRef", c.NetworkData, c.NetworkDataBase64, c.NetworkDataSecretRef})
	l = append(l, more...)
	if users+networks == 0 {
		l = append(l, field.Invalid(at, "no data", "must have user data or network data"))
	}
	return l
}

// form is data in one of three forms, and the names of the fields.
type form struct {
	plainName, encodedName, secretName string
	plain, encoded                     string
	secret                             *corev1.LocalObjectReference
}

// oneForm checks data and says in how many forms it is there.
func oneForm(at *field.Path, f form) (field.ErrorList, int) {
	var l field.ErrorList
	n := count(f.plain != "", f.encoded != "", f.secret != nil && f.secret.Name != "")
	if n > 1 {
		l = append(l, field.Invalid(at, f.plainName, fmt.Sprintf("must be in at most one of %s, %s and %s", f.plainName, f.encodedName, f.secretName)))
	}
	if f.secret != nil && f.secret.Name != "" {
		l = append(l, invalid(at.Child(f.secretName, "name"), f.secret.Name, validation.IsDNS1123Subdomain(f.secret.Name))...)
	}
	data, err := base64.StdEncoding.DecodeString(f.encoded)
	if err != nil {
		l = append(l, field.Invalid(at.Child(f.encodedName), shorten.Head(f.encoded, maxPrivate), "must be base64"))
	}
	if size := max(len(f.plain), len(data)); size > maxCloudInit {
		l = append(l, field.Invalid(at, fmt.Sprintf("%d bytes", size),
			fmt.Sprintf("%s must have at most %d bytes: put more into a Secret and name it in %s", f.plainName, maxCloudInit, f.secretName)))
	}
	return l, n
}

package validate

import (
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// volumes checks each volume by itself and that no two have the same name.
func volumes(at *field.Path, vols []vmi.Volume) field.ErrorList {
	var l field.ErrorList
	seen := map[string]bool{}
	for i := range vols {
		v, here := &vols[i], at.Index(i)
		l = append(l, invalid(here.Child("name"), v.Name, validation.IsDNS1123Label(v.Name))...)
		if seen[v.Name] {
			l = append(l, field.Duplicate(here.Child("name"), v.Name))
		}
		seen[v.Name] = true
		l = append(l, source(here, v)...)
	}
	return l
}

// source checks that a volume has exactly one source, and that source.
func source(at *field.Path, v *vmi.Volume) field.ErrorList {
	var l field.ErrorList
	n := 0
	if c := v.ContainerDisk; c != nil {
		n++
		l = append(l, containerDisk(at.Child("containerDisk"), c)...)
	}
	if c := v.CloudInitNoCloud; c != nil {
		n++
		l = append(l, noCloud(at.Child("cloudInitNoCloud"), c)...)
	}
	if e := v.EmptyDisk; e != nil {
		n++
		if e.Capacity.Sign() <= 0 {
			l = append(l, field.Invalid(at.Child("emptyDisk", "capacity"), e.Capacity.String(), "must be more than 0"))
		}
	}
	if n != 1 {
		l = append(l, field.Invalid(at, v.Name, fmt.Sprintf("must have exactly one source, has %d", n)))
	}
	return l
}

func containerDisk(at *field.Path, c *vmi.ContainerDisk) field.ErrorList {
	var l field.ErrorList
	switch {
	case c.Image == "":
		l = append(l, field.Required(at.Child("image"), "name the container image"))
	case strings.TrimSpace(c.Image) != c.Image:
		l = append(l, field.Invalid(at.Child("image"), c.Image, "must not begin or end with white space"))
	}
	if c.ImagePullSecret != "" {
		l = append(l, invalid(at.Child("imagePullSecret"), c.ImagePullSecret, validation.IsDNS1123Subdomain(c.ImagePullSecret))...)
	}
	if c.Path != "" {
		l = append(l, imagePath(at.Child("path"), c.Path)...)
	}
	return l
}

// imagePath checks a path in an image that somebody else made: it must not lead
// out of the image by its own words.
func imagePath(at *field.Path, p string) field.ErrorList {
	switch {
	case !strings.HasPrefix(p, "/"):
		return field.ErrorList{field.Invalid(at, p, "must be absolute")}
	case slices.Contains(strings.Split(p, "/"), ".."):
		return field.ErrorList{field.Invalid(at, p, "must not contain ..")}
	case path.Clean(p) == "/":
		return field.ErrorList{field.Invalid(at, p, "must not be the root")}
	}
	return nil
}

// maxCloudInit is the largest user data or network data, in bytes.
const maxCloudInit = 2048

// noCloud checks cloud-init's data: one form of each kind, and at least one.
func noCloud(at *field.Path, c *vmi.CloudInitNoCloud) field.ErrorList {
	l := oneForm(at, "userData", c.UserData, c.UserDataBase64)
	l = append(l, oneForm(at, "networkData", c.NetworkData, c.NetworkDataBase64)...)
	if c.UserData+c.UserDataBase64+c.NetworkData+c.NetworkDataBase64 == "" {
		l = append(l, field.Required(at, "needs userData or networkData, or one of them in base64"))
	}
	return l
}

// oneForm checks data that is either plain or in base64.
func oneForm(at *field.Path, name, plain, encoded string) field.ErrorList {
	var l field.ErrorList
	if plain != "" && encoded != "" {
		l = append(l, field.Invalid(at.Child(name+"Base64"), name, "excludes "+name))
	}
	if len(plain) > maxCloudInit {
		l = append(l, field.TooLong(at.Child(name), "", maxCloudInit))
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case err != nil:
		l = append(l, field.Invalid(at.Child(name+"Base64"), shorten(encoded), "must be base64"))
	case len(data) > maxCloudInit:
		l = append(l, field.TooLong(at.Child(name+"Base64"), "", maxCloudInit))
	}
	return l
}

// shorten keeps messages readable, and what a user may think private short.
func shorten(s string) string {
	if len(s) > 16 {
		return s[:16] + "…"
	}
	return s
}

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// Upload says what is uploaded.
type Upload struct {
	// From is the folder of the release. Required.
	From string
	// Registry is where the images go, as in [Config]. Empty: the one that the release
	// names.
	Registry string
	// Insecure permits a registry without TLS, or with a certificate that cannot be
	// verified. One on this host is always permitted.
	Insecure bool
	// Keychain has the credentials of registries. Nil: what "docker login" and "podman
	// login" have stored.
	Keychain authn.Keychain
	// Out gets a line for each image. Nil: none is written.
	Out io.Writer
}

// Push uploads the images of a release for all architectures, each with its version as tag, and reads back what
// the registry has under their digests. It may be repeated: what the registry has is left
// out.
func Push(ctx context.Context, u Upload) error {
	if u.Out == nil {
		u.Out = io.Discard
	}
	all, index, err := openLayout(u.From)
	if err != nil {
		return err
	}
	if len(index.Manifests) == 0 {
		return fmt.Errorf("release %s has no images", u.From)
	}
	keychain := u.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain), remote.WithUserAgent("podvisor-release")}
	for _, d := range index.Manifests {
		image, version := d.Annotations[nameAnnotation], d.Annotations[versionAnnotation]
		named, _, _ := strings.Cut(d.Annotations[containerdAnnotation], "/"+image+":")
		registry := cmp.Or(u.Registry, named)
		if registry == "" {
			return errors.New("the release names no registry: say which one gets the images")
		}
		to, err := u.reference(registry + "/" + image + ":" + version)
		if err != nil {
			return err
		}
		both, err := all.ImageIndex(d.Digest)
		if err != nil {
			return fmt.Errorf("read image %s: %w", image, err)
		}
		// What was damaged since must not get a tag.
		if err := validate.Index(both); err != nil {
			return fmt.Errorf("image %s is not as it was released: %w", image, err)
		}
		if digest, err := both.Digest(); err != nil || digest != d.Digest {
			return errors.Join(fmt.Errorf("image %s is not as it was released: its digest is %s and not %s", image, digest, d.Digest), err)
		}
		if err := remote.WriteIndex(to, both, options...); err != nil {
			return fmt.Errorf("upload %s: %w", to, err)
		}
		there, err := remote.Head(to.Context().Digest(d.Digest.String()), options...)
		if err != nil {
			return fmt.Errorf("read %s back: %w", to, err)
		}
		if there.Digest != d.Digest {
			return fmt.Errorf("%s has the digest %s in the registry and not %s", to, there.Digest, d.Digest)
		}
		fmt.Fprintf(u.Out, "%s@%s\n", to, d.Digest)
	}
	return nil
}

func (u Upload) reference(text string) (name.Tag, error) {
	at := strings.LastIndex(text, ":")
	if err := checkRegistry(text[:strings.LastIndex(text[:at], "/")]); err != nil {
		return name.Tag{}, err
	}
	options := []name.Option{name.StrictValidation}
	if u.Insecure {
		options = append(options, name.Insecure)
	}
	return name.NewTag(text, options...)
}

package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// reference is the full name of an image.
type reference struct{ repository, tag string }

func (r reference) String() string { return r.repository + ":" + r.tag }

var (
	pathPattern   = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	domainPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]+)?$`)
	tagPattern    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// parseReference completes a name as container runtimes do: one without a
// registry is of docker.io.
func parseReference(name string) (reference, error) {
	if name == "" {
		return reference{}, errors.New("-name is missing: the name and the tag of the image, as example.com/disks/fedora:40")
	}
	if strings.Contains(name, "@") {
		return reference{}, fmt.Errorf("name %q has a digest, which follows from the content: give a tag", name)
	}
	domain, path := "docker.io", name
	if first, rest, ok := strings.Cut(name, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		domain, path = first, rest
	}
	path, tag, ok := strings.Cut(path, ":")
	if !ok {
		return reference{}, fmt.Errorf("name %q has no tag: give one, as %s:1; without it the kubelet pulls the image each time", name, name)
	}
	if domain == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	r := reference{domain + "/" + path, tag}
	switch {
	case !domainPattern.MatchString(domain):
		return reference{}, fmt.Errorf("name %q: %q is no registry", name, domain)
	case !pathPattern.MatchString(path) || len(r.repository) > 255:
		return reference{}, fmt.Errorf("name %q: %q is no name of an image: it has lower-case letters, digits, and . _ - between them", name, path)
	case !tagPattern.MatchString(tag):
		return reference{}, fmt.Errorf("name %q: %q is no tag", name, tag)
	}
	return r, nil
}

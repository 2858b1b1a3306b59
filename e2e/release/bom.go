package release

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/version"
)

// module is a module of Go, or the library of Go itself, which has the path "stdlib".
type module struct{ path, version, sum string }

// ownModule is the module of Podvisor's programs.
const ownModule = "github.com/podvisor/podvisor"

func compareModules(a, b module) int {
	return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version), cmp.Compare(a.sum, b.sum))
}

// modules are those that a program was linked of, without its own.
func modules(info *buildinfo.BuildInfo) []module {
	all := []module{{path: "stdlib", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		all = append(all, module{d.Path, d.Version, d.Sum})
	}
	return all
}

// The parts of a document of SPDX 2.3 that are written.
type (
	document struct {
		SPDXVersion       string         `json:"spdxVersion"`
		DataLicense       string         `json:"dataLicense"`
		SPDXID            string         `json:"SPDXID"`
		Name              string         `json:"name"`
		DocumentNamespace string         `json:"documentNamespace"`
		CreationInfo      creationInfo   `json:"creationInfo"`
		Packages          []spdxPackage  `json:"packages"`
		Relationships     []relationship `json:"relationships"`
	}
	creationInfo struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		Name             string        `json:"name"`
		SPDXID           string        `json:"SPDXID"`
		VersionInfo      string        `json:"versionInfo"`
		Supplier         string        `json:"supplier,omitempty"`
		DownloadLocation string        `json:"downloadLocation"`
		FilesAnalyzed    bool          `json:"filesAnalyzed"`
		Checksums        []checksum    `json:"checksums,omitempty"`
		LicenseConcluded string        `json:"licenseConcluded"`
		LicenseDeclared  string        `json:"licenseDeclared"`
		CopyrightText    string        `json:"copyrightText"`
		Comment          string        `json:"comment,omitempty"`
		ExternalRefs     []externalRef `json:"externalRefs"`
		Purpose          string        `json:"primaryPackagePurpose,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	externalRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// unasserted is what is not said of licences: that is in the packages themselves.
const unasserted = "NOASSERTION"

// describe is an entry of a document, with the URL by which programs know the package.
func describe(kind, name, version, purl string) spdxPackage {
	return spdxPackage{
		Name: name, SPDXID: "SPDXRef-" + kind + "-" + identifier(name+"-"+version), VersionInfo: version,
		DownloadLocation: unasserted, LicenseConcluded: unasserted, LicenseDeclared: unasserted, CopyrightText: unasserted,
		ExternalRefs: []externalRef{{"PACKAGE-MANAGER", "purl", purl}},
	}
}

var notIdentifier = regexp.MustCompile(`[^0-9A-Za-z.-]`)

// identifier is a text of which no two are the same, in the letters that SPDX permits.
func identifier(text string) string {
	plain := notIdentifier.ReplaceAllString(text, "-")
	if plain == text {
		return plain
	}
	sum := sha256.Sum256([]byte(text))
	return plain + "-" + hex.EncodeToString(sum[:4])
}

// bom is the document of an image.
func bom(of version.Info, r image, packages []images.Package) document {
	name, arch, digest := r.built.Name, r.built.Architecture, r.digest
	own := describe("Image", name, of.Version, "pkg:oci/"+name+"@"+url.QueryEscape(digest.String())+"?arch="+arch)
	own.Checksums, own.Purpose = []checksum{{"SHA256", digest.Hex}}, "CONTAINER"
	program := describe("Go", ownModule, of.Version, "pkg:golang/"+ownModule+"@"+of.Version)
	program.LicenseDeclared, program.Comment = "Apache-2.0", "commit "+of.Commit
	all := []spdxPackage{own, program}
	for _, p := range packages {
		d := describe("Debian", p.Name, p.Version, "pkg:deb/debian/"+p.Name+"@"+url.QueryEscape(p.Version)+"?arch="+arch)
		d.Supplier, d.Checksums = "Organization: Debian", []checksum{{"SHA256", p.SHA256}}
		d.Comment = "the image has files of the package"
		all = append(all, d)
	}
	for _, m := range r.modules {
		if m.path == ownModule {
			continue
		}
		d := describe("Go", m.path, m.version, "pkg:golang/"+m.path+"@"+url.QueryEscape(m.version))
		if m.sum != "" {
			d.Comment = "go.sum " + m.sum
		}
		all = append(all, d)
	}
	doc := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", Name: name + "-" + of.Version + "-" + arch,
		DocumentNamespace: "urn:podvisor:" + name + ":" + of.Version + ":" + digest.Hex,
		CreationInfo:      creationInfo{of.Date, []string{"Tool: podvisor-release-" + of.Version}},
		Packages:          all, Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", own.SPDXID}},
	}
	for _, p := range all[1:] {
		doc.Relationships = append(doc.Relationships, relationship{own.SPDXID, "CONTAINS", p.SPDXID})
	}
	return doc
}

// writeBOM writes the document of an image.
func (c Config) writeBOM(dir string, of version.Info, r image, packages []images.Package) error {
	text, err := json.MarshalIndent(bom(of, r, packages), "", "  ")
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, "sbom")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, r.built.Name+"."+r.built.Architecture+".spdx.json"), append(text, '\n'), 0o644)
}

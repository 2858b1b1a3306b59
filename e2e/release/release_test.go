package release

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/chart"
	"github.com/podvisor/podvisor/e2e/chart/charttest"
	"github.com/podvisor/podvisor/e2e/registrytest"
	"github.com/podvisor/podvisor/internal/testenv"
)

// made is the release that the tests share: of the working tree, with the version that
// CHANGELOG.md has first.
var made struct {
	once sync.Once
	dir  string
	conf Config
	err  error
}

const testRegistry = "registry.example/some/path"

// madeOnce makes the release of the tests.
func madeOnce(t *testing.T) (dir string, conf Config) {
	t.Helper()
	testenv.Root(t)
	made.once.Do(func() {
		text, err := os.ReadFile("../../CHANGELOG.md")
		if err != nil {
			made.err = err
			return
		}
		version := regexp.MustCompile(`(?m)^## (v\S+)`).FindSubmatch(text)[1]
		made.conf = Config{Version: string(version), Registry: testRegistry, Root: "../..", Changed: true, Fast: true, Out: os.Stdout}
		if made.dir, made.err = os.MkdirTemp("", "podvisor-release-"); made.err == nil {
			made.conf.To = filepath.Join(made.dir, "one")
			made.err = Make(context.Background(), made.conf)
		}
	})
	require.NoError(t, made.err)
	return made.conf.To, made.conf
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(made.dir)
	os.Exit(code)
}

// files are the digests of the files below a folder, with their modes.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, file)
		require.NoError(t, err)
		all[rel] = info.Mode().String()
		if !e.IsDir() {
			sum, err := sumOf(file)
			require.NoError(t, err)
			all[rel] += " " + sum
		}
		return nil
	}))
	return all
}

func TestTheChecksumsAreOfAllFiles(t *testing.T) {
	dir, _ := madeOnce(t)
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", sumsFile)
	check.Dir = dir
	out, err := check.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	require.NoError(t, err)
	n := 0
	for name, is := range files(t, dir) {
		if !strings.HasPrefix(is, "d") {
			n++
			require.True(t, name == sumsFile || strings.Contains(string(text), "  "+name+"\n"), name)
		}
	}
	require.Equal(t, n-1, strings.Count(string(text), "\n"))
}

// digests are those of the images in the layout, each of which is whole.
func digests(t *testing.T, dir string) map[string]v1.Hash {
	t.Helper()
	l, index, err := openLayout(dir)
	require.NoError(t, err)
	all := map[string]v1.Hash{}
	for _, d := range index.Manifests {
		both, err := l.ImageIndex(d.Digest)
		require.NoError(t, err)
		require.NoError(t, validate.Index(both))
		all[d.Annotations[nameAnnotation]] = d.Digest
	}
	return all
}

// platforms are the images of an index, by their architectures.
func platforms(t *testing.T, both v1.ImageIndex) map[string]v1.Image {
	t.Helper()
	m, err := both.IndexManifest()
	require.NoError(t, err)
	all := map[string]v1.Image{}
	for _, d := range m.Manifests {
		require.Equal(t, "linux", d.Platform.OS)
		require.Nil(t, all[d.Platform.Architecture])
		all[d.Platform.Architecture], err = both.Image(d.Digest)
		require.NoError(t, err)
	}
	require.ElementsMatch(t, Architectures(), slices.Collect(maps.Keys(all)))
	return all
}

func TestTheManifestsNameTheImagesByTheirDigests(t *testing.T) {
	dir, _ := madeOnce(t)
	all := digests(t, dir)
	require.Len(t, all, 4)
	text, err := os.ReadFile(filepath.Join(dir, "podvisor.yaml"))
	require.NoError(t, err)
	named := regexp.MustCompile(`(?:image|value|- expression): '*("?)((?:registry\.example|podvisor)/[^'"\s]+)`).FindAllStringSubmatch(string(text), -1)
	count := map[string]int{}
	for _, m := range named {
		count[m[2]]++
	}
	want := func(name string) string { return testRegistry + "/" + name + "@" + all[name].String() }
	require.Equal(t, map[string]int{
		want("virt-controller"): 2, want("virt-handler"): 1, want("virt-launcher"): 3, want("virt-launcher-full"): 1,
	}, count, "two Deployments; a DaemonSet; its init container, LAUNCHER_IMAGE and the policy; LAUNCHER_FULL_IMAGE")
	require.NotContains(t, string(text), "podvisor-images", "what only names images is not applied")
}

func TestTheChartRendersTheManifestsOfTheRelease(t *testing.T) {
	dir, conf := madeOnce(t)
	text, err := os.ReadFile(filepath.Join(dir, "podvisor.yaml"))
	require.NoError(t, err)
	want := charttest.Objects(t, text)
	out := charttest.New(t, "").Run("template", "podvisor", filepath.Join(dir, chart.File(conf.Version)), "--no-hooks", "--kube-version=1.37.0")
	got := charttest.Objects(t, []byte(out))
	require.NotEmpty(t, want)
	for key, o := range want {
		require.Equal(t, o, got[key], key)
	}
	require.Len(t, got, len(want))
}

func TestAnImageIsLabelledAndRunsAsItWasBuilt(t *testing.T) {
	dir, conf := madeOnce(t)
	l, index, err := openLayout(dir)
	require.NoError(t, err)
	blobs := map[string]int{}
	for _, d := range index.Manifests {
		both, err := l.ImageIndex(d.Digest)
		require.NoError(t, err)
		name := d.Annotations[nameAnnotation]
		require.Equal(t, testRegistry+"/"+name+":"+conf.Version, d.Annotations[containerdAnnotation])
		for arch, img := range platforms(t, both) {
			c, err := img.ConfigFile()
			require.NoError(t, err)
			require.Equal(t, arch, c.Architecture)
			require.Equal(t, name, c.Config.Labels["org.opencontainers.image.title"])
			require.Equal(t, conf.Version, c.Config.Labels["org.opencontainers.image.version"])
			require.Regexp(t, `^[0-9a-f]{40}$`, c.Config.Labels["org.opencontainers.image.revision"])
			require.Equal(t, c.Config.Labels["org.opencontainers.image.created"], c.Created.UTC().Format(time.RFC3339))
			require.NotEmpty(t, c.Config.User)
			require.NotEmpty(t, c.Config.Entrypoint)
			require.Equal(t, headers[arch], headerOf(t, img, c.Config.Entrypoint[0]), "%s for %s", name, arch)
			m, err := img.Manifest()
			require.NoError(t, err)
			for _, layer := range m.Layers {
				blobs[layer.Digest.String()]++
			}
		}
	}
	shared := 0
	for _, n := range blobs {
		shared += n - 1
	}
	require.GreaterOrEqual(t, shared, 4, "the launchers share the system and the program, for each architecture")
}

// headers are what programs for an architecture say that they are for.
var headers = map[string]string{"amd64": "EM_X86_64", "arm64": "EM_AARCH64"}

// headerOf is what a program of an image says that it is for.
func headerOf(t *testing.T, img v1.Image, program string) string {
	t.Helper()
	layers, err := img.Layers()
	require.NoError(t, err)
	for _, l := range layers {
		r, err := l.Uncompressed()
		require.NoError(t, err)
		defer r.Close()
		for in := tar.NewReader(r); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if "/"+h.Name != program {
				continue
			}
			content, err := io.ReadAll(in)
			require.NoError(t, err)
			f, err := elf.NewFile(bytes.NewReader(content))
			require.NoError(t, err)
			return f.Machine.String()
		}
	}
	require.Fail(t, "the image has no "+program)
	return ""
}

func TestOverlaysOfAReleaseAreComposed(t *testing.T) {
	dir, _ := madeOnce(t)
	mine := t.TempDir()
	require.NoError(t, copyFiles(filepath.Join(mine, "images"), filepath.Join(dir, "overlays", "images")))
	named := filepath.Join(mine, "images", "images.yaml")
	text, err := os.ReadFile(named)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(named, []byte(strings.ReplaceAll(string(text), testRegistry, "other.example:5000/mine")), 0o600))
	all := digests(t, dir)
	base, err := filepath.Rel(mine, dir)
	require.NoError(t, err)
	for _, order := range [][]string{{"images", base + "/overlays/emulation", base + "/overlays/kubernetes-1.32", base + "/overlays/namespace"}, {base + "/overlays/namespace", base + "/overlays/kubernetes-1.32", base + "/overlays/emulation", "images"}} {
		text := "resources: [" + base + "]\ncomponents: [" + strings.Join(order, ", ") + "]\n"
		require.NoError(t, os.WriteFile(filepath.Join(mine, "kustomization.yaml"), []byte(text), 0o600))
		out, err := render(mine)
		require.NoError(t, err)
		require.NotContains(t, string(out), testRegistry)
		require.NotContains(t, string(out), "MutatingAdmissionPolicy\n")
		require.NotContains(t, strings.ReplaceAll(string(out), "paramRef:\n    namespace: kubevirt\n", ""), "namespace: kubevirt\n",
			"but for a KubeVirt in the usual namespace, which a policy looks for wherever Podvisor is")
		require.Contains(t, string(out), "''other.example:5000/mine/virt-launcher@"+all["virt-launcher"].String()+"''")
		require.Equal(t, 2, strings.Count(string(out), "- name: ALLOW_EMULATION\n          value: \"true\"\n"))
		require.Equal(t, 2, strings.Count(string(out), "image: other.example:5000/mine/virt-controller@"+all["virt-controller"].String()+"\n"))
	}
	sizes, err := render(filepath.Join(dir, "instancetypes"))
	require.NoError(t, err)
	require.Contains(t, string(sizes), "  name: u1.medium\n")
	watched, err := render(filepath.Join(dir, "monitoring", "operator"))
	require.NoError(t, err)
	require.Contains(t, string(watched), "kind: ServiceMonitor\n")
	plain, err := os.ReadFile(filepath.Join(dir, "podvisor.yaml"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(plain), "kind: MutatingAdmissionPolicy"), "the base has what the overlay leaves out: the policy and its binding")
}

func TestABillOfMaterialsIsOfWhatIsInTheImage(t *testing.T) {
	dir, conf := madeOnce(t)
	l, index, err := openLayout(dir)
	require.NoError(t, err)
	all := map[string]v1.Hash{}
	for _, d := range index.Manifests {
		both, err := l.ImageIndex(d.Digest)
		require.NoError(t, err)
		for arch, img := range platforms(t, both) {
			all[d.Annotations[nameAnnotation]+"."+arch], err = img.Digest()
			require.NoError(t, err)
		}
	}
	for image, want := range map[string][]string{
		"virt-controller.amd64":    {"k8s.io/client-go", "stdlib"},
		"virt-controller.arm64":    {"k8s.io/client-go", "stdlib"},
		"virt-handler.amd64":       {"github.com/vishvananda/netlink"},
		"virt-handler.arm64":       {"github.com/vishvananda/netlink"},
		"virt-launcher.amd64":      {"github.com/digitalocean/go-libvirt", "libc6", "qemu-system-x86", "seabios"},
		"virt-launcher.arm64":      {"github.com/digitalocean/go-libvirt", "libc6", "qemu-system-arm"},
		"virt-launcher-full.amd64": {"github.com/digitalocean/go-libvirt", "libc6", "ovmf", "swtpm"},
		"virt-launcher-full.arm64": {"github.com/digitalocean/go-libvirt", "libc6", "qemu-efi-aarch64", "swtpm"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, "sbom", image+".spdx.json"))
		require.NoError(t, err)
		var d document
		require.NoError(t, json.Unmarshal(text, &d))
		ids, names := map[string]bool{d.SPDXID: true}, map[string]bool{}
		for _, p := range d.Packages {
			require.Regexp(t, `^SPDXRef-[0-9A-Za-z.-]+$`, p.SPDXID)
			require.False(t, ids[p.SPDXID], "%s is there twice", p.SPDXID)
			ids[p.SPDXID], names[p.Name] = true, true
			require.NotEmpty(t, p.VersionInfo, p.Name)
			require.Regexp(t, `^pkg:(oci|deb/debian|golang)/[^@]+@.+`, p.ExternalRefs[0].Locator)
		}
		for _, r := range d.Relationships {
			require.True(t, ids[r.Element] && ids[r.Related], "%+v", r)
		}
		require.Len(t, d.Relationships, len(d.Packages))
		require.Equal(t, all[image].Hex, d.Packages[0].Checksums[0].Value)
		require.Equal(t, conf.Version, d.Packages[1].VersionInfo)
		for _, w := range want {
			require.True(t, names[w], "%s is not said to have %s", image, w)
		}
		require.Equal(t, strings.HasPrefix(image, "virt-launcher"), names["libc6"], "%s", image)
	}
}

func TestTheNotesAreTheSectionOfTheVersion(t *testing.T) {
	t.Parallel()
	const text = "# Changes\n\nwords\n\n## v0.3.0 (soon)\n\n- a\n\n```\n## v0.2.0\n```\n\n### Part\n\n- b\n\n## v0.2.0\n\n## v0.1.0\n\n- c\n"
	require.Equal(t, "- a\n\n```\n## v0.2.0\n```\n\n### Part\n\n- b\n", section(text, "v0.3.0"))
	require.Equal(t, "- c\n", section(text, "v0.1.0"))
	require.Empty(t, section(text, "v0.2.0"), "it has a heading only")
	require.Empty(t, section(text, "v0.3"))
}

func TestWhatCannotBeReleasedIsRefused(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		`version "0.3.0" must be like v1.2.3`:                             {Version: "0.3.0", Root: "../.."},
		`version "v0.3" must be like`:                                     {Version: "v0.3", Root: "../.."},
		`registry "podvisor" must be a host, with a path or without`:      {Version: "v0.3.0", Registry: "podvisor", Root: "../.."},
		`registry "some/podvisor" must be a host, with a path or without`: {Version: "v0.3.0", Registry: "some/podvisor", Root: "../.."},
		`registry "registry.example/"`:                                    {Version: "v0.3.0", Registry: "registry.example/", Root: "../.."},
		`is no checkout of git`:                                           {Version: "v0.3.0", Root: "/"},
		`has no section "## v99.0.0", or nothing in it: write`:            {Version: "v99.0.0", Root: "../..", Changed: true},
		`must be like v1.2.3 or v1.2.3-rc.1`:                              {Version: "v1.2.3+dirty", Root: "../.."},
	} {
		c.To = filepath.Join(t.TempDir(), "to")
		require.ErrorContains(t, Make(t.Context(), c), want)
		require.NoDirExists(t, c.To)
	}
}

func TestAReleaseIsUploadedToARegistryThatAsksWhoItIs(t *testing.T) {
	dir, conf := madeOnce(t)
	r := registrytest.New(t, "../toolchain/registry")
	u := Upload{From: dir, Registry: r.Host + "/some/path", Keychain: authn.NewMultiKeychain()}
	require.ErrorContains(t, Push(t.Context(), u), "401 Unauthorized")
	wrong := r
	wrong.Password = "wrong"
	u.Keychain = wrong
	require.ErrorContains(t, Push(t.Context(), u), "upload "+r.Host+"/some/path/virt-controller:"+conf.Version)

	// As "docker login" stores it.
	stored := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(stored, "config.json"), r.Login(), 0o600))
	t.Setenv("DOCKER_CONFIG", stored)
	u.Keychain = nil
	var said strings.Builder
	u.Out = &said
	require.NoError(t, Push(t.Context(), u))
	require.NoError(t, Push(t.Context(), u), "what is there is left")
	for image, digest := range digests(t, dir) {
		require.Contains(t, said.String(), r.Host+"/some/path/"+image+":"+conf.Version+"@"+digest.String()+"\n")
		tag, err := name.NewTag(r.Host + "/some/path/" + image + ":" + conf.Version)
		require.NoError(t, err)
		for _, ref := range []name.Reference{tag, tag.Digest(digest.String())} {
			both, err := remote.Index(ref, remote.WithContext(t.Context()), remote.WithAuthFromKeychain(r))
			require.NoError(t, err)
			got, err := both.Digest()
			require.NoError(t, err)
			require.Equal(t, digest, got)
		}
		both, err := remote.Index(tag, remote.WithContext(t.Context()), remote.WithAuthFromKeychain(r))
		require.NoError(t, err)
		require.NoError(t, validate.Index(both), "all layers came, for each architecture")
	}

	t.Run("what was damaged since is not uploaded", func(t *testing.T) {
		damaged := filepath.Join(t.TempDir(), "release")
		require.NoError(t, copyFiles(damaged, dir))
		l, index, err := openLayout(damaged)
		require.NoError(t, err)
		both, err := l.ImageIndex(index.Manifests[0].Digest)
		require.NoError(t, err)
		m, err := platforms(t, both)["arm64"].Manifest()
		require.NoError(t, err)
		blob := filepath.Join(damaged, layoutFolder, "blobs", "sha256", m.Layers[0].Digest.Hex)
		f, err := os.OpenFile(blob, os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("damage"), 4096)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.ErrorContains(t, Push(t.Context(), Upload{From: damaged, Registry: r.Host + "/damaged", Keychain: r}), "is not as it was released")
		repo, err := name.NewRepository(r.Host + "/damaged/virt-controller")
		require.NoError(t, err)
		_, err = remote.List(repo, remote.WithContext(t.Context()), remote.WithAuthFromKeychain(r))
		require.ErrorContains(t, err, "NAME_UNKNOWN")
	})
	t.Run("a release that names no registry needs one", func(t *testing.T) {
		nowhere := filepath.Join(t.TempDir(), "release")
		require.NoError(t, copyFiles(nowhere, dir))
		index := filepath.Join(nowhere, layoutFolder, "index.json")
		text, err := os.ReadFile(index)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(index, []byte(strings.ReplaceAll(string(text), containerdAnnotation, "other")), 0o600))
		require.ErrorContains(t, Push(t.Context(), Upload{From: nowhere, Keychain: r}), "names no registry")
		require.ErrorContains(t, Push(t.Context(), Upload{From: nowhere, Registry: "podvisor", Keychain: r}), "must be a host, with a path or without")
	})
}

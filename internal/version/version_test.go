package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const hash = "c58b143aabbccddeeff00112233445566778899a"

func TestTheVersionOfAProgram(t *testing.T) {
	t.Parallel()
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: hash}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}}
	of12 := Info{Version: "v0.0.0-20260102030405-c58b143aabbc", Commit: "c58b143aabbc", Date: "2026-01-02T03:04:05Z"}
	for name, tt := range map[string]struct {
		linked Info
		built  *debug.BuildInfo
		want   Info
	}{
		"nothing is known":                    {want: Info{Version: Unknown}},
		"go build without version control":    {built: &debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}}, want: Info{Version: Unknown}},
		"go install of a version":             {built: &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.3.0"}}, want: Info{Version: "v0.3.0"}},
		"go install of a commit":              {built: &debug.BuildInfo{Main: debug.Module{Path: module, Version: of12.Version}}, want: of12},
		"go build in a checkout":              {built: &debug.BuildInfo{Main: debug.Module{Path: module, Version: "(devel)"}, Settings: vcs}, want: Info{Unknown, hash, "2026-01-02T03:04:05Z", true}},
		"an importer":                         {built: &debug.BuildInfo{Main: debug.Module{Path: "example.com/a", Version: "v9.0.0"}, Deps: []*debug.Module{{Path: "example.com/b", Version: "v8.0.0"}, {Path: module, Version: "v0.3.0"}}, Settings: vcs}, want: Info{Version: "v0.3.0"}},
		"an importer with a folder":           {built: &debug.BuildInfo{Main: debug.Module{Path: "example.com/a", Version: "v9.0.0"}, Deps: []*debug.Module{{Path: module, Version: "v0.3.0", Replace: &debug.Module{Path: "../"}}}}, want: Info{Version: Unknown}},
		"a program that is not of the module": {built: &debug.BuildInfo{Main: debug.Module{Path: "example.com/a", Version: "v9.0.0"}}, want: Info{Version: Unknown}},
		"linked":                              {linked: Info{Version: "v0.3.0", Commit: hash}, built: &debug.BuildInfo{Main: debug.Module{Path: module, Version: "v0.2.0"}}, want: Info{Version: "v0.3.0", Commit: hash}},
		"linked without a version":            {linked: Info{Version: of12.Version + dirty}, want: Info{of12.Version + dirty, of12.Commit, of12.Date, true}},
		"after a version":                     {linked: Info{Version: "v0.3.1-0.20260102030405-c58b143aabbc"}, want: Info{Version: "v0.3.1-0.20260102030405-c58b143aabbc", Commit: of12.Commit, Date: of12.Date}},
		"no time in it":                       {linked: Info{Version: "v0.0.0-99999999999999-c58b143aabbc"}, want: Info{Version: "v0.0.0-99999999999999-c58b143aabbc"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, of(tt.linked, tt.built))
		})
	}
}

func TestAVersionAsText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 4, 4, 5, 0, time.FixedZone("", 3600))
	require.Equal(t, "v0.0.0-20260102030405-c58b143aabbc", Pseudo(hash, at, false))
	require.Equal(t, "v0.0.0-20260102030405-c58b143aabbc+dirty", Pseudo(hash, at, true))
	require.Equal(t, "v0.3.0", Info{Version: "v0.3.0"}.String())
	require.Equal(t, "v0.3.0 ("+hash+")", Info{Version: "v0.3.0", Commit: hash}.String())
	require.Equal(t, "v0.0.0-20260102030405-c58b143aabbc", Info{Version: Pseudo(hash, at, false), Commit: hash}.String())
	require.Empty(t, Info{}.Flags())
}

// What is linked has the names of this package's variables.
func TestTheFlagsAreThoseOfTheLinker(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "say")
	i := Info{Version: "v1.2.3", Commit: hash, Date: "2026-01-02T03:04:05Z"}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w "+i.Flags(), "-o", program, "./testdata/say")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	said, err := exec.CommandContext(t.Context(), program).Output()
	require.NoError(t, err)
	require.Equal(t, "v1.2.3 ("+hash+")", strings.TrimSpace(string(said)))
}

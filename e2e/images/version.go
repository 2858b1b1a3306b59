package images

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/podvisor/podvisor/internal/version"
)

// Version says what is built from the checkout at root: its commit, and the version if
// one is given. Without a version it is that of the commit, as Go writes it. Where there
// is no git, or no checkout, what is not known is left out.
func Version(ctx context.Context, root, given string) version.Info {
	git := func(args ...string) (string, bool) {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err == nil
	}
	i := version.Info{Version: given}
	commit, ok := git("rev-parse", "HEAD")
	if !ok {
		return i
	}
	seconds, ok := git("show", "--no-patch", "--format=%cI", "HEAD")
	at, err := time.Parse(time.RFC3339, seconds)
	if !ok || err != nil {
		return i
	}
	changes, ok := git("status", "--porcelain")
	i.Commit, i.Date, i.Dirty = commit, at.UTC().Format(time.RFC3339), !ok || changes != ""
	if given == "" {
		i.Version = version.Pseudo(commit, at, i.Dirty)
	}
	return i
}

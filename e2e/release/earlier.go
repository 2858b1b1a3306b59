package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Earlier is an earlier version of the repository.
type Earlier struct {
	// Tree is the folder with its files.
	Tree string
	// Tars are the docker-archives of its images, by their names.
	Tars map[string]string

	root string
}

// BuildEarlier puts the files of a commit or tag of the repository at root into the
// folder tree, which must not exist, as a worktree of git, and builds the named images of
// it. They have a cache of their own, so that those of this version stay.
func BuildEarlier(ctx context.Context, root, commit, tree string, names ...string) (Earlier, error) {
	if _, err := output(ctx, root, nil, "git", "worktree", "add", "--quiet", "--detach", tree, commit); err != nil {
		return Earlier{}, err
	}
	e := Earlier{Tree: tree, Tars: map[string]string{}, root: root}
	if err := e.build(ctx, names); err != nil {
		return e, fmt.Errorf("build the images of %s: %w", commit, err)
	}
	return e, nil
}

// build makes the images with the program of that version, whose output has a line for
// each, with the name first and the archive last.
func (e Earlier) build(ctx context.Context, names []string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	compiled, err := output(ctx, e.root, nil, "go", "env", "GOCACHE")
	if err != nil {
		return err
	}
	env := []string{"XDG_CACHE_HOME=" + filepath.Join(cache, "podvisor", "earlier"), "GOCACHE=" + strings.TrimSpace(compiled)}
	out, err := output(ctx, filepath.Join(e.Tree, "e2e"), env, append([]string{"go", "run", "./cmd/podvisor-images", "build"}, names...)...)
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) >= 4 && strings.HasSuffix(words[len(words)-1], "/"+words[0]+".tar") {
			e.Tars[words[0]] = words[len(words)-1]
		}
	}
	for _, name := range names {
		if e.Tars[name] == "" {
			return fmt.Errorf("no archive of %s in the output: %s", name, out)
		}
	}
	return nil
}

// Close removes the worktree, if there is one. The images stay in the cache.
func (e Earlier) Close() error {
	if e.Tree == "" {
		return nil
	}
	_, err := output(context.Background(), e.root, nil, "git", "worktree", "remove", "--force", e.Tree)
	return err
}

// output runs a program in a folder and returns its output.
func output(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return out.String(), nil
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// userData is what this guest understands of user-data: a #cloud-config with
// the keys below, or a script that begins with #!.
type userData struct {
	Script       []byte    `json:"-"`
	Hostname     string    `json:"hostname"`
	FQDN         string    `json:"fqdn"`
	BootCommands []command `json:"bootcmd"`
	Files        []file    `json:"write_files"`
	Commands     []command `json:"runcmd"`
	// Ignored are the keys that were there and mean nothing to this guest.
	Ignored []string `json:"-"`
}

// parseUserData reads user-data. Empty user-data is fine.
func parseUserData(b []byte) (userData, error) {
	first, _, _ := bytes.Cut(b, []byte("\n"))
	switch line := strings.TrimSpace(string(first)); {
	case len(bytes.TrimSpace(b)) == 0:
		return userData{}, nil
	case strings.HasPrefix(line, "#!"):
		return userData{Script: b}, nil
	case line != "#cloud-config":
		return userData{}, fmt.Errorf("begins with %q instead of #cloud-config or a #! line", line)
	}
	var u userData
	if err := yaml.Unmarshal(b, &u); err != nil {
		return userData{}, err
	}
	var keys map[string]any
	if err := yaml.Unmarshal(b, &keys); err != nil {
		return userData{}, err
	}
	for key := range keys {
		if !slices.Contains([]string{"hostname", "fqdn", "bootcmd", "write_files", "runcmd"}, key) {
			u.Ignored = append(u.Ignored, key)
		}
	}
	slices.Sort(u.Ignored)
	return u, nil
}

// command is a program and its arguments. In YAML it is a list of scalars, or a
// string, which the shell runs.
type command []string

// UnmarshalJSON takes both forms; sigs.k8s.io/yaml has made JSON of the YAML.
func (c *command) UnmarshalJSON(b []byte) error {
	var line string
	if err := json.Unmarshal(b, &line); err == nil {
		*c = command{"sh", "-c", line}
		return nil
	}
	var words []any
	if err := json.Unmarshal(b, &words); err != nil || len(words) == 0 {
		return fmt.Errorf("a command is a string or a list of words, not %s", b)
	}
	*c = nil
	for _, w := range words {
		*c = append(*c, fmt.Sprint(w))
	}
	if (*c)[0] == "" {
		return fmt.Errorf("a command has no name: %s", b)
	}
	return nil
}

// file is an entry of write_files.
type file struct {
	Path        string   `json:"path"`
	Content     string   `json:"content"`
	Encoding    string   `json:"encoding"`
	Permissions fileMode `json:"permissions"`
	Append      bool     `json:"append"`
}

// fileMode is a file's mode; 0 was not given. YAML 1.1 reads an unquoted 0644 as
// an octal number already; in quotes it is text.
type fileMode fs.FileMode

// UnmarshalJSON takes both forms.
func (m *fileMode) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		n, err := strconv.ParseUint(string(b), 10, 12)
		*m = fileMode(n)
		return err
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0o"), 8, 12)
	*m = fileMode(n)
	return err
}

// bytes are the file's content.
func (f file) bytes() ([]byte, error) {
	switch f.Encoding {
	case "", "text/plain":
		return []byte(f.Content), nil
	case "b64", "base64":
		return base64.StdEncoding.DecodeString(strings.Join(strings.Fields(f.Content), ""))
	}
	return nil, fmt.Errorf("encoding %q is not supported", f.Encoding)
}

// writeFiles writes the files in order and stops at the first that fails.
func writeFiles(files []file) error {
	for _, f := range files {
		if err := f.write(); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return nil
}

func (f file) write() error {
	content, err := f.bytes()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(f.Path) {
		return fmt.Errorf("not an absolute path")
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	mode, flags := fs.FileMode(f.Permissions), os.O_WRONLY|os.O_CREATE|os.O_TRUNC
	if mode == 0 {
		mode = 0o644
	}
	if f.Append {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	out, err := os.OpenFile(f.Path, flags, mode)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.Write(content); err != nil {
		return err
	}
	// The mode above counts only for a new file, and less the umask.
	return out.Chmod(mode)
}

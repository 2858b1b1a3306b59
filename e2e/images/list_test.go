package images

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func TestListsAreCompleteAndTheirContainerfilesSayTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Concat(Names(), Extra()) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := ReadList(root, name, amd64)
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(root, "images", name, "Containerfile"))
			require.NoError(t, err)
			text := string(b)
			require.Contains(t, text, "-f images/"+name+"/Containerfile")
			if len(l.Entrypoint) > 0 {
				entrypoint, err := json.Marshal(l.Entrypoint)
				require.NoError(t, err)
				require.Contains(t, text, "\nENTRYPOINT "+string(entrypoint)+"\n")
			}
			if l.User != "" {
				require.Contains(t, text, "\nUSER "+l.User+"\n")
			}
			for k, v := range l.Labels {
				require.Contains(t, text, k+"="+v)
			}
			if strings.Contains(text, "podvisor-images unpack "+name+" ") {
				return // made by this package from the list itself
			}
			for _, p := range l.Programs {
				require.Contains(t, text, "-o /out/"+path.Base(p.Path)+" "+p.Package+"\n")
				require.Contains(t, text, "\nCOPY --from=build /out/"+path.Base(p.Path)+" "+p.Path+"\n")
			}
			if l.Debian != nil {
				require.Contains(t, text, strings.Join(l.Debian.Packages, " ")+"\n")
			}
			for _, f := range l.Files {
				require.Contains(t, text, "/root-fs"+f.Path)
				require.Contains(t, text, strings.ReplaceAll(f.Content, "\n", `\n`))
			}
			words := strings.Fields(text)
			for _, command := range l.Busybox {
				require.Contains(t, strings.ReplaceAll(strings.Join(words, " "), ";", ""), " "+command+" ")
			}
		})
	}
}

func TestAListThatMakesNoSenseIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"a key that is not known":       "name: a\nbase: debian\n",
		"a mode that is not octal":      "name: a\nfiles: [{path: /a, mode: '0999'}]\n",
		"files of packages, none named": "name: a\nkeep: [/bin/sh]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseList([]byte(text), amd64)
			require.Error(t, err)
		})
	}
	_, err := ReadList(root, "nosuch", amd64)
	require.ErrorContains(t, err, `no image "nosuch"`)
}

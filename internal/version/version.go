package version

import (
	"cmp"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// module is the path of the module whose version this is.
const module = "github.com/podvisor/podvisor"

// Unknown is the version of a program of which none is known.
const Unknown = "v0.0.0"

// dirty ends the version of a program that was built from changed files.
const dirty = "+dirty"

// What is linked: -ldflags "-X github.com/podvisor/podvisor/internal/version.linked=v1.2.3".
// The commit is a hash, and its time is as in RFC 3339.
var linked, commit, date string

// Info says what a program was built from.
type Info struct {
	// Version is as in v1.2.3, or v0.0.0 with the time and the beginning of the commit, as Go
	// writes it for what has no version. It is Unknown if nothing is known.
	Version string
	// Commit is the hash of the commit, or its beginning. Empty: it is not known.
	Commit string
	// Date is the time of the commit, as in RFC 3339. Empty: it is not known.
	Date string
	// Dirty says that files were changed after the commit.
	Dirty bool
}

// String is the version, and the commit where the version does not name it.
func (i Info) String() string {
	if i.Commit == "" || strings.Contains(i.Version, i.Commit[:min(12, len(i.Commit))]) {
		return i.Version
	}
	return i.Version + " (" + i.Commit + ")"
}

// Of is the Info of this program.
func Of() Info {
	built, _ := debug.ReadBuildInfo()
	return of(Info{Version: linked, Commit: commit, Date: date}, built)
}

// of completes what was linked by what Go wrote into the program.
func of(linked Info, built *debug.BuildInfo) Info {
	i := linked
	if i.Version == "" && built != nil {
		i = fromGo(built)
	}
	if c, d, ok := parsePseudo(i.Version); ok {
		i.Commit, i.Date = cmp.Or(i.Commit, c), cmp.Or(i.Date, d)
	}
	i.Version, i.Dirty = cmp.Or(i.Version, Unknown), i.Dirty || strings.HasSuffix(i.Version, dirty)
	return i
}

// fromGo is what Go knows of the module: its version, where the program is of it or
// imports it, and the commit of a checkout.
func fromGo(built *debug.BuildInfo) (i Info) {
	if built.Main.Path != module {
		for _, d := range built.Deps {
			if d.Path != module {
				continue
			}
			// A folder that takes its place has no version of its own.
			if d.Replace != nil {
				d = d.Replace
			}
			i.Version = d.Version
		}
	} else {
		i.Version = built.Main.Version
		for _, s := range built.Settings {
			switch s.Key {
			case "vcs.revision":
				i.Commit = s.Value
			case "vcs.time":
				i.Date = s.Value
			case "vcs.modified":
				i.Dirty = s.Value == "true"
			}
		}
	}
	if !strings.HasPrefix(i.Version, "v") {
		i.Version = "" // "(devel)"
	}
	return i
}

var pseudo = regexp.MustCompile(`[-.]([0-9]{14})-([0-9a-f]{12})(\+[0-9A-Za-z.]+)?$`)

// parsePseudo returns the commit and the time that are in the version of what has none.
func parsePseudo(v string) (commit, date string, ok bool) {
	m := pseudo.FindStringSubmatch(v)
	if m == nil {
		return "", "", false
	}
	t, err := time.Parse("20060102150405", m[1])
	if err != nil {
		return "", "", false
	}
	return m[2], t.Format(time.RFC3339), true
}

// Pseudo is the version of a commit that has none, as Go writes it.
func Pseudo(commit string, at time.Time, changed bool) string {
	v := Unknown + "-" + at.UTC().Format("20060102150405") + "-" + commit[:min(12, len(commit))]
	if changed {
		v += dirty
	}
	return v
}

// Flags are those of Go's linker that write an Info into a program.
func (i Info) Flags() string {
	var out []string
	for _, f := range [][2]string{{"linked", i.Version}, {"commit", i.Commit}, {"date", i.Date}} {
		if f[1] != "" {
			out = append(out, "-X "+module+"/internal/version."+f[0]+"="+f[1])
		}
	}
	return strings.Join(out, " ")
}

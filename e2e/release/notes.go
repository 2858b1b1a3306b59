package release

import (
	"fmt"
	"os"
	"strings"
)

// readNotes is the section of a version in the file of changes.
func readNotes(file, version string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	notes := section(string(text), version)
	if notes == "" {
		return "", fmt.Errorf("%s has no section \"## %s\", or nothing in it: write there what the release brings", file, version)
	}
	return "# Podvisor " + version + "\n\n" + notes, nil
}

// section is what is below the heading of a version, without the heading, or "".
func section(text, version string) string {
	var out strings.Builder
	in, fenced := false, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if heading, ok := strings.CutPrefix(line, "## "); ok && !fenced {
			title, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			in = title == version
			continue
		}
		if in {
			out.WriteString(line)
		}
	}
	notes := strings.TrimSpace(out.String())
	if notes == "" {
		return ""
	}
	return notes + "\n"
}

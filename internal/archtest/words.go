package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// rule is a rule about words in comments, messages, names and documents.
type rule struct {
	// stems are in every banned word, in small letters. A text without any of them
	// is not read further, which saves most of the time.
	stems []string
	// allowed matches what is right although it has the word. Nil: nothing is.
	allowed *regexp.Regexp
	// banned matches the word in text of small letters whose identifiers are split
	// into words.
	banned *regexp.Regexp
	// instead is what to write.
	instead string
}

// gap is what is between two words of prose, across the lines of a comment too.
const gap = `(?:[ \t]|\n[ \t]*(?://|#)?[ \t]*)+`

// wordRules are the rules for all text of ours.
var wordRules = []rule{
	{
		stems: []string{"machine"},
		allowed: regexp.MustCompile(strings.Join([]string{
			`(?i:virtual[-/]?machine\w*|virtual` + gap + `machines?\b)`,                                       // the general term and the kinds
			`(?i:machine[-.]?type\w*|machine` + gap + `types?\b|emulatedMachines)`,                            // machine types
			`\*?\bMachine (?:\*Machine|string|struct) |[.*&]Machines?\b|\bMachine:|// Machine is (?:a|the)\b`, // the field and its type
			`\.machine\b|["/]machine[",/]|</?machine\b|\bmachine=|\bmachine:(?: \{|\n)|/etc/machine-id\b`,     // its name in JSON, YAML, XML and paths
			`"OtherMachine"`,                         // the reason of a refusal, as it is on the wire
			`guest_os_machine\b|\w*machine_types?\b`, // labels of metrics, as they are on the wire
		}, "|")),
		banned:  regexp.MustCompile(`\bmachines?\b`),
		instead: "VMI, VM, guest, domain, host or node; a machine is a machine type",
	},
	{
		stems:   []string{"body"},
		banned:  regexp.MustCompile(`\b(?:nobody|somebody|everybody|anybody)\b`),
		instead: "the process, the user, or no and a noun",
	},
	{
		stems:   []string{"patien", "hopeless", "plumb", "wish", "dice", "aside", "vain", "word"},
		banned:  regexp.MustCompile(`\b(?:patience|patient|hopeless|plumb(?:s|ed|ing)?|wish(?:es|ed)?|dice|aside|in vain|last words?)\b`),
		instead: "the operation, its limit or its result",
	},
	{
		stems:   []string{"tell", "told", "hear", "speak", "spoke"},
		banned:  regexp.MustCompile(`\b(?:tells?|told|hears?|heard|speaks?|spoken|spoke)\b`),
		instead: "report, write, send, get, use or read",
	},
	{
		stems:   []string{"blame", "live", "up", "who", "let"},
		banned:  regexp.MustCompile(`\b(?:blame[ds]?|lives? in|(?:gives?|gave|giving) up|who may|lets? (?:(?:it|them|(?:its|the|a) \w+) )?go)\b`),
		instead: "what happens, in the present tense",
	},
}

// frequent takes out what most files have and no rule bans.
var frequent = strings.NewReplacer("apimachinery", "", "virtualmachine", "", "virtual machine", "")

// Words checks a text by the rules for words and returns what is wrong with it,
// each fault as "line: word: instead".
func Words(text string) []string {
	type fault struct {
		line int
		text string
	}
	var all []fault
	whole := split(text)
	usual := frequent.Replace(strings.ToLower(text))
	for _, r := range wordRules {
		if !slices.ContainsFunc(r.stems, func(stem string) bool { return strings.Contains(usual, stem) }) {
			continue
		}
		rest := whole
		if r.allowed != nil {
			rest = split(r.allowed.ReplaceAllStringFunc(text, func(s string) string { return " " + strings.Repeat("\n", strings.Count(s, "\n")) }))
		}
		for _, at := range r.banned.FindAllStringIndex(rest, -1) {
			n := 1 + strings.Count(rest[:at[0]], "\n")
			all = append(all, fault{n, fmt.Sprintf("%d: %q: write %s", n, rest[at[0]:at[1]], r.instead)})
		}
	}
	slices.SortStableFunc(all, func(a, b fault) int { return a.line - b.line })
	out := make([]string, 0, len(all))
	for _, f := range all {
		out = append(out, f.text)
	}
	return out
}

// split splits names of several words before their capital letters and returns the text in
// small letters. The lines stay as they are. It is not done by a regular expression, which
// takes most of the time of the test.
func split(text string) string {
	var out strings.Builder
	out.Grow(len(text) + len(text)/8)
	for i := range len(text) {
		c := text[i]
		if i > 0 && isUpper(c) {
			before := text[i-1]
			if isLower(before) || before >= '0' && before <= '9' || isUpper(before) && i+1 < len(text) && isLower(text[i+1]) {
				out.WriteByte(' ')
			}
		}
		out.WriteByte(c)
	}
	return strings.ToLower(strings.ReplaceAll(out.String(), "_", " "))
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// Texts are the paths of the files below root whose words are ours: Go, Markdown,
// YAML, scripts and lists, those of nested modules and tests too. Files that are
// generated from them are left out, since they repeat texts of Kubernetes.
func Texts(root string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() {
			if rel != "." && strings.HasPrefix(e.Name(), ".") && rel != ".ci" || rel == "manifests/crds" || rel == "_output" {
				return fs.SkipDir
			}
			return nil
		}
		if e.Type().IsRegular() && isText(rel) {
			out = append(out, rel)
		}
		return nil
	})
	return out, err
}

// isText reports whether the file of this path has text of ours.
func isText(rel string) bool {
	name := path.Base(rel)
	if strings.HasPrefix(name, "zz_generated") || rel == "internal/archtest/words.go" || rel == "internal/archtest/words_test.go" {
		return false
	}
	switch path.Ext(name) {
	case ".go", ".md", ".yaml", ".yml":
		return true
	}
	return name == "Makefile" || name == "Containerfile" || rel == "hack/test" || rel == ".ci/run"
}

// WordsIn checks the file of this path below root, see [Words]. Each fault begins
// with the path.
func WordsIn(root, rel string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(rel)))
	if err != nil {
		return nil, err
	}
	out := Words(string(b))
	for i := range out {
		out[i] = rel + ":" + out[i]
	}
	return out, nil
}

package archtest

import (
	"regexp"
	"strings"
)

// longest is the number of words that a sentence of a page may have.
const longest = 25

// Sentence is a sentence of a page.
type Sentence struct {
	// Line is where its paragraph begins, counted from 1.
	Line int
	Text string
	// Words is how many words it has. Code counts as one, whatever its length. A
	// citation, which is code alone in brackets or behind the sentence, counts as none.
	Words int
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	// citation matches names in brackets, such as those of the tests of a claim.
	citation = regexp.MustCompile(`\((?:\x00[…,;]?\s*)+\)`)
	// linkText matches a link, of which the text is read and the destination is not.
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// listItem matches the beginning of an item of a list.
	listItem = regexp.MustCompile(`^ {0,3}(?:[-*]|\d+\.) +`)
	// sentenceEnd matches the end of a sentence, with the quotes and brackets that close behind it.
	sentenceEnd = regexp.MustCompile(`[.?!][)"*_]*(?:\s+|$)`)
	wordIn      = regexp.MustCompile(`[\p{L}\p{N}\x00]`)
)

// Sentences returns the sentences of a page of Markdown. Headings, tables and code have none.
func Sentences(page string) []Sentence {
	var (
		all       []Sentence
		paragraph []string
		begin     int
		fenced    bool
		code      bool // of the line before: indented code, or a blank line, which code may follow
	)
	end := func() {
		all = append(all, sentencesOf(begin, strings.Join(paragraph, " "))...)
		paragraph = nil
	}
	for i, line := range strings.Split(page, "\n") {
		blank := strings.TrimSpace(line) == ""
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			end()
			fenced = !fenced
		case fenced:
		case blank:
			end()
			code = true
			continue
		case code && (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t")):
			continue
		case strings.HasPrefix(line, "#"), strings.HasPrefix(line, "|"):
			end()
		default:
			if item := listItem.FindString(line); item != "" {
				end()
				line = line[len(item):]
			}
			if len(paragraph) == 0 {
				begin = i + 1
			}
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
		code = false
	}
	end()
	return all
}

// sentencesOf splits a paragraph, which begins at a line.
func sentencesOf(line int, paragraph string) []Sentence {
	// What is in code and behind links ends no sentence.
	var codes []string
	text := codeSpan.ReplaceAllStringFunc(paragraph, func(s string) string {
		codes = append(codes, s)
		return "\x00"
	})
	text = linkText.ReplaceAllString(text, "$1")
	var all []Sentence
	for text != "" {
		end := len(text)
		if at := sentenceEnd.FindStringIndex(text); at != nil {
			end = at[1]
		}
		s := Sentence{Line: line}
		for _, w := range strings.Fields(citation.ReplaceAllString(text[:end], "")) {
			if wordIn.MatchString(w) {
				s.Words++
			}
		}
		s.Text = strings.TrimSpace(text[:end])
		prose := strings.ReplaceAll(s.Text, "\x00", "")
		for strings.Contains(s.Text, "\x00") {
			s.Text = strings.Replace(s.Text, "\x00", codes[0], 1)
			codes = codes[1:]
		}
		if wordIn.MatchString(prose) {
			all = append(all, s)
		}
		text = text[end:]
	}
	return all
}

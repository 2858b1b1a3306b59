package archtest

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSentencesOfThePagesAreShort(t *testing.T) {
	read := 0
	for _, page := range pagesOf(t) {
		for _, s := range Sentences(pageText(t, page)) {
			read++
			if s.Words > longest {
				t.Errorf("%s:%d: %d words, at most %d: %s", page, s.Line, s.Words, longest, s.Text)
			}
		}
	}
	require.Greater(t, read, 1500)
}

func TestTheSentencesOfThePackageCommentsAreShort(t *testing.T) {
	read := 0
	for _, f := range files(t) {
		if !public(f) || f.syntax.Doc == nil {
			continue
		}
		for _, s := range Sentences(f.syntax.Doc.Text()) {
			read++
			if s.Words > longest {
				t.Errorf("%s: %d words, at most %d: %s", f.Path, s.Words, longest, s.Text)
			}
		}
	}
	require.Greater(t, read, 200)
}

// translated are words of pages that mean something else in English, or nothing.
var translated = regexp.MustCompile(`(?i)\b(?:beside|anew|of before|also (?:if|while|when))\b`)

func TestThePagesAreNotTranslated(t *testing.T) {
	for _, page := range pagesOf(t) {
		for _, s := range Sentences(pageText(t, page)) {
			require.NotRegexp(t, translated, codeSpan.ReplaceAllString(s.Text, ""), "%s:%d: write besides, next to, again, from before, even if", page, s.Line)
		}
	}
	require.Regexp(t, translated, "It runs beside it, also while it is off")
	require.NotRegexp(t, translated, "besides")
}

// itemInside matches the mark of an item of a list that is within a line, where it
// begins no item.
var itemInside = regexp.MustCompile(`^- |^\d+\.$|[;)] - `)

func TestAnItemOfAListBeginsALine(t *testing.T) {
	for _, page := range pagesOf(t) {
		for _, s := range Sentences(pageText(t, page)) {
			require.NotRegexp(t, itemInside, s.Text, "%s:%d", page, s.Line)
		}
	}
	for _, text := range []string{"- It is", "2.", "it was (see there); - it is"} {
		require.Regexp(t, itemInside, text)
	}
}

func TestSentencesAreThoseOfProse(t *testing.T) {
	page := `# A heading has none

One ends here. Two has ` + "`code. With a stop`" + ` and [a link of two](x.md#y.z); it goes
on.

    # code. Is no prose

- **Three.** Four (` + "`TestA`, `TestB…`" + `).
- Five
  goes on (six, ` + "`x`" + `)? ` + "`TestC`" + `

| a. row | b |
|---|---|

` + "```go" + `
fenced. Code
` + "```" + `
1. Seven!
   ` + "`TestD`" + ` is eight.
`
	require.Equal(t, []Sentence{
		{3, "One ends here.", 3},
		{3, "Two has `code. With a stop` and a link of two; it goes on.", 11},
		{8, "**Three.**", 1},
		{8, "Four (`TestA`, `TestB…`).", 1},
		{9, "Five goes on (six, `x`)?", 5},
		{18, "Seven!", 1},
		{18, "`TestD` is eight.", 3},
	}, Sentences(page))
}

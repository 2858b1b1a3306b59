// Package shorten shortens texts for people to a number of bytes. What it returns is
// valid UTF-8, and says by a mark that something is left out.
//
// It computes; it touches nothing.
package shorten

import "strings"

// mark stands for what is left out.
const mark = "…"

// Head is the text, or its beginning and a mark if it has more bytes than most, which is
// more than the mark has. Bytes that are no UTF-8 are left out.
func Head(text string, most int) string {
	if len(text) > most {
		text = text[:most-len(mark)] + mark
	}
	return strings.ToValidUTF8(text, "")
}

// Tail is the text, or a mark and its end if it has more bytes than most, as [Head].
func Tail(text string, most int) string {
	if len(text) > most {
		text = mark + text[len(text)-most+len(mark):]
	}
	return strings.ToValidUTF8(text, "")
}

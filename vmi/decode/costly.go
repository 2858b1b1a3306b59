package decode

import (
	"strconv"
	"strings"
)

// Limits of the text of a quantity. Within them, no calculation takes noticeable
// time; whether the amount makes sense is a matter of validation.
const (
	mostText     = 64
	mostExponent = 99
)

// bounded reports whether the text of a quantity is short and has a small exponent,
// if it has one. It need not be a quantity.
func bounded(text string) bool {
	if len(text) > mostText {
		return false
	}
	i := strings.IndexAny(text, "eE")
	if i < 0 || i == len(text)-1 {
		return true // 1E is a suffix
	}
	e, err := strconv.Atoi(text[i+1:])
	return err != nil || e >= -mostExponent && e <= mostExponent
}

// Costly reports whether the JSON may have a quantity with which no calculation
// must be done, not even that of the decoder: one that is long, or has a large
// exponent. It reads the text once, so that decoding an ordinary object costs little
// more, and takes texts that are no quantities for them.
func Costly(data []byte) bool {
	digits := 0
	for i, c := range data {
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > mostText {
				return true
			}
			continue
		case (c == 'e' || c == 'E') && (digits > 0 || i > 0 && data[i-1] == '.') && largeExponent(data[i+1:]) && number(data[:i]):
			return true
		}
		if c != '.' && c != '+' && c != '-' {
			digits = 0
		}
	}
	return false
}

// largeExponent reports whether the text begins with three digits or more, with
// or without a sign before them, that end a text or a number.
func largeExponent(data []byte) bool {
	if len(data) > 0 && (data[0] == '+' || data[0] == '-') {
		data = data[1:]
	}
	n := 0
	for n < len(data) && data[n] >= '0' && data[n] <= '9' {
		n++
	}
	return n >= 3 && (n == len(data) || strings.IndexByte("\",]} \t\r\n", data[n]) >= 0)
}

// number reports whether what is before the exponent is a number and nothing else.
func number(data []byte) bool {
	for i := len(data) - 1; i >= 0; i-- {
		switch c := data[i]; {
		case c >= '0' && c <= '9', c == '.', c == '+', c == '-':
		default:
			return strings.IndexByte("\":[, \t\r\n", c) >= 0
		}
	}
	return true
}

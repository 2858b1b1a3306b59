package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPagesOfTheProgramAreGivenBackAndUsedAgain(t *testing.T) {
	resident := func() (kib int) {
		b, err := os.ReadFile("/proc/self/statm")
		require.NoError(t, err)
		for _, d := range strings.Fields(string(b))[2] { // pages of files
			kib = kib*10 + int(d-'0')
		}
		return kib * os.Getpagesize() / 1024
	}
	before := resident()
	giveBack()
	require.Less(t, resident(), before/2, "in KiB, of %d", before)
	require.Contains(t, strings.ToUpper("it runs on"), "RUNS")
}

func TestOnlyWhatNothingCanWriteToIsGivenBack(t *testing.T) {
	for line, want := range map[string]bool{
		"00400000-00bd1000 r-xp 00000000 00:2d 1234567    /usr/bin/virt-launcher": true,
		"00bd1000-0140c000 r--p 007d1000 00:2d 1234567    /usr/bin/virt-launcher": true,
		"0140c000-01466000 rw-p 0100c000 00:2d 1234567    /usr/bin/virt-launcher": false,
		"7f0000000000-7f0000021000 r-xp 00000000 00:2d 7  /usr/lib/libc.so.6":     false,
		"7ffc0a9f0000-7ffc0aa11000 rw-p 00000000 00:00 0  [stack]":                false,
		"c000000000-c000400000 rw-p 00000000 00:00 0 ":                            false,
		"": false,
	} {
		start, size, ok := readOnly(line, "/usr/bin/virt-launcher")
		require.Equal(t, want, ok, line)
		if ok {
			require.NotZero(t, start)
			require.NotZero(t, size)
		}
	}
}

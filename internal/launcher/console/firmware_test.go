package console

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheWordsOfAFirmwareThatFindsNothingAreFound(t *testing.T) {
	for name, tt := range map[string]struct {
		writes []string
		want   []string
	}{
		"SeaBIOS": {[]string{"\x1bc\x1b[?7l\x1b[2J\x1b[0mSeaBIOS (version 1.16.2)\r\nBooting from Hard Disk...\r\nBoot failed: not a bootable disk\r\n\r\nNo bootable device.\r\n"},
			[]string{"No bootable device."}},
		"UEFI": {[]string{"BdsDxe: failed to load Boot0001\r\nBdsDxe: No bootable option or device was found.\r\nBdsDxe: Press any key to enter the Boot Manager Menu.\r\n"},
			[]string{"No bootable option or device was found"}},
		"a line in parts":         {strings.Split("No bootable device.", ""), []string{"No bootable device."}},
		"each line counts once":   {[]string{"No bootable device. No bootable device.", " No bootable device.\nNo bootable device."}, []string{"No bootable device.", "No bootable device."}},
		"words in two lines":      {[]string{"No bootable\n device."}, nil},
		"the end of a long line":  {[]string{strings.Repeat("x", 300) + "No bootable device."}, nil},
		"a disk that is not last": {[]string{"Boot failed: not a bootable disk\nBooting from Hard Disk...\nLinux version 6.1\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var got []string
			first := 0
			f := &Firmware{Out: &out, First: func() { first++ }, Failed: func(words string) { got = append(got, words) }}
			_, err := f.Write(nil)
			require.NoError(t, err)
			require.Zero(t, first, "nothing was written")
			for _, w := range tt.writes {
				n, err := f.Write([]byte(w))
				require.NoError(t, err)
				require.Equal(t, len(w), n)
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, 1, first)
			require.Equal(t, strings.Join(tt.writes, ""), out.String(), "everything is passed on")
		})
	}
}

func FuzzFirmware(f *testing.F) {
	f.Add([]byte("No bootable device.\r\n"), 3)
	f.Add([]byte("\x00\xff\n\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, size int) {
		var out bytes.Buffer
		calls := 0
		w := &Firmware{Out: &out, Failed: func(string) { calls++ }}
		for rest := b; len(rest) > 0; {
			n := min(max(size, 1), len(rest))
			_, err := w.Write(rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
			require.LessOrEqual(t, cap(w.line), 2*longest)
		}
		require.Equal(t, b, append([]byte{}, out.Bytes()...))
		require.LessOrEqual(t, calls, bytes.Count(b, []byte("\n"))+1)
	})
}

package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAttackAnAnswerOfALauncherIsPassedOnWithinLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, answer, want string }{
		{"an answer", `{"items":[{"userName":"root","loginTime":1.5e9}]}`, `{"items":[{"loginTime":1.5e9,"userName":"root"}]}`},
		{"a text that moves a cursor", "{\"hostname\":\"a\\u001b[2Jb\"}", `{"hostname":"a [2Jb"}`},
		{"a long text", `"` + strings.Repeat("x", 2000) + `"`, `"` + strings.Repeat("x", 1021) + `…"`},
		{"a number", `12345678901234567890123`, `12345678901234567890123`},
		{"depth", strings.Repeat("[", 20) + strings.Repeat("]", 20), ""},
		{"a long list", "[" + strings.Repeat("1,", 5000) + "1]", ""},
		{"a name that is no field", `{"a\u0007":1}`, ""},
		{"two values", `{}{}`, ""},
		{"no JSON", `<html>`, ""},
		{"nothing", ``, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := SanitizeAnswer(json.RawMessage(tt.answer))
			if tt.want == "" {
				require.ErrorIs(t, err, errAnswer)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
}

func FuzzSanitizeAnswer(f *testing.F) {
	f.Add([]byte(`{"os":{"name":"Debian"},"userList":[{"userName":"a"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := SanitizeAnswer(b)
		if err != nil {
			return
		}
		require.True(t, json.Valid(got))
		again, err := SanitizeAnswer(got)
		require.NoError(t, err)
		require.JSONEq(t, string(got), string(again))
	})
}

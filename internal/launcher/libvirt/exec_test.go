package libvirt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProgramIsRunWithItsArgumentsAsTheyAre(t *testing.T) {
	command, err := execCommand("/bin/sh", []string{"-c", `echo "a" > '/tmp/b c'`})
	require.NoError(t, err)
	require.JSONEq(t, `{"execute":"guest-exec","arguments":{"path":"/bin/sh","arg":["-c","echo \"a\" > '/tmp/b c'"]}}`, command)
	command, err = execCommand("true", nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"execute":"guest-exec","arguments":{"path":"true"}}`, command)
}

func TestTheAnswersOfAnAgentAboutAProgram(t *testing.T) {
	pid, err := execPID(agentAnswer{`{"return":{"pid":417}}`})
	require.NoError(t, err)
	require.EqualValues(t, 417, pid)
	for name, tt := range map[string]struct {
		answer string
		want   *Exit
	}{
		"a program that runs":                 {`{"return":{"exited":false}}`, nil},
		"a success":                           {`{"return":{"exited":true,"exitcode":0}}`, &Exit{}},
		"another status":                      {`{"return":{"exited":true,"exitcode":3}}`, &Exit{Status: 3}},
		"a signal":                            {`{"return":{"exited":true,"signal":9}}`, &Exit{Signal: 9}},
		"output that was not asked for":       {`{"return":{"exited":true,"exitcode":1,"out-data":"aGk="}}`, &Exit{Status: 1}},
		"a status beside one that it runs on": {`{"return":{"exited":false,"exitcode":1}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			exit, err := execStatus(agentAnswer{tt.answer})
			require.NoError(t, err)
			require.Equal(t, tt.want, exit)
		})
	}
	for name, answer := range map[string]string{
		"nothing": ``, "no JSON": `done`, "an error": `{"error":{"class":"GenericError"}}`, "a list": `{"return":[]}`,
		"a status that is a word": `{"return":{"exited":true,"exitcode":"0"}}`, "a pid that is a word": `{"return":{"pid":"1"}}`,
		"too much": `{"return":{"exited":true,"out-data":"` + strings.Repeat("a", maxAnswer) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execPID(agentAnswer{answer})
			require.ErrorContains(t, err, "not what guest-exec answers")
			exit, err := execStatus(agentAnswer{answer})
			require.ErrorContains(t, err, "not what guest-exec-status answers")
			require.Nil(t, exit)
		})
	}
}

// FuzzExecAnswers reads what a guest may answer.
func FuzzExecAnswers(f *testing.F) {
	f.Add(`{"return":{"pid":417}}`)
	f.Add(`{"return":{"exited":true,"exitcode":3,"signal":9}}`)
	f.Fuzz(func(t *testing.T, answer string) {
		if pid, err := execPID(agentAnswer{answer}); err == nil {
			require.NotZero(t, pid)
		} else if !json.Valid([]byte(answer)) && len(answer) > 8 {
			require.NotContains(t, err.Error(), answer, "no error repeats the guest")
		}
		if exit, err := execStatus(agentAnswer{answer}); err != nil {
			require.Nil(t, exit)
		}
	})
}

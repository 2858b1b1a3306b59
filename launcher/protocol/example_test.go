package protocol_test

import (
	"encoding/json"
	"fmt"

	"github.com/podvisor/podvisor/launcher/protocol"
)

func ExampleState() {
	var s protocol.State
	sent := `{"generation":3,"phase":"Paused","pause":{"cause":"IOError","volume":"data","message":"no space left"},"ofTheNextRelease":1}`
	if err := json.Unmarshal([]byte(sent), &s); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Generation, s.Phase, s.Pause.Cause, s.Pause.Volume)
	// Output: 3 Paused IOError data
}

package carry_test

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/podvisor/podvisor/internal/carry"
)

func ExampleBoth() {
	user, a := net.Pipe()
	b, guest := net.Pipe()
	go carry.Both(context.Background(), a, b)
	go func() { _, _ = io.WriteString(guest, "login: "); _ = guest.Close() }()
	text, _ := io.ReadAll(user)
	fmt.Println(string(text))
	// Output: login:
}

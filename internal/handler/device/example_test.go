package device_test

import (
	"fmt"

	"github.com/podvisor/podvisor/internal/handler/device"
	"github.com/podvisor/podvisor/vmi"
)

func ExampleCDI() {
	spec, _ := device.CDI([]device.Device{{Name: device.Tun, Resource: vmi.TunResource, Path: "/dev/net/tun", Major: 10, Minor: 200}})
	fmt.Print(string(spec))
	// Output:
	// {
	//   "cdiVersion": "0.6.0",
	//   "kind": "devices.kubevirt.io/vm",
	//   "devices": [
	//     {
	//       "name": "tun",
	//       "containerEdits": {
	//         "deviceNodes": [
	//           {
	//             "path": "/dev/net/tun",
	//             "hostPath": "/dev/net/tun",
	//             "type": "c",
	//             "major": 10,
	//             "minor": 200,
	//             "fileMode": 432,
	//             "permissions": "rw",
	//             "uid": 107,
	//             "gid": 107
	//           }
	//         ]
	//       }
	//     }
	//   ]
	// }
}

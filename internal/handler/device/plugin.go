package device

import (
	"context"
	"strconv"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin answers the kubelet for one device.
type plugin struct {
	api.UnimplementedDevicePluginServer
	device Device
	count  int
	// gone is closed to end the plugin.
	gone chan struct{}
	// dropped gets something when the kubelet, that is its process, is gone.
	dropped chan struct{}
}

func newPlugin(d Device, count int) *plugin {
	return &plugin{device: d, count: count, gone: make(chan struct{}), dropped: make(chan struct{}, 1)}
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch offers the device many times. That never changes while the
// plugin runs; the end of the call means that the kubelet has ended.
func (p *plugin) ListAndWatch(_ *api.Empty, s api.DevicePlugin_ListAndWatchServer) error {
	list := &api.ListAndWatchResponse{}
	for i := range p.count {
		list.Devices = append(list.Devices, &api.Device{ID: p.device.Name + strconv.Itoa(i), Health: api.Healthy})
	}
	if err := s.Send(list); err != nil {
		return err
	}
	select {
	case <-s.Context().Done():
		select {
		case p.dropped <- struct{}{}:
		default:
		}
	case <-p.gone:
	}
	return nil
}

// Allocate gives each container the same device, by its CDI name.
func (p *plugin) Allocate(_ context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for range r.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{
			CdiDevices: []*api.CDIDevice{{Name: p.device.cdiName()}},
		})
	}
	return answer, nil
}

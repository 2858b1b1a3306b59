package main

import (
	"net/netip"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestUserData(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       userData
	}{
		{"nothing is fine", "", userData{}},
		{"blank lines are nothing", "\n \n", userData{}},
		{"a script is kept as it is", "#!/bin/sh\necho hi\n", userData{Script: []byte("#!/bin/sh\necho hi\n")}},
		{"a cloud-config of nothing is fine", "#cloud-config\n", userData{}},
		{"names of the host are read", "#cloud-config\nhostname: a\nfqdn: a.example\n", userData{Hostname: "a", FQDN: "a.example"}},
		{"a command is a string or a list of scalars", "#cloud-config\nruncmd:\n- echo $A\n- [sleep, 1, true]\n",
			userData{Commands: []command{{"sh", "-c", "echo $A"}, {"sleep", "1", "true"}}}},
		{"a mode is octal with and without quotes", "#cloud-config\nwrite_files:\n- {path: /a, permissions: '0755'}\n- {path: /b, permissions: 0640}\n" +
			"- {path: /c, permissions: '0o600'}\n",
			userData{Files: []file{{Path: "/a", Permissions: 0o755}, {Path: "/b", Permissions: 0o640}, {Path: "/c", Permissions: 0o600}}}},
		{"a block keeps its lines", "#cloud-config\nwrite_files:\n- path: /a\n  content: |\n    one\n      two\n",
			userData{Files: []file{{Path: "/a", Content: "one\n  two\n"}}}},
		{"what is not known is named in order", "#cloud-config\nusers: []\npackages: [x]\n", userData{Ignored: []string{"packages", "users"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseUserData([]byte(tt.text))
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestUserDataThatMakesNoSenseIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"no first line":           "hostname: a\n",
		"no YAML":                 "#cloud-config\n\t:\n",
		"a command that is a map": "#cloud-config\nruncmd:\n- {a: b}\n",
		"a command of no words":   "#cloud-config\nruncmd:\n- []\n",
		"a mode of no digits":     "#cloud-config\nwrite_files:\n- {path: /a, permissions: rwx}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseUserData([]byte(text))
			require.Error(t, err)
		})
	}
}

func TestContentOfFiles(t *testing.T) {
	got, err := file{Content: "aGVs\nbG8=\n", Encoding: "b64"}.bytes()
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	_, err = file{Encoding: "gzip"}.bytes()
	require.Error(t, err)
}

func TestFilesAreWrittenWithTheirModeAndAppended(t *testing.T) {
	path := t.TempDir() + "/sub/a"
	require.NoError(t, writeFiles([]file{
		{Path: path, Content: "one\n"},
		{Path: path, Content: "two\n", Append: true, Permissions: 0o600},
	}))
	require.FileExists(t, path)
	require.Error(t, writeFiles([]file{{Path: "relative"}}))
}

func TestSeed(t *testing.T) {
	s, err := parseSeed(fstest.MapFS{
		"meta-data": {Data: []byte(`{"instance-id": "i", "local-hostname": "m", "public-keys": ["k"]}`)},
		"user-data": {Data: []byte("#cloud-config\nhostname: u\n")},
	})
	require.NoError(t, err)
	require.Equal(t, "i", s.meta.InstanceID)
	require.Equal(t, []string{"k"}, s.meta.Keys)
	require.Equal(t, "u", s.hostname(), "the name in user-data comes first")
	require.Equal(t, "m", seed{meta: s.meta}.hostname())

	s, err = parseSeed(fstest.MapFS{"user-data": {Data: []byte("?")}, "meta-data": {Data: []byte("local-hostname: m")}})
	require.Error(t, err)
	require.Equal(t, "m", s.hostname(), "what can be read is used all the same")
}

func TestConfigDrive(t *testing.T) {
	s, err := parseDrive(fstest.MapFS{
		"openstack/latest/meta_data.json": {Data: []byte(`{"uuid": "u", "hostname": "m", "public_keys": {"0": "k", "1": "l"}}`)},
		"openstack/latest/user_data":      {Data: []byte("#!/bin/sh\n")},
		"openstack/latest/network_data.json": {Data: []byte(`{"links": [{"id": "a", "type": "phy", "ethernet_mac_address": "02:00:00:00:00:01", "mtu": 1400}, {"id": "b", "ethernet_mac_address": "02:00:00:00:00:02"}],
			"networks": [{"link": "a", "type": "ipv4", "ip_address": "192.0.2.5", "netmask": "255.255.255.0"}, {"link": "b", "type": "ipv4_dhcp"}],
			"services": [{"type": "dns", "address": "192.0.2.53"}]}`)},
	})
	require.NoError(t, err)
	require.Equal(t, "u", s.meta.InstanceID)
	require.Equal(t, []string{"k", "l"}, s.meta.Keys)
	require.Equal(t, "m", s.hostname())
	require.Equal(t, "#!/bin/sh\n", string(s.user.Script))
	first, ok := s.network.of(link{name: "eth0", mac: "02:00:00:00:00:01"})
	require.True(t, ok)
	require.Equal(t, []string{"192.0.2.5/24"}, first.Addresses)
	require.Equal(t, 1400, first.MTU)
	require.Equal(t, []string{"192.0.2.53"}, first.Nameservers.Addresses)
	second, ok := s.network.of(link{name: "eth1", mac: "02:00:00:00:00:02"})
	require.True(t, ok)
	require.True(t, second.DHCP4)

	s, err = parseDrive(fstest.MapFS{"openstack/latest/meta_data.json": {Data: []byte(`{"uuid": "u"}`)}})
	require.NoError(t, err)
	_, ok = s.network.of(link{name: "eth0", mac: "02:00:00:00:00:01"})
	require.False(t, ok, "a link that is not in the data uses DHCP")
	for name, network := range map[string]string{
		"no JSON":                  "version: 2",
		"a netmask that is none":   `{"links": [{"id": "a"}], "networks": [{"link": "a", "type": "ipv4", "ip_address": "192.0.2.5", "netmask": "255.0.255.0"}]}`,
		"a link that is not there": `{"networks": [{"link": "a", "type": "ipv4_dhcp"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseDrive(fstest.MapFS{"openstack/latest/network_data.json": {Data: []byte(network)}})
			require.ErrorContains(t, err, "network_data.json")
		})
	}
}

func FuzzUserData(f *testing.F) {
	f.Add([]byte("#cloud-config\nruncmd: [a, [b, 1]]\nwrite_files: [{path: /a, permissions: 0644}]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := parseUserData(b)
		if err != nil {
			return
		}
		for _, c := range append(u.Commands, u.BootCommands...) {
			require.NotEmpty(t, c)
		}
	})
}

func FuzzVolumeLabel(f *testing.F) {
	iso := make([]byte, 32768+2048)
	copy(iso[32769:], "CD001")
	copy(iso[32808:], "cidata  ")
	f.Add(iso)
	f.Fuzz(func(t *testing.T, b []byte) {
		if label, kind := volumeLabel(b); label != "" {
			require.Contains(t, []string{"isofs", "vfat"}, kind)
		}
	})
}

func FuzzNetworkData(f *testing.F) {
	f.Add([]byte(`{"links": [{"id": "a"}], "networks": [{"link": "a", "type": "ipv4", "ip_address": "192.0.2.5", "netmask": "255.255.255.0"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		conf, err := parseNetworkData(b)
		if err != nil {
			return
		}
		for _, e := range conf.Ethernets {
			for _, a := range e.Addresses {
				_, err := netip.ParsePrefix(a)
				require.NoError(t, err)
			}
		}
	})
}

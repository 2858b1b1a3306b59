package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// KeepTPM makes the daemon keep the state of the TPM of the domain with this UUID in
// the folder dir. It has no setting for that; the folder of all such states is in its
// configuration.
func (d *Daemon) KeepTPM(uuid, dir string) error {
	all := d.folder("conf/libvirt/qemu/swtpm")
	if err := os.MkdirAll(all, 0o711); err != nil {
		return err
	}
	err := os.Symlink(dir, all+"/"+uuid)
	if errors.Is(err, fs.ErrExist) {
		have, err := os.Readlink(all + "/" + uuid)
		if err == nil && have != dir {
			err = fmt.Errorf("%s is a link to %s, not %s", all+"/"+uuid, have, dir)
		}
		return err
	}
	return err
}

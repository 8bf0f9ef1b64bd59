// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"quartermaster.storage/hostvol"
)

// node is the part of a CSI driver that runs on each machine. Its four functions do what the calls
// of the same names ask for; each may be repeated, after any failure and any restart, as CSI wants.
type node struct {
	host *hostvol.Host
}

// volume is what the calls have in common.
type volume struct {
	id      string
	context map[string]string // CSI's volume_context: a flat ConnectionInfo
	secrets map[string]string // CSI's node_stage_secrets
	fsType  string            // of a block volume; "" for one that is published as a device
}

// consumer in the records, so that an operator sees whose volume it is.
const consumer = "csi"

func (v volume) info() hostvol.ConnectionInfo {
	info := hostvol.FromAttributes(v.context)
	for name, value := range v.secrets {
		info.Data[name] = value
	}
	info.Data["volumeId"] = v.id
	info.Consumer = consumer
	return info
}

// NodeStageVolume connects the volume and puts it at the staging path: a file system is mounted
// there, a directory bound. A device without a file system type stays where it is.
func (n *node) NodeStageVolume(ctx context.Context, v volume, staging string) error {
	record, err := n.host.Connect(ctx, v.info())
	if err != nil {
		return fmt.Errorf("stage %s: %w", v.id, err)
	}
	if isDirectory(record.Path) {
		return put(record.Path, staging, "", syscall.MS_BIND)
	}
	if v.fsType == "" {
		return nil
	}
	// a driver would make a file system here, on a device that was seen to be empty
	return put(record.Path, staging, v.fsType, 0)
}

// NodePublishVolume shows a staged volume at a pod's path.
func (n *node) NodePublishVolume(ctx context.Context, v volume, staging, target string, readOnly bool) error {
	// asked anew: the device is verified again, and may have another name since the stage
	source, err := n.host.DevicePath(ctx, v.id)
	if err != nil {
		return fmt.Errorf("publish %s: %w", v.id, err)
	}
	if isDirectory(source) || v.fsType != "" {
		source = staging
	}
	if err := put(source, target, "", syscall.MS_BIND); err != nil {
		return err
	}
	if !readOnly {
		return nil
	}
	// a bind mount takes its flags only when it is mounted again
	err = syscall.Mount("", target, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
	if err != nil {
		return errors.Join(fmt.Errorf("make %s read only: %w", target, err), take(target))
	}
	return nil
}

// NodeUnpublishVolume ends a pod's use.
func (n *node) NodeUnpublishVolume(_ context.Context, target string) error {
	return take(target)
}

// NodeUnstageVolume removes the volume from this machine. One that is still in use is refused with
// EBUSY and stays whole, so the call can simply come again.
func (n *node) NodeUnstageVolume(ctx context.Context, id, staging string) error {
	if err := take(staging); err != nil {
		return err
	}
	_, err := n.host.Disconnect(ctx, hostvol.Volume{ID: id, Consumer: consumer}, 0)
	if err != nil {
		return fmt.Errorf("unstage %s: %w", id, err)
	}
	return nil
}

// NodeExpandVolume gives the size that this machine sees now.
func (n *node) NodeExpandVolume(ctx context.Context, id string) (int64, error) {
	extended, err := n.host.Extend(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("expand %s: %w", id, err)
	}
	return extended.Size, nil
}

func isDirectory(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// put mounts source at target, once; target becomes a directory, or a file for a device or file.
func put(source, target, fsType string, flags uintptr) error {
	mounted, err := isMounted(target)
	if err != nil || mounted {
		return err
	}
	if fsType != "" || isDirectory(source) {
		err = os.MkdirAll(target, 0o750)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o750); err == nil {
		err = os.WriteFile(target, nil, 0o640)
	}
	if err != nil {
		return err
	}
	if err := syscall.Mount(source, target, fsType, flags, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", source, target, err)
	}
	return nil
}

// take undoes put.
func take(target string) error {
	mounted, err := isMounted(target)
	if err != nil {
		return err
	}
	if mounted {
		if err := syscall.Unmount(target, 0); err != nil {
			return fmt.Errorf("unmount %s: %w", target, err)
		}
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

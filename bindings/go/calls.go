// SPDX-License-Identifier: Apache-2.0

package hostvol

/*
#include <hostvol/hostvol.h>
*/
import "C"

import (
	"context"
	"syscall"
)

// Properties of this host. Multipath is only true in them where multipathd runs.
func (h *Host) Properties(ctx context.Context, multipath, doLocalAttach bool) (*Properties, error) {
	p := &Properties{}
	_, err := h.doJSON(ctx, nil, func(c *C.struct_hostvol, _ *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_get_connector_properties_json(c, C.bool(multipath), C.bool(doLocalAttach), ret, e)
	}, p)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Connect connects the volume for its consumer. The record's Path is what was seen to be the volume
// that was asked for. Connecting what is connected gives the same path again.
func (h *Host) Connect(ctx context.Context, info ConnectionInfo) (*Record, error) {
	record := &Record{}
	status, err := h.doJSON(ctx, info, func(c *C.struct_hostvol, in *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_connect_volume_json(c, in, ret, e)
	}, record)
	if err != nil {
		return nil, err
	}
	record.OtherOptions = status > 0
	return record, nil
}

// Disconnect ends a consumer's use of the volume; the last one's removes it from the host. Flags are 0
// or Force; EBUSY is a volume in use, and all is as before.
func (h *Host) Disconnect(ctx context.Context, volume Reference, flags uint) (*Disconnected, error) {
	d := &Disconnected{}
	_, err := h.doJSON(ctx, volume, func(c *C.struct_hostvol, in *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_disconnect_volume_json(c, in, C.uint(flags), ret, e)
	}, d)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// DevicePath is the path of a connected volume, verified again.
func (h *Host) DevicePath(ctx context.Context, volumeID string) (string, error) {
	if volumeID == "" {
		return "", noVolume()
	}
	_, path, err := h.do(ctx, volumeID, func(c *C.struct_hostvol, in *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_get_device_path(c, in, ret, e)
	})
	return path, err
}

// Extend makes this host see that the storage has grown the volume; a file system on it stays as it
// is. Where only some paths failed, there is an error and the Extended beside it.
func (h *Host) Extend(ctx context.Context, volumeID string) (*Extended, error) {
	if volumeID == "" {
		return nil, noVolume()
	}
	_, out, err := h.do(ctx, volumeID, func(c *C.struct_hostvol, in *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_extend_volume_json(c, in, ret, e)
	})
	if out == "" {
		return nil, err
	}
	x := &Extended{}
	if bad := decode(out, x); bad != nil {
		return nil, bad
	}
	return x, err
}

// Plan says what a disconnect would do now. It changes nothing.
func (h *Host) Plan(ctx context.Context, volume Reference) (*Plan, error) {
	p := &Plan{}
	_, err := h.doJSON(ctx, volume, func(c *C.struct_hostvol, in *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_plan_json(c, in, ret, e)
	}, p)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// List gives the records of a volume; of all where volumeID is "".
func (h *Host) List(ctx context.Context, volumeID string) ([]Record, error) {
	var records []Record
	_, out, err := h.do(ctx, volumeID, func(c *C.struct_hostvol, in *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_list_json(c, in, ret, e)
	})
	if err != nil {
		return nil, err
	}
	err = decode(out, &records)
	return records, err
}

// Forget ends every consumer's use of a volume whose place another one has taken, so that the next
// Connect takes what is there: a person's word. It is EBUSY while the volume works or is used. As for
// Disconnect the volume is a ConnectionInfo where its driver needs secrets for it; the consumer does
// not matter.
func (h *Host) Forget(ctx context.Context, volume Reference) ([]Disconnected, error) {
	var gone []Disconnected
	_, err := h.doJSON(ctx, volume, func(c *C.struct_hostvol, in *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_forget_json(c, in, ret, e)
	}, &gone)
	if err != nil {
		return nil, err
	}
	return gone, nil
}

// Recover undoes or finishes what died in the middle.
func (h *Host) Recover(ctx context.Context) ([]Recovered, error) {
	var all []Recovered
	_, err := h.doJSON(ctx, nil, func(c *C.struct_hostvol, _ *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_recover_json(c, ret, e)
	}, &all)
	return all, err
}

// Audit finds what interrupted calls left behind and no record names, and takes it away where repair
// says so. Clean is false where something remains.
func (h *Host) Audit(ctx context.Context, repair bool) (found []Finding, clean bool, err error) {
	flags := C.uint(0)
	if repair {
		flags = C.HOSTVOL_REPAIR
	}
	status, err := h.doJSON(ctx, nil, func(c *C.struct_hostvol, _ *C.char, ret **C.char, e *C.struct_hostvol_error) C.int {
		return C.hostvol_audit_json(c, flags, ret, e)
	}, &found)
	return found, err == nil && status == 0, err
}

// Drivers is the library's table of drivers.
func Drivers() ([]Driver, error) {
	var all []Driver
	var ret *C.char
	var cerr C.struct_hostvol_error
	r := C.hostvol_drivers_json(&ret, &cerr)
	defer C.hostvol_free(ret)
	if r < 0 {
		return nil, newError(r, &cerr)
	}
	err := decode(C.GoString(ret), &all)
	return all, err
}

func noVolume() error {
	return &Error{Errno: syscall.EINVAL, Message: "a volume id is needed"}
}

// SPDX-License-Identifier: Apache-2.0

package hostvol

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const size = 16 << 20

var ctx = context.Background()

func open(t *testing.T) (h *Host, dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	h, err := Open(Options{StateDir: dir + "/state", RunDir: dir + "/run", IP: "192.0.2.77"})
	if err != nil {
		t.Fatal(err)
	}
	return h, dir, file
}

func local(path, id string) ConnectionInfo {
	return ConnectionInfo{DriverVolumeType: "LOCAL", Data: map[string]any{"devicePath": path, "volumeId": id}}
}

func connect(t *testing.T, h *Host, info ConnectionInfo) *Record {
	t.Helper()
	r, err := h.Connect(ctx, info)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// fails: err has this errno and says this.
func fails(t *testing.T, err error, errno syscall.Errno, words string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Errno != errno || !errors.Is(err, errno) || !strings.Contains(e.Message, words) {
		t.Errorf("got %v, want %v and %q", err, errno, words)
	}
}

func TestVersionAndDrivers(t *testing.T) {
	if strings.Count(Version(), ".") != 2 {
		t.Errorf("version %q", Version())
	}
	drivers, err := Drivers()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drivers {
		if d.Name == "LOCAL" && d.Supported && d.Parameters[0].Name == "devicePath" && d.Parameters[0].Required {
			return
		}
	}
	t.Errorf("no LOCAL in %+v", drivers)
}

func TestProperties(t *testing.T) {
	h, _, _ := open(t)
	p, err := h.Properties(ctx, false, true)
	if err != nil || p.OSType != "LINUX" || p.IP != "192.0.2.77" || !p.DoLocalAttach {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestWholeWay(t *testing.T) {
	h, _, file := open(t)
	r := connect(t, h, local(file, "v1"))
	if r.State != "attached" || r.Path != file || r.VolumeID != "v1" || r.OtherOptions {
		t.Errorf("%+v", r)
	}
	if path, err := h.DevicePath(ctx, "v1"); err != nil || path != file {
		t.Errorf("path %q, %v", path, err)
	}
	if all, err := h.List(ctx, ""); err != nil || len(all) != 1 || all[0].Health != "ok" {
		t.Errorf("list %+v, %v", all, err)
	}
	if none, err := h.List(ctx, "v2"); err != nil || len(none) != 0 {
		t.Errorf("list %+v, %v", none, err)
	}
	if p, err := h.Plan(ctx, Volume{ID: "v1"}); err != nil || len(p.Steps) != 1 || p.Path != file {
		t.Errorf("plan %+v, %v", p, err)
	}
	if found, clean, err := h.Audit(ctx, true); err != nil || len(found) != 0 || !clean {
		t.Errorf("audit %+v, %v, %v", found, clean, err)
	}
	if all, err := h.Recover(ctx); err != nil || len(all) != 0 {
		t.Errorf("recover %+v, %v", all, err)
	}
	if _, err := h.Forget(ctx, Volume{ID: "v1"}); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("forget %v", err)
	}
	if gone, err := h.Forget(ctx, Volume{ID: "v2"}); err != nil || len(gone) != 0 {
		t.Errorf("forget %+v, %v", gone, err)
	}
	if err := os.Truncate(file, 2*size); err != nil {
		t.Fatal(err)
	}
	if x, err := h.Extend(ctx, "v1"); err != nil || x.Size != 2*size {
		t.Errorf("extend %+v, %v", x, err)
	}
	if d, err := h.Disconnect(ctx, r, 0); err != nil || d.Path != file {
		t.Errorf("disconnect %+v, %v", d, err)
	}
	if d, err := h.Disconnect(ctx, local(file, "v1"), Force); err != nil || d.Path != "" {
		t.Errorf("disconnect again %+v, %v", d, err)
	}
}

func TestRecordIsStoredAndGivenBack(t *testing.T) {
	h, _, file := open(t)
	info := local(file, "v1")
	info.Consumer = "pod-1"
	text, err := json.Marshal(connect(t, h, info))
	if err != nil {
		t.Fatal(err)
	}
	var back Record
	if err := json.Unmarshal(text, &back); err != nil || back.Consumer != "pod-1" || back.DriverVolumeType != "LOCAL" {
		t.Fatalf("%s: %v", text, err)
	}
	if d, err := h.Disconnect(ctx, back, 0); err != nil || d.Path != file || d.Consumer != "pod-1" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestLoopDevice(t *testing.T) {
	loop := os.Getenv("HOSTVOL_TEST_LOOP")
	if loop == "" {
		t.Skip("needs root and loop devices")
	}
	h, _, _ := open(t)
	connect(t, h, FromAttributes(map[string]string{"driverVolumeType": "LOCAL", "devicePath": loop, "volumeId": "v1"}))
	if x, err := h.Extend(ctx, "v1"); err != nil || x.Path != loop || x.Size != size {
		t.Errorf("%+v, %v", x, err)
	}
	if d, err := h.Disconnect(ctx, Volume{ID: "v1"}, 0); err != nil || d.Path != loop {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestErrors(t *testing.T) {
	h, dir, file := open(t)
	_, err := h.DevicePath(ctx, "no-such")
	fails(t, err, syscall.ENOENT, "no-such is not connected")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
	_, err = h.DevicePath(ctx, "")
	fails(t, err, syscall.EINVAL, "volume id")
	_, err = h.DevicePath(ctx, "v1\x00v2")
	fails(t, err, syscall.EINVAL, "NUL")
	_, err = h.Connect(ctx, local(dir+"/gone", "v1"))
	fails(t, err, syscall.ENOENT, "cannot use")
	_, err = h.Connect(ctx, ConnectionInfo{DriverVolumeType: "LOCAL"})
	fails(t, err, syscall.EINVAL, "")
	_, err = Open(Options{StateDir: "not/absolute"})
	fails(t, err, syscall.EINVAL, "")
	connect(t, h, local(file, "v1"))
	os.Remove(file)
	_, err = h.Extend(ctx, "v1")
	fails(t, err, syscall.ENOENT, "cannot use")
}

// TestContext: a call waits for another process's lock until its context ends; others go on.
func TestContext(t *testing.T) {
	h, dir, file := open(t)
	connect(t, h, local(file, "v1"))
	records, err := os.ReadDir(dir + "/state/attachments")
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	id, _, _ := strings.Cut(records[0].Name(), ".")
	lock, err := os.Create(dir + "/run/locks/record-" + id)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}

	ended, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() {
		_, err := h.Disconnect(ended, Volume{ID: "v1"}, 0)
		done <- err
	}()
	if _, err := h.List(ctx, ""); err != nil {
		t.Error(err)
	}
	cancel()
	err = <-done
	fails(t, err, syscall.ECANCELED, "")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not context.Canceled", err)
	}

	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err = h.Disconnect(short, Volume{ID: "v1"}, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is not context.DeadlineExceeded", err)
	}
	lock.Close()
	if d, err := h.Disconnect(ctx, Volume{ID: "v1"}, 0); err != nil || d.Path != file {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestManyGoroutines(t *testing.T) {
	h, _, file := open(t)
	var all sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d"} {
		all.Add(1)
		go func(id string) {
			defer all.Done()
			for i := 0; i < 20; i++ {
				if _, err := h.Connect(ctx, local(file, id)); err != nil {
					t.Error(err)
				}
				if d, err := h.Disconnect(ctx, Volume{ID: id}, 0); err != nil || d.Path != file {
					t.Errorf("%+v, %v", d, err)
				}
			}
		}(id)
	}
	all.Wait()
	if left, err := h.List(ctx, ""); err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
}

func TestLog(t *testing.T) {
	var got []string
	dir := t.TempDir()
	h, err := Open(Options{StateDir: dir + "/state", RunDir: dir + "/run", Log: func(level Level, message string) {
		if level == Warning {
			got = append(got, message)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	// no name server is asked for a name that cannot be one
	_, err = h.Connect(ctx, ConnectionInfo{DriverVolumeType: "ISCSI", Data: map[string]any{
		"targetPortal": "no..name:3260", "targetIqn": "iqn.2024-01.org.example:a", "targetLun": 1}})
	fails(t, err, syscall.EHOSTUNREACH, "no..name")
	if len(got) != 1 || !strings.Contains(got[0], "no..name has no address") {
		t.Errorf("%q", got)
	}
}

// resident is the memory of this process, after Go has given back what it does not use.
func resident(t *testing.T) int {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func TestNoMemoryIsLost(t *testing.T) {
	const rounds = 2000
	var text []byte
	round := func() {
		for i := 0; i < rounds; i++ {
			drivers, err := Drivers()
			if err != nil {
				t.Fatal(err)
			}
			if text == nil {
				text, _ = json.Marshal(drivers)
			}
		}
	}
	round()
	before := resident(t)
	round()
	if grown := resident(t) - before; grown > rounds*len(text)/2 {
		t.Errorf("%d bytes more after %d texts of %d bytes", grown, rounds, len(text))
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package hostvol connects volumes of any protocol to this host, by libhostvol.
//
//	host, err := hostvol.Open(hostvol.Options{})
//	record, err := host.Connect(ctx, hostvol.ConnectionInfo{
//		DriverVolumeType: "NFS",
//		Data:             map[string]any{"export": "192.0.2.10:/data", "volumeId": "v1"},
//	})
//	fmt.Println(record.Path)
//	_, err = host.Disconnect(ctx, record, 0)
//
// There is no daemon: records and locks are files that all processes of the host share. Calls block
// until they are done, until their context ends or until the deadline of the options; a call that
// fails leaves nothing behind. An error is an *Error with the library's errno, so that
// errors.Is(err, fs.ErrNotExist) and errors.Is(err, syscall.EBUSY) tell what happened.
//
// The package needs <hostvol/hostvol.h> and libhostvol where the C compiler looks for them; for
// other places set CGO_CFLAGS and CGO_LDFLAGS.
package hostvol

/*
#cgo LDFLAGS: -lhostvol
#include <hostvol/hostvol.h>
#include <stdint.h>
#include <stdlib.h>

void hostvolLog(int level, char *message, uintptr_t log);

static void log_to_go(enum hostvol_log_level level, const char *message, void *userdata)
{
	hostvolLog((int)level, (char *)message, (uintptr_t)userdata);
}

// log is a handle of Go's, a number and no pointer
static int open_with(const char *state_dir, const char *run_dir, const char *ip, int deadline_ms,
		     uintptr_t log, struct hostvol **ret, struct hostvol_error *err)
{
	struct hostvol_options options = { .size = sizeof(options), .state_dir = state_dir,
		.run_dir = run_dir, .ip = ip, .deadline_ms = deadline_ms,
		.log = log ? log_to_go : NULL, .log_userdata = (void *)log };

	return hostvol_open(&options, ret, err);
}
*/
import "C"

import (
	"context"
	"encoding/json"
	"math"
	"runtime/cgo"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Flags of Disconnect.
const (
	// Force disconnects although the volume is in use: its users get errors from then on, and data
	// that is not yet written may be lost.
	Force = C.HOSTVOL_FORCE
)

// Level is the severity of a line of the log.
type Level int

const (
	Debug   Level = C.HOSTVOL_LOG_DEBUG
	Info    Level = C.HOSTVOL_LOG_INFO
	Warning Level = C.HOSTVOL_LOG_WARNING
)

// Options of a Host; the zero value is the library's defaults.
type Options struct {
	StateDir string                            // records, survives a reboot
	RunDir   string                            // locks, shared by all processes of the host
	Deadline time.Duration                     // of each call, whose context may end sooner
	IP       string                            // the ip of Properties, where it should not be the first found
	Log      func(level Level, message string) // called by the goroutine that made the call
}

// Error is what a call failed with.
type Error struct {
	Errno   syscall.Errno
	Message string // one sentence: what, on what, why, what to do

	context error // where the call ended with its context
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the errno, and the context's error where that ended the call.
func (e *Error) Unwrap() []error {
	if e.context != nil {
		return []error{e.Errno, e.context}
	}
	return []error{e.Errno}
}

// Host is this machine. Goroutines may share one; there is nothing to close.
type Host struct {
	options Options
}

// Open checks the options. It touches nothing on the host.
func Open(options Options) (*Host, error) {
	h := &Host{options: options}
	// the library's handle is cheap; one for each call lets a context end that call and no other
	handle, err := h.handle(context.Background())
	if err != nil {
		return nil, err
	}
	handle.close()
	return h, nil
}

// Version of the library.
func Version() string { return C.GoString(C.hostvol_version()) }

// handle is the library's, for one call.
type handle struct {
	c   *C.struct_hostvol
	log cgo.Handle
}

func (h *Host) handle(ctx context.Context) (*handle, error) {
	var text texts
	defer text.free()
	var cerr C.struct_hostvol_error
	state, run := text.add(h.options.StateDir), text.add(h.options.RunDir)
	ip := text.add(h.options.IP)
	if text.err != nil {
		return nil, text.err
	}
	n := &handle{}
	if h.options.Log != nil {
		n.log = cgo.NewHandle(h.options.Log)
	}
	r := C.open_with(state, run, ip, C.int(h.deadline(ctx)), C.uintptr_t(n.log), &n.c, &cerr)
	if r < 0 {
		n.close()
		return nil, newError(r, &cerr)
	}
	return n, nil
}

// deadline in milliseconds, 0 for the library's own.
func (h *Host) deadline(ctx context.Context) int64 {
	left := h.options.Deadline
	if end, ok := ctx.Deadline(); ok {
		until := time.Until(end)
		if left <= 0 {
			left = C.HOSTVOL_DEFAULT_DEADLINE_MS * time.Millisecond
		}
		left = max(min(left, until), time.Millisecond)
	}
	if left <= 0 {
		return 0
	}
	return max(1, min(left.Milliseconds(), math.MaxInt32))
}

func (n *handle) close() {
	C.hostvol_close(n.c)
	if n.log != 0 {
		n.log.Delete()
	}
}

// cancelWith ends the handle's call when the context ends. What it returns is to be called after
// the call; only then may the handle be closed.
func (n *handle) cancelWith(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-over:
			return
		case <-ctx.Done():
		}
		// cancelling ends what is under way, and the call may be about to begin
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			C.hostvol_cancel(n.c)
			select {
			case <-over:
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		close(over)
		<-done
	}
}

// texts are C strings of one call.
type texts struct {
	all []unsafe.Pointer
	err error
}

// add gives NULL for "". A NUL would cut the text off, and another volume might be meant.
func (t *texts) add(s string) *C.char {
	if s == "" {
		return nil
	}
	if strings.IndexByte(s, 0) >= 0 {
		t.err = &Error{Errno: syscall.EINVAL, Message: "a name or path must not contain a NUL"}
		return nil
	}
	c := C.CString(s)
	t.all = append(t.all, unsafe.Pointer(c))
	return c
}

func (t *texts) free() {
	for _, p := range t.all {
		C.free(p)
	}
}

func newError(r C.int, cerr *C.struct_hostvol_error) *Error {
	e := &Error{Errno: syscall.Errno(-r), Message: C.GoString(&cerr.message[0])}
	if e.Message == "" {
		e.Message = e.Errno.Error()
	}
	return e
}

// call is one function of the library: in is its text ("" is NULL), ret and err as it has them.
type call func(h *C.struct_hostvol, in *C.char, ret **C.char, err *C.struct_hostvol_error) C.int

// do makes a call. The text that it gave is a copy, and comes with an error where the library
// gives both.
func (h *Host) do(ctx context.Context, in string, f call) (status int, out string, err error) {
	if ctx.Err() != nil {
		return 0, "", &Error{Errno: syscall.ECANCELED, Message: "not begun: " + ctx.Err().Error(),
			context: ctx.Err()}
	}
	var text texts
	defer text.free()
	input := text.add(in)
	if text.err != nil {
		return 0, "", text.err
	}
	n, err := h.handle(ctx)
	if err != nil {
		return 0, "", err
	}
	defer n.close()
	stop := n.cancelWith(ctx)
	var ret *C.char
	var cerr C.struct_hostvol_error
	r := f(n.c, input, &ret, &cerr)
	stop()
	defer C.hostvol_free(ret)
	if ret != nil {
		out = C.GoString(ret)
	}
	if r < 0 {
		e := newError(r, &cerr)
		if e.Errno == syscall.ECANCELED || e.Errno == syscall.ETIMEDOUT {
			e.context = ctx.Err()
		}
		return 0, out, e
	}
	return int(r), out, nil
}

// decode keeps numbers as they were written: a LUN may have 64 bits.
func decode(text string, ret any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(ret)
}

// doJSON makes a call that gives JSON, with in as JSON unless it is nil.
func (h *Host) doJSON(ctx context.Context, in any, f call, ret any) (status int, err error) {
	text := ""
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		text = string(b)
	}
	status, out, err := h.do(ctx, text, f)
	if err == nil {
		err = decode(out, ret)
	}
	return status, err
}

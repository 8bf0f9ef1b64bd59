// SPDX-License-Identifier: Apache-2.0

package hostvol

// #include <stdint.h>
import "C"

import "runtime/cgo"

//export hostvolLog
func hostvolLog(level C.int, message *C.char, log C.uintptr_t) {
	cgo.Handle(log).Value().(func(Level, string))(Level(level), C.GoString(message))
}

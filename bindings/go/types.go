// SPDX-License-Identifier: Apache-2.0

package hostvol

import "encoding/json"

// Properties are what a storage backend wants to know of this host before it exports a volume to it.
type Properties struct {
	DoLocalAttach bool     `json:"doLocalAttach"`
	Platform      string   `json:"platform"`
	OSType        string   `json:"osType"`
	IP            string   `json:"ip"`
	Host          string   `json:"host"`
	Multipath     bool     `json:"multipath"` // asked for, and multipathd runs
	Initiator     string   `json:"initiator"` // iSCSI name
	NQN           string   `json:"nqn,omitempty"`
	HostID        string   `json:"hostId,omitempty"` // of NVMe
	SystemUUID    string   `json:"systemUuid,omitempty"`
	SDCGUID       string   `json:"sdcGuid,omitempty"` // of the ScaleIO client
	WWPNs         []string `json:"wwpns,omitempty"`   // Fibre Channel
	WWNNs         []string `json:"wwnns,omitempty"`
}

// ConnectionInfo is all that is needed to connect a volume.
type ConnectionInfo struct {
	DriverVolumeType string         `json:"driverVolumeType"`
	Data             map[string]any `json:"data"` // the driver's parameters
	// Consumer is who uses the volume. It stays connected until each has disconnected it.
	Consumer string `json:"consumer,omitempty"`
}

// FromAttributes takes a ConnectionInfo that is flat, as CSI's volumeAttributes are.
func FromAttributes(attributes map[string]string) ConnectionInfo {
	info := ConnectionInfo{Data: map[string]any{}}
	for name, value := range attributes {
		switch name {
		case "driverVolumeType":
			info.DriverVolumeType = value
		case "consumer":
			info.Consumer = value
		default:
			info.Data[name] = value
		}
	}
	return info
}

// Record is an attachment record, a ConnectionInfo without secrets and more. It can be stored as JSON
// and given back.
type Record struct {
	Version int `json:"version"`
	ConnectionInfo
	VolumeID string          `json:"volumeId"`
	State    string          `json:"state"` // "attached", or where a process died in the middle: "connecting", "disconnecting"
	Path     string          `json:"path"`  // a device, a directory or a file
	Target   string          `json:"target"`
	Detail   json.RawMessage `json:"detail,omitempty"`
	BootID   string          `json:"bootId"`
	Since    string          `json:"since"`
	Health   string          `json:"health,omitempty"` // in lists: "ok", or what is wrong

	// OtherOptions: connected before with other options, which stay in force.
	OtherOptions bool `json:"-"`
}

// Volume is a connected volume's name, and a consumer's.
type Volume struct {
	ID       string `json:"volumeId"`
	Consumer string `json:"consumer,omitempty"`
}

// Reference says which volume, of which consumer: a Volume, a Record or a ConnectionInfo.
type Reference interface{ isReference() }

func (ConnectionInfo) isReference() {}
func (Volume) isReference()         {}

// Disconnected says what a disconnect ended. Path is "" where the volume was not connected.
type Disconnected struct {
	VolumeID string `json:"volumeId"`
	Consumer string `json:"consumer"`
	Path     string `json:"path"`
}

// Extended is a volume's size now. Paths is what came of each, also where some failed.
type Extended struct {
	VolumeID string         `json:"volumeId"`
	Path     string         `json:"path"`
	Size     int64          `json:"size"`
	Paths    []ExtendedPath `json:"paths"`
}

// ExtendedPath has sizes in bytes, and what went wrong.
type ExtendedPath struct {
	Device string `json:"device"`
	Before int64  `json:"before"`
	After  int64  `json:"after"`
	Error  string `json:"error,omitempty"`
}

// Plan is what a disconnect would do. Where UsedBy is not empty, it would be refused without Force.
type Plan struct {
	VolumeID string   `json:"volumeId"`
	Consumer string   `json:"consumer"`
	Path     string   `json:"path"`
	Devices  []string `json:"devices"`
	UsedBy   []string `json:"usedBy"`
	Steps    []string `json:"steps"`
}

// Recovered is what became of a call that died in the middle: "undone", "finished" or "failed".
type Recovered struct {
	VolumeID string `json:"volumeId"`
	Consumer string `json:"consumer"`
	Action   string `json:"action"`
	Message  string `json:"message"`
}

// Finding is something that no record names. Action is "none", what was done, or "failed".
type Finding struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message"`
	Action  string `json:"action"`
}

// Driver is an entry of the library's table.
type Driver struct {
	Name             string      `json:"name"`
	Title            string      `json:"title"`
	Aliases          []string    `json:"aliases"`
	Supported        bool        `json:"supported"` // this version can connect it
	Help             string      `json:"help"`
	Parameters       []Parameter `json:"parameters"`
	CommonParameters []Parameter `json:"commonParameters"`
}

// Parameter of a ConnectionInfo's Data.
type Parameter struct {
	Name     string   `json:"name"`
	Aliases  []string `json:"aliases"`
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	Secret   bool     `json:"secret"`
	Default  string   `json:"default,omitempty"`
	Example  string   `json:"example,omitempty"`
	Help     string   `json:"help"`
}

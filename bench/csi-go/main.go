// SPDX-License-Identifier: Apache-2.0

// A CSI node service on grpc-go that makes the system calls that publishing takes and nothing else: the peer of
// bench/csi. No record, no lock, no deadline, no look at what is mounted there already but at the mount table.
package main

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type server struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	lock   sync.Mutex
	staged map[string]string
}

func (s *server) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (s *server) NodeStageVolume(_ context.Context, q *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.staged[q.VolumeId] = q.VolumeContext["devicePath"]
	return &csi.NodeStageVolumeResponse{}, nil
}

func (s *server) NodeUnstageVolume(context.Context, *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func mounted(path string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	return strings.Contains(string(table), " "+path+" "), err
}

func (s *server) NodePublishVolume(_ context.Context, q *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	s.lock.Lock()
	from := s.staged[q.VolumeId]
	s.lock.Unlock()
	if err := os.MkdirAll(q.TargetPath, 0o750); err != nil {
		return nil, err
	}
	if there, err := mounted(q.TargetPath); err != nil || there {
		return &csi.NodePublishVolumeResponse{}, err
	}
	if err := unix.Mount(from, q.TargetPath, "", unix.MS_BIND, ""); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (s *server) NodeUnpublishVolume(_ context.Context, q *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if there, err := mounted(q.TargetPath); err != nil {
		return nil, err
	} else if there {
		if err := unix.Unmount(q.TargetPath, 0); err != nil {
			return nil, err
		}
	}
	return &csi.NodeUnpublishVolumeResponse{}, os.Remove(q.TargetPath)
}

func main() {
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		panic(err)
	}
	s := &server{staged: map[string]string{}}
	g := grpc.NewServer()
	csi.RegisterIdentityServer(g, s)
	csi.RegisterNodeServer(g, s)
	panic(g.Serve(listener))
}

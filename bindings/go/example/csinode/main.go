// SPDX-License-Identifier: Apache-2.0

// Csinode shows how the node part of a CSI driver uses hostvol, without gRPC around it:
//
//	csinode stage     VOLUME STAGING NAME=VALUE…
//	csinode publish   VOLUME STAGING TARGET NAME=VALUE…
//	csinode unpublish TARGET
//	csinode unstage   VOLUME STAGING
//	csinode expand    VOLUME
//
// NAME=VALUE are the volume's context, as driverVolumeType=NFS export=192.0.2.10:/data; fsType=ext4
// says what to mount a block device as, and readOnly=true publishes it for reading only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"quartermaster.storage/hostvol"
)

var errUsage = errors.New("usage: csinode stage|publish|unpublish|unstage|expand ARGUMENT… (see go doc)")

// words takes NAME=VALUE apart.
func words(args []string) (map[string]string, error) {
	all := map[string]string{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not NAME=VALUE", arg)
		}
		all[name] = value
	}
	return all, nil
}

// takeWord removes a word that is the example's own.
func takeWord(all map[string]string, name string) string {
	value := all[name]
	delete(all, name)
	return value
}

func run(ctx context.Context, n *node, verb string, args []string) error {
	need := map[string]int{"stage": 2, "publish": 3, "unpublish": 1, "unstage": 2, "expand": 1}[verb]
	if need == 0 || len(args) < need {
		return errUsage
	}
	attributes, err := words(args[need:])
	if err != nil {
		return err
	}
	readOnly := takeWord(attributes, "readOnly") == "true"
	v := volume{id: args[0], fsType: takeWord(attributes, "fsType"), context: attributes}
	switch verb {
	case "stage":
		return n.NodeStageVolume(ctx, v, args[1])
	case "publish":
		return n.NodePublishVolume(ctx, v, args[1], args[2], readOnly)
	case "unpublish":
		return n.NodeUnpublishVolume(ctx, args[0])
	case "unstage":
		return n.NodeUnstageVolume(ctx, args[0], args[1])
	}
	size, err := n.NodeExpandVolume(ctx, args[0])
	if err == nil {
		fmt.Println(size)
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, errUsage)
		os.Exit(2)
	}
	host, err := hostvol.Open(hostvol.Options{
		StateDir: os.Getenv("CSINODE_STATE_DIR"),
		RunDir:   os.Getenv("CSINODE_RUN_DIR"),
		Log:      func(_ hostvol.Level, line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if err == nil {
		err = run(ctx, &node{host}, os.Args[1], os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "csinode:", err)
		os.Exit(1)
	}
}

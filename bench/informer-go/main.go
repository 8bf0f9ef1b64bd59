// SPDX-License-Identifier: Apache-2.0

// The watches of bench-informer on client-go, as its users write them: shared informers, protobuf where
// there is one, no transforms. Prints "synced MS", then "lag KIND US" for what bench-informer poke changes.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func seen(kind string) func(object any) {
	return func(object any) {
		o, err := meta.Accessor(object)
		if err != nil {
			return
		}
		if sent, err := strconv.ParseInt(o.GetAnnotations()["bench/sent"], 10, 64); err == nil {
			fmt.Printf("lag %s %d\n", kind, time.Now().UnixMicro()-sent)
		}
	}
}

func watch(kind string, i cache.SharedIndexInformer, all *[]cache.InformerSynced) {
	note := seen(kind)
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    note,
		UpdateFunc: func(_, now any) { note(now) },
		DeleteFunc: func(any) {},
	})
	check(err)
	*all = append(*all, i.HasSynced)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer-go:", err)
		os.Exit(1)
	}
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	began := time.Now()
	typed := rest.CopyConfig(config)
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(typed)
	check(err)
	untyped, err := dynamic.NewForConfig(config)
	check(err)

	var synced []cache.InformerSynced
	core := informers.NewSharedInformerFactory(client, 0)
	watch("PersistentVolumeClaim", core.Core().V1().PersistentVolumeClaims().Informer(), &synced)
	watch("PersistentVolume", core.Core().V1().PersistentVolumes().Informer(), &synced)
	watch("StorageClass", core.Storage().V1().StorageClasses().Informer(), &synced)
	ours := dynamicinformer.NewDynamicSharedInformerFactory(untyped, 0)
	for plural, kind := range map[string]string{"storagenodes": "StorageNode", "storagepools": "StoragePool",
		"storagestatuses": "StorageStatus"} {
		resource := schema.GroupVersionResource{Group: "coreos.com", Version: "v1", Resource: plural}
		watch(kind, ours.ForResource(resource).Informer(), &synced)
	}
	stop := make(chan struct{})
	core.Start(stop)
	ours.Start(stop)
	if !cache.WaitForCacheSync(stop, synced...) {
		os.Exit(1)
	}
	fmt.Println("synced", time.Since(began).Milliseconds())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

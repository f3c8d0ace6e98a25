// Gardener's scheduler beside Gardenbus: its own shoot.Reconciler on the cache of controller-runtime, without a server.
//
// Objects are read from the standard input, a JSON document a line. Shoots without a seed are reconciled by -workers at
// once, in their order. One JSON object is printed: how many got a seed, and the seconds of wall and processor time.
//
// What is free for it, so that the figures are an upper bound: there is no API server, etcd, network, encoding or
// admission; a binding is one deep copy into the informer's index, visible at once; Events and logs are dropped; there
// is no work queue, no rate limit, no leader election.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"gardenbus.io/peers/harness"
	"github.com/gardener/gardener/pkg/api/indexer"
	schedulerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/scheduler/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/scheduler/controller/shoot"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const version = "gardener v1.149.3"

func main() {
	strategy := flag.String("strategy", "SameRegion", "the scheduler's candidate determination strategy")
	workers := flag.Int("workers", 5, "reconciliations at once (Gardener's default)")
	flag.Parse()
	// Lists of the cache come from memory, which streams none.
	harness.Must(os.Setenv("KUBE_FEATURE_WatchListClient", "false"))
	logf.SetLogger(logr.Discard())
	ctx := context.Background()
	objects, pending := read()
	garden := newGarden(ctx, objects)
	reconciler := &shoot.Reconciler{
		Client: garden,
		Config: &schedulerconfigv1alpha1.ShootSchedulerConfiguration{
			ConcurrentSyncs: *workers,
			Strategy:        schedulerconfigv1alpha1.CandidateDeterminationStrategy(*strategy),
		},
		GardenNamespace: "garden",
		Recorder:        &events.FakeRecorder{},
	}
	schedule := func(number int) error {
		_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: pending[number]})
		return err
	}
	harness.Measure(version, len(pending), *workers, schedule, func() int { return int(garden.bound.Load()) })
}

// read returns the objects of the standard input, and the names of the Shoots that have no seed.
func read() (map[string][]client.Object, []types.NamespacedName) {
	objects, pending := map[string][]client.Object{}, []types.NamespacedName{}
	harness.Read(func(kind string, document []byte) {
		object := newObject(kind)
		if object == nil {
			return
		}
		harness.Must(json.Unmarshal(document, object))
		objects[kind] = append(objects[kind], object)
		if each, ok := object.(*gardencorev1beta1.Shoot); ok && each.Spec.SeedName == nil {
			pending = append(pending, client.ObjectKeyFromObject(each))
		}
	})
	return objects, pending
}

// newObject returns an object of a kind that the scheduler reads; nil for any other.
func newObject(kind string) client.Object {
	switch kind {
	case "Shoot":
		return &gardencorev1beta1.Shoot{}
	case "Seed":
		return &gardencorev1beta1.Seed{}
	case "CloudProfile":
		return &gardencorev1beta1.CloudProfile{}
	case "Project":
		return &gardencorev1beta1.Project{}
	case "ConfigMap":
		return &corev1.ConfigMap{}
	default:
		return nil
	}
}

// garden is the scheduler's client: it reads from a cache, and writes into the index of that.
type garden struct {
	client.Client
	cache  cache.Cache
	shoots toolscache.SharedIndexInformer
	bound  atomic.Int64
}

func newGarden(ctx context.Context, objects map[string][]client.Object) *garden {
	scheme := k8sruntime.NewScheme()
	harness.Must(gardencorev1beta1.AddToScheme(scheme))
	harness.Must(corev1.AddToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[string]meta.RESTScope{
		"Shoot": meta.RESTScopeNamespace, "Seed": meta.RESTScopeRoot, "CloudProfile": meta.RESTScopeRoot,
		"NamespacedCloudProfile": meta.RESTScopeNamespace, "Project": meta.RESTScopeRoot,
	} {
		mapper.Add(gardencorev1beta1.SchemeGroupVersion.WithKind(kind), scope)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	made := &garden{}
	informers, err := cache.New(&rest.Config{Host: "http://none.invalid"}, cache.Options{
		Scheme: scheme,
		Mapper: mapper,
		NewInformer: func(_ toolscache.ListerWatcher, kind k8sruntime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			informer := toolscache.NewSharedIndexInformer(fromMemory(kind, objects), kind, resync, indexers)
			if _, ok := kind.(*gardencorev1beta1.Shoot); ok {
				made.shoots = informer
			}
			return informer
		},
	})
	harness.Must(err)
	harness.Must(indexer.AddProjectNamespace(ctx, informers))
	for _, kind := range []string{"Shoot", "Seed", "CloudProfile", "Project", "ConfigMap"} {
		_, err := informers.GetInformer(ctx, newObject(kind), cache.BlockUntilSynced(false))
		harness.Must(err)
	}
	go func() { harness.Must(informers.Start(ctx)) }()
	if !informers.WaitForCacheSync(ctx) {
		harness.Must(fmt.Errorf("the cache was not filled"))
	}
	made.cache = informers
	return made
}

// fromMemory lists the objects of a kind, and brings no events.
func fromMemory(kind k8sruntime.Object, objects map[string][]client.Object) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListFunc: func(metav1.ListOptions) (k8sruntime.Object, error) {
			list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for name, each := range objects {
				if fmt.Sprintf("%T", newObject(name)) != fmt.Sprintf("%T", kind) {
					continue
				}
				for _, object := range each {
					list.Items = append(list.Items, k8sruntime.RawExtension{Object: object})
				}
			}
			return list, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
}

func (g *garden) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return g.cache.Get(ctx, key, object, options...)
}

func (g *garden) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return g.cache.List(ctx, list, options...)
}

func (g *garden) SubResource(string) client.SubResourceClient { return writer{garden: g} }

func (g *garden) Status() client.SubResourceWriter { return writer{garden: g} }

// writer stores the bindings and statuses of Shoots.
type writer struct {
	client.SubResourceClient
	garden *garden
}

func (w writer) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	w.garden.bound.Add(1)
	return w.garden.shoots.GetIndexer().Update(object.DeepCopyObject())
}

func (w writer) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return w.garden.shoots.GetIndexer().Update(object.DeepCopyObject())
}

// KubeFleet's scheduler beside Gardenbus: its own scheduling framework with the default profile, without a server.
//
// MemberClusters and ClusterResourcePlacements are read from the standard input, a JSON document a line. For each
// placement there is a policy snapshot as its controller makes one; scheduling cycles are run for it until none is
// requested any more, -workers placements at once. One JSON object is printed: how many bindings there are, and the
// seconds of wall and processor time.
//
// What is free for it, so that the figures are an upper bound: there is no API server, etcd, network, encoding or
// admission; bindings are kept in a map and read as deep copies; the status of a snapshot is computed and not written;
// Events and logs are dropped; there is no work queue, and nothing that follows on a binding.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gardenbus.io/peers/harness"
	"github.com/go-logr/logr"
	clusterv1beta1 "github.com/kubefleet-dev/kubefleet/apis/cluster/v1beta1"
	placementv1beta1 "github.com/kubefleet-dev/kubefleet/apis/placement/v1beta1"
	"github.com/kubefleet-dev/kubefleet/pkg/scheduler/framework"
	"github.com/kubefleet-dev/kubefleet/pkg/scheduler/profile"
	"github.com/kubefleet-dev/kubefleet/pkg/scheduler/queue"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const version = "kubefleet e160c1cd"

// mostCycles of one placement: only a cycle that leads to nothing is repeated as often.
const mostCycles = 10_000

func main() {
	workers := flag.Int("workers", 20, "placements at once (the hub agent's default)")
	flag.Parse()
	logf.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx := context.Background()
	clusters, placements := read()
	hub := newHub(ctx, clusters)
	scheduler := framework.NewFramework(profile.NewDefaultProfile(), manager{hub: hub})
	schedule := func(number int) error {
		key, snapshot := queue.PlacementKey(placements[number].Name), policySnapshot(placements[number])
		for range mostCycles {
			result, err := scheduler.RunSchedulingCycleFor(ctx, key, snapshot)
			if err != nil {
				return err
			}
			if !result.Requeue { //nolint:staticcheck // it is what the framework returns
				return nil
			}
		}
		return fmt.Errorf("%s has no end of cycles", key)
	}
	harness.Measure(version, len(placements), *workers, schedule, func() int { return int(hub.count.Load()) })
}

// read returns the clusters and the placements of the standard input.
func read() (clusters []*clusterv1beta1.MemberCluster, placements []*placementv1beta1.ClusterResourcePlacement) {
	harness.Read(func(kind string, document []byte) {
		switch kind {
		case "MemberCluster":
			cluster := &clusterv1beta1.MemberCluster{}
			harness.Must(json.Unmarshal(document, cluster))
			clusters = append(clusters, cluster)
		case "ClusterResourcePlacement":
			placement := &placementv1beta1.ClusterResourcePlacement{}
			harness.Must(json.Unmarshal(document, placement))
			placements = append(placements, placement)
		}
	})
	return clusters, placements
}

// policySnapshot returns the snapshot that the placement controller makes of a new placement.
func policySnapshot(placement *placementv1beta1.ClusterResourcePlacement) *placementv1beta1.ClusterSchedulingPolicySnapshot {
	annotations := map[string]string{placementv1beta1.CRPGenerationAnnotation: "1"}
	if number := placement.Spec.Policy.NumberOfClusters; number != nil {
		annotations[placementv1beta1.NumberOfClustersAnnotation] = strconv.Itoa(int(*number))
	}
	return &placementv1beta1.ClusterSchedulingPolicySnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Name:       placement.Name + "-0",
			Generation: 1,
			Labels: map[string]string{
				placementv1beta1.PlacementTrackingLabel: placement.Name,
				placementv1beta1.IsLatestSnapshotLabel:  "true",
				placementv1beta1.PolicyIndexLabel:       "0",
			},
			Annotations: annotations,
		},
		Spec: placementv1beta1.SchedulingPolicySnapshotSpec{Policy: placement.Spec.Policy},
	}
}

// hub is the scheduler's client: clusters from the cache of controller-runtime, bindings in a map.
type hub struct {
	client.Client
	cache    cache.Cache
	lock     sync.Mutex
	bindings map[string][]*placementv1beta1.ClusterResourceBinding
	count    atomic.Int64
}

func newHub(ctx context.Context, clusters []*clusterv1beta1.MemberCluster) *hub {
	scheme := k8sruntime.NewScheme()
	harness.Must(clusterv1beta1.AddToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(clusterv1beta1.GroupVersion.WithKind("MemberCluster"), meta.RESTScopeRoot)
	informers, err := cache.New(&rest.Config{Host: "http://none.invalid"}, cache.Options{
		Scheme: scheme,
		Mapper: mapper,
		NewInformer: func(_ toolscache.ListerWatcher, kind k8sruntime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(fromMemory(clusters), kind, resync, indexers)
		},
	})
	harness.Must(err)
	_, err = informers.GetInformer(ctx, &clusterv1beta1.MemberCluster{}, cache.BlockUntilSynced(false))
	harness.Must(err)
	go func() { harness.Must(informers.Start(ctx)) }()
	if !informers.WaitForCacheSync(ctx) {
		harness.Must(fmt.Errorf("the cache was not filled"))
	}
	return &hub{cache: informers, bindings: map[string][]*placementv1beta1.ClusterResourceBinding{}}
}

// fromMemory lists the clusters, and brings no events.
func fromMemory(clusters []*clusterv1beta1.MemberCluster) toolscache.ListerWatcher {
	return &toolscache.ListWatch{
		ListFunc: func(metav1.ListOptions) (k8sruntime.Object, error) {
			list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for _, cluster := range clusters {
				list.Items = append(list.Items, k8sruntime.RawExtension{Object: cluster})
			}
			return list, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
}

func (h *hub) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	found, ok := list.(*placementv1beta1.ClusterResourceBindingList)
	if !ok {
		return h.cache.List(ctx, list, options...)
	}
	wanted := client.ListOptions{}
	wanted.ApplyOptions(options)
	placement, ok := wanted.LabelSelector.RequiresExactMatch(placementv1beta1.PlacementTrackingLabel)
	if !ok {
		return fmt.Errorf("bindings are listed by their placement, and not by %s", wanted.LabelSelector)
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	for _, binding := range h.bindings[placement] {
		found.Items = append(found.Items, *binding.DeepCopy())
	}
	return nil
}

func (h *hub) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	binding, ok := object.(*placementv1beta1.ClusterResourceBinding)
	if !ok {
		return fmt.Errorf("a scheduler creates bindings, and no %T", object)
	}
	placement := binding.Labels[placementv1beta1.PlacementTrackingLabel]
	h.lock.Lock()
	defer h.lock.Unlock()
	h.bindings[placement] = append(h.bindings[placement], binding.DeepCopy())
	h.count.Add(1)
	return nil
}

func (h *hub) Status() client.SubResourceWriter { return unwritten{} }

// unwritten has the status of a policy snapshot, which is computed, written nowhere.
type unwritten struct{ client.SubResourceWriter }

func (unwritten) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return nil
}

// manager gives the framework its clients.
type manager struct {
	ctrl.Manager
	hub *hub
}

func (m manager) GetClient() client.Client                        { return m.hub }
func (m manager) GetAPIReader() client.Reader                     { return m.hub }
func (m manager) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

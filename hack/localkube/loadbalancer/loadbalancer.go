// Package loadbalancer gives every Service of type LoadBalancer an address of the
// cluster, unless the Service belongs to a class. kube-proxy makes the address
// reachable, and the machine has a route to it. An address is free again when its
// Service is deleted or changes its type: the API server then empties the status.
package loadbalancer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/slipway-dev/slipway/hack/localkube/api"
)

// path leads to the Services of type LoadBalancer. A Service whose type changes
// is deleted, as this watch sees it.
const path = "/api/v1/services?fieldSelector=spec.type%3DLoadBalancer"

// pause is how long Run waits before it begins again.
const pause = 500 * time.Millisecond

// service is what matters here of a Service.
type service struct {
	Metadata struct {
		Namespace, Name, UID string
	} `json:"metadata"`
	Spec struct {
		LoadBalancerIP    string  `json:"loadBalancerIP"`
		LoadBalancerClass *string `json:"loadBalancerClass"`
	} `json:"spec"`
	Status status `json:"status"`
}

type status struct {
	LoadBalancer struct {
		Ingress []ingress `json:"ingress"`
	} `json:"loadBalancer"`
}

type ingress struct {
	IP string `json:"ip"`
}

// address is the one in the status. It is not valid when there is none.
func (s service) address() netip.Addr {
	if len(s.Status.LoadBalancer.Ingress) != 1 {
		return netip.Addr{}
	}
	address, _ := netip.ParseAddr(s.Status.LoadBalancer.Ingress[0].IP)
	return address
}

// Run balances until the context ends.
func Run(ctx context.Context, client *api.Client, network netip.Prefix, log io.Writer) error {
	for ctx.Err() == nil {
		b := &balancer{client: client, network: network, log: log, services: map[string]service{}}
		// A watch ends after a while without an error.
		if err := b.follow(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintf(log, "%s %v, beginning again in %s\n", time.Now().Format(time.RFC3339), err, pause)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

type balancer struct {
	client   *api.Client
	network  netip.Prefix
	log      io.Writer
	services map[string]service    // by UID
	held     map[string]netip.Addr // by UID
}

// follow lists the Services, and then acts on every change of one.
func (b *balancer) follow(ctx context.Context) error {
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []service
	}
	if err := b.client.Get(ctx, path, &list); err != nil {
		return err
	}
	for _, s := range list.Items {
		b.see("ADDED", s)
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	watch := path + "&watch=true&resourceVersion=" + list.Metadata.ResourceVersion
	return b.client.Watch(ctx, watch, func(content json.RawMessage) error {
		var event struct {
			Type   string
			Object service
		}
		if err := json.Unmarshal(content, &event); err != nil {
			return err
		}
		if event.Type == "ERROR" {
			return fmt.Errorf("the watch has ended: %s", content)
		}
		b.see(event.Type, event.Object)
		return b.settle(ctx)
	})
}

func (b *balancer) see(event string, s service) {
	if event == "DELETED" || s.Spec.LoadBalancerClass != nil {
		delete(b.services, s.Metadata.UID)
		return
	}
	b.services[s.Metadata.UID] = s
}

// settle writes the status of every Service that does not say which address the
// Service has.
func (b *balancer) settle(ctx context.Context) error {
	b.held = assign(b.network, b.services, b.held)
	for uid, s := range b.services {
		address := b.held[uid]
		if s.address() == address && (address.IsValid() || len(s.Status.LoadBalancer.Ingress) == 0) {
			continue
		}
		text := "no address"
		if address.IsValid() {
			text = address.String()
		}
		fmt.Fprintf(b.log, "%s %s/%s has %s\n", time.Now().Format(time.RFC3339), s.Metadata.Namespace, s.Metadata.Name, text)
		if err := b.write(ctx, &s, address); err != nil {
			return err
		}
		b.services[uid] = s
	}
	return nil
}

// write names the UID: a Service of the same name may have taken the place.
func (b *balancer) write(ctx context.Context, s *service, address netip.Addr) error {
	s.Status.LoadBalancer.Ingress = nil
	if address.IsValid() {
		s.Status.LoadBalancer.Ingress = []ingress{{IP: address.String()}}
	}
	return b.client.Merge(ctx, fmt.Sprintf("/api/v1/namespaces/%s/services/%s/status", s.Metadata.Namespace, s.Metadata.Name),
		map[string]any{
			"metadata": map[string]string{"uid": s.Metadata.UID},
			"status":   s.Status,
		})
}

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// These bound how much is asked of the API server at once, and read in all.
const (
	ParallelReads = 8
	PageSize      = 500
	maxListed     = 50_000
)

// AnyClients are the clients for objects of any kind.
type AnyClients struct {
	*Clients
	Objects   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	Mapper    meta.RESTMapper
}

// KindInfo is a kind as the API server offers it.
type KindInfo struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// AnyClients makes the clients for objects of any kind. Kinds are discovered anew, but not before one is asked for.
func (p *Program) AnyClients() (*AnyClients, error) {
	clients, err := p.Clients()
	if err != nil {
		return nil, err
	}
	config, err := p.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	c := &AnyClients{Clients: clients}
	// Nobody has named the kinds that these read: that one of them is deprecated helps nobody.
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if c.Objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	if c.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	cached, err := p.Flags.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	// kubectl's cache may be hours old, and a kind that was installed since would be left out.
	cached.Invalidate()
	c.discovery = cached
	if c.Mapper, err = p.Flags.ToRESTMapper(); err != nil {
		return nil, fmt.Errorf("find the kinds of the cluster: %w", err)
	}
	return c, nil
}

// NamesObject reports whether an argument is KIND/NAME.
func NamesObject(argument string) bool {
	kind, name, found := strings.Cut(argument, "/")
	return found && kind != "" && name != "" && !strings.ContainsAny(name, "/,") && !strings.Contains(kind, ",")
}

// Get reads the object that KIND/NAME names: that of Slipway, or else the one that kubectl would take, whose kind has the same
// name.
func (p *Program) Get(ctx context.Context, clients *AnyClients, argument string) (*unstructured.Unstructured, KindInfo, error) {
	ours, name := ParseOurs(argument)
	if ours == nil {
		return p.getAsKubectl(clients, argument)
	}
	object, err := clients.Read(ctx, ours.Info(), clients.Namespace, name)
	if !apierrors.IsNotFound(err) {
		return object, ours.Info(), clients.NotGot(err, ours, name)
	}
	if word, _, _ := strings.Cut(argument, "/"); strings.EqualFold(word, ShortGateway) {
		if gateway, err := clients.GatewayNamed(ctx, name); err == nil {
			return gateway, GatewayInfo, nil
		}
	}
	if other, kind, err := p.getAsKubectl(clients, argument); err == nil {
		return other, kind, nil
	}
	return nil, KindInfo{}, clients.NotGot(err, ours, name)
}

// getAsKubectl reads the object that KIND/NAME names, as kubectl does.
func (p *Program) getAsKubectl(clients *AnyClients, argument string) (*unstructured.Unstructured, KindInfo, error) {
	info, err := resource.NewBuilder(p.Flags).Unstructured().
		NamespaceParam(clients.Namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, argument).Latest().Do().Infos()
	switch {
	case apierrors.IsNotFound(err):
		return nil, KindInfo{}, &ExitError{
			Code: ExitNotReady, NotFound: true,
			Message: fmt.Sprintf("Error from server (NotFound): %s in namespace %q", Printable(notFoundText(err)), clients.Namespace),
		}
	case err != nil:
		return nil, KindInfo{}, fmt.Errorf("get %s: %w", argument, err)
	case len(info) != 1:
		return nil, KindInfo{}, UsageErrorf("%q names %d objects: say KIND/NAME", argument, len(info))
	}
	object, ok := info[0].Object.(*unstructured.Unstructured)
	if !ok {
		return nil, KindInfo{}, fmt.Errorf("get %s: the API server answered with a %T", argument, info[0].Object)
	}
	return object, InfoOf(info[0].Mapping), nil
}

// InfoOf is the kind of a mapping.
func InfoOf(mapping *meta.RESTMapping) KindInfo {
	return KindInfo{mapping.Resource, mapping.GroupVersionKind.Kind, mapping.Scope.Name() == meta.RESTScopeNameNamespace}
}

func notFoundText(err error) string {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// Kinds lists the kinds whose objects can be listed, each at the version that the API server prefers. unanswered names the
// groups that do not answer.
func (c *AnyClients) Kinds() (kinds []KindInfo, unanswered []string, err error) {
	lists, err := discovery.ServerPreferredResources(c.discovery)
	var failed *discovery.ErrGroupDiscoveryFailed
	if errors.As(err, &failed) {
		for group := range failed.Groups {
			unanswered = append(unanswered, "the API group "+group.String())
		}
		slices.Sort(unanswered)
	} else if err != nil {
		return nil, nil, fmt.Errorf("find the kinds of the cluster: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "get") && !strings.Contains(r.Name, "/") &&
				ownsOrIsOwned(version.Group, r.Kind) {
				kinds = append(kinds, KindInfo{version.WithResource(r.Name), r.Kind, r.Namespaced})
			}
		}
	}
	return kinds, unanswered, nil
}

// ownsOrIsOwned leaves out kinds whose objects are many and belong to nothing.
func ownsOrIsOwned(group, kind string) bool {
	isEvent := kind == "Event" && (group == "" || group == "events.k8s.io")
	return !isEvent && group != "metrics.k8s.io" && (kind != "ComponentStatus" || group != "")
}

// Owned is an object that belongs to another: its metadata and its kind.
type Owned struct {
	metav1.PartialObjectMetadata
	Info KindInfo
}

// OwnedObjects are the objects that have an owner, and the kinds that the user may not list, or that could not be listed.
type OwnedObjects struct {
	sync.Mutex
	Objects                []Owned
	Unreadable, Unanswered []string
}

// ListOwned lists the metadata of all objects that have an owner. What cannot be read is named.
func (c *AnyClients) ListOwned(ctx context.Context, kinds []KindInfo, namespace string) (*OwnedObjects, error) {
	found := &OwnedObjects{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(ParallelReads)
	for _, kind := range kinds {
		group.Go(func() error {
			list, whole, err := c.listKind(ctx, kind, namespace)
			found.add(kind, list, whole, err)
			return ctx.Err()
		})
	}
	err := group.Wait()
	slices.Sort(found.Unreadable)
	slices.Sort(found.Unanswered)
	return found, err
}

// add takes what the list of a kind returned.
func (o *OwnedObjects) add(kind KindInfo, list []Owned, whole bool, err error) {
	o.Lock()
	defer o.Unlock()
	o.Objects = append(o.Objects, list...)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		// The kind went since it was discovered.
	case apierrors.IsForbidden(err):
		o.Unreadable = append(o.Unreadable, kind.GroupResource().String())
	case err != nil:
		o.Unanswered = append(o.Unanswered, fmt.Sprintf("%s (%v)", kind.GroupResource(), err))
	case !whole:
		o.Unanswered = append(o.Unanswered, fmt.Sprintf("%s after the first %d", kind.GroupResource(), maxListed))
	}
}

// listKind lists a kind page by page. whole is false if there are too many.
func (c *AnyClients) listKind(ctx context.Context, kind KindInfo, namespace string) (list []Owned, whole bool, err error) {
	client := metadata.ResourceInterface(c.metadata.Resource(kind.GroupVersionResource))
	if kind.Namespaced && namespace != "" {
		client = c.metadata.Resource(kind.GroupVersionResource).Namespace(namespace)
	}
	options := metav1.ListOptions{Limit: PageSize}
	for read := 0; read < maxListed; {
		page, err := client.List(ctx, options)
		if err != nil {
			return list, false, err
		}
		read += len(page.Items)
		for i := range page.Items {
			if item := &page.Items[i]; len(item.OwnerReferences) > 0 {
				item.ManagedFields = nil
				list = append(list, Owned{*item, kind})
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return list, true, nil
		}
	}
	return list, false, nil
}

// Read reads an object of a kind.
func (c *AnyClients) Read(ctx context.Context, kind KindInfo, namespace, name string) (*unstructured.Unstructured, error) {
	if kind.Namespaced {
		return c.Objects.Resource(kind.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	return c.Objects.Resource(kind.GroupVersionResource).Get(ctx, name, metav1.GetOptions{})
}

// ObjectRef formats the name of an object of any kind. Names of some kinds may hold any character.
func ObjectRef(kind, name string) string { return Printable(strings.ToLower(kind) + "/" + name) }

// Mapping finds a kind by any of its names: that of Slipway, or else the one that kubectl would take.
func (c *AnyClients) Mapping(argument string) (*meta.RESTMapping, error) {
	if ours := ourKindNamed(argument); ours != nil {
		if mapping, err := c.Mapper.RESTMapping(schema.GroupKind{Group: ours.Info().Group, Kind: ours.kind}); err == nil {
			return mapping, nil
		}
	}
	full, groupResource := schema.ParseResourceArg(argument)
	var kind schema.GroupVersionKind
	var err error
	if full != nil {
		kind, _ = c.Mapper.KindFor(*full) // Or the second word is a part of the group.
	}
	if kind.Empty() {
		if kind, err = c.Mapper.KindFor(groupResource.WithVersion("")); err != nil {
			return nil, fmt.Errorf("the server doesn't have a resource type %q", argument)
		}
	}
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the kind %q: %w", argument, err)
	}
	return mapping, nil
}

// ResourceName turns a kind as the user names it into plural.group. One that the cluster does not have any more may be in the
// history all the same, under its full name.
func (p *Program) ResourceName(argument string) (name string, namespaced bool, err error) {
	clients, err := p.AnyClients()
	if err != nil {
		return "", false, err
	}
	mapping, err := clients.Mapping(argument)
	if err != nil {
		if strings.Contains(argument, ".") {
			return strings.ToLower(argument), true, nil
		}
		return "", false, err
	}
	return mapping.Resource.GroupResource().String(), mapping.Scope.Name() == "namespace", nil
}

// KindGateway is the kind of the Gateway API.
const KindGateway = "Gateway"

// GatewayInfo is the Gateway of the Gateway API as it is offered in every version of it that Slipway knows.
var GatewayInfo = KindInfo{schema.GroupVersion(gatewayv1.GroupVersion).WithResource("gateways"), KindGateway, true}

// GatewayNamed reads a Gateway of the Gateway API without looking for its kind first: mostly there is none.
func (c *AnyClients) GatewayNamed(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return c.Objects.Resource(GatewayInfo.GroupVersionResource).Namespace(c.Namespace).Get(ctx, name, metav1.GetOptions{})
}

package cli

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
	parallelReads = 8
	pageSize      = 500
	maxListed     = 50_000
)

// anyClients are the clients for objects of any kind.
type anyClients struct {
	*clients
	objects   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	mapper    meta.RESTMapper
}

// kindInfo is a kind as the API server offers it.
type kindInfo struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

func (p *program) anyClients() (*anyClients, error) {
	clients, err := p.clients()
	if err != nil {
		return nil, err
	}
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	c := &anyClients{clients: clients}
	// Nobody has named the kinds that these read: that one of them is deprecated helps nobody.
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	if c.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	if c.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	cached, err := p.flags.ToDiscoveryClient()
	if err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	// kubectl's cache may be hours old, and a kind that was installed since would be left out.
	cached.Invalidate()
	c.discovery = cached
	if c.mapper, err = p.flags.ToRESTMapper(); err != nil {
		return nil, fmt.Errorf("find the kinds of the cluster: %w", err)
	}
	return c, nil
}

// namesObject tells that an argument is KIND/NAME.
func namesObject(argument string) bool {
	kind, name, found := strings.Cut(argument, "/")
	return found && kind != "" && name != "" && !strings.ContainsAny(name, "/,") && !strings.Contains(kind, ",")
}

// get reads the object that KIND/NAME names: that of Slipway, or else the one that kubectl would take, whose kind has the same
// name.
func (p *program) get(ctx context.Context, clients *anyClients, argument string) (*unstructured.Unstructured, kindInfo, error) {
	ours, name := parseOurs(argument)
	if ours == nil {
		return p.getAsKubectl(clients, argument)
	}
	object, err := clients.read(ctx, ours.info(), clients.namespace, name)
	if !apierrors.IsNotFound(err) {
		return object, ours.info(), clients.notGot(err, ours, name)
	}
	if word, _, _ := strings.Cut(argument, "/"); strings.EqualFold(word, shortGateway) {
		if gateway, err := clients.gatewayNamed(ctx, name); err == nil {
			return gateway, gatewayInfo, nil
		}
	}
	if other, kind, err := p.getAsKubectl(clients, argument); err == nil {
		return other, kind, nil
	}
	return nil, kindInfo{}, clients.notGot(err, ours, name)
}

// getAsKubectl reads the object that KIND/NAME names, as kubectl does.
func (p *program) getAsKubectl(clients *anyClients, argument string) (*unstructured.Unstructured, kindInfo, error) {
	info, err := resource.NewBuilder(p.flags).Unstructured().
		NamespaceParam(clients.namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, argument).Latest().Do().Infos()
	switch {
	case apierrors.IsNotFound(err):
		return nil, kindInfo{}, &exitError{code: exitNotReady, notFound: true, message: fmt.Sprintf("Error from server (NotFound): %s in namespace %q", printable(notFoundText(err)), clients.namespace)}
	case err != nil:
		return nil, kindInfo{}, fmt.Errorf("get %s: %w", argument, err)
	case len(info) != 1:
		return nil, kindInfo{}, usageErrorf("%q names %d objects: say KIND/NAME", argument, len(info))
	}
	object, ok := info[0].Object.(*unstructured.Unstructured)
	if !ok {
		return nil, kindInfo{}, fmt.Errorf("get %s: the API server answered with a %T", argument, info[0].Object)
	}
	return object, infoOf(info[0].Mapping), nil
}

func infoOf(mapping *meta.RESTMapping) kindInfo {
	return kindInfo{mapping.Resource, mapping.GroupVersionKind.Kind, mapping.Scope.Name() == meta.RESTScopeNameNamespace}
}

func notFoundText(err error) string {
	status := apierrors.APIStatus(nil)
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// kinds lists the kinds whose objects can be listed, each at the version that the API server prefers. unanswered names the
// groups that do not answer.
func (c *anyClients) kinds() (kinds []kindInfo, unanswered []string, err error) {
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
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "get") && !strings.Contains(r.Name, "/") && ownsOrIsOwned(version.Group, r.Kind) {
				kinds = append(kinds, kindInfo{version.WithResource(r.Name), r.Kind, r.Namespaced})
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

// owned is an object that belongs to another: its metadata and its kind.
type owned struct {
	metav1.PartialObjectMetadata
	kind kindInfo
}

// ownedObjects are the objects that have an owner, and the kinds that the user may not list, or that could not be listed.
type ownedObjects struct {
	sync.Mutex
	objects                []owned
	unreadable, unanswered []string
}

// listOwned lists the metadata of all objects that have an owner. What cannot be read is named.
func (c *anyClients) listOwned(ctx context.Context, kinds []kindInfo, namespace string) (*ownedObjects, error) {
	found := &ownedObjects{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for _, kind := range kinds {
		group.Go(func() error {
			list, whole, err := c.listKind(ctx, kind, namespace)
			found.add(kind, list, whole, err)
			return ctx.Err()
		})
	}
	err := group.Wait()
	slices.Sort(found.unreadable)
	slices.Sort(found.unanswered)
	return found, err
}

// add takes what the list of a kind returned.
func (o *ownedObjects) add(kind kindInfo, list []owned, whole bool, err error) {
	o.Lock()
	defer o.Unlock()
	o.objects = append(o.objects, list...)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		// The kind went since it was discovered.
	case apierrors.IsForbidden(err):
		o.unreadable = append(o.unreadable, kind.GroupResource().String())
	case err != nil:
		o.unanswered = append(o.unanswered, fmt.Sprintf("%s (%v)", kind.GroupResource(), err))
	case !whole:
		o.unanswered = append(o.unanswered, fmt.Sprintf("%s after the first %d", kind.GroupResource(), maxListed))
	}
}

// listKind lists a kind page by page. whole is false if there are too many.
func (c *anyClients) listKind(ctx context.Context, kind kindInfo, namespace string) (list []owned, whole bool, err error) {
	client := metadata.ResourceInterface(c.metadata.Resource(kind.GroupVersionResource))
	if kind.Namespaced && namespace != "" {
		client = c.metadata.Resource(kind.GroupVersionResource).Namespace(namespace)
	}
	options := metav1.ListOptions{Limit: pageSize}
	for read := 0; read < maxListed; {
		page, err := client.List(ctx, options)
		if err != nil {
			return list, false, err
		}
		read += len(page.Items)
		for i := range page.Items {
			if item := &page.Items[i]; len(item.OwnerReferences) > 0 {
				item.ManagedFields = nil
				list = append(list, owned{*item, kind})
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return list, true, nil
		}
	}
	return list, false, nil
}

// read reads an object of a kind.
func (c *anyClients) read(ctx context.Context, kind kindInfo, namespace, name string) (*unstructured.Unstructured, error) {
	if kind.Namespaced {
		return c.objects.Resource(kind.GroupVersionResource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	return c.objects.Resource(kind.GroupVersionResource).Get(ctx, name, metav1.GetOptions{})
}

// objectRef formats the name of an object of any kind. Names of some kinds may hold any character.
func objectRef(kind, name string) string { return printable(strings.ToLower(kind) + "/" + name) }

// mapping finds a kind by any of its names: that of Slipway, or else the one that kubectl would take.
func (c *anyClients) mapping(argument string) (*meta.RESTMapping, error) {
	if ours := ourKindNamed(argument); ours != nil {
		if mapping, err := c.mapper.RESTMapping(schema.GroupKind{Group: ours.info().Group, Kind: ours.kind}); err == nil {
			return mapping, nil
		}
	}
	full, groupResource := schema.ParseResourceArg(argument)
	var kind schema.GroupVersionKind
	var err error
	if full != nil {
		kind, _ = c.mapper.KindFor(*full) // Or the second word is a part of the group.
	}
	if kind.Empty() {
		if kind, err = c.mapper.KindFor(groupResource.WithVersion("")); err != nil {
			return nil, fmt.Errorf("the server doesn't have a resource type %q", argument)
		}
	}
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the kind %q: %w", argument, err)
	}
	return mapping, nil
}

// resourceName turns a kind as the user names it into plural.group. One that the cluster does not have any more may be in the
// history all the same, under its full name.
func (p *program) resourceName(argument string) (name string, namespaced bool, err error) {
	clients, err := p.anyClients()
	if err != nil {
		return "", false, err
	}
	mapping, err := clients.mapping(argument)
	if err != nil {
		if strings.Contains(argument, ".") {
			return strings.ToLower(argument), true, nil
		}
		return "", false, err
	}
	return mapping.Resource.GroupResource().String(), mapping.Scope.Name() == "namespace", nil
}

// kindGateway is the kind of the Gateway API.
const kindGateway = "Gateway"

// gatewayInfo is the Gateway of the Gateway API as it is offered in every version of it that Slipway knows.
var gatewayInfo = kindInfo{schema.GroupVersion(gatewayv1.GroupVersion).WithResource("gateways"), kindGateway, true}

// gatewayNamed reads a Gateway of the Gateway API without looking for its kind first: mostly there is none.
func (c *anyClients) gatewayNamed(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return c.objects.Resource(gatewayInfo.GroupVersionResource).Namespace(c.namespace).Get(ctx, name, metav1.GetOptions{})
}

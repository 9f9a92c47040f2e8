package crd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/monitor/crdcheck"
)

const (
	// pagesPerSecond is how many requests there are at most: a check of many objects stays in the background.
	pagesPerSecond = 5
)

// clusterSource are the definitions and objects of a cluster.
type clusterSource struct {
	client dynamic.Interface
	// namespace limits the objects that are checked. It is empty for all.
	namespace string
}

func (o *crdCheckOptions) cluster() (crdSource, error) {
	config, err := o.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = pagesPerSecond, 2*pagesPerSecond
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the cluster: %w", err)
	}
	return &clusterSource{client: client, namespace: *o.Flags.Namespace}, nil
}

func (s *clusterSource) definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	object, err := s.client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get CustomResourceDefinition %q: %w", name, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %q: %w", name, err)
	}
	return crd, nil
}

// objects checks all objects, page by page.
func (s *clusterSource) objects(ctx context.Context, before, after *apiextensionsv1.CustomResourceDefinition) *crdObjects {
	found := &crdObjects{List: []crdObject{}}
	passes, err := passesOf(before, after)
	if err != nil {
		found.NotChecked = err.Error()
		return found
	}
	for i, pass := range passes {
		if err := s.pass(ctx, before, pass, found, i == 0); err != nil {
			found.NotChecked = err.Error()
			return found
		}
	}
	return found
}

// crdPass is one look at all objects: the version in which they are listed, and what they are checked with.
type crdPass struct {
	version  string
	checkers []versionChecker
}

type versionChecker struct {
	version string
	*crdcheck.Checker
}

// passesOf says how the objects are looked at. Without a conversion webhook an object has the same fields in every version, so
// they are listed once. With one they are listed in each version, as clients get them.
func passesOf(before, after *apiextensionsv1.CustomResourceDefinition) ([]crdPass, error) {
	served := servedVersions(before)
	if len(served) == 0 {
		return nil, errors.New("the cluster serves no version of it")
	}
	checkers, err := checkersOf(served, after)
	if err != nil {
		return nil, err
	}
	conversion := after.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter {
		return []crdPass{{version: served[0], checkers: checkers}}, nil
	}
	var passes []crdPass
	for _, checker := range checkers {
		if slices.Contains(served, checker.version) {
			passes = append(passes, crdPass{version: checker.version, checkers: []versionChecker{checker}})
		}
	}
	if len(passes) == 0 {
		return nil, errors.New("no version is served before and after the change, and a webhook converts")
	}
	return passes, nil
}

// servedVersions returns the served versions, the storage version first.
func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var names []string
	for i := range crd.Spec.Versions {
		switch version := &crd.Spec.Versions[i]; {
		case !version.Served:
		case version.Storage:
			names = slices.Insert(names, 0, version.Name)
		default:
			names = append(names, version.Name)
		}
	}
	return names
}

// checkersOf compiles the versions that stay, or those that come when none does. Of versions that check the same, one is taken.
func checkersOf(served []string, after *apiextensionsv1.CustomResourceDefinition) ([]versionChecker, error) {
	names := servedVersions(after)
	stay := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(served, name) })
	if len(stay) > 0 {
		names = stay
	}
	if len(names) == 0 {
		return nil, errors.New("the changed definition serves no version")
	}
	webhook := after.Spec.Conversion != nil && after.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	var checkers []versionChecker
	var taken []*apiextensionsv1.CustomResourceDefinitionVersion
	for i := range after.Spec.Versions {
		version := &after.Spec.Versions[i]
		same := slices.ContainsFunc(taken, func(other *apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return equality.Semantic.DeepEqual(other.Schema, version.Schema) &&
				equality.Semantic.DeepEqual(other.Subresources, version.Subresources)
		})
		if !slices.Contains(names, version.Name) || same && !webhook {
			continue
		}
		checker, err := crdcheck.NewChecker(after, version.Name)
		if err != nil {
			return nil, err
		}
		taken = append(taken, version)
		checkers = append(checkers, versionChecker{version: version.Name, Checker: checker})
	}
	return checkers, nil
}

// pass lists all objects of a version and checks them. count reports whether they are counted.
func (s *clusterSource) pass(
	ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, pass crdPass, found *crdObjects, count bool,
) error {
	resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: pass.version, Resource: crd.Spec.Names.Plural}
	var client dynamic.ResourceInterface = s.client.Resource(resource)
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped && s.namespace != "" {
		client = s.client.Resource(resource).Namespace(s.namespace)
	}
	options := metav1.ListOptions{Limit: command.PageSize}
	for {
		page, err := client.List(ctx, options)
		if next := continuation(err); next != "" && next != options.Continue {
			// The list took longer than the API server keeps old states. It goes on from here with the present state.
			options.Continue = next
			continue
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", resource.GroupResource(), err)
		}
		for i := range page.Items {
			if err := ctx.Err(); err != nil {
				return err
			}
			found.check(ctx, &page.Items[i], pass.checkers, count)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// continuation returns how to go on with a list whose state is not kept any more, an empty text for another error.
func continuation(err error) string {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// check checks an object with each checker. It counts once, whatever the number of versions.
func (f *crdObjects) check(ctx context.Context, object *unstructured.Unstructured, checkers []versionChecker, count bool) {
	if count {
		f.Checked++
	}
	var verdicts []crdObject
	for _, checker := range checkers {
		verdicts = append(verdicts, crdObject{
			Namespace: object.GetNamespace(), Name: object.GetName(), Version: checker.version,
			Verdict: checker.Check(ctx, object.Object),
		})
	}
	f.add(verdicts)
}

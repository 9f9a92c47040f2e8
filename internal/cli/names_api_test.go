//go:build apitest

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// others are kinds of other projects, as they name them: plural.group, kind, and short names.
var others = []string{
	"gateways.networking.istio.io Gateway gw", "virtualservices.networking.istio.io VirtualService vs", "destinationrules.networking.istio.io DestinationRule dr",
	"serviceentries.networking.istio.io ServiceEntry se", "workloadentries.networking.istio.io WorkloadEntry we",
	"gateways.gateway.solo.io Gateway gw", "gatewayparameters.gateway.kgateway.dev GatewayParameters gwp",
	"gatewayclasses.gateway.networking.k8s.io GatewayClass gc", "gateways.gateway.networking.k8s.io Gateway gtw", "referencegrants.gateway.networking.k8s.io ReferenceGrant refgrant",
	"applications.argoproj.io Application app,apps", "applicationsets.argoproj.io ApplicationSet appset,appsets", "appprojects.argoproj.io AppProject appproj,appprojs",
	"rollouts.argoproj.io Rollout ro", "workflows.argoproj.io Workflow wf", "applications.core.oam.dev Application app", "applications.app.k8s.io Application app",
	"backups.postgresql.cnpg.io Backup", "scheduledbackups.postgresql.cnpg.io ScheduledBackup", "clusters.postgresql.cnpg.io Cluster",
	"backups.longhorn.io Backup lhb", "backupvolumes.longhorn.io BackupVolume lhbv", "volumes.longhorn.io Volume lhv",
	"backups.k8up.io Backup", "restores.k8up.io Restore", "schedules.k8up.io Schedule",
	"backups.velero.io Backup", "restores.velero.io Restore", "backupstoragelocations.velero.io BackupStorageLocation bsl",
	"backups.k8s.mariadb.com Backup bmdb", "restores.k8s.mariadb.com Restore rmdb",
	"certificates.cert-manager.io Certificate cert,certs", "certificaterequests.cert-manager.io CertificateRequest cr,crs",
	"kustomizations.kustomize.toolkit.fluxcd.io Kustomization ks", "helmreleases.helm.toolkit.fluxcd.io HelmRelease hr", "gitrepositories.source.toolkit.fluxcd.io GitRepository gitrepo",
	"services.serving.knative.dev Service kservice,ksvc", "routes.serving.knative.dev Route rt", "revisions.serving.knative.dev Revision rev",
	"compositions.apiextensions.crossplane.io Composition comp", "compositeresourcedefinitions.apiextensions.crossplane.io CompositeResourceDefinition xrd,xrds",
	"ingressroutes.traefik.io IngressRoute", "httpproxies.projectcontour.io HTTPProxy proxy,proxies",
	"servicemonitors.monitoring.coreos.com ServiceMonitor smon", "prometheusrules.monitoring.coreos.com PrometheusRule promrule",
	"volumesnapshots.snapshot.storage.k8s.io VolumeSnapshot vs", "scaledobjects.keda.sh ScaledObject so", "policies.kyverno.io Policy pol",
}

// definitionOfOther is a definition with the names of another project's kind.
func definitionOfOther(text string) *apiextensionsv1.CustomResourceDefinition {
	words := strings.Fields(text)
	plural, group, _ := strings.Cut(words[0], ".")
	names := apiextensionsv1.CustomResourceDefinitionNames{Kind: words[1], ListKind: words[1] + "List", Plural: plural, Singular: strings.ToLower(words[1])}
	if len(words) > 2 {
		names.ShortNames = strings.Split(words[2], ",")
	}
	open := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: words[0]},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: names,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open}},
			}},
		},
	}
	if strings.HasSuffix(group, ".k8s.io") {
		crd.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, a test of names"}
	}
	return crd
}

// installOthers installs the kinds of other projects, and removes those that were not there before.
func (f *fixture) installOthers() {
	f.Helper()
	group := errgroup.Group{}
	for _, text := range others {
		group.Go(func() error {
			crd := definitionOfOther(text)
			if err := client.IgnoreAlreadyExists(env.Client.Create(f.Context(), crd)); err != nil || crd.UID == "" {
				return err
			}
			f.Cleanup(func() {
				if err := env.Client.Delete(context.Background(), crd); err != nil {
					f.Error(err)
				}
			})
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		f.Fatal(err)
	}
	environment.Eventually(f, func() error {
		all := &apiextensionsv1.CustomResourceDefinitionList{}
		if err := env.Client.List(f.Context(), all); err != nil {
			return err
		}
		var err error
		for i := range all.Items {
			// Kinds of several groups may have one plural, and one short name: each is accepted, and served.
			for _, want := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
				if !slices.ContainsFunc(all.Items[i].Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
					return c.Type == want && c.Status == apiextensionsv1.ConditionTrue
				}) {
					err = errors.Join(err, fmt.Errorf("%s is not %s", all.Items[i].Name, want))
				}
			}
		}
		return err
	})
	// They are offered to clients a moment later.
	environment.Eventually(f, func() (err error) {
		mapper := f.mapperOfKubectl()
		for _, text := range others {
			_, found := mapper.KindFor(schema.ParseGroupResource(strings.Fields(text)[0]).WithVersion(""))
			err = errors.Join(err, found)
		}
		return err
	})
}

// mapperOfKubectl is how kubectl finds kinds.
func (f *fixture) mapperOfKubectl() meta.RESTMapper {
	f.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &f.kubeconfig
	cached, err := flags.ToDiscoveryClient()
	if err != nil {
		f.Fatal(err)
	}
	cached.Invalidate()
	mapper, err := flags.ToRESTMapper()
	if err != nil {
		f.Fatal(err)
	}
	return mapper
}

// asKubectl returns the group of the kind that kubectl takes for a word.
func (f *fixture) asKubectl(word string) string {
	f.Helper()
	kind, err := f.mapperOfKubectl().KindFor(schema.GroupVersionResource{Resource: word})
	if err != nil {
		f.Errorf("%s: %v", word, err)
	}
	return kind.Group
}

// root asks for the tree of an object and returns what it is.
func (f *fixture) root(argument string) string {
	f.Helper()
	view := struct{ APIVersion, Object string }{}
	if out := f.expect(0, nil, "tree", argument, "-o", "json"); json.Unmarshal([]byte(out), &view) != nil {
		f.Errorf("%s: %s", argument, out)
	}
	return view.APIVersion + " " + view.Object
}

// TestNamesBesideOtherProjects: with kinds of the projects that clusters have, our short names are ours alone, and every name of a
// kind of Slipway means that kind to the plugin first.
func TestNamesBesideOtherProjects(t *testing.T) {
	f := newFixture(t)
	f.installOthers()
	for _, k := range command.OurKinds {
		if group := f.asKubectl(k.Shorts[0]); group != slipwayv1alpha1.GroupName {
			t.Errorf("kubectl takes %s for a kind of %q", k.Shorts[0], group)
		}
	}
	// Groups have one priority, so that the alphabet decides. This is why pages and messages say backups.slipway.dev.
	for word, want := range map[string]string{"gw": "gateway.solo.io", "app": "app.k8s.io", "backups": "k8s.mariadb.com", "restore": "k8s.mariadb.com", "gatewayparameters": "gateway.kgateway.dev"} {
		if got := f.asKubectl(word); got != want {
			t.Errorf("kubectl takes %s for a kind of %q, want %q", word, got, want)
		}
	}

	f.create()
	f.createBackup("shop")
	gateway := &slipwayv1alpha1.APIGateway{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: slipwayv1alpha1.APIGatewaySpec{
		Routes: []slipwayv1alpha1.Route{{Name: "a", Host: "a.example.com", BackendService: &slipwayv1alpha1.BackendService{Name: "a", Port: 80}}},
	}}
	if _, err := f.Slipway.SlipwayV1alpha1().APIGateways(f.Namespace).Create(t.Context(), gateway, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"backups.k8s.mariadb.com Backup", "applications.app.k8s.io Application", "gateways.gateway.solo.io Gateway"} {
		resource, kind, _ := strings.Cut(other, " ")
		plural, group, _ := strings.Cut(resource, ".")
		for _, name := range []string{"shop", "theirs"} {
			f.make(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}, kind, f.Namespace, name, nil, nil)
		}
	}
	for argument, want := range map[string]string{
		"gw/shop": "slipway.dev/v1alpha1 apigateway/shop", "slwgw/shop": "slipway.dev/v1alpha1 apigateway/shop", "app/shop": "slipway.dev/v1alpha1 webapp/shop",
		"backup/shop": "slipway.dev/v1alpha1 backup/shop", "BACKUPS/shop": "slipway.dev/v1alpha1 backup/shop", "backups.slipway.dev/shop": "slipway.dev/v1alpha1 backup/shop",
		// What is not there may be another's.
		"backup/theirs": "k8s.mariadb.com/v1 backup/theirs", "app/theirs": "app.k8s.io/v1 application/theirs", "gw/theirs": "gateway.solo.io/v1 gateway/theirs",
		"backups.k8s.mariadb.com/shop": "k8s.mariadb.com/v1 backup/shop",
	} {
		if got := f.root(argument); got != want {
			t.Errorf("%s is %s, want %s", argument, got, want)
		}
	}
	f.expect(1, []string{"webapp/shop is not ready"}, "why", "app/shop")
	f.expect(1, []string{"application/theirs"}, "why", "app/theirs")
	f.expect(1, []string{`backups.slipway.dev "none" not found`}, "why", "backup/none")
	f.expect(1, []string{`apigateways.slipway.dev "none" not found`}, "tree", "gw/none")
	f.expect(1, []string{`monitorrules.slipway.dev "none" not found` + "\n"}, "tree", "mrule/none")
	f.expect(1, []string{`replicasets.apps "none" not found`}, "why", "replicaset/none")

	p := &command.Program{Flags: genericclioptions.NewConfigFlags(false)}
	p.Flags.KubeConfig = &f.kubeconfig
	for _, k := range command.OurKinds {
		for _, word := range append([]string{k.Singular(), k.Plural(), strings.ToUpper(k.Plural())}, k.Shorts...) {
			if name, _, err := p.ResourceName(word); err != nil || name != k.Plural()+".slipway.dev" {
				t.Errorf("--kind %s is %s, %v", word, name, err)
			}
		}
	}
	f.completes()
}

// completes looks at what is offered for each kind.
func (f *fixture) completes() {
	f.Helper()
	for _, tc := range []struct{ want, not, command, typed string }{
		{"apigateway/shop\n:", "theirs", "tree", "apigateway/"},
		{"gw/shop\n:", "theirs", "why", "gw/"},
		{"backup/shop\n:", "theirs", "history", "backup/s"},
		{"backups.k8s.mariadb.com/theirs\n:", "", "tree", "backups.k8s.mariadb.com/"},
		{"backup/\nbackuprun/\nbackups.k8s.mariadb.com/\n", "webapp", "tree", "back"},
		{"shop\n", "", "why", ""},
		{"webapp/\n", "shop\n", "tree", ""},
		{":4\n", "shop", "status", "backup/"},
		{"app/shop\n:4\n", "", "rollback", "app/"},
		{"backup\nbackuprun\nbackups.k8s.mariadb.com\n", "", "watch", "back"},
	} {
		out := f.expect(0, []string{tc.want}, "__complete", tc.command, "--kubeconfig", f.kubeconfig, tc.typed)
		if tc.not != "" && strings.Contains(out, tc.not) {
			f.Errorf("%s %s: %q in\n%s", tc.command, tc.typed, tc.not, out)
		}
	}
	f.expect(0, []string{"shop\n:4\n"}, "__complete", "watch", "--kubeconfig", f.kubeconfig, "slwbk", "")
	f.expect(0, []string{"webapp\n"}, "__complete", "health", "--kubeconfig", f.kubeconfig, "--kind", "web")
}

// loggedWarnings are what the API server said to clients that do not print it themselves: lines of a log.
type loggedWarnings struct {
	sync.Mutex
	list []string
}

func (w *loggedWarnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.Lock()
	defer w.Unlock()
	w.list = append(w.list, text)
}

// TestWarningsOfTheServerAreNoLog: a kind that nobody has named may be deprecated, and a warning is printed as kubectl does.
func TestWarningsOfTheServerAreNoLog(t *testing.T) {
	logged := &loggedWarnings{}
	rest.SetDefaultWarningHandlerWithContext(logged)
	t.Cleanup(func() { rest.SetDefaultWarningHandlerWithContext(rest.WarningLogger{}) })
	f := newFixture(t)
	f.create()
	f.backend("shop", nil)
	for _, args := range [][]string{{"tree", "webapp/shop"}, {"tree", "service/shop"}, {"why", "service/shop"}, {"history", "shop"}} {
		_, _, stderr := f.run(args...)
		if len(logged.list) > 0 || strings.Contains(stderr, "deprecated") {
			t.Errorf("%v: %v\n%s", args, logged.list, stderr)
		}
	}
	f.expect(1, []string{"Warning: v1 Endpoints is deprecated"}, "tree", "endpoints/none")
}

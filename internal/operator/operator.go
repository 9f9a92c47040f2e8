package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/slipway-dev/slipway/internal/kit/contentkey"
	"github.com/slipway-dev/slipway/internal/kit/webhook"
	"github.com/slipway-dev/slipway/internal/operator/kindrole"
)

// DefaultNamespace is where the operator is installed, unless somebody chose another one.
const DefaultNamespace = "slipway-system"

// LeaderElectionID names the Lease that the leader holds.
const LeaderElectionID = "slipway-operator.slipway.dev"

// How leadership passes on. A standby looks at the Lease every retryPeriod to 2.2 times
// that (client-go's jitter), and takes it leaseDuration after it saw the last renewal:
// at most 12 + 2*1.8 = 15.6 s after a crash, and 1.8 s after the leader has released it.
// With the defaults of client-go (15 s, 10 s, 2 s) these are 23.8 s and 4.4 s. The price
// is a small write every 0.8 s instead of every 2 s.
//
// A leader that tries in vain to renew for renewDeadline ends, so the API server may be
// away that long, for a restart, without a change of leaders. It ends at most
// retryPeriod + renewDeadline = 8.8 s after its last renewal, 3.2 s before another can
// begin: a little more than with the defaults.
const (
	leaseDuration = 12 * time.Second
	renewDeadline = 8 * time.Second
	retryPeriod   = 800 * time.Millisecond
)

// Options configures the operator.
type Options struct {
	// MetricsAddress is where metrics are served, host:port. "0" serves none. Default ":8080".
	MetricsAddress string
	// MetricsAuthentication serves metrics over TLS, and only to whom the API server knows
	// and lets get the path /metrics. It asks the API server with TokenReviews and
	// SubjectAccessReviews, which are rights of the whole cluster. Default false: plain HTTP,
	// to everybody.
	MetricsAuthentication bool
	// MetricsCertificates is the folder with tls.crt and tls.key for MetricsAuthentication;
	// files that change are read again. Default: a certificate that the operator signs itself.
	MetricsCertificates string
	// ProbeAddress is where /healthz and /readyz are served, host:port. "0" serves
	// none. Default ":8081".
	ProbeAddress string
	// LeaderElection lets several operators run, one of which acts. The others keep
	// their caches warm. Default false.
	LeaderElection bool
	// LeaderElectionNamespace holds the Lease. Default: the namespace the operator runs in.
	LeaderElectionNamespace string
	// GracefulShutdownTimeout is how long reconciles under way may take to end. Default 20 s.
	GracefulShutdownTimeout time.Duration
	// MaxConcurrentReconciles is how many objects of a kind are worked on at a time.
	// Default: outcome.DefaultConcurrency.
	MaxConcurrentReconciles int
	// GatewayImage is what the pods of an APIGateway run that names no image. Default
	// "slipway-gateway:dev".
	GatewayImage string
	// GatewayServiceType is the type of the Services of Gateways. Default: LoadBalancer.
	GatewayServiceType corev1.ServiceType
	// BackupImage is that of slipway-backup, which Jobs of BackupRuns and Restores run. Default "slipway-backup:dev".
	BackupImage string
	// MaxBackupRuns is how many BackupRuns have a pod at a time. Default: backuprun.DefaultMaxRuns.
	MaxBackupRuns int
	// BackupHooks lets the operator run the hooks of Backups in the pods of workloads. It needs the right to create pods/exec.
	// Default false.
	BackupHooks bool
	// WebhookPort is where admission webhooks are served. 0 serves none. It does not go with
	// Namespaces: the operator would need a right in the cluster.
	WebhookPort int
	// WebhookHost is the DNS name or the IP address by which the API server calls the
	// webhooks. Required with WebhookPort.
	WebhookHost string
	// HTTPRouteGateways are the Gateways for which APIGateways may have HTTPRoutes: namespace/name, namespace/* or *. Default: none.
	HTTPRouteGateways []string
	// Namespace is the operator's own: it holds the key of what is hashed, and the records of whose a host is. Default
	// "slipway-system".
	Namespace string
	// Namespaces are the ones to work in: the operator reads and watches nothing in another
	// one, and needs no right there. Its Lease is in LeaderElectionNamespace and its key in
	// Namespace all the same. Default: all. GatewayClasses are in no namespace: without the right to read them the operator
	// says so in its log, and has no Gateways.
	Namespaces []string
	// CheckRights has the operator look at the start, and every 10 minutes, for strong rights that it does not ask for. It tells of
	// them in its log and in a metric. Default false.
	CheckRights bool
	// MonitorKinds lets the monitor read custom resources: the operator keeps the rules of the ClusterRole of package kindrole. It
	// does not go with Namespaces. Default false.
	MonitorKinds bool
	// MonitorInclude and MonitorExclude are patterns that choose what the monitor may read. Default: every kind that a
	// CustomResourceDefinition defines.
	MonitorInclude, MonitorExclude []string
	// Controllers are the ones to run, by name: see ControllerNames. Default: all.
	Controllers []string
}

// The images of a build that is no release.
const (
	defaultGatewayImage = "slipway-gateway:dev"
	defaultBackupImage  = "slipway-backup:dev"
)

// errWebhookInNamespaces is a combination of options for which there is no set of rights.
var errWebhookInNamespaces = errors.New("--webhook-port does not go with --namespaces: " +
	"webhooks need a right in the whole cluster, which an operator for some namespaces does not have; leave one of the two out")

// errMonitorInNamespaces is another one.
var errMonitorInNamespaces = errors.New("--monitor does not go with --namespaces: " +
	"the kinds that the monitor reads belong to the whole cluster; leave one of the two out")

// NewManager returns a manager with every controller registered. seams are for tests.
func NewManager(restConfig *rest.Config, options Options, seams Seams) (ctrl.Manager, error) {
	if len(options.Namespaces) > 0 && options.WebhookPort != 0 {
		return nil, errWebhookInNamespaces
	}
	if len(options.Namespaces) > 0 && options.MonitorKinds {
		return nil, errMonitorInNamespaces
	}
	managed := managerOptions(options, seams)
	var certificates *webhook.Certificates
	if options.WebhookPort != 0 {
		var err error
		if certificates, err = webhook.NewCertificates(options.WebhookHost, clock.RealClock{}); err != nil {
			return nil, fmt.Errorf("make the certificate of the webhooks: %w", err)
		}
		managed.WebhookServer = ctrlwebhook.NewServer(ctrlwebhook.Options{
			Port:    options.WebhookPort,
			TLSOpts: []func(*tls.Config){func(config *tls.Config) { config.GetCertificate = certificates.Get }},
		})
	}
	mgr, err := ctrl.NewManager(decidedAnew(restConfig), managed)
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	if certificates != nil {
		if err := webhook.Setup(mgr, certificates); err != nil {
			return nil, fmt.Errorf("set up the webhooks: %w", err)
		}
	}
	if err := addProbes(mgr); err != nil {
		return nil, err
	}
	setMetrics(mgr.GetLogger(), options)
	if options.CheckRights {
		if err := addRightsCheck(mgr, options); err != nil {
			return nil, fmt.Errorf("set up the check of the operator's rights: %w", err)
		}
	}
	if options.MonitorKinds {
		of := kindrole.Options{Include: options.MonitorInclude, Exclude: options.MonitorExclude, NewQueue: seams.NewQueue}
		if err := kindrole.Setup(mgr, of); err != nil {
			return nil, fmt.Errorf("set up what the monitor may read: %w", err)
		}
	}
	return mgr, addControllers(mgr, options, seams)
}

// contentKeys are the keys of what is hashed. They are read without a cache: the one of
// Secrets has no content.
func contentKeys(mgr ctrl.Manager, options Options, seams Seams) (contentkey.Keys, error) {
	if seams.ContentKeys != nil {
		return seams.ContentKeys, nil
	}
	direct, err := client.New(mgr.GetConfig(),
		client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return contentkey.NewInstallation(direct, ownNamespace(options)), nil
}

// Run runs the operator until the context ends.
func Run(ctx context.Context, restConfig *rest.Config, options Options) error {
	// The API server's priority and fairness decides how fast we may be, not a limit
	// in the client.
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS = -1
	mgr, err := NewManager(restConfig, options, Seams{})
	if err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func managerOptions(options Options, seams Seams) ctrl.Options {
	shutdown := options.GracefulShutdownTimeout
	if shutdown == 0 {
		shutdown = 20 * time.Second
	}
	duration, deadline, retry := leaseDuration, renewDeadline, retryPeriod
	readYourWrites := true
	recoverPanic := true
	return ctrl.Options{
		Scheme:                  Scheme(),
		Cache:                   cacheOptions(kindsFor(options, seams, shared{}), options.Namespaces),
		NewCache:                seams.NewCache,
		NewClient:               seams.NewClient,
		Metrics:                 metricsOptions(options),
		HealthProbeBindAddress:  options.ProbeAddress,
		LeaderElection:          options.LeaderElection,
		LeaderElectionID:        LeaderElectionID,
		LeaderElectionNamespace: options.LeaderElectionNamespace,
		LeaseDuration:           &duration,
		RenewDeadline:           &deadline,
		RetryPeriod:             &retry,
		// The process ends when it stops leading, so the standby may start at once.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &shutdown,
		Client: client.Options{Cache: &client.CacheOptions{
			// A reconcile that follows a write sees it, so nothing is written twice.
			EnableReadYourWritesConsistency: &readYourWrites,
		}},
		Controller: config.Controller{
			RecoverPanic:       &recoverPanic,
			SkipNameValidation: &seams.AllowSecondController,
		},
	}
}

// metricsOptions says how metrics are served. HTTP/2 stays off: who has not been let in yet
// could make streams faster than they are refused.
func metricsOptions(options Options) metricsserver.Options {
	metrics := metricsserver.Options{BindAddress: options.MetricsAddress}
	if options.MetricsAuthentication {
		metrics.SecureServing = true
		metrics.CertDir = options.MetricsCertificates
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
		metrics.TLSOpts = []func(*tls.Config){func(config *tls.Config) { config.NextProtos = []string{"http/1.1"} }}
	}
	return metrics
}

// addProbes adds /healthz, which answers while the process does, and /readyz, which
// waits for the caches: a standby is ready too.
func addProbes(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the liveness probe: %w", err)
	}
	synced := func(req *http.Request) error {
		if !mgr.GetCache().WaitForCacheSync(req.Context()) {
			return fmt.Errorf("the caches are not filled yet")
		}
		return nil
	}
	if err := mgr.AddReadyzCheck("caches", synced); err != nil {
		return fmt.Errorf("add the readiness probe: %w", err)
	}
	return nil
}

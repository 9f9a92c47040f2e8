package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// ConfigurationName is the name of the ValidatingWebhookConfiguration.
const ConfigurationName = "slipway.dev"

// maxTrusted bounds how many certificates are trusted: two for each of a few operators,
// and those that restarted operators have left until they end.
const maxTrusted = 16

// trust keeps the certificates of this operator among those that the API server trusts.
type trust struct {
	client       client.Client
	certificates *Certificates
}

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=slipway.dev,verbs=get;list;watch;patch

// Setup has the API server trust the certificates, those of a standby too. Where there is
// no ValidatingWebhookConfiguration of that name nothing is done.
func Setup(mgr ctrl.Manager, certificates *Certificates) error {
	everywhere := false
	return ctrl.NewControllerManagedBy(mgr).
		Named("webhook").
		For(&admissionregistrationv1.ValidatingWebhookConfiguration{}).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).
		Complete(&trust{client: mgr.GetClient(), certificates: certificates})
}

// Reconcile adds what is missing and drops what has ended.
func (t *trust) Reconcile(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := t.client.Get(ctx, req.NamespacedName, configuration); err != nil {
		if apierrors.IsNotFound(err) {
			return outcome.Result(nil, 0)
		}
		return outcome.Result(fmt.Errorf("read the ValidatingWebhookConfiguration: %w", err), 0)
	}
	trusted, again, err := t.certificates.renew(func(pem []byte) bool { return trustedByAll(configuration, pem) })
	if err != nil {
		return outcome.Result(err, 0)
	}
	before := configuration.DeepCopy()
	for i := range configuration.Webhooks {
		config := &configuration.Webhooks[i].ClientConfig
		config.CABundle = bundle(config.CABundle, trusted, t.certificates.clock.Now())
	}
	if equality.Semantic.DeepEqual(before, configuration) {
		return outcome.Result(nil, again)
	}
	// Locked: another operator may be adding its own.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := t.client.Patch(ctx, configuration, patch); err != nil {
		return outcome.Result(outcome.Classify(fmt.Sprintf("ValidatingWebhookConfiguration %q", configuration.Name), err), again)
	}
	return outcome.Result(nil, again)
}

// trustedByAll reports whether every webhook trusts a certificate.
func trustedByAll(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, pem []byte) bool {
	for i := range configuration.Webhooks {
		if !bytes.Contains(configuration.Webhooks[i].ClientConfig.CABundle, pem) {
			return false
		}
	}
	return true
}

// bundle adds certificates to a bundle that lacks them and drops those that have ended,
// and the first where there are too many. A bundle that lacks none stays as it is.
func bundle(old []byte, trusted [][]byte, now time.Time) []byte {
	var kept [][]byte
	for block, rest := pem.Decode(old); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.Before(certificate.NotAfter) {
			kept = append(kept, pem.EncodeToMemory(block))
		}
	}
	for _, one := range trusted {
		if !contains(kept, one) {
			kept = append(kept, one)
		}
	}
	if len(kept) > maxTrusted {
		kept = kept[len(kept)-maxTrusted:]
	}
	return bytes.Join(kept, nil)
}

func contains(list [][]byte, one []byte) bool {
	for _, other := range list {
		if bytes.Equal(other, one) {
			return true
		}
	}
	return false
}

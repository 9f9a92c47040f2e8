package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// A client secret is copied with the issuer for which it is, and nothing else of its Secret. One for another issuer is not copied.
func TestOfAClientSecretOnlyWhatIsNeededIsCopied(t *testing.T) {
	auth := &slipwayv1alpha1.Auth{OIDC: &slipwayv1alpha1.OIDCAuth{
		Issuer: "https://id.example.com", ClientID: "shop", ClientSecretRef: slipwayv1alpha1.OIDCSecret{Name: "login", Key: "secret"},
	}}
	name := types.NamespacedName{Namespace: "team", Name: "login"}
	for what, test := range map[string]struct {
		data   map[string][]byte
		copied map[string][]byte
	}{
		"for the issuer": {
			map[string][]byte{"issuer": []byte("https://id.example.com"), "secret": []byte("0123456789abcdef"), "password": []byte("canary")},
			map[string][]byte{"issuer": []byte("https://id.example.com"), "secret": []byte("0123456789abcdef")},
		},
		"for another issuer": {map[string][]byte{"issuer": []byte("https://evil.example.com"), "secret": []byte("0123456789abcdef")}, nil},
		"for something else": {map[string][]byte{"secret": []byte("canary-canary-canary")}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			of, _ := gatewayapi.CredentialsOf("team", auth)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "login", ResourceVersion: "7"}, Data: test.data}
			validated, err := validateSecret("team", auth, of, secret)
			if err != nil {
				t.Fatal(err)
			}
			s, used := &scope{copiedCredentials: map[types.NamespacedName]copiedPart{}}, map[string]int{}
			if validated.fault == nil {
				validated.fault = s.noteCopy("team", auth, validated, used)
			}
			which, isCopied := s.copiedCredentials[name]
			if isCopied != (test.copied != nil) || isCopied != (validated.fault == nil) {
				t.Fatalf("copied: %v, fault: %+v", isCopied, validated.fault)
			}
			if !isCopied {
				return
			}
			if diff := cmp.Diff(test.copied, part(secret, which)); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			once := used["team"]
			if f := s.noteCopy("team", auth, validated, used); f != nil || used["team"] != once || once < 30 || once > 200 {
				t.Errorf("%d bytes are counted, %d after another stanza: %v", once, used["team"], f)
			}
		})
	}
}

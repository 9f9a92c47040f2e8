package health_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
)

// telling are images, repository and tag, whose words a registry or a runtime uses too.
var telling = [][2]string{
	{"localhost:5999/shop", "1"},
	{"localhost:5999/forbidden-page", "1"},
	{"registry.example.com/access-denied", "403"},
	{"docker.io/library/denied", "denied"},
	{"docker.io/library/unauthorized", "not-found"},
	{"notfound.example.com/notfound/manifest-unknown", "404"},
	{"401.example.com:5000/authorization-failed/name-unknown", "does-not-exist"},
	{"registry.example.com/failed-to-do-request", "unexpected-status"},
}

// pulls are messages of containerd 2.4, its older releases, CRI-O and Docker, and the reason for each. REF is the image, HOST
// its registry, PATH its repository there and TAG its tag.
var pulls = map[string]string{
	`failed to pull and unpack image "REF": failed to resolve reference "REF": failed to do request: Head "http://HOST/v2/PATH/manifests/TAG": dial tcp 127.0.0.1:5999: connect: connection refused`:                                                                  "ImagePullBackOff",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": dial tcp: lookup HOST on 10.96.0.10:53: no such host`:                                                                 "ImagePullBackOff",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": Forbidden`:                                                                                                            "ImagePullBackOff",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": failed to do request: Head "https://HOST/v2/PATH/manifests/TAG": tls: failed to verify certificate: x509: certificate is valid for denied, not HOST`:                                   "ImagePullBackOff",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 502 Bad Gateway`:                                                                                            "ImagePullBackOff",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 429 Too Many Requests` + "\ntoomanyrequests: you have reached your unauthenticated pull rate limit: denied": "ImagePullBackOff",
	`failed to pull and unpack image "REF": failed to extract layer sha256:00: mount callback failed: unlinkat /denied: no space left on device: unknown`:                                                                                                             "ImagePullBackOff",
	`failed to pull and unpack image "REF": failed to extract layer sha256:00: parent snapshot sha256:00 does not exist: not found`:                                                                                                                                   "ImagePullBackOff",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://HOST/token: 404 Not Found`:                                                         "ImagePullBackOff",

	`failed to pull and unpack image "REF": failed to resolve reference "REF": REF: not found`:                                                                           "ImageNotFound",
	`failed to pull and unpack image "REF": failed to copy: httpReadSeeker: failed open: content at https://HOST/v2/PATH/manifests/sha256:00 not found: not found`:       "ImageNotFound",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 404 Not Found`: "ImageNotFound",

	`failed to pull and unpack image "REF": failed to resolve reference "REF": unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 403 Forbidden`:                                             "ImagePullDenied",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": unexpected status from HEAD request to https://HOST/v2/PATH/manifests/TAG: 403 Forbidden` + "\nname unknown: no such name":            "ImagePullDenied",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials`:          "ImagePullDenied",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`: "ImagePullDenied",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": failed to authorize: failed to fetch oauth token: unexpected status from POST request to https://HOST/token: 401 Unauthorized`:        "ImagePullDenied",
	`failed to pull and unpack image "REF": failed to resolve reference "REF": unexpected status code [manifests TAG]: 403 Forbidden`:                                                                                "ImagePullDenied",

	`initializing source docker://REF: pinging container registry HOST: Get "https://HOST/v2/": dial tcp 10.0.0.1:443: i/o timeout`:         "ImagePullBackOff",
	`initializing source docker://REF: pinging container registry HOST: received unexpected HTTP status: 503 Service Unavailable`:           "ImagePullBackOff",
	`initializing source docker://REF: reading manifest TAG in HOST/PATH: manifest unknown`:                                                 "ImageNotFound",
	`initializing source docker://REF: reading manifest TAG in HOST/PATH: requested access to the resource is denied`:                       "ImagePullDenied",
	`initializing source docker://REF: reading manifest TAG in HOST/PATH: unauthorized: access to the requested resource is not authorized`: "ImagePullDenied",

	`Error response from daemon: Get "https://HOST/v2/": net/http: request canceled while waiting for connection`:                                                               "ImagePullBackOff",
	`Error response from daemon: manifest for REF not found: manifest unknown: manifest unknown`:                                                                                "ImageNotFound",
	`Error response from daemon: pull access denied for HOST/PATH, repository does not exist or may require 'docker login': denied: requested access to the resource is denied`: "ImagePullDenied",
	`Error response from daemon: Head "https://HOST/v2/PATH/manifests/TAG": no basic auth credentials`:                                                                          "ImagePullDenied",
}

// What a user has called an image decides nothing: the same message with another name in it has the same reason, and waits or
// does not wait alike.
func TestTheNameOfAnImageIsNoAnswerOfItsRegistry(t *testing.T) {
	for _, name := range telling {
		repository, tag := name[0], name[1]
		host, path, _ := strings.Cut(repository, "/")
		ref := repository + ":" + tag
		for template, reason := range pulls {
			said := strings.NewReplacer("REF", ref, "HOST", host, "PATH", path, "TAG", tag).Replace(template)
			for _, code := range []string{"Unknown", "NotFound", "PermissionDenied"} {
				said := "rpc error: code = " + code + " desc = " + said
				for kubelet, message := range map[string]string{"ErrImagePull": said, "ImagePullBackOff": fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", ref, said)} {
					got := pulled(ref, waiting(kubelet, message))
					if want := kubelet == "ImagePullBackOff" && reason != "ImagePullBackOff"; got.Reason != reason || got.Terminal != want {
						t.Errorf("%s: %s\nis %s, terminal %v, want %s, terminal %v", kubelet, message, got.Reason, got.Terminal, reason, want)
					}
				}
			}
		}
		for kubelet, message := range map[string]string{
			"RegistryUnavailable": "image pull failed for " + ref + " because the registry is unavailable: denied: not found",
			"ImagePullBackOff":    fmt.Sprintf("Back-off pulling image %q: RegistryUnavailable: image pull failed for %s because the registry is unavailable: denied", ref, ref),
			"ErrImagePull":        "pull QPS exceeded",
		} {
			if got := pulled(ref, waiting(kubelet, message)); got.Reason != "ImagePullBackOff" || got.Terminal {
				t.Errorf("%s: %s\nis %+v", kubelet, message, got)
			}
		}
		if got := pulled(ref, waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q", ref))); got.Reason != "ImagePullBackOff" || got.Terminal {
			t.Errorf("without an answer: %+v", got)
		}
	}
}

func pulled(image string, state corev1.ContainerState) health.Verdict {
	return health.Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-1"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "app", Image: image, State: state,
	}}}})
}

package fault

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// whereTo is a key of a context: its value is a *string for the namespace that a request is about.
type whereTo struct{}

var errNotSent = errors.New("only its namespace was asked for")

// namespaceOf returns the namespace that a source lists, empty where it lists all or that cannot be found. A cache of several
// namespaces has a source for each, and does not tell which is which. So the source is asked to list, and the request is
// looked at and not sent.
func (r *Relay) namespaceOf(source toolscache.ListerWatcher) string {
	namespace := ""
	ctx := context.WithValue(r.ctx, whereTo{}, &namespace)
	_, err := toolscache.ToListerWatcherWithContext(source).ListWithContext(ctx, metav1.ListOptions{})
	if !errors.Is(err, errNotSent) {
		return ""
	}
	return namespace
}

// onlyAsked notes the namespace of a request, if that is all that is wanted of it.
func onlyAsked(request *http.Request) bool {
	into, asked := request.Context().Value(whereTo{}).(*string)
	if asked {
		*into = requests.KindOf(request).Namespace
	}
	return asked
}

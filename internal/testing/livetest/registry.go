package livetest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"time"
)

// The node of a local cluster reaches a registry on this machine as localhost, in
// plain HTTP, at these ports; see hack/localkube.
const (
	firstRegistryPort = 5000
	lastRegistryPort  = 5008
	// SilentPort is where no registry listens.
	SilentPort = 5009
)

// Repositories of the registry. Any other is unknown.
const (
	// PrivateRepository is denied to everybody.
	PrivateRepository = "private"
	// RootRepository has a single image, "1", which runs as root and holds nothing.
	RootRepository = "root"
)

// Registry serves, until the test ends, what it takes to tell pulling errors apart. It
// returns its name as it stands in an image's name.
func (f *Fixture) Registry() string {
	f.Helper()
	if f.registry != "" {
		return f.registry
	}
	if !f.Cluster.Local {
		f.Skip("the nodes of this cluster cannot reach a registry on this machine")
	}
	var listener net.Listener
	for port := lastRegistryPort; port >= firstRegistryPort && listener == nil; port-- {
		listener, _ = net.Listen("tcp", fmt.Sprintf(":%d", port))
	}
	if listener == nil {
		f.Fatalf("every port from %d to %d is in use", firstRegistryPort, lastRegistryPort)
	}
	image, err := emptyImage()
	if err != nil {
		f.Fatal(err)
	}
	server := &http.Server{Handler: image.handler(), ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	f.Cleanup(func() { _ = server.Close(); <-done })
	f.registry = fmt.Sprintf("localhost:%d", listener.Addr().(*net.TCPAddr).Port)
	return f.registry
}

// served is an image as a registry hands it out: documents by their digest.
type served struct {
	manifest string
	types    map[string]string
	blobs    map[string][]byte
}

func (s *served) add(mediaType string, content []byte) map[string]any {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	s.blobs[digest], s.types[digest] = content, mediaType
	return map[string]any{"mediaType": mediaType, "digest": digest, "size": len(content)}
}

// emptyImage makes an image without a user, which therefore runs as root.
func emptyImage() (*served, error) {
	var layer bytes.Buffer
	if err := tar.NewWriter(&layer).Close(); err != nil {
		return nil, err
	}
	s := &served{types: map[string]string{}, blobs: map[string][]byte{}}
	layerRef := s.add("application/vnd.oci.image.layer.v1.tar", layer.Bytes())
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/nothing"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{layerRef["digest"]}},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": s.add("application/vnd.oci.image.config.v1+json", config),
		"layers": []any{layerRef},
	})
	if err != nil {
		return nil, err
	}
	s.manifest = s.add("application/vnd.oci.image.manifest.v1+json", manifest)["digest"].(string)
	return s, nil
}

func (s *served) handler() http.Handler {
	refuse := func(response http.ResponseWriter, status int, code, message string) {
		response.Header().Set("Content-Type", "application/json")
		response.WriteHeader(status)
		fmt.Fprintf(response, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
	}
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		repository, reference, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/v2/"), "/")
		if repository == PrivateRepository {
			refuse(response, http.StatusForbidden, "DENIED", "requested access to the resource is denied")
			return
		}
		digest := reference[strings.LastIndex(reference, "/")+1:]
		if reference == "manifests/1" {
			digest = s.manifest
		}
		content, ok := s.blobs[digest]
		if repository != RootRepository || !ok {
			refuse(response, http.StatusNotFound, "MANIFEST_UNKNOWN", "manifest unknown")
			return
		}
		response.Header().Set("Content-Type", s.types[digest])
		response.Header().Set("Docker-Content-Digest", digest)
		response.Header().Set("Content-Length", fmt.Sprint(len(content)))
		if request.Method != http.MethodHead {
			_, _ = response.Write(content)
		}
	})
}

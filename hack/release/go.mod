module github.com/slipway-dev/slipway/hack/release

go 1.26.0

replace github.com/slipway-dev/slipway/hack/image => ../image

require (
	github.com/google/go-cmp v0.7.0
	github.com/slipway-dev/slipway/hack/image v0.0.0-00010101000000-000000000000
	sigs.k8s.io/yaml v1.6.0
)

require (
	github.com/google/go-containerregistry v0.22.1 // indirect
	github.com/klauspost/compress v1.19.2 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	golang.org/x/sync v0.22.0 // indirect
)

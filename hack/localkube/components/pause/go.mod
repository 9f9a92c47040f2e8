module github.com/slipway-dev/slipway/hack/localkube/components/pause

go 1.26.0

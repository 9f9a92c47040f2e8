// esbuild, pinned, which bundles the web page of the monitor: internal/monitor/web. It is a module of its own so that neither
// decides the versions of the other's dependencies. hack/tool.sh builds it, once, when it is first needed.
module github.com/slipway-dev/slipway/hack/tools/web

go 1.26.0

tool github.com/evanw/esbuild/cmd/esbuild

require (
	github.com/evanw/esbuild v0.28.2 // indirect
	golang.org/x/sys v0.0.0-20220715151400-c0bba94af5f8 // indirect
)

module github.com/slipway-dev/slipway

go 1.26

// Package docs tests what the documentation says, where that is not a command of the tutorial:
//
//   - ingress_test.go: each example of docs/from-ingress.md, as objects of the Gateway API and as an APIGateway
//   - commands_test.go: commands of kubectl in pages, charts, scripts and messages change nothing of another project
//   - coverage_test.go: the tutorial of the monitor shows the kinds that its account may list
//   - pure_test.go: what a page or a package comment calls pure is in the list of pure packages
//   - shims_test.go: code for what an earlier release left says when it goes, and goes
//   - paths_test.go: files, headings and packages that pages name are there, and each package is in the page about them
package docs

// Package page opens the web page of the monitor in a browser without a screen, Debian's chromium-headless-shell: `make
// test-monitor-page` (tag pagetest). The server is the monitor's own, over a real store; the API server, which says who a user is
// and what the user may list, is played.
//
//   - monitor_test.go: the server, and who may do what
//   - data_test.go: a history to look at, with hostile names and values in it
//   - browser_test.go: the browser, and what no page may do: run a foreign script, break the policy, log an error
//   - pages_test.go: what each page shows
//   - access_test.go: axe-core, the keyboard, narrow screens, the dark
//   - hostile_test.go: scripts in names and values stay text
//   - images_test.go: the images of docs/monitor-page.md
package page

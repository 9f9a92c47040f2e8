// Package neighbours proves that what one tenant of a cluster does changes nothing for another, up to a stated share.
//
// Each test is a row: an abuse by somebody with the role "edit" in one namespace, while another namespace works. It measures
// the other one alone and beside the abuse. Rows that need no pods have the build tag apitest, or none; the others have
// neighbours, and run on a cluster that hack/test-e2e.sh prepares (make test-neighbours). docs/dev/neighbours.md is the table.
package neighbours

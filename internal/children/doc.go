// Package children builds what several kinds have as children and state alike: what stands
// around a Deployment. It is pure; what is special to a kind is in its package desired.
package children

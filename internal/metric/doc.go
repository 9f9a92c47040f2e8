// Package metric describes metrics as data, so that the code that registers them and
// the table that documents them say the same.
package metric

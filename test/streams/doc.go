// Package streams lets viewers read the changes of the monitor while there is more to do than the machine has processors for.
package streams

package server

import "sync/atomic"

// core is what all routes share.
type core struct {
	cfg     Config
	models  registry
	calls   *calls
	metrics *metrics
	bodies  atomic.Int64 // bytes reserved for large bodies
}

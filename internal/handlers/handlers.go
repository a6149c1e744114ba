// Package handlers keeps the Go runtime's signal handlers in place beside foreign libraries.
//
// The runtime's handlers must run on the signal stack (SA_ONSTACK). Libraries loaded at run time change them: some set
// handlers of their own while they work and put the old ones back with signal(2), which drops that flag; MPI libraries
// replace the handlers of memory faults. The first signal that then meets a thread in Go code ends the program ("non-Go
// code set up signal handler without SA_ONSTACK flag"), where SIGTERM should have saved a checkpoint.
package handlers

package main

// waiting are the flags that nothing asserts yet. The list may only shrink: a new flag gets an entry.
var waiting []string

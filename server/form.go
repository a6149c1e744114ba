package server

// form is a request's body with the model that it names and the limits within which its fields are read.
type form struct {
	*object
	model  *Model
	limits *Limits
}

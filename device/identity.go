package device

// Identity is what the bits of a result depend on besides the inputs and the program version: two devices with equal
// identity compute the same bits.
type Identity struct {
	Device    string `json:"device"`    // "cpu", or the GPU's model
	Precision string `json:"precision"` // of weights, activations and factors of products
	Kernels   string `json:"kernels"`   // instruction set, or architecture and library versions
}

// Identified is a Device that knows its identity, and the model of the hardware that its speed depends on.
type Identified interface {
	Identity() Identity
	Machine() string
}

// MachineOf names the hardware of a device.
func MachineOf(d Device) string {
	if i, ok := d.(Identified); ok {
		return i.Machine()
	}
	return "unknown"
}

// IdentityOf is the identity of a device; the default is its name.
func IdentityOf(d Device) Identity {
	if i, ok := d.(Identified); ok {
		return i.Identity()
	}
	return Identity{Device: d.Name(), Precision: d.Types().Act.String()}
}

// String is the identity in one line.
func (i Identity) String() string {
	s := i.Device + ", " + i.Precision
	if i.Kernels != "" {
		s += ", " + i.Kernels
	}
	return s
}

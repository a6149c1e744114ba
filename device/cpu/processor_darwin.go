package cpu

import "syscall"

// processor is the processor's model as the system names it, such as "Apple M2"; empty if it does not.
func processor() string {
	name, err := syscall.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}

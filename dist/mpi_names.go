package dist

import "fmt"

// File names of the libraries of the two families.
var (
	openMPINames = []string{"libmpi.so.40", "libmpi.so.80", "libmpi.so.20"}
	mpichNames   = []string{"libmpich.so.12", "libmpi.so.12"}
)

// mpiNames are the libraries to try for a launcher, in order. One of the wrong family would see only itself.
func mpiNames(l Launch, getenv func(string) string) ([]string, error) {
	if name := getenv("ANTIPHASE_MPI"); name != "" {
		return []string{name}, nil
	}
	switch {
	case l.sees("openmpi"):
		return openMPINames, nil
	case l.MPI():
		return mpichNames, nil
	case getenv("PMIX_RANK") != "":
		return append(openMPINames, mpichNames...), nil
	case getenv("PMI_FD") != "":
		return mpichNames, nil
	case l.Source == "slurm":
		return nil, fmt.Errorf("dist: srun has not prepared MPI, which ranks on a CPU need: srun --mpi=pmix for Open " +
			"MPI, srun --mpi=pmi2 for MPICH")
	}
	return nil, fmt.Errorf("dist: ranks on a CPU talk through MPI, and %s does not start it: use mpirun, or srun "+
		"--mpi=pmix; ranks on GPUs need no MPI", l.Source)
}

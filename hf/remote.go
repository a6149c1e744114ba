package hf

import _ "embed" // the class's code goes into folders

// Files of class Antiphase, with which transformers can run models it has no class for.
var (
	//go:embed remote/configuration_antiphase.py
	configurationPy []byte
	//go:embed remote/modeling_antiphase.py
	modelingPy []byte
)

func remoteCode() []file {
	return []file{{"configuration_antiphase.py", contents(configurationPy)},
		{"modeling_antiphase.py", contents(modelingPy)}}
}

package hf

import _ "embed" // the class's code goes into folders

// What a folder of class Antiphase brings along, so that transformers can run what it has no class for.
var (
	//go:embed remote/configuration_antiphase.py
	configurationPy []byte
	//go:embed remote/modeling_antiphase.py
	modelingPy []byte
)

func remoteCode() []file {
	return []file{{"configuration_antiphase.py", contents(configurationPy)}, {"modeling_antiphase.py", contents(modelingPy)}}
}

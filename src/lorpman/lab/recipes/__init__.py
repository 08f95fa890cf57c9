"""Settings by name that go over any problem's preset, one YAML file each."""

"""Problems by name: tasks, a network, data and the settings of the paper; one file each."""

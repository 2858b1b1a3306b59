package podvisor

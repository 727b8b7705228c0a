"""A real node for the throw-away control plane: kubelet, containerd, kube-proxy and cluster DNS on this machine."""

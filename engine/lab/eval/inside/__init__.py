"""What runs inside the sandbox: nothing here imports anything but the standard library and its neighbours."""

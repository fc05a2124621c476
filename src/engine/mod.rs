//! The running parts: they know the ports, never an adapter.

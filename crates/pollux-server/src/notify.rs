//! Tells systemd how the service is doing, where it asked to be told.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Says something, such as `READY=1`, to the socket that `NOTIFY_SOCKET` names. Without one, and if nobody listens, nothing
/// happens.
pub(crate) fn notify(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let name = name.into_encoded_bytes();
    let address = match name.split_first() {
        Some((b'@', rest)) => SocketAddr::from_abstract_name(rest),
        _ => SocketAddr::from_pathname(std::path::Path::new(&*String::from_utf8_lossy(&name))),
    };
    let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to_addr(state.as_bytes(), &address?));
    // Who started us waits in vain and says so itself.
    drop(sent);
}

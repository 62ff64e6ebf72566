use std::io::{self, Read as _};

/// Ends this process when the test that started it is gone, however that ended: the test holds the
/// other end of the standard input and never writes to it.
///
/// The first thing that the binaries of the tests do. Without it a killed test run would leave workers that,
/// as they should, wait for their lost database to return.
pub fn end_with_the_test() -> io::Result<()> {
    let wait = || {
        let _ = io::stdin().lock().read(&mut [0]);
        std::process::exit(1);
    };
    std::thread::Builder::new().name("end with the test".to_owned()).spawn(wait)?;
    Ok(())
}

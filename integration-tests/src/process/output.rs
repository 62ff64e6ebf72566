use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, PipeReader};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::watch;

const LINES_KEPT: usize = 2_000;

/// The last lines that a process printed, on both outputs, and the signal that there are more.
#[derive(Debug)]
pub(super) struct Output {
    name: String,
    lines: Mutex<Lines>,
    progress: watch::Sender<Progress>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug)]
struct Progress {
    lines: u64,
    open: u32,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<(Stream, String)>,
    dropped: u64,
}

impl Output {
    pub(super) fn new(name: &str) -> Arc<Self> {
        let (progress, _) = watch::channel(Progress { lines: 0, open: 0 });
        Arc::new(Self { name: name.to_owned(), lines: Mutex::default(), progress })
    }

    /// Reads on a thread of its own: also while the test is blocked, and after its runtime is gone.
    pub(super) fn read(
        self: &Arc<Self>,
        stream: Stream,
        pipe: PipeReader,
    ) -> io::Result<JoinHandle<()>> {
        let output = Arc::clone(self);
        output.progress.send_modify(|progress| progress.open += 1);
        thread::Builder::new().name(format!("{stream:?} of {}", self.name)).spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while let Ok(1..) = pipe.read_until(b'\n', &mut line) {
                output.push(stream, String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
                line.clear();
            }
            output.progress.send_modify(|progress| progress.open -= 1);
        })
    }

    fn push(&self, stream: Stream, line: String) {
        let mut lines = self.lock();
        if lines.kept.len() == LINES_KEPT {
            lines.kept.pop_front();
            lines.dropped += 1;
        }
        lines.kept.push_back((stream, line));
        self.progress.send_modify(|progress| progress.lines += 1);
    }

    /// The first line of the standard output, kept or yet to come, that `pick` takes; `None` where the
    /// process has said all and it is not among that.
    pub(super) async fn line<T>(&self, pick: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut progress = self.progress.subscribe();
        loop {
            let ended = progress.borrow_and_update().open == 0;
            let found = self.lock().kept.iter().find_map(|(stream, line)| {
                (*stream == Stream::Stdout).then(|| pick(line)).flatten()
            });
            if found.is_some() || ended {
                return found;
            }
            // The sender is in `self`: it cannot be gone.
            let _ = progress.changed().await;
        }
    }

    /// Both outputs have been read to their ends.
    pub(super) async fn ended(&self) {
        let mut progress = self.progress.subscribe();
        let _ = progress.wait_for(|progress| progress.open == 0).await;
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lock().kept.iter().map(|(_, line)| line.clone()).collect()
    }

    /// Prints what is kept, each line with the name of the process before it.
    ///
    /// With the macro and not to the stream: the test runner captures it, and shows it if the test fails.
    pub(super) fn print(&self) {
        let lines = self.lock();
        if lines.dropped > 0 {
            eprintln!("[{}] … {} earlier lines", self.name, lines.dropped);
        }
        for (_, line) in &lines.kept {
            eprintln!("[{}] {line}", self.name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The stdio transport: MCP over standard input and output, one message per line, for every revision.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::auth::Caller;
use crate::byte_budget::{ByteBudget, ByteReservation, ConnectionShare};
use crate::dispatcher::RequestDispatcher;
use crate::limits::HttpLimits;
use crate::mcp_connection::{AnswerSink, McpConnection, MessageReceipt, MessageSender};

/// How long shutdown waits for pending responses after the client has closed its end. A client may send its requests,
/// close its end and read the answers then. One that is gone altogether must not keep the process alive for longer.
const DRAIN: Duration = Duration::from_secs(5);
/// Capacity of the response queue, for a client that does not read. Behind a full pipe, responses wait here. Once the
/// queue is full too, answered requests keep their permits, and then no further requests are accepted: the client that
/// does not read is the one that waits.
const QUEUE: usize = 64;

/// Serves an app on the standard input and output of this process until the input ends. The caller is the owner of
/// the process, who may call every tool.
///
/// # Errors
/// Returns an error if standard output cannot be written.
///
/// ```rust,no_run
/// use docent_mcp::{App, stdio};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let app = App::builder("tides", "1.0.0").build()?;
/// stdio::serve(app, Default::default(), Default::default()).await?;
/// # Ok(())
/// # }
/// ```
pub async fn serve(app: App, limits: HttpLimits, shutdown: CancellationToken) -> io::Result<()> {
    run(
        app,
        limits,
        tokio::io::stdin(),
        tokio::io::stdout(),
        shutdown,
    )
    .await
}

/// Serves an app over any pair of streams, such as the pipes of a child process or an in-memory client.
///
/// # Errors
/// Returns an error if the output cannot be written.
///
/// ```rust
/// use docent_mcp::{App, stdio};
/// use tokio::io::AsyncReadExt as _;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let app = App::builder("tides", "1.0.0").build()?;
/// let input: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
/// let (mut client, output) = tokio::io::duplex(4096);
/// stdio::run(app, Default::default(), input, output, Default::default()).await?;
/// let mut answer = String::new();
/// client.read_to_string(&mut answer).await?;
/// assert!(answer.contains("\"id\":1"));
/// # Ok(())
/// # }
/// ```
pub async fn run<R, W>(
    app: App,
    limits: HttpLimits,
    input: R,
    output: W,
    shutdown: CancellationToken,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let max_bytes = limits.stdio_line;
    let closing = app.inner().closing.clone();
    let (out, answers) = mpsc::channel(QUEUE);
    let read = Arc::new(Notify::new());
    let mut writer = tokio::spawn(write_answers(output, answers, Arc::clone(&read)));
    let sink = AnswerSink::Pipe {
        answers: out,
        share: ConnectionShare::new(&ByteBudget::new(limits.unread_bytes)),
        read,
    };
    // A pipe is one conversation, so it has the same limit as one event stream.
    let in_flight = vec![Arc::new(Semaphore::new(limits.stream_in_flight))];
    let dispatcher = RequestDispatcher::new(app, Arc::new(limits), None);
    let connection = McpConnection::new(dispatcher, sink, in_flight);
    // The parent process started this one with all of its rights.
    let owner = MessageSender {
        caller: Caller::owner(),
        trace: None,
    };
    let mut lines = StdioLineReader {
        input: BufReader::new(input),
        max_bytes,
        line: Vec::new(),
    };
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            () = shutdown.cancelled() => break,
        };
        let Some(line) = line else { break };
        tokio::select! {
            () = receive_line(&connection, line, &owner) => {}
            ended = &mut writer => {
                connection.cancel_all();
                return ended.unwrap_or(Ok(()));
            }
            () = shutdown.cancelled() => break,
        }
    }
    closing.cancel();
    if tokio::time::timeout(DRAIN, connection.drain())
        .await
        .is_err()
    {
        connection.cancel_all();
    }
    drop(connection);
    match tokio::time::timeout(DRAIN, writer).await {
        Ok(Ok(written)) => written,
        // The writer was cancelled, or the client no longer reads: there is nothing left to report.
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

async fn write_answers<W: AsyncWrite + Unpin>(
    mut output: W,
    mut answers: mpsc::Receiver<(String, ByteReservation)>,
    read: Arc<Notify>,
) -> io::Result<()> {
    while let Some((mut answer, counted)) = answers.recv().await {
        answer.push('\n');
        output.write_all(answer.as_bytes()).await?;
        output.flush().await?;
        drop((answer, counted));
        read.notify_one();
    }
    Ok(())
}

async fn receive_line(connection: &McpConnection, line: StdioLine, owner: &MessageSender) {
    match line {
        StdioLine::TooLong => connection.refuse("the line is longer than allowed").await,
        StdioLine::Whole(line) if line.trim_ascii().is_empty() => {}
        StdioLine::Whole(line) => match connection.receive(&line, owner, None).await {
            MessageReceipt::Taken => {}
            MessageReceipt::TooLarge(answer) | MessageReceipt::Busy(answer) => {
                connection.answer(answer).await;
            }
        },
    }
}

enum StdioLine {
    Whole(Vec<u8>),
    TooLong,
}

/// A line reader with a length limit. An overlong line is skipped to its end without being buffered.
struct StdioLineReader<R> {
    input: BufReader<R>,
    max_bytes: usize,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> StdioLineReader<R> {
    /// Reads the next line. It is cancel-safe: what has been read survives when the future is dropped.
    async fn next(&mut self) -> io::Result<Option<StdioLine>> {
        loop {
            let chunk = self.input.fill_buf().await?;
            let (end, used) = match chunk.iter().position(|&byte| byte == b'\n') {
                Some(at) => (true, at + 1),
                None => (chunk.is_empty(), chunk.len()),
            };
            let eof = chunk.is_empty();
            // One byte over the limit is kept as a marker that the line is too long.
            let room = (self.max_bytes + 1).saturating_sub(self.line.len());
            let text = chunk.get(..used.min(room)).unwrap_or_default();
            self.line
                .extend_from_slice(text.strip_suffix(b"\n").unwrap_or(text));
            self.input.consume(used);
            if !end {
                continue;
            }
            if eof && self.line.is_empty() {
                return Ok(None);
            }
            let line = std::mem::take(&mut self.line);
            return Ok(Some(if line.len() > self.max_bytes {
                StdioLine::TooLong
            } else {
                StdioLine::Whole(line)
            }));
        }
    }
}

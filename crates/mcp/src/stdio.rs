//! MCP over standard input and output: one message a line, for every revision.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::auth::Caller;
use crate::dispatcher::RequestDispatcher;
use crate::http::byte_budget::{ByteBudget, ByteReservation, ConnectionShare};
use crate::http::limits::HttpLimits;
use crate::mcp_connection::{AnswerSink, McpConnection, MessageReceipt, MessageSender};

/// How long answers may still take after the client has closed its end.
const DRAIN: Duration = Duration::from_secs(5);
/// Answers that may wait for a client that does not read.
const QUEUE: usize = 64;

/// Serves an app on this process's standard input and output until the input ends.
///
/// # Errors
/// When standard output cannot be written.
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

/// The same over any pair of streams, such as a child's pipes.
///
/// # Errors
/// When the output cannot be written.
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
    let most = limits.stdio_line;
    let closing = app.inner().closing.clone();
    let (out, answers) = mpsc::channel(QUEUE);
    let read = Arc::new(Notify::new());
    let mut writer = tokio::spawn(write_answers(output, answers, Arc::clone(&read)));
    let sink = AnswerSink::Pipe {
        answers: out,
        share: ConnectionShare::new(&ByteBudget::new(limits.unread_bytes)),
        read,
    };
    // A pipe is one conversation, like a stream.
    let in_flight = vec![Arc::new(Semaphore::new(limits.stream_in_flight))];
    let exchange = RequestDispatcher::new(app, Arc::new(limits), None);
    let conversation = McpConnection::new(exchange, sink, in_flight);
    // Whoever holds the pipes started this process with all of its rights.
    let owner = MessageSender {
        caller: Caller::owner(),
        trace: None,
    };
    let mut lines = StdioLineReader {
        input: BufReader::new(input),
        most,
        line: Vec::new(),
    };
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            () = shutdown.cancelled() => break,
        };
        let Some(line) = line else { break };
        tokio::select! {
            () = receive_line(&conversation, line, &owner) => {}
            ended = &mut writer => {
                conversation.cancel_all();
                return ended.unwrap_or(Ok(()));
            }
            () = shutdown.cancelled() => break,
        }
    }
    closing.cancel();
    if tokio::time::timeout(DRAIN, conversation.drain())
        .await
        .is_err()
    {
        conversation.cancel_all();
    }
    drop(conversation);
    match tokio::time::timeout(DRAIN, writer).await {
        Ok(Ok(written)) => written,
        // A task that was stopped or a client that no longer reads: nothing is left to tell.
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

async fn receive_line(conversation: &McpConnection, line: StdioLine, owner: &MessageSender) {
    match line {
        StdioLine::TooLong => conversation.refuse("the line is longer than allowed").await,
        StdioLine::Whole(line) if line.trim_ascii().is_empty() => {}
        StdioLine::Whole(line) => match conversation.receive(&line, owner, None).await {
            MessageReceipt::Taken => {}
            MessageReceipt::TooLarge(answer) | MessageReceipt::Busy(answer) => {
                conversation.answer(answer).await
            }
        },
    }
}

enum StdioLine {
    Whole(Vec<u8>),
    TooLong,
}

/// Lines of a bounded length. What is longer is skipped to its end without being kept.
struct StdioLineReader<R> {
    input: BufReader<R>,
    most: usize,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> StdioLineReader<R> {
    /// The next line. What has been read survives when this is dropped half-way.
    async fn next(&mut self) -> io::Result<Option<StdioLine>> {
        loop {
            let chunk = self.input.fill_buf().await?;
            let (end, used) = match chunk.iter().position(|&byte| byte == b'\n') {
                Some(at) => (true, at + 1),
                None => (chunk.is_empty(), chunk.len()),
            };
            let eof = chunk.is_empty();
            // One byte over the bound is kept as the sign that the line was too long.
            let room = (self.most + 1).saturating_sub(self.line.len());
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
            return Ok(Some(if line.len() > self.most {
                StdioLine::TooLong
            } else {
                StdioLine::Whole(line)
            }));
        }
    }
}

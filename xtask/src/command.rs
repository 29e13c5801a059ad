//! How other programs are run: with their output passed on, kept, or under a limit of time.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// Cargo, at the root of the repository.
pub fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace::root()).args(args);
    command
}

/// Python, of an environment or the system's.
pub fn python<'a>(python: &Path, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(python);
    command.current_dir(workspace::root()).args(args);
    command
}

/// A command without StreamSan's own variables.
pub fn clean(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STREAMSAN") || name == "LD_PRELOAD" {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| name(command))?;
    if !status.success() {
        bail!("{}: {status}", name(command));
    }
    Ok(())
}

/// What a command that must succeed prints; its errors are passed on.
pub fn output(command: &mut Command) -> Result<String> {
    let made = command.stderr(Stdio::inherit()).output().with_context(|| name(command))?;
    if !made.status.success() {
        bail!("{}: {}", name(command), made.status);
    }
    Ok(String::from_utf8_lossy(&made.stdout).into_owned())
}

/// Runs a command and keeps what it prints; `None` when it was ended because it took too long.
pub fn limited(command: &mut Command, limit: Duration) -> Result<Option<Output>> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("spawn")?;
    let mut pipes: Vec<Box<dyn std::io::Read + Send>> = Vec::new();
    pipes.extend(child.stdout.take().map(|pipe| Box::new(pipe) as _));
    pipes.extend(child.stderr.take().map(|pipe| Box::new(pipe) as _));
    let readers = pipes.into_iter().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text).map(|_| text)
        })
    });
    let readers: Vec<_> = readers.collect();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut texts = readers.into_iter().map(|reader| reader.join().expect("a reader does not panic"));
    let mut next = || texts.next().unwrap_or_else(|| Ok(Vec::new()));
    Ok(Some(Output { status, stdout: next()?, stderr: next()? }))
}

fn name(command: &Command) -> String {
    let args = command.get_args().take(4).map(|arg| arg.to_string_lossy());
    std::iter::once(command.get_program().to_string_lossy()).chain(args).collect::<Vec<_>>().join(" ")
}

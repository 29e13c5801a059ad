//! Folders that tests write to.
//!
//! Owns their life: a folder is empty when a test gets it, goes when the test has passed, and stays
//! for a look when it has failed. Some hold files whose size is that of a GPU's memory.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Once;

use crate::build;

/// The folders of the test that runs on a thread. The thread of a test ends with it.
#[derive(Default)]
struct Folders {
    of_test: Vec<PathBuf>,
    /// Within [`test`].
    explicit: bool,
    failed: bool,
}

impl Drop for Folders {
    fn drop(&mut self) {
        if !self.failed {
            remove(&self.of_test);
        }
    }
}

thread_local! {
    static FOLDERS: RefCell<Folders> = RefCell::default();
}

fn remove(folders: &[PathBuf]) {
    for folder in folders {
        // What cannot be removed is emptied by the next process of this number.
        let _ = std::fs::remove_dir_all(folder);
    }
}

/// A folder of its own for one test, emptied. It is removed when the test has passed.
pub fn scratch(name: &str) -> PathBuf {
    let folder = kept(name);
    FOLDERS.with_borrow_mut(|folders| {
        // The harness names its threads after the tests. Threads that a test starts have no names,
        // and end before the test has looked at what they wrote.
        if folders.explicit || std::thread::current().name().is_some() {
            folders.of_test.push(folder.clone());
        }
    });
    note_panics();
    folder
}

/// As [`scratch`], for all tests of a process: it is not removed.
pub fn kept(name: &str) -> PathBuf {
    let folder = build::cache().join("runs").join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// Runs a test that fails by an error rather than a panic, on whichever thread.
pub fn test<T, E>(run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let before = FOLDERS.take();
    FOLDERS.with_borrow_mut(|folders| folders.explicit = true);
    let result = run();
    let mut mine = FOLDERS.replace(before);
    mine.failed |= result.is_err();
    result
}

/// Has a panic say that the test on its thread fails. (When the thread ends, the panic is over.)
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _ = FOLDERS.try_with(|folders| folders.try_borrow_mut().map(|mut folders| folders.failed = true));
            before(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// A thread as the harness starts one; what it gave, and the folder that it had.
    fn on_a_thread(name: Option<&str>, label: &'static str, run: fn(&Path)) -> (bool, PathBuf) {
        let mut builder = std::thread::Builder::new();
        if let Some(name) = name {
            builder = builder.name(name.to_owned());
        }
        let (send, folder) = std::sync::mpsc::channel();
        let thread = builder.spawn(move || {
            let folder = scratch(label);
            std::fs::write(folder.join("file"), "text").expect("a folder to write to");
            send.send(folder.clone()).expect("somebody waits");
            run(&folder);
        });
        let passed = thread.expect("a thread").join().is_ok();
        (passed, folder.recv().expect("a folder"))
    }

    #[test]
    fn a_folder_goes_with_a_test_that_passes_and_stays_with_one_that_fails() {
        let (passed, folder) = on_a_thread(Some("passes"), "runs-passes", |_| {});
        assert!(passed && !folder.exists());
        let (passed, folder) = on_a_thread(Some("fails"), "runs-fails", |folder| panic!("of {}", folder.display()));
        assert!(!passed && folder.join("file").exists());
        remove(&[folder]);
    }

    #[test]
    fn a_folder_of_a_threads_own_thread_stays_until_the_test_has_looked() {
        let (passed, folder) = on_a_thread(None, "runs-helper", |_| {});
        assert!(passed && folder.join("file").exists());
        remove(&[folder]);
    }

    #[test]
    fn a_test_that_fails_by_an_error_keeps_its_folder() {
        let mut folders = Vec::new();
        for fails in [false, true] {
            let result = test(|| {
                folders.push(scratch(&format!("runs-error-{fails}")));
                if fails { Err("wrong") } else { Ok(()) }
            });
            assert_eq!(result.is_err(), fails);
        }
        assert_eq!(folders.iter().map(|folder| folder.exists()).collect::<Vec<_>>(), [false, true]);
        remove(&folders);
        let (passed, folder) = on_a_thread(Some("after"), "runs-after", |folder| {
            test(|| Err::<(), _>("inner")).expect_err("an error");
            assert!(folder.exists(), "that of the test around it is another's");
        });
        assert!(passed && !folder.exists());
    }
}

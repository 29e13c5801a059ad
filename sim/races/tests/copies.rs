//! Copies that a thread starts and awaits (`cp.async`), in two scripts for each rule: one that
//! races, and one that the rule orders. The other rules are [`crate::twins`]'s.

use sim_races::{Grade, Kind, Remedy};

use crate::script::Script;
use crate::twins::races;
use Grade::{Certain, Likely, Possible};

#[test]
fn copies_are_done_where_they_are_awaited() {
    let run = |wait: &dyn Fn(&mut Script), reader: u32| {
        let mut s = Script::new(1, 64);
        s.copy((0, 0), 32);
        s.commit((0, 0));
        s.copy((0, 0), 64);
        s.commit((0, 0));
        wait(&mut s);
        s.shared((0, reader), 0, 32, Kind::Read);
        races(&s)
    };
    let own = |wait: &dyn Fn(&mut Script)| run(wait, 0);
    assert_eq!(own(&|_| {}), Some((Certain, Remedy::AwaitCopy)));
    assert_eq!(own(&|s| s.wait((0, 0), Some(2))), Some((Certain, Remedy::AwaitCopy)));
    for pending in [Some(0), Some(1), None] {
        assert_eq!(own(&|s| s.wait((0, 0), pending)), None);
        // Others need a barrier behind the wait.
        let other = |wait: &dyn Fn(&mut Script)| run(wait, 40);
        assert_eq!(
            other(&|s| {
                s.wait((0, 0), pending);
                s.sync(0)
            }),
            None
        );
        assert!(other(&|s| s.wait((0, 0), pending)).is_some());
        assert!(
            other(&|s| {
                s.sync(0);
                s.wait((0, 0), pending)
            })
            .is_some()
        );
        assert!(
            other(&|s| {
                s.sync(0);
                s.wait((0, 40), pending)
            })
            .is_some(),
            "nobody waits for others' copies"
        );
    }
    // The block's barrier does not wait for copies.
    assert!(own(&|s| s.sync(0)).is_some());
    assert_eq!(
        own(&|s| {
            s.wait((0, 0), None);
            s.sync(0);
            s.sync(0)
        }),
        None
    );
}

#[test]
fn copies_of_one_thread_have_no_order_before_a_wait() {
    let run = |between: &dyn Fn(&mut Script), second: u64| {
        let mut s = Script::new(1, 64);
        s.copy((0, 0), 32);
        between(&mut s);
        s.copy((0, 0), second);
        s.commit((0, 0));
        s.wait((0, 0), Some(0));
        s.shared((0, 0), 0, 32, Kind::Read);
        races(&s)
    };
    let again = |between: &dyn Fn(&mut Script)| run(between, 32);
    assert_eq!(again(&|_| {}), Some((Likely, Remedy::AwaitCopy)), "of one group");
    // The next group ends later; what its copies do meanwhile is open.
    let possible = Some((Possible, Remedy::AwaitCopy));
    assert_eq!(again(&|s| s.commit((0, 0))), possible);
    let leaves_it_open = |s: &mut Script| {
        s.commit((0, 0));
        s.wait((0, 0), Some(1));
    };
    assert_eq!(again(&leaves_it_open), possible);
    let barrier = |s: &mut Script| {
        s.commit((0, 0));
        s.sync(0);
    };
    assert_eq!(again(&barrier), possible);
    for pending in [Some(0), None] {
        let waits = |s: &mut Script| {
            s.commit((0, 0));
            s.wait((0, 0), pending);
        };
        assert_eq!(again(&waits), None);
    }
    // Other bytes, and another thread behind the wait and a barrier.
    assert_eq!(run(&|_| {}, 36), None);
    assert_eq!(run(&|s| s.commit((0, 0)), 28), None);
    let other = |wait: bool| {
        let mut s = Script::new(1, 64);
        s.copy((0, 0), 32);
        if wait {
            s.wait((0, 0), None);
        }
        s.sync(0);
        s.copy((0, 40), 32);
        races(&s)
    };
    assert_eq!((other(true), other(false)), (None, Some((Certain, Remedy::AwaitCopy))));
}

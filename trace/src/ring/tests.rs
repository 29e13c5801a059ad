//! Tests both ends against each other: order, laps, damage, a producer that dies.

use std::os::fd::AsFd;

use super::*;

#[cfg(not(miri))]
fn pair(capacity: usize) -> (Producer, Consumer) {
    let (ring, fd) = Ring::create(capacity).expect("ring");
    let other = Ring::open(fd.as_fd()).expect("open");
    (Producer::new(ring), Consumer::new(other))
}

/// Both ends on ordinary memory, which is as long as the double mapping: a record that runs past
/// the end does so for both.
#[cfg(miri)]
fn pair(capacity: usize) -> (Producer, Consumer) {
    let layout = std::alloc::Layout::from_size_align(HEADER + 2 * capacity, 4096).expect("a layout");
    // SAFETY: the layout is not empty. Never freed: a test has few.
    let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).expect("memory");
    (Producer::new(Ring { base, capacity }), Consumer::new(Ring { base, capacity }))
}

fn put(producer: &mut Producer, bytes: &[u8]) -> bool {
    let Some(room) = producer.try_reserve(bytes.len()) else { return false };
    room.copy_from_slice(bytes);
    producer.commit(bytes.len());
    true
}

#[test]
fn records_arrive_whole_and_in_order_over_many_laps() {
    let (mut producer, mut consumer) = pair(LARGEST_PAGE);
    let mut next = 0_u32;
    let mut sent = 0_u32;
    while next < if cfg!(miri) { 100 } else { 5000 } {
        let len = 4 + (sent as usize * 7) % 900;
        let mut bytes = vec![(sent % 251) as u8; len];
        bytes[..4].copy_from_slice(&sent.to_le_bytes());
        if put(&mut producer, &bytes) {
            sent += 1;
            continue;
        }
        consumer
            .drain(|got| {
                assert_eq!(got[..4], next.to_le_bytes());
                assert_eq!(got.len(), 4 + (next as usize * 7) % 900);
                assert!(got[4..].iter().all(|b| *b == (next % 251) as u8));
                next += 1;
            })
            .expect("sound");
    }
}

/// Run by Miri too, which knows of every byte whether reading it is ordered behind writing it.
#[test]
fn a_reader_on_another_thread_sees_whole_records_only() {
    let count = if cfg!(miri) { 200_u64 } else { 200_000 };
    let (mut producer, mut consumer) = pair(LARGEST_PAGE);
    let writer = std::thread::spawn(move || {
        for n in 0..count {
            let bytes: Vec<u8> = (0..8 + n % 300).map(|i| (n + i) as u8).collect();
            while !put(&mut producer, &bytes) {
                std::thread::yield_now();
            }
        }
    });
    let mut next = 0_u64;
    while next < count {
        consumer
            .drain(|got| {
                assert_eq!(got.len() as u64, 8 + next % 300);
                assert!(got.iter().zip(0..).all(|(byte, i)| *byte == (next + i) as u8));
                next += 1;
            })
            .expect("sound");
        std::thread::yield_now();
    }
    writer.join().expect("the writer ends");
}

#[test]
fn a_ring_scribbled_over_anywhere_is_read_within_bounds() {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..if cfg!(miri) { 20 } else { 3000 } {
        let (mut producer, mut consumer) = pair(LARGEST_PAGE);
        for _ in 0..random(60) {
            put(&mut producer, &vec![1; random(2000) as usize]);
            if random(10) == 0 {
                let _ = consumer.drain(|_| ());
            }
        }
        // The counters, or lengths and what lies around them.
        for _ in 0..1 + random(20) {
            let header = producer.ring.header();
            let value = [0, u64::MAX, 1 << 63, random(1 << 20), random(1 << 14) * 8][random(5) as usize];
            match random(4) {
                0 => header.counters.scribble(true, value),
                1 => header.counters.scribble(false, value),
                _ => {
                    let at = producer.ring.data(random(LARGEST_PAGE as u64 / 4) * 4).cast::<u32>();
                    // SAFETY: inside the mapping; this plays the program that scribbles over the
                    // ring.
                    unsafe { at.write(value as u32) };
                }
            }
        }
        let (mut count, mut sum) = (0, 0_u64);
        let _ = consumer.drain(|got| {
            count += got.len();
            sum += got.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        });
        assert!(count <= LARGEST_PAGE && sum <= 255 * LARGEST_PAGE as u64, "{count} bytes");
        // The writing end does not trust the other side either.
        put(&mut producer, &[2; 100]);
    }
}

#[test]
fn the_beginning_of_the_ring_is_used_again_while_the_reader_keeps_up() {
    const CAPACITY: u64 = 1 << 16;
    let (mut producer, mut consumer) = pair(CAPACITY as usize);
    let (mut sent, mut seen) = (0_u32, 0_u32);
    let mut send = |producer: &mut Producer| {
        sent += 1;
        assert!(put(producer, &sent.to_le_bytes().repeat(20)));
        producer.writing.at() % CAPACITY
    };
    let mut take = |consumer: &mut Consumer| {
        let check = |got: &[u8]| {
            seen += 1;
            assert_eq!(got, seen.to_le_bytes().repeat(20));
        };
        consumer.drain(check).expect("sound")
    };
    let mut furthest = 0;
    for _ in 0..if cfg!(miri) { 30 } else { 300 } {
        furthest = (0..20).map(|_| send(&mut producer)).fold(furthest, u64::max);
        assert_eq!(take(&mut consumer), 20);
    }
    assert!(furthest <= CAPACITY / 4 + 84, "{furthest}");
    // One who falls behind finds all of the ring kept for it.
    let behind = (0..600).map(|_| send(&mut producer)).fold(0, u64::max);
    assert!(behind > CAPACITY / 2, "{behind}");
    assert_eq!(take(&mut consumer), 600);
}

/// `mmap` refuses an address or an offset that is no multiple of the kernel's page.
#[test]
#[cfg_attr(miri, ignore = "needs shared memory")]
fn a_ring_can_be_mapped_whatever_the_page_size() {
    for page in [4 << 10, 16 << 10, 64 << 10] {
        for asked in [0, 1, 4096, 5000, 1 << 16, 1 << 25] {
            let capacity = asked.max(LARGEST_PAGE).next_power_of_two();
            for Part { at, len, offset } in parts(capacity) {
                assert!([at, len, offset].iter().all(|bytes| bytes % page == 0), "{at} {len} {offset} by {page}");
            }
        }
    }
    let (ring, fd) = Ring::create(1).expect("ring");
    assert_eq!((ring.capacity(), Ring::open(fd.as_fd()).expect("open").capacity()), (LARGEST_PAGE, LARGEST_PAGE));
}

#[test]
fn a_full_ring_refuses_instead_of_overwriting() {
    let (mut producer, mut consumer) = pair(LARGEST_PAGE);
    let mut count = 0;
    while put(&mut producer, &[1; 100]) {
        count += 1;
    }
    assert_eq!(count, LARGEST_PAGE / 104);
    let mut seen = 0;
    consumer.drain(|_| seen += 1).expect("sound");
    assert_eq!(seen, count);
    assert!(put(&mut producer, &[2; 100]));
}

#[test]
fn damage_is_named_not_followed() {
    let (mut producer, mut consumer) = pair(LARGEST_PAGE);
    assert!(put(&mut producer, &[1; 10]));
    let start = producer.ring.data(0).cast::<u32>();
    // SAFETY: inside the mapping; this plays the program that scribbles over the ring.
    unsafe { start.write(0xffff_fff0) };
    assert!(matches!(consumer.drain(|_| ()), Err(RingError::Damaged { at: 0, .. })));
}

#[test]
#[cfg_attr(miri, ignore = "needs shared memory")]
fn foreign_files_and_versions_are_refused() {
    let (ring, fd) = Ring::create(LARGEST_PAGE).expect("ring");
    let header = ring.base.as_ptr().cast::<Header>();
    // SAFETY: inside our own mapping.
    unsafe { (*header).version = FORMAT_VERSION + 1 };
    assert!(matches!(Ring::open(fd.as_fd()), Err(RingError::Version { .. })));
    // SAFETY: inside our own mapping.
    unsafe { (*header).magic = 1 };
    assert!(matches!(Ring::open(fd.as_fd()), Err(RingError::Foreign)));
    let file = std::fs::File::open("/proc/self/exe").expect("open");
    assert!(matches!(Ring::open(file.as_fd()), Err(RingError::Foreign)));
}

#[test]
#[cfg_attr(miri, ignore = "needs shared memory")]
fn what_was_committed_survives_sigkill() {
    for _ in 0..20 {
        let (ring, fd) = Ring::create(1 << 20).expect("ring");
        let mut consumer = Consumer::new(Ring::open(fd.as_fd()).expect("open"));
        let mut producer = Producer::new(ring);
        // SAFETY: the child calls only async-signal-safe code (memory writes) until it is killed.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let mut n = 0_u64;
            loop {
                if let Some(room) = producer.try_reserve(16) {
                    room[..8].copy_from_slice(&n.to_le_bytes());
                    room[8..].copy_from_slice(&(!n).to_le_bytes());
                    producer.commit(16);
                    n += 1;
                }
            }
        }
        let mut next = 0_u64;
        let mut check = |got: &[u8]| {
            assert_eq!(got[..8], next.to_le_bytes());
            assert_eq!(got[8..], (!next).to_le_bytes());
            next += 1;
        };
        for _ in 0..200 {
            consumer.drain(&mut check).expect("sound");
        }
        // SAFETY: child is our own child.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        consumer.drain(&mut check).expect("sound after the kill");
        assert_eq!(consumer.ring().written(), consumer.ring().consumed());
    }
}

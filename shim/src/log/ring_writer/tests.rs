//! Every op of the table, with lists of every length, comes out of the ring or is named as lost.
//!
//! The ops are found by decoding: for each tag, a number is put at each place of a record, and
//! where that makes the record longer, there is the length of a list.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use trace::ring::{Consumer, Producer, Ring};
use trace::{NoteKind, Op, Origin, Record};

use super::RingWriter;

/// No op has more bytes beside its lists, and no item of a list more.
const MOST: usize = 256;

/// Hands each op of the table to `each`, each of its lists in turn with so many items.
fn with_lists(items: usize, mut each: impl FnMut(&Op<'_>)) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for tag in 0..=u16::from(u8::MAX) {
        let mut bytes = vec![0; MOST + items * MOST];
        let Ok(plain) = Op::decode(tag, &bytes).map(|op| op.encoded_len()) else { continue };
        each(&Op::decode(tag, &bytes).expect("decoded before"));
        for at in 0..plain.saturating_sub(3) {
            bytes[at..at + 4].copy_from_slice(&(items as u32).to_le_bytes());
            if let Ok(op) = Op::decode(tag, &bytes)
                && op.encoded_len() >= plain + items
            {
                found.insert(op.name());
                each(&op);
            }
            bytes[at..at + 4].fill(0);
        }
    }
    found
}

/// Writes each op into a small ring and hands what comes out to `each`.
fn through_the_ring(items: usize, mut each: impl FnMut(&Op<'_>, &[u8])) -> BTreeSet<&'static str> {
    let (ring, fd) = Ring::create(1 << 16).expect("ring");
    let mut out = RingWriter::new(Producer::new(ring));
    let mut consumer = Consumer::new(Ring::open(fd.as_fd()).expect("open"));
    with_lists(items, |op| {
        out.emit(&Origin::default(), op);
        let mut records = Vec::new();
        consumer.drain(|bytes| records.push(bytes.to_vec())).expect("whole records");
        assert_eq!(records.len(), 1, "{} with {items} items", op.name());
        each(op, &records[0]);
    })
}

#[test]
fn lists_of_every_length_arrive() {
    let mut with_lists = BTreeSet::new();
    for items in [1, 2, 7, 8, 9, 16, 17, 18, 19, 20, 21, 32, 100, 128, 150, 155, 156, 160, 161, 180, 200, 512] {
        with_lists = through_the_ring(items, |op, bytes| {
            // A length between two bytes of the number is one of 256 times as many items.
            if Origin::encoded_len(op) > 1 << 15 {
                return;
            }
            let mut expected = vec![0; Origin::encoded_len(op)];
            assert_eq!(Origin::default().encode(op, &mut expected), Some(expected.len()), "{}", op.name());
            assert!(bytes == expected, "{} with {items} items", op.name());
        });
    }
    for name in ["Contents", "RangePush", "DomainPush", "Stack", "GraphNode", "Image", "Launch"] {
        assert!(with_lists.contains(name), "{name} is not among {with_lists:?}");
    }
}

#[test]
fn an_op_that_can_never_fit_is_named_as_lost() {
    let lost = through_the_ring(40_000, |op, bytes| {
        let (record, len) = (Record::decode(bytes).expect("a record"), Origin::encoded_len(op));
        // One that is larger than half the ring arrives while the ring is empty.
        if len <= 1 << 15 || (record.op.tag() == op.tag() && len < 1 << 16) {
            assert_eq!((record.op.tag(), bytes.len()), (op.tag(), len), "what fits arrives");
            return;
        }
        let Op::Note { kind: NoteKind::Lost, text, count: 1 } = record.op else {
            panic!("{} was lost without a word: {} came", op.name(), record.op.name())
        };
        assert_eq!(text.lossy(), format!("{} larger than half the ring (raise ring-mib)", op.name()));
    });
    assert!(lost.len() > 20, "{lost:?}");
}

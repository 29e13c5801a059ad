//! The record around an op: who made it, where, and when.

use crate::codec::{DecodeError, Decoder, Encoder, Field};
use crate::id::*;
use crate::op::Op;

/// What every record carries besides its op.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The API function.
    pub call: CallId,
    /// The host thread.
    pub thread: ThreadId,
    /// The call stack.
    pub stack: StackId,
    /// The place that `order` gave the op in the shim: for ops of a stream, the stream's epoch; otherwise the host's.
    pub epoch: Epoch,
}

/// One record of a trace. Its position in the ring or file is the order in which ops were logged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record<'a> {
    /// Who, where, when.
    pub origin: Origin,
    /// What.
    pub op: Op<'a>,
}

/// Bytes of a record before its op's fields: tag, call, thread, stack, timeline, time.
pub const RECORD_HEAD: usize = 2 + 2 + 4 + 4 + 4 + 8;

impl<'a> Record<'a> {
    /// Appends the record (without its length, which framing adds).
    pub fn encode(&self, to: &mut Encoder<'_>) {
        self.op.tag().put(to);
        self.origin.call.put(to);
        self.origin.thread.put(to);
        self.origin.stack.put(to);
        self.origin.epoch.timeline.put(to);
        self.origin.epoch.time.put(to);
        self.op.encode(to);
    }

    /// Reads one record from exactly its bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut from = Decoder::new(bytes);
        let tag = u16::get(&mut from)?;
        let origin = Origin {
            call: Field::get(&mut from)?,
            thread: Field::get(&mut from)?,
            stack: Field::get(&mut from)?,
            epoch: Epoch { timeline: Field::get(&mut from)?, time: Field::get(&mut from)? },
        };
        Ok(Self { origin, op: Op::decode(tag, from.rest())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::List;
    use crate::kind::*;
    use crate::parts::*;
    use crate::region::Region;

    fn round_trip(op: Op<'_>) {
        let record = Record {
            origin: Origin {
                call: CallId(7),
                thread: ThreadId(2),
                stack: StackId(3),
                epoch: Epoch { timeline: TimelineId(4), time: 5 },
            },
            op,
        };
        let mut buffer = [0; 512];
        let mut to = Encoder::new(&mut buffer);
        record.encode(&mut to);
        let len = to.finish().expect("fits");
        let back = Record::decode(&buffer[..len]).expect("decodes");
        assert_eq!(back.origin, record.origin);
        assert_eq!(format!("{:?}", back.op), format!("{:?}", record.op));
        for cut in 0..len {
            assert!(Record::decode(&buffer[..cut]).is_err(), "a record cut at {cut} of {len} must not decode");
        }
    }

    #[test]
    fn every_shape_of_field_survives() {
        round_trip(Op::Launch {
            stream: StreamId(1),
            kernel: KernelId(2),
            grid: [3, 4, 5],
            block: [6, 7, 8],
            cluster: [0; 3],
            shared: 9,
            flags: launch_flags::COOPERATIVE,
            params: &[1, 2, 3],
        });
        round_trip(Op::AttributedCopy {
            stream: StreamId(1),
            dst: Region::linear(1, 2),
            src: Region::linear(3, 4),
            dst_space: Space::Device,
            src_space: Space::Host,
            batch: 5,
            source: SourceOrder::DuringCall,
        });
        round_trip(Op::HostThreads {});
        round_trip(Op::HostEdge { object: 1 << 63, acquire: true, start: false });
        round_trip(Op::Kernel {
            id: KernelId(1),
            name: "_Z3foov".into(),
            image: ImageId(3),
            params: List::new(&[ParamSlot { offset: 0, size: 8 }, ParamSlot { offset: 8, size: 4 }]),
            handle: 77,
        });
        round_trip(Op::Stack {
            id: StackId(1),
            native: List::new(&[1, 2]),
            python: List::new(&[PyFrame { code: PyCodeId(1), offset: 2 }]),
        });
        round_trip(Op::Copy {
            stream: StreamId(1),
            dst: Region::linear(1, 2),
            src: Region::pitched(3, 4, 5, 6),
            dst_space: Space::Device,
            src_space: Space::Host,
            asynchronous: true,
            batch: 0,
        });
    }

    #[test]
    fn unknown_values_are_named() {
        let mut bytes = vec![0; RECORD_HEAD];
        bytes[..2].copy_from_slice(&9999_u16.to_le_bytes());
        assert_eq!(Record::decode(&bytes), Err(DecodeError::UnknownTag(9999)));
        let mut buffer = [0; 64];
        let mut to = Encoder::new(&mut buffer);
        Op::Free { ptr: 1, kind: FreeKind::Plain, stream: StreamId(0) }.encode(&mut to);
        buffer[8] = 200;
        assert_eq!(Op::decode(65, &buffer), Err(DecodeError::BadValue { field: "FreeKind", value: 200 }));
    }
}

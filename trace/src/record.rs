//! The record around an op: who made it, where, and when.

use crate::codec::{DecodeError, Decoder, Encoder, Field};
use crate::id::*;
use crate::op::launch_shape::LaunchShape;
use crate::op::{Op, tag};

/// What every record carries besides its op.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The API function.
    pub call: CallId,
    /// The host thread.
    pub thread: ThreadId,
    /// The call stack.
    pub stack: StackId,
    /// The place that `order` gave the op in the shim: for ops of a stream, the stream's epoch;
    /// otherwise the host's.
    pub epoch: Epoch,
}

impl Origin {
    #[inline(always)]
    fn put(&self, to: &mut Encoder<'_>) {
        self.call.put(to);
        self.thread.put(to);
        self.stack.put(to);
        self.epoch.timeline.put(to);
        self.epoch.time.put(to);
    }

    #[inline(always)]
    fn get(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            call: Field::get(from)?,
            thread: Field::get(from)?,
            stack: Field::get(from)?,
            epoch: Epoch { timeline: Field::get(from)?, time: Field::get(from)? },
        })
    }
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

/// At least the bytes of a record without lists. The widest is that of a copy: two regions of 44
/// bytes.
pub const USUAL_RECORD: usize = RECORD_HEAD + 160;

/// Bytes of a launch's record before its parameters.
pub const LAUNCH_HEAD: usize = RECORD_HEAD + 4 + 4 + LaunchShape::SIZE + 4;

impl Origin {
    /// Writes the record (without its length, which framing adds) of an op to the beginning of
    /// `room`. Answers how many bytes it took, or `None` when they were too few.
    ///
    /// Where a program logs now and then the writer's code is cold each time: there is less of it
    /// while there is room for what has no list.
    #[inline]
    pub fn encode(&self, op: &Op<'_>, room: &mut [u8]) -> Option<usize> {
        if let Op::Launch { stream, kernel, ref shape, params } = *op {
            return self.encode_launch(stream, kernel, shape, params.len(), room, |to| to.copy_from_slice(params));
        }
        if let Some(room) = room.first_chunk_mut::<USUAL_RECORD>()
            && let Some(len) = self.encode_usual(op, room)
        {
            return Some(len);
        }
        self.encode_long(op, room)
    }

    /// Number of bytes of the record that [`Origin::encode`] makes of an op.
    pub fn encoded_len(op: &Op<'_>) -> usize {
        RECORD_HEAD + op.encoded_len()
    }

    #[inline(always)]
    fn encode_usual(&self, op: &Op<'_>, room: &mut [u8; USUAL_RECORD]) -> Option<usize> {
        let (tag, room) = room.split_first_chunk_mut()?;
        let mut to = Encoder::new(room);
        self.put(&mut to);
        op.put(tag, &mut to);
        to.finish().map(|len| 2 + len)
    }

    #[cold]
    #[inline(never)]
    fn encode_long(&self, op: &Op<'_>, room: &mut [u8]) -> Option<usize> {
        let mut to = Encoder::new(room);
        op.tag().put(&mut to);
        self.put(&mut to);
        op.encode(&mut to);
        to.finish()
    }

    /// As [`Origin::encode`], of a launch whose `len` bytes of parameters are written by `fill`.
    #[inline(always)]
    pub fn encode_launch(
        &self,
        stream: StreamId,
        kernel: KernelId,
        shape: &LaunchShape,
        len: usize,
        room: &mut [u8],
        fill: impl FnOnce(&mut [u8]),
    ) -> Option<usize> {
        let (head, rest) = room.split_first_chunk_mut::<LAUNCH_HEAD>()?;
        // A buffer of known length: no place is checked when this runs.
        let mut to = Encoder::new(head);
        tag::Launch.put(&mut to);
        self.put(&mut to);
        stream.put(&mut to);
        kernel.put(&mut to);
        shape.put(&mut to);
        (len as u32).put(&mut to);
        fill(rest.get_mut(..len)?);
        Some(LAUNCH_HEAD + len)
    }
}

impl<'a> Record<'a> {
    /// As [`Origin::encode`].
    #[inline]
    pub fn encode(&self, room: &mut [u8]) -> Option<usize> {
        self.origin.encode(&self.op, room)
    }

    /// Reads one record from exactly its bytes.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        match LaunchRecord::decode(bytes) {
            Some(launch) => launch.map(Self::from),
            None => Self::decode_any(bytes),
        }
    }

    fn decode_any(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut from = Decoder::new(bytes);
        let tag = u16::get(&mut from)?;
        let origin = Origin::get(&mut from)?;
        Ok(Self { origin, op: Op::decode(tag, from.rest())? })
    }
}

/// The record of a launch. Most records of a trace are: they are read straight from their places.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LaunchRecord<'a> {
    /// Who, where, when.
    pub origin: Origin,
    /// The stream.
    pub stream: StreamId,
    /// The kernel.
    pub kernel: KernelId,
    /// Grid, block, cluster, shared memory, flags.
    pub shape: LaunchShape,
    /// The parameter buffer.
    pub params: &'a [u8],
}

impl<'a> LaunchRecord<'a> {
    /// Reads a record from exactly its bytes, if it is a launch.
    #[inline(always)]
    pub fn decode(bytes: &'a [u8]) -> Option<Result<Self, DecodeError>> {
        let (head, rest) = bytes.split_first_chunk::<LAUNCH_HEAD>()?;
        (head[..2] == tag::Launch.to_le_bytes()).then(|| Self::take(head, rest))
    }

    #[inline(always)]
    fn take(head: &'a [u8; LAUNCH_HEAD], rest: &'a [u8]) -> Result<Self, DecodeError> {
        let mut from = Decoder::new(&head[2..]);
        let origin = Origin::get(&mut from)?;
        let (stream, kernel, shape) = (Field::get(&mut from)?, Field::get(&mut from)?, Field::get(&mut from)?);
        let len = u32::get(&mut from)?;
        let params = rest.get(..len as usize).ok_or(DecodeError::BadLength(u64::from(len)))?;
        Ok(Self { origin, stream, kernel, shape, params })
    }
}

impl<'a> From<LaunchRecord<'a>> for Record<'a> {
    #[inline]
    fn from(launch: LaunchRecord<'a>) -> Self {
        let LaunchRecord { origin, stream, kernel, shape, params } = launch;
        Self { origin, op: Op::Launch { stream, kernel, shape, params } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::List;
    use crate::op::items::*;
    use crate::op::kinds::*;
    use crate::op::region::Region;

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
        record.op.tag().put(&mut to);
        record.origin.put(&mut to);
        record.op.encode(&mut to);
        let len = to.finish().expect("fits");
        let mut straight = [0; 512];
        assert_eq!(record.encode(&mut straight), Some(len));
        assert_eq!(Origin::encoded_len(&record.op), len);
        assert_eq!(straight[..len], buffer[..len]);
        assert_eq!(record.encode(&mut straight[..len - 1]), None);
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
            shape: LaunchShape {
                grid: [3, 4, 5],
                block: [6, 7, 8],
                cluster: [2, 1, 0],
                shared: 9,
                flags: launch_flags::COOPERATIVE,
            },
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
    fn the_fields_of_a_shape_stand_among_those_of_its_launch() {
        let shape = LaunchShape { grid: [3, 4, 5], block: [6, 7, 8], cluster: [2, 1, 0], shared: 9, flags: 1 };
        let launch = Op::Launch { stream: StreamId(1), kernel: KernelId(2), shape, params: &[255] };
        assert_eq!(
            format!("{launch:?}"),
            "Launch { stream: StreamId(1), kernel: KernelId(2), grid: [3, 4, 5], block: [6, 7, 8], \
             cluster: [2, 1, 0], shared: 9, flags: 1, params: [255] }"
        );
        let mut bytes = [0; 57];
        launch.encode(&mut Encoder::new(&mut bytes));
        let words: [u32; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 2, 1, 0, 9, 1, 1];
        let laid: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain([255]).collect();
        assert_eq!(bytes[..], laid[..]);
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
